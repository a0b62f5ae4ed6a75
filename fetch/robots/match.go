package robots

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// rule is one compiled pattern.
type rule struct {
	head, mask uint64 // first bytes that a path must have, little endian
	pattern    []byte // normal form, without the anchor
	literal    int32  // bytes of pattern before its first star
	priority   int32  // length, as Google counts it; the longest match decides
	line       int32
	allow      bool
	anchored   bool // ended in $
	query      bool // spells out a query: escapes of : / ? @ in it are equal to these
}

// compile brings a pattern, not empty, to its normal form.
func compile(raw []byte, allow bool, line int) rule {
	r := rule{allow: allow, line: int32(line), priority: int32(priorityOf(raw))}
	if raw[len(raw)-1] == '$' {
		r.anchored = true
		raw = raw[:len(raw)-1]
	}
	r.pattern = appendNormal(make([]byte, 0, len(raw)+16), raw, true, false)
	if i := bytes.IndexByte(r.pattern, '?'); i >= 0 && hasDelimiter(r.pattern[i+1:]) {
		r.query = true
		r.pattern = appendNormal(r.pattern[:0], raw, true, true)
	}
	r.index()
	return r
}

// index derives what matching needs from pattern.
func (r *rule) index() {
	n := bytes.IndexByte(r.pattern, '*')
	if n < 0 {
		n = len(r.pattern)
	}
	r.literal = int32(n)
	r.head, r.mask = head(r.pattern[:n])
}

// head packs up to 8 bytes, with the mask of those there are.
func head(s []byte) (h, mask uint64) {
	var b [8]byte
	n := copy(b[:], s)
	return binary.LittleEndian.Uint64(b[:]), 1<<(8*n) - 1
}

// priorityOf is the length of a pattern after escaping what is not ASCII, an
// escape of an ordinary character counting as that character.
func priorityOf(raw []byte) int {
	n := len(raw)
	for i, c := range raw {
		if c >= 0x80 {
			n += 2
		} else if c == '%' {
			if v, ok := unescape(raw[i:]); ok && class[v] == decoded {
				n -= 2
			}
		}
	}
	return n
}

// sorted puts rules in the order in which the first match decides, without
// those that another makes pointless.
func sorted(rules []rule) []rule {
	slices.SortStableFunc(rules, func(a, b rule) int {
		switch {
		case a.priority != b.priority:
			return int(b.priority - a.priority)
		case a.allow != b.allow && a.allow:
			return -1
		case a.allow != b.allow:
			return 1
		}
		return bytes.Compare(a.pattern, b.pattern)
	})
	return slices.CompactFunc(rules, func(a, b rule) bool {
		return bytes.Equal(a.pattern, b.pattern) && a.anchored == b.anchored && a.allow == b.allow
	})
}

// Allowed reports whether path (with its query, beginning with a slash) may
// be fetched. (/robots.txt itself always may by RFC 9309, 2.2.2; whoever
// fetches it for its rules does not ask, to others the file's answer is given,
// as Google does.) It takes time linear in the rules and
// the path, and allocates nothing unless path is longer than about 2,000 bytes
// and has something to normalise.
func (r *Rules) Allowed(path []byte) bool {
	m := r.match(path)
	return m == nil || m.allow
}

// Verdict is an answer with its reason.
type Verdict struct {
	Allowed bool
	Group   string // what the group that counts names: our agent or "*"; "" if there is none
	Rule    string // "Allow: /x" or "Disallow: /x" in normal form; "" if no rule matches
	Line    int    // of the rule in the file, from 1; 0 without a rule
}

// Explain is Allowed with the reason. It allocates.
func (r *Rules) Explain(path []byte) Verdict {
	v := Verdict{Allowed: true, Group: r.group}
	if m := r.match(path); m != nil {
		v.Allowed, v.Line = m.allow, int(m.line)
		v.Rule = "Disallow: " + m.text()
		if m.allow {
			v.Rule = "Allow: " + m.text()
		}
	}
	return v
}

// text is the pattern as a file has it, in normal form.
func (r *rule) text() string {
	if r.anchored {
		return string(r.pattern) + "$"
	}
	return string(r.pattern)
}

// match returns the rule that decides, nil if there is none.
func (r *Rules) match(path []byte) *rule {
	if len(r.rules) == 0 {
		return nil
	}
	for _, c := range path {
		if class[c] >= changed {
			return r.matchNormal(path)
		}
	}
	return r.first(path, path)
}

// matchNormal is match for a path that is not in normal form. Its buffers are
// on the stack; small ones for most paths, since they have to be cleared.
func (r *Rules) matchNormal(path []byte) *rule {
	if len(path) > 200 {
		return r.matchLong(path)
	}
	var normal, query [3 * 200]byte
	return r.matchIn(path, normal[:0], query[:0])
}

func (r *Rules) matchLong(path []byte) *rule {
	var normal, query [3 * 2048]byte
	return r.matchIn(path, normal[:0], query[:0])
}

// matchIn is matchNormal with room for the two normal forms.
func (r *Rules) matchIn(path, normal, query []byte) *rule {
	normal = appendNormal(normal, path, false, false)
	if i := bytes.IndexByte(path, '?'); i < 0 || bytes.IndexByte(path[i:], '%') < 0 {
		return r.first(normal, normal)
	}
	return r.first(normal, appendNormal(query, path, false, true))
}

// first finds the first rule that matches; query is path as rules that spell
// out a query see it.
func (r *Rules) first(path, query []byte) *rule {
	h, _ := head(path)
	q, _ := head(query)
	for i := range r.rules {
		m := &r.rules[i]
		if m.query {
			if q&m.mask == m.head && m.matches(query) {
				return m
			}
		} else if h&m.mask == m.head && m.matches(path) {
			return m
		}
	}
	return nil
}

// matches reports whether path, whose head is right, matches.
func (r *rule) matches(path []byte) bool {
	n := int(r.literal)
	if !bytes.HasPrefix(path, r.pattern[:n]) {
		return false
	}
	rest := r.pattern[n:]
	if len(rest) == 0 {
		return !r.anchored || len(path) == n
	}
	path = path[n:]
	// If each star skips as little as it can, the rest has most to match with.
	for len(rest) > 0 {
		rest = rest[1:]
		part := rest
		if i := bytes.IndexByte(rest, '*'); i >= 0 {
			part, rest = rest[:i], rest[i:]
		} else if rest = nil; r.anchored {
			return bytes.HasSuffix(path, part)
		}
		i := bytes.Index(path, part)
		if i < 0 {
			return false
		}
		path = path[i+len(part):]
	}
	return true
}
