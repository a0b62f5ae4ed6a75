package extract

import (
	"bytes"
	"strconv"
)

// srcset takes the next candidate's URL off a srcset attribute (HTML,
// 4.8.4.2.3 "parse a srcset attribute"); nil when there is none. Candidates
// with descriptors that mean nothing are passed over, as the standard has it.
func srcset(b []byte) (url, rest []byte) {
	for {
		for len(b) > 0 && (isSpace(b[0]) || b[0] == ',') {
			b = b[1:]
		}
		if len(b) == 0 {
			return nil, nil
		}
		n := 0
		for n < len(b) && !isSpace(b[n]) {
			n++
		}
		url, b = b[:n], b[n:]
		if url[n-1] == ',' { // no descriptors
			return bytes.TrimRight(url, ","), b
		}
		var ok bool
		if b, ok = skipDescriptors(b); ok {
			return url, b
		}
	}
}

// skipDescriptors reads a candidate's descriptors up to the comma that ends
// it, and tells whether they are valid.
func skipDescriptors(b []byte) (rest []byte, ok bool) {
	var d descriptors
	start, parens := 0, false
	for i := 0; ; i++ {
		switch {
		case i == len(b):
			d.add(b[start:])
			return nil, d.valid()
		case parens:
			parens = b[i] != ')'
		case b[i] == '(':
			parens = true
		case b[i] == ',':
			d.add(b[start:i])
			return b[i+1:], d.valid()
		case isSpace(b[i]):
			d.add(b[start:i])
			start = i + 1
		}
	}
}

// descriptors are those of one candidate.
type descriptors struct {
	width, density, height, bad bool
}

func (d *descriptors) add(b []byte) {
	if len(b) == 0 {
		return
	}
	val, unit := b[:len(b)-1], b[len(b)-1]
	switch {
	case unit == 'w' && isPositive(val) && !d.width && !d.density:
		d.width = true
	case unit == 'h' && isPositive(val) && !d.height && !d.density:
		d.height = true
	case unit == 'x' && isFloat(val) && !d.width && !d.density && !d.height:
		d.density = true
	default:
		d.bad = true
	}
}

func (d *descriptors) valid() bool { return !d.bad && (!d.height || d.width) }

func isPositive(b []byte) bool {
	zero := true
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
		zero = zero && c == '0'
	}
	return !zero
}

// isFloat tells whether b is a valid floating-point number of at least 0 (HTML,
// 2.3.4.3).
func isFloat(b []byte) bool {
	if len(b) == 0 || len(b) > 64 || b[0] == '+' || b[len(b)-1] == '.' {
		return false
	}
	for _, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c|0x20 != 'e' {
			return false
		}
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return err == nil && v >= 0
}

// refresh takes the URL out of a refresh directive (HTML, 4.2.5.3 "shared
// declarative refresh steps"); false when it names none.
func refresh(b []byte) ([]byte, bool) {
	b = trimLeft(b)
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	if n == 0 && (len(b) == 0 || b[0] != '.') {
		return nil, false
	}
	for n < len(b) && (b[n] >= '0' && b[n] <= '9' || b[n] == '.') {
		n++
	}
	if b = b[n:]; len(b) == 0 || b[0] != ';' && b[0] != ',' && !isSpace(b[0]) {
		return nil, false
	}
	b = trimLeft(b)
	if len(b) > 0 && (b[0] == ';' || b[0] == ',') {
		b = trimLeft(b[1:])
	}
	if len(b) == 0 {
		return nil, false
	}
	if len(b) >= 3 && equalFold(b[:3], "url") {
		if rest := trimLeft(b[3:]); len(rest) > 0 && rest[0] == '=' {
			b = trimLeft(rest[1:])
		} else {
			return b, true // "url" is how the URL itself starts
		}
	}
	if len(b) > 0 && (b[0] == '"' || b[0] == '\'') {
		q := b[0]
		b = b[1:]
		if i := bytes.IndexByte(b, q); i >= 0 {
			b = b[:i]
		}
	}
	return b, len(b) > 0
}

func trimLeft(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	return b
}
