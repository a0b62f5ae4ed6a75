package extract

import "bytes"

// leap is the hot loop: it steps over tags that mean nothing to us, and the
// text behind them, while nothing but links is to be noticed. It starts at the
// '<' at b[i] and returns the offset of the first '<' that needs a closer
// look, len(b) when there is none. Eight bytes are looked at in one go.
func (m *markup) leap(b []byte, i int) int {
	hot := &m.names.hot
	for i+24 <= len(b) {
		w := load(b, i+1)
		if byte(w) == '/' {
			end := equal(w, '>')
			if end == 0 || (end&-end-1)&equal(w, '=') != 0 { // without a '=' no quote hides a '>'
				return i
			}
			i += 2 + first(end)
		} else {
			stop := below(w, '0') | equal(w, '>')
			if stop == 0 || !isLetter(byte(w)) {
				return i
			}
			n := uint(first(stop))
			key := (w | ones*0x20) & (1<<(8*n&63) - 1)
			if hot[key*hotFactor>>(64-hotBits)] == key {
				return i
			}
			end := i + int(n) + 2
			if c := byte(w >> (8 * n & 63)); c != '>' {
				if !endsName(c) {
					return i
				}
				if end = skipQuick(b, end-1); end < 0 || end-i > m.cfg.MaxTag {
					return i
				}
			}
			i = end
		}
		if i+16 <= len(b) {
			if hit := equal(load(b, i), '<'); hit != 0 {
				i += first(hit)
				continue
			}
			if hit := equal(load(b, i+8), '<'); hit != 0 {
				i += 8 + first(hit)
				continue
			}
			i += 16
		}
		n := bytes.IndexByte(b[i:], '<')
		if n < 0 {
			return len(b)
		}
		i += n
	}
	return i
}

// skipQuick is skipTag, quick when the tag has one quoted attribute.
func skipQuick(b []byte, i int) int {
	if i+24 <= len(b) && b[i] == ' ' {
		w := load(b, i+1)
		stop := equal(w, '=') | equal(w, '>') | below(w, '0')
		n := first(stop)
		if q := i + n + 2; stop != 0 && n > 0 && b[q-1] == '=' && b[q] == '"' {
			if q = next(b, q+1, '"'); q < 0 {
				return -1
			}
			if i = q + 1; i < len(b) && b[i] == '>' {
				return i + 1
			}
		}
	}
	return skipTag(b, i)
}
