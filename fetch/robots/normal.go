package robots

// What becomes of a byte in the normal form. Those from changed on may look
// different there.
const (
	kept    = iota
	decoded // ordinary: an escape of it is equal to itself
	changed // the percent sign, and what the following say
	star    // escaped in paths, the wildcard in patterns
	escaped // never stands for itself in a URL
)

// class is the kind of each byte: RFC 3986's unreserved characters and $ have no
// special meaning when escaped, its excluded ones are always escaped.
var class = func() (t [256]uint8) {
	for c := range t {
		if c <= ' ' || c >= 0x7f {
			t[c] = escaped
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = decoded, decoded
	}
	for _, c := range []byte("0123456789-._~$") {
		t[c] = decoded
	}
	for _, c := range []byte("\"<>[]\\^`{|}") {
		t[c] = escaped
	}
	t['%'], t['*'] = changed, star
	return t
}()

const upperHex = "0123456789ABCDEF"

// appendNormal appends the normal form of a path or a pattern. With query,
// escapes of : / ? @ behind the first question mark are decoded as well.
func appendNormal(dst, s []byte, pattern, query bool) []byte {
	inQuery, after := false, byte(0) // after: the star just appended
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch class[c] {
		case escaped:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		case star:
			if !pattern {
				dst = append(dst, "%2A"...)
			} else if after != '*' {
				dst = append(dst, '*')
			}
		case changed:
			v, ok := unescape(s[i:])
			switch {
			case !ok: // a percent sign that escapes nothing is one itself
				dst = append(dst, "%25"...)
				after = c
				continue
			case class[v] == decoded || (query && inQuery && isDelimiter(v)):
				dst = append(dst, v)
			default:
				dst = append(dst, '%', upperHex[v>>4], upperHex[v&15])
			}
			i += 2
		default:
			inQuery = inQuery || c == '?'
			dst = append(dst, c)
		}
		after = c
	}
	return dst
}

func isDelimiter(c byte) bool { return c == ':' || c == '/' || c == '?' || c == '@' }

// hasDelimiter reports whether a query in normal form has a delimiter, escaped or not.
func hasDelimiter(s []byte) bool {
	for i := range s {
		if isDelimiter(s[i]) {
			return true
		}
		if s[i] == '%' {
			if v, ok := unescape(s[i:]); ok && isDelimiter(v) {
				return true
			}
		}
	}
	return false
}

// unescape reads the escape that s begins with.
func unescape(s []byte) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	hi, ok1 := nibble(s[1])
	lo, ok2 := nibble(s[2])
	return hi<<4 | lo, ok1 && ok2
}

func nibble(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
