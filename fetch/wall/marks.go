package wall

import "slices"

// marks finds any of a list of texts in one pass, by the method of Wu and Manber (1994): two
// bytes at the end of a window say how far it can move on. Most steps skip several bytes.
type marks struct {
	texts  []string // in small letters
	window int      // the length of the shortest
	skip   [1 << pairBits]uint8
	ends   [1 << pairBits]uint16 // the last text whose first window bytes end in the pair, from 1 on
	next   []uint16              // the one before it
}

const pairBits = 12

// add adds a text, and returns its number.
func (m *marks) add(text string) int {
	if at := slices.Index(m.texts, text); at >= 0 {
		return at
	}
	m.texts = append(m.texts, text)
	return len(m.texts) - 1
}

func (m *marks) len() int { return len(m.texts) }

// compile readies find, after the last add.
func (m *marks) compile() {
	m.window = mostMark
	for _, t := range m.texts {
		m.window = min(m.window, len(t))
	}
	for i := range m.skip {
		m.skip[i] = uint8(m.window - 1)
	}
	for i, t := range m.texts {
		for end := 1; end < m.window; end++ {
			p := pair(t[end-1], t[end])
			m.skip[p] = min(m.skip[p], uint8(m.window-1-end))
		}
		p := pair(t[m.window-2], t[m.window-1])
		m.next = append(m.next, m.ends[p])
		m.ends[p] = uint16(i + 1)
	}
}

// pair numbers two bytes, whatever their case; few pairs share a number.
func pair(a, b byte) int { return int(a|0x20)<<4 ^ int(b|0x20) }

// find marks the texts that are in b, and reports whether there is one.
func (m *marks) find(found []bool, b []byte) (some bool) {
	for end := m.window - 1; end < len(b); {
		p := pair(b[end-1], b[end])
		if n := m.skip[p]; n > 0 {
			end += int(n)
			continue
		}
		for i := m.ends[p]; i > 0; i = m.next[i-1] {
			if hasFolded(b[end-m.window+1:], m.texts[i-1]) {
				found[i-1], some = true, true
			}
		}
		end++
	}
	return some
}
