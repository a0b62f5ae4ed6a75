package inflate

import "encoding/binary"

// What a round of the fast loop needs: input for two refills, room for its literals
// and a match, and for the last step of a copy, which goes past the match's end.
const (
	fastInput = 16
	fastRoom  = 4 + MaxMatch + copyStep
	copyStep  = 32
)

// fast decodes symbols while there is ample input and room. It stops before what
// only symbol handles: the end of the block, and faults.
//
// What takes time here is guessing branches wrongly. So the second refill is made
// whether it is needed or not, and a match is copied in long steps.
func (d *Decoder) fast() {
	src, buf, begin := d.src, d.buf, d.begin
	at, out := d.at, d.out
	lastAt, lastOut := len(src)-fastInput, len(buf)-fastRoom
	b, n := d.bits, uint8(d.nbits)
	t := d.tables()
	lit, dist := &t.lit, &t.dist

	for at <= lastAt && out <= lastOut {
		// Refill to 56 bits or more. b also gets a part of the byte at the new at, which
		// n does not count. The next refill puts the same there.
		b |= binary.LittleEndian.Uint64(src[at:at+8]) << (n & 63)
		at += int(63-n) >> 3
		n |= 56

		// Literals of the first table take at most 11 bits each. After four of them 12
		// bits are left, enough to look up what follows.
		e := lit[b&(1<<litRoot-1)]
		if int32(e) < 0 {
			b >>= e & 63
			n -= uint8(e)
			buf[out] = byte(e >> 16)
			out++
			e = lit[b&(1<<litRoot-1)]
			if int32(e) < 0 {
				b >>= e & 63
				n -= uint8(e)
				buf[out] = byte(e >> 16)
				out++
				e = lit[b&(1<<litRoot-1)]
				if int32(e) < 0 {
					b >>= e & 63
					n -= uint8(e)
					buf[out] = byte(e >> 16)
					out++
					e = lit[b&(1<<litRoot-1)]
					if int32(e) < 0 {
						b >>= e & 63
						n -= uint8(e)
						buf[out] = byte(e >> 16)
						out++
						continue
					}
				}
			}
		}

		// The rest of the round decodes one symbol, which takes at most 48 bits. b and
		// n keep its bits until nothing can go wrong any more.
		b |= binary.LittleEndian.Uint64(src[at:at+8]) << (n & 63)
		at += int(63-n) >> 3
		n |= 56
		if e&isSpecial != 0 {
			if e&isSubtable == 0 {
				break
			}
			e = e.sub(lit[:], litRoot, b)
			if int32(e) < 0 {
				b >>= e & 63
				n -= uint8(e)
				buf[out] = byte(e >> 16)
				out++
				continue
			}
			if e&isSpecial != 0 {
				break
			}
		}
		length := e.value(b)
		after := b >> (e & 63)
		f := dist[after&(1<<distRoot-1)]
		if f&isSpecial != 0 {
			if f&isSubtable == 0 {
				break
			}
			f = f.sub(dist[:], distRoot, after)
			if f&isSpecial != 0 {
				break
			}
		}
		back := f.value(after)
		if back > out-begin {
			break
		}
		b = after >> (f & 63)
		n -= uint8(e) + uint8(f)

		from, end := out-back, out+length
		switch {
		case back >= 8:
			for ; out < end; out += copyStep {
				copyWords(buf, out, from)
				from += copyStep
			}
		case back == 1:
			v := uint64(buf[from]) * 0x0101010101010101
			for ; out < end; out += 8 {
				binary.LittleEndian.PutUint64(buf[out:], v)
			}
		default: // of each step the first back bytes are right, and the next goes on there
			for ; out < end; out += back {
				binary.LittleEndian.PutUint64(buf[out:], binary.LittleEndian.Uint64(buf[from:]))
				from += back
			}
		}
		out = end
	}
	d.at, d.out = at, out
	d.bits, d.nbits = b&(1<<n-1), uint(n)
}

// copyWords copies copyStep bytes within b, 8 at a time and one after the other, as
// the two places may overlap by all but 8.
func copyWords(b []byte, to, from int) {
	t, f := b[to:to+copyStep], b[from:from+copyStep]
	binary.LittleEndian.PutUint64(t, binary.LittleEndian.Uint64(f))
	binary.LittleEndian.PutUint64(t[8:], binary.LittleEndian.Uint64(f[8:]))
	binary.LittleEndian.PutUint64(t[16:], binary.LittleEndian.Uint64(f[16:]))
	binary.LittleEndian.PutUint64(t[24:], binary.LittleEndian.Uint64(f[24:]))
}
