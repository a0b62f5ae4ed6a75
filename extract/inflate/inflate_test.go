package inflate

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Streams of many encoders decode to what the standard library makes of them,
// wherever input and room end.
func TestSplittings(t *testing.T) {
	dst := make([]byte, 0, 1<<20)
	var d Decoder
	for _, s := range samples(t) {
		compare(t, &d, s.format, s.packed, dst)
		want, verdict := standard(s.format, s.packed)
		if verdict != good {
			t.Fatal(s.name, verdict)
		}
		check := func(name string, piece, room func() int) {
			t.Helper()
			if got, v, err := pieces(&d, s.format, s.packed, piece, room); v != good || !bytes.Equal(got, want) {
				t.Fatalf("%s, %s: %v, %d of %d bytes", s.name, name, err, len(got), len(want))
			}
		}
		ample := func() int { return maxPieceRoom }
		for at := range places(t, len(s.packed)) {
			first := true
			check("in two at "+strconv.Itoa(at), func() int {
				if first {
					first = false
					return at
				}
				return len(s.packed)
			}, ample)
		}
		for _, size := range []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 25, 32, 33, 64} {
			check("pieces of "+strconv.Itoa(size), func() int { return size }, ample)
			check("room for "+strconv.Itoa(size), func() int { return 1 << 20 }, func() int { return MaxMatch - 1 + size })
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range min(cases(t)/100, 50) {
			check("at random", func() int { return 1 + rng.IntN(1<<rng.IntN(14)) }, func() int { return MaxMatch + rng.IntN(1<<rng.IntN(14)) })
		}
	}
}

// Room that is just enough is enough, and less is said to be less, for each number
// of bytes that the fast loop or the last step of a copy could overstep.
func TestRoom(t *testing.T) {
	dst := make([]byte, 1<<20)
	var d Decoder
	for _, s := range append(samples(t), seeds(t)...) {
		want, v := standard(s.format, s.packed)
		if v != good {
			continue
		}
		least := max(0, len(want)-fastRoom)
		for i := range places(t, len(want)+fastRoom+1-least) {
			n := least + i
			dst[n] = 0xa5
			got, _, err := whole(&d, s.format, s.packed, dst[:0:n])
			if n < len(want) && err != ErrRoom || n >= len(want) && err != nil ||
				!bytes.HasPrefix(want, got) || len(got)+MaxMatch <= min(n, len(want)) || dst[n] != 0xa5 {
				t.Fatalf("%s in %d bytes: %v, %d of %d", s.name, n, err, len(got), len(want))
			}
		}
	}
	seeds := seeds(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for range cases(t) { // damaged ones: nothing oversteps, or Go would panic
		s, other := seeds[rng.IntN(len(seeds))], seeds[rng.IntN(len(seeds))]
		whole(&d, s.format, mutate(rng, s.packed, other.packed), dst[:0:rng.IntN(20_000)])
	}
}

// Where a stream is cut, what precedes is decoded, and it is no whole stream.
func TestTruncations(t *testing.T) {
	dst := make([]byte, 0, 1<<20)
	var d Decoder
	for _, s := range samples(t) {
		for n := range places(t, len(s.packed)) {
			compare(t, &d, s.format, s.packed[:n], dst)
		}
	}
	for _, s := range seeds(t) {
		for n := range places(t, min(len(s.packed), 600)) {
			compare(t, &d, s.format, s.packed[:n], dst)
		}
	}
}

// casesEnv is how many damaged streams each test makes. Of a stream's places a test cuts
// at one for each hundred of them. The race detector makes all of them 20 times as slow,
// so the large number is for a run without it, as in "make check".
const casesEnv = "SEINE_INFLATE_CASES"

func cases(tb testing.TB) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(casesEnv), "1000"))
	if err != nil {
		tb.Fatal(casesEnv, err)
	}
	return n
}

// places are those of n where a test cuts.
func places(tb testing.TB, n int) iter.Seq[int] {
	step := 1 + n*100/cases(tb)
	return func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i += step {
		}
	}
}

// Damaged streams have the verdict and the bytes of the standard library.
func TestMutations(t *testing.T) {
	seeds := seeds(t)
	dst := make([]byte, 0, 1<<20)
	var d Decoder
	rng := rand.New(rand.NewPCG(3, uint64(cases(t))))
	for range cases(t) {
		s := seeds[rng.IntN(len(seeds))]
		compare(t, &d, s.format, mutate(rng, s.packed, seeds[rng.IntN(len(seeds))].packed), dst)
	}
}

// seeds are streams short enough that damage meets all of their parts.
func seeds(tb testing.TB) []sample {
	var all []sample
	text := plainText(tb)
	for i, size := range []int{0, 1, 20, 300, 2000, 9000} {
		part := text[i*100:][:size]
		for _, level := range []int{-2, 0, 1, 6, 9} {
			for _, f := range []Format{Gzip, Deflate, Raw} {
				all = append(all, sample{"", f, pack(tb, f, level, part)})
			}
		}
	}
	for _, odd := range oddStreams(tb) {
		all = append(all, sample{odd.name, odd.format, odd.packed})
	}
	return all
}

// mutate changes a few bits or bytes, mostly early ones, where headers and codes lie.
func mutate(rng *rand.Rand, b, other []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + rng.IntN(3) {
		if len(b) == 0 {
			return b
		}
		at := rng.IntN(len(b))
		if rng.IntN(2) == 0 {
			at = rng.IntN(min(len(b), 80))
		}
		switch rng.IntN(6) {
		case 0, 1, 2:
			b[at] ^= 1 << rng.IntN(8)
		case 3:
			b[at] = byte(rng.Uint32())
		case 4:
			b = append(b[:at], b[at+rng.IntN(min(4, len(b)-at)):]...)
		case 5:
			b = append(b[:at], other[min(at, len(other)):]...)
		}
	}
	return b
}

// Each fault has its error, and the standard library finds it too.
func TestFaults(t *testing.T) {
	dst := make([]byte, 0, 1<<20)
	var d Decoder
	for _, s := range oddStreams(t) {
		compare(t, &d, s.format, s.packed, dst)
		if _, _, err := whole(&d, s.format, s.packed, dst); err != s.want {
			t.Errorf("%s: %v, want %v", s.name, err, s.want)
		}
	}
}

// odd is a stream that encoders seldom or never write.
type odd struct {
	name   string
	format Format
	packed []byte
	want   error
}

func oddStreams(tb testing.TB) []odd {
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			tb.Fatal(s, err)
		}
		return b
	}
	const (
		gzipHead = "1f8b0800000000000003"
		withSum  = "1f8b080200000000020325154b4c4a4ec48100d18ef6a81b000000" // the header has a checksum
	)
	change := func(s string, at int, to byte) []byte {
		b := unhex(s)
		b[(at+len(b))%len(b)] = to
		return b
	}
	name := append(unhex("1f8b0808000000000003"), bytes.Repeat([]byte("n"), 512)...)
	rest := unhex(withSum)[12:]
	return []odd{
		{"one distance code of one bit", Raw, unhex("0dc081000000008020d6fd25ae18"), nil},
		{"no distance code, and a distance", Gzip, unhex(gzipHead + "0dc0010900000080a0adfd3f91c445e598ad04000000"), ErrCorrupt},
		{"block of the fourth type", Raw, bitStream("1 11"), ErrCorrupt},
		{"stored length and its complement differ", Raw, unhex("0105000000"), ErrCorrupt},
		{"fixed length symbol 286", Raw, bitStream("1 10 11000110 00000"), ErrCorrupt},
		{"fixed distance symbol 30", Raw, bitStream("1 10 10010001 0000001 11110"), ErrCorrupt},
		{"match before any byte", Raw, bitStream("1 10 0000001 00000"), ErrCorrupt},
		{"match that reaches back one too far", Raw, bitStream("1 10 10010001 0000001 00001"), ErrCorrupt},
		{"match that reaches back to the first byte", Raw, bitStream("1 10 10010001 0000001 00000 0000000"), nil},
		{"287 literals and lengths", Raw, bitStream("1 01 01111 00000 0000"), ErrCorrupt},
		{"31 distances", Raw, bitStream("1 01 00000 01111 0000"), ErrCorrupt},
		{"repeats what was not", Raw, bitStream("1 01 00000 00000 0000 100 000 000 100 1 00"), ErrCorrupt},
		{"three codes of one bit", Raw, bitStream("1 01 00000 00000 0000 100 100 000 100"), ErrCorrupt},
		{"a code of two bits alone", Raw, bitStream("1 01 00000 00000 0000 010 000 000 000"), ErrCorrupt},
		{"zeros past the last length", Raw, bitStream("1 01 00000 00000 0000 000 000 100 100 1 1111111 1 1111111"), ErrCorrupt},
		{"header with a checksum", Gzip, unhex(withSum), nil},
		{"header with a wrong checksum", Gzip, change(withSum, 10, 0), ErrHeader},
		{"magic", Gzip, change(withSum, 1, 0), ErrHeader},
		{"method", Gzip, change(withSum, 2, 7), ErrHeader},
		{"reserved flag", Gzip, change(withSum, 3, 0x22), ErrHeader},
		{"checksum", Gzip, change(withSum, -5, 0), ErrChecksum},
		{"size", Gzip, change(withSum, -1, 1), ErrChecksum},
		{"name of 511 bytes", Gzip, slices.Concat(name[:len(name)-1], []byte{0}, rest), nil},
		{"name of 512 bytes", Gzip, slices.Concat(name, []byte{0}, rest), ErrHeader},
		{"zlib", Deflate, unhex("789c030000000001"), nil},
		{"zlib with a wrong checksum", Deflate, unhex("789c030000000002"), ErrChecksum},
		{"zlib with a window of 64 KB", Deflate, unhex("881c030000000001"), ErrHeader},
		{"zlib with a dictionary of no bytes", Deflate, unhex("782000000001030000000001"), nil},
		{"zlib with another dictionary", Deflate, unhex("782000000002030000000001"), ErrHeader},
		{"blocks alone", Deflate, unhex("0300"), nil},
		{"nothing", Deflate, nil, io.ErrUnexpectedEOF},
		{"no member", Gzip, nil, io.ErrUnexpectedEOF},
	}
}

// bitStream packs bits, the first lowest.
func bitStream(s string) (packed []byte) {
	for i, c := range strings.ReplaceAll(s, " ", "") {
		if i%8 == 0 {
			packed = append(packed, 0)
		}
		packed[i/8] |= byte(c-'0') << (i % 8)
	}
	return packed
}

// A body is judged by its own codes: a decoder that keeps the distance codes of the
// body before accepts this one, which has none and uses one.
func TestNothingOfTheStreamBefore(t *testing.T) {
	body, err := hex.DecodeString("1f8b08000000000000030dc0010900000080a0adfd3f91c445e598ad04000000")
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 0, 1<<20)
	var fresh Decoder
	want, _, wantErr := whole(&fresh, Gzip, body, dst)
	want = bytes.Clone(want)
	if wantErr != ErrCorrupt {
		t.Fatal(wantErr)
	}
	for _, s := range samples(t) {
		var d Decoder
		if _, v, err := whole(&d, s.format, s.packed, dst); v != good {
			t.Fatal(s.name, err)
		}
		if got, _, err := whole(&d, Gzip, body, dst); err != wantErr || !bytes.Equal(got, want) {
			t.Fatalf("after %s: %v, %q, want %v, %q", s.name, err, got, wantErr, want)
		}
		// Nor of the member before.
		if s.format == Gzip && s.name != "behind a member" {
			if _, _, err := whole(&d, Gzip, append(bytes.Clone(s.packed), body...), dst); err != wantErr {
				t.Fatalf("in a member after %s: %v", s.name, err)
			}
		}
	}
}

// A match reaches back into its own member and to no other.
func TestMatchStaysInItsMember(t *testing.T) {
	var d Decoder
	far := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x03 | 0x80, 0x02, 0} // a fixed block whose first symbol is a match
	body := append(pack(t, Gzip, 6, []byte("hello")), far...)
	if got, _, err := whole(&d, Gzip, body, make([]byte, 0, 1000)); err != ErrCorrupt || string(got) != "hello" {
		t.Errorf("%v, %q", err, got)
	}
}

// What follows a stream is not taken.
func TestBehindTheStream(t *testing.T) {
	var d Decoder
	for _, f := range []Format{Gzip, Deflate, Raw} {
		packed := pack(t, f, 6, []byte("hello, hello, hello"))
		for _, tail := range []string{"more", "\x1f\x8c", "\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
			d.Reset(f)
			out, n, err := d.Decode(make([]byte, 0, 1000), append(bytes.Clone(packed), tail...))
			if err != io.EOF || n != len(packed) || string(out) != "hello, hello, hello" || d.End() != nil {
				t.Errorf("format %d: %v at %d of %d, %q, %v", f, err, n, len(packed), out, d.End())
			}
		}
	}
}

// A Stream hands everything on in pieces of at most its memory, and makes none
// anew.
func TestStream(t *testing.T) {
	var s Stream
	zeros := pack(t, Gzip, 9, make([]byte, 8<<20))
	for _, c := range append(samples(t), sample{"bomb", Gzip, zeros}) {
		want, _ := standard(c.format, c.packed)
		decode := func(piece int, to func([]byte)) {
			s.Reset(c.format)
			for rest := c.packed; len(rest) > 0; {
				next := rest[:min(piece, len(rest))]
				for {
					out, n, err := s.Next(next)
					next, rest = next[n:], rest[n:]
					to(out)
					if err != nil {
						rest = nil
						break
					}
					if len(out) == 0 {
						break
					}
				}
			}
		}
		for _, piece := range []int{1, 1500, 1 << 20} {
			var got []byte
			decode(piece, func(b []byte) {
				if len(b) > streamSize {
					t.Fatal(len(b))
				}
				got = append(got, b...)
			})
			if s.End() != nil || !bytes.Equal(got, want) {
				t.Errorf("%s in pieces of %d: %v, %d of %d bytes", c.name, piece, s.End(), len(got), len(want))
			}
		}
		if n := testing.AllocsPerRun(1, func() { decode(1500, func([]byte) {}) }); n > 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(uint8(s.format), uint64(1), s.packed)
	}
	dst := make([]byte, 0, 1<<20)
	f.Fuzz(func(t *testing.T, format uint8, seed uint64, src []byte) {
		form := Format(format % 3)
		var d Decoder
		compare(t, &d, form, src, dst)
		want, wants, err := whole(&d, form, src, dst)
		if err == ErrRoom {
			return
		}
		want = bytes.Clone(want)
		rng := rand.New(rand.NewPCG(seed, 0))
		got, gots, err := pieces(&d, form, src, func() int { return 1 + rng.IntN(1<<rng.IntN(12)) }, func() int { return MaxMatch + rng.IntN(1<<rng.IntN(12)) })
		if gots != wants || !bytes.Equal(got, want) {
			t.Fatalf("%x in pieces: %s (%v) after %d bytes, whole: %s after %d", src, gots, err, len(got), wants, len(want))
		}
	})
}
