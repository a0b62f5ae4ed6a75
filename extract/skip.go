package extract

import "bytes"

// skipTag returns the end of the tag that b starts with, -1 when b ends first;
// i is where its name ends. Quotes count only after a '=' that follows a name.
func skipTag(b []byte, i int) int {
	for zone := i; ; {
		for i+8 <= len(b) {
			w := load(b, i)
			if hit := equal(w, '>') | equal(w, '='); hit != 0 {
				i += first(hit)
				break
			}
			i += 8
		}
		for i < len(b) && b[i] != '>' && b[i] != '=' {
			i++
		}
		if i == len(b) {
			return -1
		}
		if b[i] == '>' {
			return i + 1
		}
		k := i - 1
		for k >= zone && isSpace(b[k]) {
			k--
		}
		if k < zone || b[k] == '/' { // a '=' where a name should start is part of the name
			i++
			continue
		}
		if i = skipValue(b, i+1); i < 0 {
			return -1
		}
		zone = i
	}
}

// skipValue returns the end of an attribute's value, as value does.
func skipValue(b []byte, i int) int {
	if i < len(b) && b[i] == '"' {
		if n := next(b, i+1, '"'); n >= 0 {
			return n + 1
		}
		return -1
	}
	_, _, end := value(b, i)
	return end
}

// walker finds the end of a tag that comes in pieces.
type walker uint8

const (
	inName walker = iota
	beforeAttr
	inAttr
	afterAttr
	beforeValue
	inDouble
	inSingle
	inBare
)

// walk reads on and returns the offset after the tag's '>', -1 when b ends first.
func (w *walker) walk(b []byte) int {
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch *w {
		case inDouble, inSingle:
			quote := byte('"')
			if *w == inSingle {
				quote = '\''
			}
			n := bytes.IndexByte(b[i:], quote)
			if n < 0 {
				return -1
			}
			i += n
			*w = beforeAttr
			continue
		}
		if c == '>' {
			return i + 1
		}
		*w = w.next(c)
	}
	return -1
}

// next is the state after c, which is no '>', outside quotes.
func (w walker) next(c byte) walker {
	space := isSpace(c)
	switch w {
	case inName:
		if space || c == '/' {
			return beforeAttr
		}
	case beforeAttr:
		if !space && c != '/' {
			return inAttr
		}
	case inAttr, afterAttr:
		switch {
		case space:
			return afterAttr
		case c == '/':
			return beforeAttr
		case c == '=':
			return beforeValue
		}
		return inAttr
	case beforeValue:
		switch {
		case c == '"':
			return inDouble
		case c == '\'':
			return inSingle
		case !space:
			return inBare
		}
	case inBare:
		if space {
			return beforeAttr
		}
	}
	return w
}
