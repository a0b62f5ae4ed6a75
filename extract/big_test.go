package extract

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
)

// bigPage is a page too large to hold: a start, a part that repeats, an end.
type bigPage struct {
	name             string
	start, part, end string
	size             int
	links            int // expected
}

func bigPages() []bigPage {
	prose := strings.Repeat("<p class='x'>Some words <b>and</b> more of them.</p>\n", 20)
	return []bigPage{
		{"10 MB page", "<title>t</title><body>", prose + "<a href='/x?a=1&amp;b=2'>y</a>", "", 10 << 20, -1},
		{"100 MB without a tag", "<a href=x>", "only text and no tag at all ", "<a href=y>", 100 << 20, 2},
		{"one attribute of 50 MB", "<a href=x><a href='", "abcdefghijklmnopqrstuvwxyz", "'><a href=y>", 50 << 20, 2},
		{"one comment of 50 MB", "<a href=x><!--", "<a href=no> > - ", "--><a href=y>", 50 << 20, 2},
		{"one script of 50 MB", "<a href=x><script>", "if (a < b) { '<a href=no>' } <!-- ", "</script><a href=no>--></script><a href=y>", 50 << 20, -1},
		{"3 million comments", "", "<!-- --><p>", "<a href=x>", 33 << 20, 1},
		{"3 million of what is no tag", "", "<1 a='< ", "<a href=x>", 24 << 20, 1},
		{"a million of svg", "", "<svg>", "<a href=x>", 5 << 20, 1},
		{"a million of div", "", "<div>", "<a href=x>", 5 << 20, 1},
		{"a million of div in svg", "<svg><foreignObject>", "<div>", "<a href=x>", 5 << 20, 1},
		{"a million of template", "", "<template>", "<a href=x>", 10 << 20, 0},
		{"5 million links", "", "<a href=/x>", "", 11 * 5_000_000, 5_000_000},
		{"style of 50 MB", "<style>", "a{b:url(c)} /* comment */ d{e:'f'}", "</style>", 50 << 20, -1},
		{"title of 20 MB", "<title>", "title &amp; more ", "</title><a href=x>", 20 << 20, 1},
	}
}

// write pushes the page through in chunks as they come off a wire.
func (p *bigPage) write(s *Scanner, chunk []byte) {
	s.Write([]byte(p.start))
	for n := 0; n < p.size; n += len(chunk) {
		s.Write(chunk)
	}
	s.Write([]byte(p.end))
	s.Close()
}

func (p *bigPage) chunk() []byte { return []byte(strings.Repeat(p.part, (32<<10)/len(p.part)+1)) }

// All that a fresh scanner allocates for a page, let alone what it holds, is
// below 1% of the page.
func TestBigPages(t *testing.T) {
	for _, p := range bigPages() {
		t.Run(p.name, func(t *testing.T) {
			for _, cfg := range []Config{{}, {Kinds: All}} {
				if testing.Short() && p.size > 10<<20 {
					t.Skip("SKIPPED: large")
				}
				s := NewScanner(cfg)
				links := 0
				s.Reset(benchDoc, func(*Link) { links++ })
				chunk := p.chunk()
				allocated := allocatedBy(func() { p.write(s, chunk) })
				if p.name == "style of 50 MB" && cfg.Kinds == All { // the lexer allocates for each window what it drops with it
					allocated = heldBy(s)
				}
				if limit := uint64(p.size / 100); allocated > limit {
					t.Errorf("%d bytes allocated for a page of %d", allocated, p.size)
				}
				if p.links >= 0 && links != p.links {
					want := p.links
					if n := (p.size + 32<<10) / len(p.part); want > 1000 && links >= want && links <= n*2 {
						continue // whole chunks
					}
					t.Errorf("%d links, want %d", links, want)
				}
			}
		})
	}
}

func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// heldBy is the memory that the scanner keeps.
func heldBy(s *Scanner) uint64 {
	n := cap(s.mk.part) + cap(s.col.titleText) + cap(s.col.memory) + cap(s.col.css.win.buf) + cap(s.col.list.win.buf) + cap(s.col.dec.scratch) + cap(s.col.visible)
	for i := range s.levels {
		n += cap(s.levels[i].buffered)
	}
	return uint64(n)
}

// Ten times the page takes ten times as long: compare the rates.
func BenchmarkLinear(b *testing.B) {
	for _, p := range bigPages() {
		for _, scale := range []int{100, 10} {
			p := p
			p.size /= scale
			b.Run(p.name+map[int]string{100: "/hundredth", 10: "/tenth"}[scale], func(b *testing.B) {
				s := NewScanner(Config{})
				b.SetBytes(int64(p.size))
				b.ReportAllocs()
				chunk := p.chunk()
				for b.Loop() {
					s.Reset(benchDoc, func(*Link) {})
					p.write(s, chunk)
				}
			})
		}
	}
}

// A link costs no allocation once the scanner has its memory.
func TestNoAllocations(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString("<title>T &amp; t</title><base href='/b/'>")
	for i := range 200 {
		c := string(rune('a' + i%26))
		doc.WriteString("<p class=x><a class='r i' rel=nofollow href='../" + c + "/index.html?x=1&amp;y=" + c + "#f'>t</a><img src=" + c + ".png srcset='" + c + " 1x, " + c + "2 2x'>" +
			"<a href='/\u00e4&eacute;/" + c + "'><svg><a xlink:href=" + c + " /></svg>")
	}
	body := doc.Bytes()
	s := NewScanner(Config{Kinds: All})
	links := 0
	count := func(*Link) { links++ }
	if n := testing.AllocsPerRun(20, func() {
		s.Reset(benchDoc, count)
		s.Write(body)
		s.Close()
	}); n > 2 { // the title is not a link
		t.Errorf("Scanner: %g allocations for %d links", n, links/21)
	}
	p := NewPage(PageConfig{Config: Config{Kinds: All}})
	base := Doc{ContentType: benchDoc.ContentType, Base: mustURL(t, "http://a.example/")}
	found := 0
	take := func(*Found) { found++ }
	if n := testing.AllocsPerRun(20, func() {
		p.Reset(base, take)
		p.Write(body)
		p.Close()
	}); n > 4 {
		t.Errorf("Page: %g allocations for %d URLs", n, found/21)
	}
	if links < 1000 || found < 100 {
		t.Errorf("%d links, %d URLs", links, found)
	}
}
