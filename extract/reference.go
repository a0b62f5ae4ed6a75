package extract

import (
	"html"
	"strings"
	"unicode/utf8"

	"seine/extract/charset"
)

// decoder turns bytes of a document into UTF-8 and character references into
// what they stand for. What it returns lives in its scratch memory until release.
type decoder struct {
	charset.Decoder
	scratch  []byte
	entities map[string]string // named references met, bounded; "" is none
}

const maxEntities = 512

// release gives the scratch memory back for reuse.
func (d *decoder) release() { d.scratch = d.scratch[:0] }

// plain reports whether b means itself: ASCII without '&', CR and NUL.
func plain(b []byte) bool {
	if len(b) >= 8 {
		for i := 0; i+8 < len(b); i += 8 {
			if !plainWord(load(b, i)) {
				return false
			}
		}
		return plainWord(load(b, len(b)-8))
	}
	for _, c := range b {
		if c >= 0x80 || c == '&' || c == '\r' || c == 0 {
			return false
		}
	}
	return true
}

// plainWord is plain for eight bytes.
func plainWord(w uint64) bool {
	return (w|equal(w, '&')|equal(w, '\r')|zeroBytes(w))&highs == 0
}

// attribute decodes an attribute's value: b itself when there is nothing to
// decode.
func (d *decoder) attribute(b []byte) []byte {
	if plain(b) {
		return b
	}
	return d.references(d.utf8(b), true)
}

// text decodes text outside of tags.
func (d *decoder) text(b []byte) []byte {
	if plain(b) {
		return b
	}
	return d.references(d.utf8(b), false)
}

// utf8 converts b from the document's encoding.
func (d *decoder) utf8(b []byte) []byte {
	if d.Plain(b) {
		return b
	}
	from := len(d.scratch)
	d.scratch = d.Append(d.scratch, b)
	return d.scratch[from:]
}

// references replaces character references (13.2.5.72), NUL by U+FFFD and CR
// and CR LF by LF. In attributes a name without ';' counts only when no letter,
// digit or '=' follows it.
func (d *decoder) references(b []byte, attr bool) []byte {
	from := len(d.scratch)
	out := d.scratch
	for i := 0; i < len(b); {
		switch c := b[i]; c {
		case '&':
			n := 0
			if out, n = d.reference(out, b[i:], attr); n == 0 {
				out = append(out, '&')
				n = 1
			}
			i += n
		case 0:
			out = append(out, "\uFFFD"...)
			i++
		case '\r':
			out = append(out, '\n')
			if i++; i < len(b) && b[i] == '\n' {
				i++
			}
		default:
			out = append(out, c)
			i++
		}
	}
	d.scratch = out
	return out[from:]
}

// reference appends what the reference at b's '&' stands for and returns its
// length, 0 when it is none.
func (d *decoder) reference(out, b []byte, attr bool) ([]byte, int) {
	if len(b) > 1 && b[1] == '#' {
		return numeric(out, b)
	}
	i := 1
	for i < len(b) && i < 40 && isAlnum(b[i]) {
		i++
	}
	if i == 1 {
		return out, 0
	}
	semi := i < len(b) && b[i] == ';'
	if semi {
		if string(b[1:i]) == "amp" { // by far the most frequent
			return append(out, '&'), 5
		}
		if s := d.named(b[:i+1]); s != "" {
			return append(out, s...), i + 1
		}
	}
	if attr {
		if semi || i < len(b) && (b[i] == '=' || isAlnum(b[i])) {
			return out, 0 // at most a shorter name, with a letter or digit behind it
		}
		return d.short(out, b[:i])
	}
	for n := min(i, 7); n > 2; n-- { // the longest name that needs no ';'
		if o, k := d.short(out, b[:n]); k > 0 {
			return o, k
		}
	}
	return out, 0
}

// short appends what a name without ';' stands for.
func (d *decoder) short(out, b []byte) ([]byte, int) {
	if len(b) > 7 {
		return out, 0
	}
	s := d.named(b)
	if s == "" {
		return out, 0
	}
	return append(out, s...), len(b)
}

// named looks up a reference with its '&' and, if it has one, its ';'. The
// list is the standard library's.
func (d *decoder) named(b []byte) string {
	if s, ok := d.entities[string(b)]; ok {
		return s
	}
	name := string(b)
	s := html.UnescapeString(name)
	switch {
	case s == name:
		s = ""
	case strings.HasSuffix(name, ";"):
		if s != ";" && strings.HasSuffix(s, ";") { // only a shorter name was one
			s = ""
		}
	case html.UnescapeString(name[:len(name)-1])+name[len(name)-1:] == s: // likewise
		s = ""
	}
	if d.entities == nil {
		d.entities = make(map[string]string)
	} else if len(d.entities) >= maxEntities {
		clear(d.entities)
	}
	d.entities[name] = s
	return s
}

// numeric appends the character of a numeric reference (13.2.5.80).
func numeric(out, b []byte) ([]byte, int) {
	i, base := 2, rune(10)
	if i < len(b) && b[i]|0x20 == 'x' {
		i, base = 3, 16
	}
	start, r := i, rune(0)
	for ; i < len(b); i++ {
		d := digit(b[i])
		if d >= base {
			break
		}
		if r = r*base + d; r > 0x10FFFF {
			r = 0x110000
		}
	}
	if i == start {
		return out, 0
	}
	if i < len(b) && b[i] == ';' {
		i++
	}
	switch {
	case r == 0 || r > 0x10FFFF || r >= 0xD800 && r < 0xE000:
		r = utf8.RuneError
	case r >= 0x80 && r < 0xA0:
		if w := [...]rune{
			0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017D, 0,
			0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0, 0x017E, 0x0178,
		}[r-0x80]; w != 0 {
			r = w
		}
	}
	return utf8.AppendRune(out, r), i
}

func digit(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return 16
}

func isAlnum(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' }
