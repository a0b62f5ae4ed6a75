package fetch

import (
	"regexp"
	"strings"

	"golang.org/x/net/http/httpguts"

	"seine/extract/mediatype"
)

// ReadType is the one type that a Content-Type gives: v itself where it is plainly
// one, else the type and the charset that mediatype.Extract takes out of v. It is ""
// where the content has to decide: v names none, an unknown one or */*.
func ReadType(v string) string {
	v = strings.Trim(v, " \t\r\n")
	essence, charset := mediatype.Extract(v)
	switch {
	case essence == "", undecided(essence):
		return ""
	case !strings.ContainsAny(v, `,"\`):
		return v
	}
	return typed(essence, charset)
}

// withCharset is the type that the content shows, with the charset that a
// Content-Type which names none may declare all the same.
func withCharset(sniffed, v string) string {
	at := charsetName.FindStringIndex(v)
	if sniffed == "" || at == nil {
		return sniffed
	}
	charset, _ := mediatype.Charset(v[at[0]:])
	return typed(sniffed, charset)
}

var charsetName = regexp.MustCompile("(?i:charset)=")

func typed(essence, charset string) string {
	if !httpguts.ValidHeaderFieldName(charset) {
		return essence
	}
	return essence + ";charset=" + charset
}

// undecided names the types that say nothing (MIME Sniffing, section 7).
func undecided(essence string) bool {
	return essence == "unknown/unknown" || essence == "application/unknown"
}
