package extract

// leap is the hot loop: it steps over tags that mean nothing to us, and the
// text behind them, while nothing but links is to be noticed. It starts at the
// '<' at b[i] and returns the offset of the first '<' that needs a closer
// look, len(b) when there is none. Eight bytes are looked at in one go.
func (m *markup) leap(b []byte, i int) int {
	for i+16 <= len(b) {
		w := load(b, i+1)
		switch c := byte(w); {
		case c == '/':
			end := equal(w, '>')
			if end == 0 || (end&-end-1)&equal(w, '=') != 0 { // without a '=' no quote hides a '>'
				return i
			}
			i += 2 + first(end)
		case isLetter(c):
			stop := below(w, '0') | equal(w, '>')
			if stop == 0 {
				return i
			}
			n := first(stop)
			key := (w | ones*0x20) & (1<<(8*n) - 1)
			if e := m.names.find(key); e != nil && e.flags&(flagLook|flagRule) != 0 {
				return i
			}
			switch stop := byte(w >> (8 * n)); {
			case stop == '>':
				i += n + 2
			case endsName(stop):
				end := skipTag(b, i+1+n)
				if end < 0 || end-i > m.cfg.MaxTag {
					return i
				}
				i = end
			default:
				return i
			}
		default:
			return i
		}
		if i = next(b, i, '<'); i < 0 {
			return len(b)
		}
	}
	return i
}
