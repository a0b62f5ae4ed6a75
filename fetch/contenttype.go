package fetch

import (
	"strings"

	"golang.org/x/net/http/httpguts"
)

// ReadType is the one type that a Content-Type gives (MIME Sniffing, section
// 4.4; Fetch, "extract a MIME type"): v itself where it is plainly one, else the
// last valid one of the list in v, with the charset declared for it. It is ""
// where the content has to decide: v names none, an unknown one or */*.
func ReadType(v string) string {
	v = trimBlanks(v)
	if !strings.ContainsAny(v, `,"\`) {
		if essence, _, _ := parseType(v); essence != "" && !undecided(essence) {
			return v
		}
		return ""
	}
	var essence, charset string
	for v != "" {
		var one string
		one, v = nextListed(v)
		e, cs, has := parseType(one)
		if e == "" || e == "*/*" {
			continue
		}
		if e != essence || has {
			charset = cs
		}
		essence = e
	}
	if undecided(essence) {
		return ""
	}
	return typed(essence, charset)
}

// withCharset is the type that the content shows, with the charset that a
// Content-Type which names none may declare all the same.
func withCharset(sniffed, v string) string {
	if sniffed == "" || v == "" {
		return sniffed
	}
	i := strings.Index(strings.ToLower(v), "charset=")
	if i < 0 {
		return sniffed
	}
	_, charset, _ := parseType("x/x;" + v[i:])
	return typed(sniffed, charset)
}

func typed(essence, charset string) string {
	if essence == "" || !httpguts.ValidHeaderFieldName(charset) {
		return essence
	}
	return essence + ";charset=" + charset
}

// undecided names the types that say nothing (MIME Sniffing, section 7).
func undecided(essence string) bool {
	switch essence {
	case "*/*", "unknown/unknown", "application/unknown":
		return true
	}
	return false
}

func trimBlanks(s string) string { return strings.Trim(s, " \t\r\n") }

// nextListed cuts the first element off a list; commas in quotes do not part.
func nextListed(v string) (one, rest string) {
	quoted := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ',' && !quoted:
			return v[:i], v[i+1:]
		}
	}
	return v, ""
}

// parseType reads one type (MIME Sniffing, section 4.4): type/subtype in lower
// case, "" if it is none, and the first charset that it declares.
func parseType(v string) (essence, charset string, has bool) {
	v = trimBlanks(v)
	essence, params, _ := strings.Cut(v, ";")
	essence = strings.ToLower(trimBlanks(essence))
	major, minor, ok := strings.Cut(essence, "/")
	if !ok || !httpguts.ValidHeaderFieldName(major) || !httpguts.ValidHeaderFieldName(minor) {
		return "", "", false
	}
	for params != "" {
		var name, value string
		name, value, params = nextParam(params)
		if value != "" && strings.EqualFold(name, "charset") {
			return essence, value, true
		}
	}
	return essence, "", false
}

// nextParam cuts the first parameter off. A value in quotes ends at the closing
// one or with v, its escapes undone.
func nextParam(v string) (name, value, rest string) {
	v = strings.TrimLeft(v, " \t\r\n")
	end := strings.IndexAny(v, ";=")
	if end < 0 {
		return v, "", ""
	}
	name = v[:end]
	if v[end] == ';' {
		return name, "", v[end+1:]
	}
	v = v[end+1:]
	if !strings.HasPrefix(v, `"`) {
		value, rest, _ = strings.Cut(v, ";")
		return name, strings.TrimRight(value, " \t\r\n"), rest
	}
	var b strings.Builder
	i := 1
	for ; i < len(v) && v[i] != '"'; i++ {
		if v[i] == '\\' && i+1 < len(v) {
			i++
		}
		b.WriteByte(v[i])
	}
	_, rest, _ = strings.Cut(v[i:], ";")
	return name, b.String(), rest
}
