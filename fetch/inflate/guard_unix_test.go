//go:build unix

package inflate

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

// guarded is memory of n bytes between pages that may not be touched, up against
// the first or the last of them.
func guarded(t *testing.T, n int, first bool) []byte {
	page := unix.Getpagesize()
	size := (n + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	for _, at := range []int{0, page + size} {
		if err := unix.Mprotect(mem[at:at+page], unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	if first {
		return mem[page : page+n : page+n]
	}
	return mem[page+size-n : page+size : page+size]
}

// Decode reads and writes nothing outside of its slices, whatever the input, and
// wherever input and room end.
func TestInsideTheSlices(t *testing.T) {
	const most = 64 << 10
	rng := rand.New(rand.NewPCG(5, 6))
	var d Decoder
	for _, first := range []bool{false, true} {
		src, dst := guarded(t, most, first), guarded(t, most, first)
		in := func(b []byte) []byte { // src's part that lies up against the page
			if first {
				return src[:copy(src, b)]
			}
			return src[most-copy(src[most-len(b):], b):]
		}
		room := func(n int) []byte {
			if first {
				return dst[:0:n]
			}
			return dst[most-n : most-n]
		}
		for _, s := range append(samples(t), seeds(t)...) {
			want, v := standard(s.format, s.packed)
			if v != good || len(s.packed) > most {
				continue
			}
			packed := in(s.packed)
			for n := range 2 * fastRoom {
				n = min(len(want)+fastRoom, most) - n
				if n < 0 {
					break
				}
				got, _, err := whole(&d, s.format, packed, room(n))
				if n < len(want) && err != ErrRoom || !bytes.HasPrefix(want, got) || n >= len(want) && (err != nil || len(got) != len(want)) {
					t.Fatalf("%s in %d bytes: %v, %d of %d", s.name, n, err, len(got), len(want))
				}
			}
		}
		all := seeds(t)
		for range 20_000 {
			s := all[rng.IntN(len(all))]
			packed := mutate(rng, s.packed, all[rng.IntN(len(all))].packed)
			if len(packed) > most {
				continue
			}
			whole(&d, s.format, in(packed), room(rng.IntN(most)))
		}
	}
}
