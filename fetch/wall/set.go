package wall

import (
	"cmp"
	"slices"
	"strings"
)

// Set is rules, compiled.
type Set struct {
	rules   []compiled
	fields  []fieldSign
	byField [256][]uint16 // of fields, by hashName
	marks   marks
}

// compiled is a rule whose signs are numbers.
type compiled struct {
	Verdict
	status []int
	fields []int
	marks  []int
}

// fieldSign is a text in the value of a header.
type fieldSign struct{ name, text string }

// Scratch is what was found in one answer.
type Scratch struct {
	fields, marks []bool
}

// addRule compiles a rule. Rules share the signs that they have in common.
func (s *Set) addRule(r *Rule) {
	c := compiled{Verdict: Verdict{r.Vendor, cmp.Or(r.Sure, Likely)}, status: r.Status}
	for _, h := range r.Header {
		name, text, _ := strings.Cut(lowered(h), ":")
		sign := fieldSign{strings.TrimSpace(name), strings.TrimSpace(text)}
		at := slices.Index(s.fields, sign)
		if at < 0 {
			at = len(s.fields)
			s.fields = append(s.fields, sign)
			key := hashName(sign.name)
			s.byField[key] = append(s.byField[key], uint16(at))
		}
		c.fields = append(c.fields, at)
	}
	for _, m := range r.Body {
		c.marks = append(c.marks, s.marks.add(lowered(m)))
	}
	s.rules = append(s.rules, c)
}

// hashName tells most names of headers from those of rules, whatever their case.
func hashName[T string | []byte](name T) uint8 {
	if len(name) == 0 {
		return 0
	}
	return uint8(len(name)) ^ fold[name[0]]<<3 ^ fold[name[len(name)-1]]<<1
}

// Judge says what an answer is. body is its decoded body, of which the first Bytes are
// looked at. Cost: a microsecond or two.
func (s *Set) Judge(m *Scratch, status int, h Header, body []byte) (v Verdict) {
	m.fields, m.marks = cleared(m.fields, len(s.fields)), cleared(m.marks, s.marks.len())
	found := s.findFields(m.fields, h)
	if s.marks.find(m.marks, body[:min(len(body), Bytes)]) || found {
		for i := range s.rules {
			if r := &s.rules[i]; r.Sure > v.Sure && r.matches(m, status) {
				v = r.Verdict
			}
		}
	}
	return v
}

// cleared is n times false, in the memory of list.
func cleared(list []bool, n int) []bool {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

// findFields marks the headers that rules name, and reports whether there is one.
func (s *Set) findFields(found []bool, h Header) (some bool) {
	for i := 0; h != nil; i++ {
		name, value := h.Field(i)
		if name == nil {
			break
		}
		for _, at := range s.byField[hashName(name)] {
			if f := &s.fields[at]; !found[at] && len(name) == len(f.name) && hasFolded(name, f.name) && contains(value, f.text) {
				found[at], some = true, true
			}
		}
	}
	return some
}

// matches reports whether all signs of the rule were found.
func (r *compiled) matches(m *Scratch, status int) bool {
	for _, at := range r.fields {
		if !m.fields[at] {
			return false
		}
	}
	for _, at := range r.marks {
		if !m.marks[at] {
			return false
		}
	}
	return len(r.status) == 0 || slices.Contains(r.status, status)
}

// fold has the small letters of ASCII.
var fold = func() (t [256]uint8) {
	for c := range t {
		t[c] = uint8(c)
		if c >= 'A' && c <= 'Z' {
			t[c] |= 0x20
		}
	}
	return t
}()

// lowered is a text with the letters of ASCII in small.
func lowered(text string) string {
	b := []byte(text)
	for i, c := range b {
		b[i] = fold[c]
	}
	return string(b)
}

// hasFolded reports whether b begins with small, which is in small letters.
func hasFolded(b []byte, small string) bool {
	if len(b) < len(small) {
		return false
	}
	for i := range len(small) {
		if fold[b[i]] != small[i] {
			return false
		}
	}
	return true
}

// contains reports whether small is in b.
func contains(b []byte, small string) bool {
	if small == "" {
		return true
	}
	for i := 0; i+len(small) <= len(b); i++ {
		if fold[b[i]] == small[0] && hasFolded(b[i:], small) {
			return true
		}
	}
	return false
}
