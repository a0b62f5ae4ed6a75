package extract

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// needBitmap skips a test of bitmaps where there are none.
func needBitmap(t testing.TB) {
	t.Helper()
	if mapTags == nil {
		t.Skip("SKIPPED: this processor maps no tags")
	}
}

// wantSame fails unless body gives the same without bitmaps and with them.
func wantSame(t testing.TB, s *Scanner, name string, body []byte) {
	t.Helper()
	needBitmap(t)
	got := trace(s, benchDoc, [][]byte{body})
	defer func(m tagMapper) { mapTags = m }(mapTags)
	mapTags = nil
	if want := trace(s, benchDoc, [][]byte{body}); got != want {
		t.Fatalf("%s: %.3000q\nwith bitmaps\n%.3000s\nwithout\n%.3000s", name, body, got, want)
	}
}

func TestBitmapsChangeNothing(t *testing.T) {
	s, small := NewScanner(Config{}), NewScanner(Config{Kinds: All &^ Of(CSS), MaxTag: 256})
	for i := range corpora {
		t.Run(corpora[i].name, func(t *testing.T) {
			for _, p := range corpus(t, i) {
				wantSame(t, s, p.name, p.body)
				wantSame(t, small, p.name, p.body)
			}
		})
	}
}

// bitmapPieces are what hides where a tag ends, and what does not.
var bitmapPieces = strings.Split(`<p>|</p>|<p |</p |<span class="n">x</span>|<a href="/x">|<a href='/y' title="`+"|\"|'|=|>|<|/| |\n|\t|=\"|=\"\"|='|\"=|\" |x=\"<p>\"|x=y|"+
	`<li>|<link rel=next href=/l>|<abbr title="a > b">|<td a="'">|<td a='"'>|</td a="'>|<b =">|<i a="b"c="d>e">|<!-- " -->|<!-- ' >-->|<?x "|<1|<`+"\x0f"+`|`+
	`words and more words|long words that go on for more than a block of sixty-four bytes, as words do in text|&amp;|é`, "|")

func TestBitmapsChangeNothingInSoup(t *testing.T) {
	s, small := NewScanner(Config{}), NewScanner(Config{MaxTag: 256})
	rng := rand.New(rand.NewPCG(3, 4))
	for range 4_000 {
		body := make([]byte, 0, 4<<10)
		for range 20 + rng.IntN(200) {
			body = append(body, bitmapPieces[rng.IntN(len(bitmapPieces))]...)
		}
		wantSame(t, s, "soup", body)
		wantSame(t, small, "soup", body)
	}
}

func FuzzBitmap(f *testing.F) {
	for _, c := range htmlCases {
		f.Add([]byte(strings.Repeat(c.body+" <p>", 1+200/len(c.body))), uint8(7))
	}
	f.Add([]byte(strings.Join(bitmapPieces, "")), uint8(0))
	s := NewScanner(Config{MaxTag: 256})
	f.Fuzz(func(t *testing.T, body []byte, shift uint8) {
		wantSame(t, s, "fuzzed", append([]byte(strings.Repeat("x", int(shift)%blockBytes)), body...))
	})
}

// The bits are those that one byte after the other gives.
func TestTagBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	n := newNames(&Config{Kinds: All})
	needBitmap(t)
	for range 4_000 {
		got := make([]tagBits, rng.IntN(maxBlocks+1))
		b := make([]byte, len(got)*blockBytes+aheadBytes)
		for i := range b {
			if b[i] = byte(rng.Uint32()); rng.IntN(2) == 0 {
				b[i] = "<>\"'= \t/ab"[rng.IntN(10)]
			}
			if rng.IntN(3) > 0 {
				b[i] |= 0x40 // tags that go on
			}
		}
		doubtful := mapTags(got, b, &n.patterns)
		want := tagsOf(b, len(got), &n.patterns)
		for i := range got {
			if got[i] != want[i] || doubtful>>i&1 != 0 != (want[i].doubt != 0) {
				t.Fatalf("block %d of %q: %x, not %x; blocks with doubts %b", i, b, got[i], want[i], doubtful)
			}
		}
		if doubtful>>len(got) != 0 {
			t.Fatalf("%d blocks, those with doubts are %b", len(got), doubtful)
		}
	}
}

// tagsOf maps b byte by byte. It has mapTags find out whether a tag is dull.
func tagsOf(b []byte, blocks int, with *patterns) []tagBits {
	all := make([]tagBits, blocks)
	open, value := false, false
	for i, c := range b[:blocks*blockBytes] {
		k, bit := &all[i/blockBytes], uint64(1)<<(i%blockBytes)
		if i%blockBytes == 0 && open && bytes.IndexByte(b[i:i+blockBytes], '>') < 0 {
			k.doubt |= bit
		}
		switch {
		case c == '<' && open:
			k.doubt |= bit // enough for the rest of the tag
			value = false
		case c == '<':
			k.begin |= bit
			open, value = true, false
		case c == '>':
			if open && value {
				k.doubt |= bit
			}
			open = false
		case c == '\'' && open:
			k.doubt |= bit
		case c == '"':
			k.double |= bit
			value = open && i > 0 && (b[i-1] == '=' || b[i-1] <= ' ')
		}
		if c == '<' && !dull(string(b[i:i+3]), with) {
			k.doubt |= bit
		}
		if open {
			k.inside |= bit
		}
	}
	return all
}

// dull reports whether a tag that begins so is passed over.
func dull(tag string, with *patterns) bool {
	var b [blockBytes + aheadBytes]byte
	var dst [1]tagBits
	copy(b[copy(b[:], tag):], "    ")
	mapTags(dst[:], b[:], with)
	return dst[0].doubt&1 == 0
}

// No tag is dull whose name begins as that of one worth a look does; those that
// pages are full of are.
func TestDullTags(t *testing.T) {
	needBitmap(t)
	const elements = `a area audio base blockquote body del embed frame html iframe image img input ins link math meta noembed noframes
		object plaintext q script source style svg table tbody td template textarea tfoot th thead title tr track video xmp`
	for _, cfg := range []Config{{Kinds: Navigation}, {Kinds: All}} {
		n := newNames(&cfg)
		dull := func(tag string) bool { return dull(tag, &n.patterns) }
		hot := map[string]bool{}
		for name := range strings.FieldsSeq(elements) {
			if e := n.find(nameKey([]byte(name))); e == nil || e.flags&(flagLook|flagRule) == 0 {
				continue
			}
			for _, end := range []string{">", "/", " ", "\t", "\n", "\f", "\r"} {
				hot[(name + end)[:2]] = true
			}
		}
		for c := range 256 {
			for d := range 256 {
				two := []byte{byte(c), byte(d)}
				fold := strings.ToLower(string(two))
				if (c != '/' && !isLetter(byte(c)) || hot[fold]) && dull("<"+string(two)) {
					t.Fatalf("a tag that begins with %q is dull", two)
				}
			}
		}
		for _, tag := range []string{"</", "<p>", "<p ", "<span", "<code", "<div", "<dd", "<dt", "<em", "<EM", "<ul", "<pre"} {
			if cfg.Kinds == Navigation && !dull(tag) {
				t.Errorf("%q is not dull", tag)
			}
		}
		for _, e := range n.slots {
			if e.flags&(flagLook|flagRule) != 0 && e.key>>63 == 0 && !hot[string([]byte{byte(e.key), byte(e.key >> 8)})] && byte(e.key>>8) != 0 {
				t.Errorf("an element that begins with %q is not in the test", []byte{byte(e.key), byte(e.key >> 8)})
			}
		}
	}
}

// A bitmap returns the quote that is there, or none: in the last blocks, far from i, and
// before anything is mapped.
func TestQuote(t *testing.T) {
	needBitmap(t)
	n := newNames(&Config{})
	b := []byte(strings.Repeat(strings.Repeat("x", 70)+`"`+strings.Repeat("y", 30)+`"`, 12))
	x := bitmap{blocks: maxBlocks}
	if x.quote(0) != -1 {
		t.Error("an empty bitmap returns a quote")
	}
	const from = 5
	if !x.reach(b, from, &n.patterns) {
		t.Fatal("nothing is mapped")
	}
	found := 0
	for i := from; i < x.end; i++ {
		got, want := x.quote(i), strings.IndexByte(string(b[i:]), '"')
		if got >= 0 {
			found++
		}
		if near := want < blockBytes && i+2*blockBytes <= x.end; near && got != want || !near && got != -1 {
			t.Fatalf("from byte %d on the quote is at %d, not %d", i, want, got)
		}
	}
	if found < 500 {
		t.Errorf("only %d quotes were found", found)
	}
}
