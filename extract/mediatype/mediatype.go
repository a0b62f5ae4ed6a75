// Package mediatype reads the Content-Type of an answer as browsers do: by the Fetch
// standard, "extract a MIME type", and for each type in it by MIME Sniffing, section
// 4.4, "parse a MIME type".
package mediatype

import (
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Extract is the one type that a Content-Type gives, type/subtype in lower case, and
// the charset that goes with it: of the values that a comma parts, the last that is a
// type. Several header lines are one such list. Type is "" where no value is one, or
// only */*; charset is "" where none is declared.
func Extract(v string) (essence, charset string) {
	current := "" // the charset that goes on to later values of the same type
	for more := true; more; {
		var one string
		one, v, more = nextListed(v)
		e, declared, has := Parse(one)
		if e == "" || e == "*/*" {
			continue
		}
		switch charset = declared; {
		case e != essence:
			essence, current = e, declared
		case !has:
			charset = current
		}
	}
	return essence, charset
}

// nextListed cuts the first value off a list; commas in quotes do not part.
func nextListed(v string) (one, rest string, more bool) {
	quoted := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ',' && !quoted:
			return v[:i], v[i+1:], true
		}
	}
	return v, "", false
}

// Parse reads one type: type/subtype in lower case, "" if it is none, and the first
// charset that it declares, if it has one.
func Parse(v string) (essence, charset string, has bool) {
	essence, params, _ := strings.Cut(v, ";")
	essence = strings.ToLower(trim(essence))
	major, minor, ok := strings.Cut(essence, "/")
	if !ok || !httpguts.ValidHeaderFieldName(major) || !httpguts.ValidHeaderFieldName(minor) {
		return "", "", false
	}
	charset, has = Charset(params)
	return essence, charset, has
}

// Charset is the first charset among the parameters of a type, without the blanks
// that a label may have around it.
func Charset(params string) (charset string, has bool) {
	for params != "" {
		var name, value string
		var ok bool
		if name, value, ok, params = nextParam(params); ok && strings.EqualFold(name, "charset") && isQuotable(value) {
			return trim(value), true
		}
	}
	return "", false
}

// nextParam cuts the first parameter off; ok is false of one without a value. A value
// in quotes ends at the closing one or with v, its escapes undone.
func nextParam(v string) (name, value string, ok bool, rest string) {
	v = strings.TrimLeft(v, blanks)
	end := strings.IndexAny(v, ";=")
	if end < 0 {
		return v, "", false, ""
	}
	name = v[:end]
	if v[end] == ';' {
		return name, "", false, v[end+1:]
	}
	v = v[end+1:]
	if !strings.HasPrefix(v, `"`) {
		value, rest, _ = strings.Cut(v, ";")
		value = strings.TrimRight(value, blanks)
		return name, value, value != "", rest
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
	return name, b.String(), true, rest
}

const blanks = " \t\r\n"

func trim(s string) string { return strings.Trim(s, blanks) }

// isQuotable reports whether v may stand in a quoted string.
func isQuotable(v string) bool {
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
