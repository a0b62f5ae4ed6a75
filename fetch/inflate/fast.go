package inflate

// What the fast loop needs before a symbol: input for two refills, room for the
// literals of one round and a match, and for the last steps of a copy, which go
// past its end.
const (
	fastInput = 16
	fastRoom  = 4 + MaxMatch + 16
)

// fast decodes symbols while there is ample input and room. It stops before what
// only symbol handles: the end of the block, and faults.
func (d *Decoder) fast() {
	src, buf, begin := d.src, d.buf, d.begin
	at, out := d.at, d.out
	lastAt, lastOut := len(src)-fastInput, len(buf)-fastRoom
	if at > lastAt || out > lastOut {
		return
	}
	b, n := d.bits, uint8(d.nbits) // above its n bits b has a part of the next byte, the same as a refill puts there
	lit, dist := &d.lit, &d.dist
	for at <= lastAt && out <= lastOut {
		b |= load64(src, at) << (n & 63)
		at += int(63-n) >> 3
		n |= 56

		// Up to four literals take at most 44 of the 56 bits or more, as those in the
		// first part of the table have at most 11. The 12 left are enough to look on.
		e := lit[b&(1<<litRoot-1)]
		if int32(e) < 0 {
			b >>= e & 63
			n -= uint8(e)
			store8(buf, out, byte(e>>16))
			out++
			e = lit[b&(1<<litRoot-1)]
			if int32(e) < 0 {
				b >>= e & 63
				n -= uint8(e)
				store8(buf, out, byte(e>>16))
				out++
				e = lit[b&(1<<litRoot-1)]
				if int32(e) < 0 {
					b >>= e & 63
					n -= uint8(e)
					store8(buf, out, byte(e>>16))
					out++
					continue
				}
			}
		}
		if n < 48 {
			b |= load64(src, at) << (n & 63)
			at += int(63-n) >> 3
			n |= 56
		}
		if e&isSpecial != 0 {
			if e&isSubtable == 0 {
				break
			}
			e = e.sub(lit[:], litRoot, b)
			if int32(e) < 0 {
				b >>= e & 63
				n -= uint8(e)
				store8(buf, out, byte(e>>16))
				out++
				continue
			}
			if e&isSpecial != 0 {
				break
			}
		}
		length := e.value(b)
		b2 := b >> (e & 63)
		de := dist[b2&(1<<distRoot-1)]
		if de&isSpecial != 0 {
			if de&isSubtable == 0 {
				break
			}
			de = de.sub(dist[:], distRoot, b2)
			if de&isSpecial != 0 {
				break
			}
		}
		back := de.value(b2)
		if back > out-begin {
			break
		}
		b = b2 >> (de & 63)
		n -= uint8(e) + uint8(de)

		from, end := out-back, out+length
		switch {
		case back >= 8:
			for {
				store64(buf, out, load64(buf, from))
				store64(buf, out+8, load64(buf, from+8))
				out += 16
				from += 16
				if out >= end {
					break
				}
			}
		case back == 1:
			v := uint64(buf[from]) * 0x0101010101010101
			for ; out < end; out += 8 {
				store64(buf, out, v)
			}
		default:
			for ; out < end; out++ {
				buf[out] = buf[from]
				from++
			}
		}
		out = end
	}
	d.at, d.out = at, out
	d.bits, d.nbits = b&(1<<n-1), uint(n)
}
