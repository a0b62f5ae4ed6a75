package canon

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// domain turns the host of an http or https URL, which is no IPv6 literal, to
// ASCII as https://url.spec.whatwg.org/#concept-host-parser has it; "" if it is
// none. Whatever is ASCII already only goes to lower case, "xn--" labels too,
// well-formed or not: so the standard has it since 2025, and the library's
// check of such labels is left out with it.
func (p *Parser) domain(host string) string {
	name := unescape(host)
	if !utf8.Valid(name) {
		return ""
	}
	if isASCII(name) {
		lower(name)
	} else {
		s, err := p.idna.ToASCII(strings.Map(remap, string(name)))
		if err != nil {
			return ""
		}
		name = []byte(s)
	}
	for _, c := range name {
		if c <= ' ' || c >= 0x7f || bytes.IndexByte(forbidden, c) >= 0 {
			return ""
		}
	}
	return string(name)
}

// remap brings to the tables of x/net, of Unicode 15, what the standard maps
// otherwise since Unicode 16: -1 drops a character. With newer tables it changes
// nothing.
func remap(r rune) rune {
	switch {
	case r < 0x4C0:
		return r
	case 0x10A0 <= r && r <= 0x10C5: // Georgian capitals
		return r - 0x10A0 + 0x2D00
	case r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, // Hangul fillers
		r == 0x17B4, r == 0x17B5, r == 0x180E,
		0x2061 <= r && r <= 0x2063, 0x206A <= r && r <= 0x206F,
		0x1D173 <= r && r <= 0x1D17A:
		return -1
	}
	switch r {
	case 0x4C0:
		return 0x4CF
	case 0x1E9E: // capital sharp s
		return 0xDF
	case 0x2132:
		return 0x214E
	case 0x2183:
		return 0x2184
	case 0x2F868:
		return 0x36FC
	case 0x2F874:
		return 0x5F53
	case 0x2F91F:
		return 0x243AB
	case 0x2F95F:
		return 0x7AEE
	case 0x2F9BF:
		return 0x45D7
	}
	return r
}

// forbidden are the forbidden domain code points beside controls and space.
var forbidden = []byte(`#/:<>?@[\]^|%`)

// unescape decodes all escapes of s; other percent signs stay.
func unescape(s string) []byte {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && unhex[s[i+1]] <= 15 && unhex[s[i+2]] <= 15 {
			b = append(b, unhex[s[i+1]]<<4|unhex[s[i+2]])
			i += 2
		} else {
			b = append(b, s[i])
		}
	}
	return b
}
