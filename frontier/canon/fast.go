package canon

import (
	"bytes"
	"unicode/utf8"
)

// maxFast bounds the texts that the fast path looks at. Longer ones are data
// URLs, which the slow path tells by their scheme, or too long.
const maxFast = 1 << 13

// fast resolves raw if it is one of the plain cases and says whether it was. It
// writes to dst only then, and gives what slow would give.
//
// A text is read once, to learn where its parts end and, as the union of the
// classes of its bytes, what has to be done to them: most often nothing, and
// the parts are copied.
func (p *Parser) fast(dst, base *URL, raw []byte, legacy bool) bool {
	raw = trim(raw)
	if len(raw) > maxFast {
		return false
	}
	if len(raw) >= len("https://") && string(raw[:4]) == "http" {
		if string(raw[4:7]) == "://" {
			return p.fastHost(dst, raw[:7], raw[7:], legacy)
		}
		if string(raw[4:8]) == "s://" {
			return p.fastHost(dst, raw[:8], raw[8:], legacy)
		}
	}
	if base == nil {
		return false
	}
	if len(raw) == 0 || raw[0] == '#' {
		dst.inherit(base, len(base.buf))
		dst.query, dst.flags = base.query, dst.flags&hasPercent|p.rules
		return true
	}
	switch raw[0] {
	case '/':
		if len(raw) > 1 && raw[1] == '/' {
			return p.fastHost(dst, base.buf[:base.auth], raw[2:], legacy)
		}
		s := scan(raw)
		if !s.plain(raw, legacy) {
			return false
		}
		dst.inherit(base, base.path+1)
		dst.finish(raw[1:s.path], raw[s.path:s.end], s, p.rules)
	case '?':
		s := scan(raw)
		if !s.plain(raw, legacy) {
			return false
		}
		dst.inherit(base, base.query)
		dst.finish(nil, raw[:s.end], s, p.rules)
	default:
		rest, dir := climb(base, raw)
		s := scan(rest)
		if !s.plain(rest, legacy) || s.inPath&colon != 0 && schemeOf(raw) != nil {
			return false
		}
		if s.dots&dotty == 0 && dir == base.dir {
			p.seen, p.seenTo = base.dirs, dir-1
		}
		dst.inherit(base, dir)
		dst.finish(rest[:s.path], rest[s.path:s.end], s, p.rules)
	}
	return true
}

// climb returns what follows the "./" and "../" at the start of raw, and where
// in base the directory ends that they lead to.
func climb(base *URL, raw []byte) (rest []byte, dir int) {
	rest, dir = raw, base.dirEnd()
	for len(rest) >= 2 && rest[0] == '.' {
		if rest[1] == '/' {
			rest = rest[2:]
			continue
		}
		if len(rest) == 2 || rest[1] != '.' || rest[2] != '/' {
			break
		}
		rest = rest[3:]
		if dir-1 > base.path {
			dir = base.path + 1 + bytes.LastIndexByte(base.buf[base.path:dir-1], '/')
		}
	}
	return rest, dir
}

// fastHost resolves what follows "scheme://". scheme may be memory of dst.
func (p *Parser) fastHost(dst *URL, scheme, raw []byte, legacy bool) bool {
	var seen uint16
	host := 0
	for ; host < len(raw); host++ {
		k := class[raw[host]]
		if k&notHost != 0 {
			break
		}
		seen |= k
	}
	if !plainHost(raw[:host]) {
		return false
	}
	rest, port := raw[host:], 0
	if len(rest) > 0 && rest[0] == ':' {
		if port = plainPort(rest); port == 0 {
			return false
		}
		rest = rest[port:]
	}
	path := rest
	if len(rest) > 0 {
		switch rest[0] {
		case '/':
			path = rest[1:]
		case '?', '#':
		default:
			return false
		}
	}
	s := scan(path)
	if !s.plain(path, legacy) {
		return false
	}

	buf := append(append(dst.buf[:0], scheme...), raw[:host]...)
	dst.auth, dst.host, dst.hostEnd = len(scheme), len(scheme), len(buf)
	if seen&upper != 0 {
		lower(buf[dst.host:])
	}
	if port > 0 && !defaultPort(len(scheme), raw[host+1:host+port]) {
		buf = append(buf, raw[host:host+port]...)
	}
	dst.path = len(buf)
	dst.buf = append(buf, '/')
	dst.flags = 0
	dst.finish(path[:s.path], path[s.path:s.end], s, p.rules)
	return true
}

// scanned is what one reading of path and query tells.
type scanned struct {
	path, end       int    // where the path and the query end
	inPath, inQuery uint16 // union of the classes
	dots            uint16 // dotty: a segment starts with '.' or '%'
	ends            bool   // the text or a fragment ends them, nothing else does
}

// scan reads a reference from the first byte of its path on, to the fragment.
func scan(raw []byte) scanned {
	var in, dots, inQuery uint16
	path, prev := len(raw), slash
	for i, c := range raw {
		k := class[c]
		in |= k
		if k&stopPath != 0 {
			path = i
			break
		}
		dots |= prev << 1 & k
		prev = k
	}
	end := path
	if path < len(raw) && raw[path] == '?' {
		end = len(raw)
		for i, c := range raw[path+1:] {
			k := class[c]
			inQuery |= k
			if k&stopQuery != 0 {
				end = path + 1 + i
				break
			}
		}
	}
	ends := end == len(raw) || raw[end] == '#'
	return scanned{path: path, end: end, inPath: in, inQuery: inQuery, dots: dots, ends: ends}
}

// plain says that the fast path can finish what was scanned: it ended where a
// URL ends, and what is not ASCII is well-formed and escaped as UTF-8.
func (s *scanned) plain(raw []byte, legacy bool) bool {
	return s.ends && ((s.inPath|s.inQuery)&escQuery == 0 || s.encodable(raw, legacy))
}

// encodable is plain for what has to be escaped.
func (s *scanned) encodable(raw []byte, legacy bool) bool {
	if legacy && s.inQuery&escQuery != 0 {
		return false
	}
	return (s.inPath|s.inQuery)&high == 0 || utf8.Valid(raw[:s.end])
}

// inherit starts u as the first n bytes of base, which cover its authority.
func (u *URL) inherit(base *URL, n int) {
	u.buf = append(u.buf[:0], base.buf[:n]...)
	u.auth, u.host, u.hostEnd, u.path = base.auth, base.host, base.hostEnd, base.path
	u.flags = base.flags
	u.dir, u.keyed = 0, false
}

// finish appends path and query, with its '?', to u, which ends with the
// directory that path starts from.
func (u *URL) finish(path, query []byte, s scanned, rules flag) {
	switch {
	case s.dots&dotty != 0:
		u.appendSegments(path, s.inPath&escPath != 0)
	case s.inPath&escPath != 0:
		u.buf = appendEscaped(u.buf, path, escPath)
	default:
		u.buf = append(u.buf, path...)
	}
	u.query = len(u.buf)
	if s.inQuery&escQuery != 0 {
		u.buf = appendEscaped(u.buf, query, escQuery)
	} else {
		u.buf = append(u.buf, query...)
	}
	u.flags = u.flags&hasPercent | rules
	if s.inPath&(percent|escPath)|s.inQuery&(percent|escQuery) != 0 {
		u.flags |= hasPercent
	}
	u.dir, u.keyed = 0, false
}

// appendSegments appends path one segment after the other and resolves "." and
// "..". The buffer ends with a '/' whenever a segment starts.
func (u *URL) appendSegments(path []byte, escape bool) {
	for more := true; more; {
		var segment []byte
		segment, path, more = bytes.Cut(path, slashes)
		switch dotsOf(segment) {
		case 1:
		case 2:
			if end := len(u.buf) - 1; end > u.path {
				u.buf = u.buf[:u.path+bytes.LastIndexByte(u.buf[u.path:end], '/')+1]
			}
		default:
			if escape {
				u.buf = appendEscaped(u.buf, segment, escPath)
			} else {
				u.buf = append(u.buf, segment...)
			}
			if more {
				u.buf = append(u.buf, '/')
			}
		}
	}
}

// dotsOf is 1 of "." and 2 of "..", each dot also written as %2e, else 0.
func dotsOf(segment []byte) (n int) {
	for ; len(segment) > 0; n++ {
		switch {
		case segment[0] == '.':
			segment = segment[1:]
		case len(segment) >= 3 && segment[0] == '%' && segment[1] == '2' && segment[2]|0x20 == 'e':
			segment = segment[3:]
		default:
			return 0
		}
		if n == 2 {
			return 0
		}
	}
	return n
}

// appendEscaped appends s with all bytes of the set escaped.
func appendEscaped(dst, s []byte, set uint16) []byte {
	for _, c := range s {
		if class[c]&set != 0 {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}
