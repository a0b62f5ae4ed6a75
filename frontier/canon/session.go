package canon

import "bytes"

// Session ids are recognised by their form, as Heritrix does: a name that servers give
// them, and a value that no person would choose. They stand in the query, in the
// parameters of a path segment (RFC 3986, section 3.3), or, in ASP.NET, as a segment
// of their own.

// sessionLen is the least number of letters and digits in a session id.
const sessionLen = 24

// sessionPart says what a parameter is to a session id.
type sessionPart uint8

const (
	noSession sessionPart = iota
	wholeSession
	coldFusionID    // CFID and CFTOKEN are one only together
	coldFusionToken // the second half
)

// sessionOf judges a parameter, name=value. Names are compared without regard to case.
func sessionOf(pair []byte) sessionPart {
	name, value, _ := bytes.Cut(pair, []byte{'='})
	var low [24]byte // longer than any name
	switch name := string(appendLower(low[:0], name)); {
	case name == "phpsessid", name == "sid", len(name) == len("aspsessionid")+8 && name[:len("aspsessionid")] == "aspsessionid":
		if n := alnums(value); n >= sessionLen && n == len(value) {
			return wholeSession
		}
	case name == "jsessionid": // behind it a server may name itself
		if n := alnums(value); n >= sessionLen && (n == len(value) || value[n] == '.' || value[n] == '!' || value[n] == '-') {
			return wholeSession
		}
	case name == "cfid":
		if n := bytes.Trim(value, "0123456789"); len(n) == 0 && len(value) > 0 {
			return coldFusionID
		}
	case name == "cftoken":
		if n := bytes.Trim(value, "0123456789abcdefABCDEF-"); len(n) == 0 && len(value) > 0 {
			return coldFusionToken
		}
	}
	return noSession
}

// alnums is how many letters and digits s begins with.
func alnums(s []byte) int {
	for i, c := range s {
		if !isAlnum(c) {
			return i
		}
	}
	return len(s)
}

func isAlnum(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// isSessionSegment says whether a path segment is one of ASP.NET: in parentheses a
// letter and 24 characters in parentheses, once or several times.
func isSessionSegment(s []byte) bool {
	const one = len("S()") + sessionLen
	if len(s) < one+2 || s[0] != '(' || s[len(s)-1] != ')' || (len(s)-2)%one != 0 {
		return false
	}
	for s = s[1 : len(s)-1]; len(s) > 0; s = s[one:] {
		if s[0]|0x20 < 'a' || s[0]|0x20 > 'z' || s[1] != '(' || alnums(s[2:one]) != sessionLen || s[one-1] != ')' {
			return false
		}
	}
	return true
}

// mayHoldSession is a first look at a path.
func mayHoldSession(path []byte) bool {
	return bytes.IndexByte(path, ';') >= 0 || bytes.Contains(path, []byte("/("))
}

// stripSessions takes session ids out of the path that stands in b from at on, in
// place: each parameter that is one, and each segment that is one with its slash.
func stripSessions(b []byte, at int) []byte {
	if !mayHoldSession(b[at:]) {
		return b
	}
	path, out := b[at:], b[:at]
	for len(path) > 0 { // it begins with the slash of the next segment
		end := 1 + bytes.IndexByte(path[1:], '/')
		if end == 0 {
			end = len(path)
		}
		mark := len(out)
		out = appendSegment(append(out, '/'), path[1:end])
		if path = path[end:]; isSessionSegment(out[mark+1:]) {
			out = out[:mark]
			if len(path) == 0 {
				out = append(out, '/')
			}
		}
	}
	return out
}

// appendSegment appends a segment without the parameters that are session ids. dst may
// end where the segment begins.
func appendSegment(dst, segment []byte) []byte {
	end := bytes.IndexByte(segment, ';')
	if end < 0 {
		return append(dst, segment...)
	}
	if name := segment[:end]; string(name) == "." || string(name) == ".." { // alone it would lead elsewhere
		return append(dst, segment...)
	}
	var parts [2]bool // of a pair
	for p := range bytes.SplitSeq(segment[end+1:], []byte{';'}) {
		switch sessionOf(p) {
		case coldFusionID:
			parts[0] = true
		case coldFusionToken:
			parts[1] = true
		}
	}
	dst = append(dst, segment[:end]...)
	for p := range bytes.SplitSeq(segment[end+1:], []byte{';'}) {
		if is := sessionOf(p); is == noSession || is != wholeSession && !(parts[0] && parts[1]) {
			dst = append(append(dst, ';'), p...)
		}
	}
	return dst
}
