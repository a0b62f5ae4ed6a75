package preference

import "strings"

// dictionary reads a Dictionary of RFC 9651 (section 4.2.2) member by member. Of values it
// keeps tokens alone: nothing else means anything to the forms that are read with it. A
// library takes ten times as long and allocates, and robots.txt may have each page of a site
// read one.
type dictionary struct {
	rest  string
	key   string
	token string // value of the member, "" where that is no token
	begun bool
	bad   bool // it does not parse, so that no member counts
}

// next reads the next member. It reports false at the end, or where nothing parses.
func (d *dictionary) next() bool {
	if d.begun && d.rest != "" {
		d.skip(" \t")
		if d.rest != "" {
			d.expect(',')
			if d.skip(" \t"); d.rest == "" {
				d.bad = true // a comma at the end
			}
		}
	}
	d.begun = true
	if d.bad || d.rest == "" {
		return false
	}
	d.key, d.token = d.readKey(), ""
	if d.take('=') {
		if d.take('(') {
			d.readList()
		} else {
			d.token = d.readItem()
		}
	}
	d.readParameters()
	return !d.bad
}

func (d *dictionary) skip(chars string) { d.rest = strings.TrimLeft(d.rest, chars) }

// take passes c if it is next.
func (d *dictionary) take(c byte) bool {
	if d.rest == "" || d.rest[0] != c {
		return false
	}
	d.rest = d.rest[1:]
	return true
}

func (d *dictionary) expect(c byte) {
	if !d.take(c) {
		d.bad = true
	}
}

// run passes the characters that is tells, and returns them.
func (d *dictionary) run(is func(c byte) bool) string {
	n := 0
	for n < len(d.rest) && is(d.rest[n]) {
		n++
	}
	text := d.rest[:n]
	d.rest = d.rest[n:]
	return text
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlpha(c byte) bool { return isLower(c | 0x20) }

func (d *dictionary) readKey() string {
	if d.rest == "" || !isLower(d.rest[0]) && d.rest[0] != '*' {
		d.bad = true
		return ""
	}
	return d.run(func(c byte) bool { return isLower(c) || isDigit(c) || strings.IndexByte("_-.*", c) >= 0 })
}

func (d *dictionary) readParameters() {
	for !d.bad && d.take(';') {
		d.skip(" ")
		if d.readKey(); d.take('=') {
			d.readItem()
		}
	}
}

// readList reads the rest of an inner list.
func (d *dictionary) readList() {
	for !d.bad {
		if d.skip(" "); d.take(')') {
			return
		}
		d.readItem()
		d.readParameters()
		if d.rest == "" || d.rest[0] != ' ' && d.rest[0] != ')' {
			d.bad = true
		}
	}
}

// readItem reads a bare item and returns it if it is a token.
func (d *dictionary) readItem() (token string) {
	if d.rest == "" {
		d.bad = true
		return ""
	}
	switch c := d.rest[0]; {
	case isAlpha(c) || c == '*':
		return d.run(func(c byte) bool { return isAlpha(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0 })
	case isDigit(c) || c == '-':
		d.readNumber()
	case c == '"':
		d.rest = d.rest[1:]
		d.readString()
	case c == '?':
		if d.rest = d.rest[1:]; !d.take('0') {
			d.expect('1')
		}
	case c == ':':
		d.rest = d.rest[1:]
		d.run(func(c byte) bool { return isAlpha(c) || isDigit(c) || c == '+' || c == '/' || c == '=' })
		d.expect(':')
	case c == '@':
		d.rest = d.rest[1:]
		d.readNumber()
	case strings.HasPrefix(d.rest, `%"`):
		d.rest = d.rest[2:]
		d.run(func(c byte) bool { return c >= 0x20 && c < 0x7f && c != '"' })
		d.expect('"')
	default:
		d.bad = true
	}
	return ""
}

// readNumber reads an integer or a decimal, of at most 15 digits.
func (d *dictionary) readNumber() {
	d.take('-')
	whole := d.run(isDigit)
	d.bad = d.bad || whole == "" || len(whole) > 15
	if d.take('.') {
		part := d.run(isDigit)
		d.bad = d.bad || part == "" || len(part) > 3 || len(whole) > 12
	}
}

// readString reads the rest of a string.
func (d *dictionary) readString() {
	for {
		d.run(func(c byte) bool { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' })
		if d.take('"') {
			return
		}
		if d.expect('\\'); d.bad || !d.take('"') && !d.take('\\') {
			d.bad = true
			return
		}
	}
}
