package extract

import "seine/extract/inflate"

// inflater turns gzip that is pushed in into bytes that are pushed on. What was
// decoded before a fault is kept.
type inflater struct {
	gz     inflate.Stream
	to     func([]byte) bool
	done   bool // nothing more is wanted, or there is a fault
	broken bool
}

// start makes the inflater ready for another document; to takes what comes out
// and reports whether it wants more.
func (z *inflater) start(to func([]byte) bool) {
	z.gz.Reset(inflate.Gzip)
	z.to, z.done, z.broken = to, false, false
}

func (z *inflater) write(b []byte) {
	for !z.done {
		out, n, err := z.gz.Next(b)
		b = b[n:]
		if len(out) > 0 && !z.to(out) {
			z.done = true
			return
		}
		if err != nil { // bytes that are no member count as a fault too
			z.done, z.broken = true, true
		}
		if len(out) == 0 {
			return
		}
	}
}

// end says that nothing more comes.
func (z *inflater) end() {
	if !z.done {
		z.broken = z.gz.End() != nil
	}
}
