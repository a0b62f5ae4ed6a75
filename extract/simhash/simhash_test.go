package simhash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"seine/bench/web"
	"seine/extract/fields"
)

// articles are the main texts of the pages that go-readability is tested on,
// those of at least a hundred words, of which no two are versions of one.
func articles(t *testing.T) (all []string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "codeberg.org/readeck/go-readability/v2").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skipf("SKIPPED: no source of go-readability here: %v", err)
	}
	sources, _ := filepath.Glob(filepath.Join(dir, "test-pages", "*", "source.html"))
	var shingled []map[string]bool
	for _, source := range sources {
		body, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		p, err := fields.NewPage(body, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		text := p.Main()
		own := shinglesOf(text)
		if len(own) < 100 || slices.ContainsFunc(shingled, func(other map[string]bool) bool { return likeness(own, other) > 0.1 }) {
			continue
		}
		shingled = append(shingled, own)
		all = append(all, text)
	}
	return all
}

func shinglesOf(text string) map[string]bool {
	words := strings.Fields(strings.ToLower(text))
	set := make(map[string]bool)
	for i := Words; i <= len(words); i++ {
		set[strings.Join(words[i-Words:i], " ")] = true
	}
	return set
}

// likeness is the share of shingles that two texts have in common (Jaccard).
func likeness(a, b map[string]bool) float64 {
	both := 0
	for s := range a {
		if b[s] {
			both++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

// changed is a text of which a share of the words is replaced, left out or
// doubled.
func changed(rng *rand.Rand, text string, share float64) string {
	var out []string
	for _, w := range strings.Fields(text) {
		if rng.Float64() >= share {
			out = append(out, w)
			continue
		}
		switch rng.IntN(3) {
		case 0:
			out = append(out, fmt.Sprint(rng.IntN(1e6)))
		case 1:
			out = append(out, w, w)
		}
	}
	return strings.Join(out, " ")
}

// pagesOfWeb are the texts of pages of the synthetic web, which are lists of
// random words out of few, each with a new number in it.
func pagesOfWeb(t *testing.T) (all []string) {
	t.Helper()
	w, err := web.New(web.Config{Seed: 1, Sites: 20, Pages: 400})
	if err != nil {
		t.Fatal(err)
	}
	for site := range 20 {
		for n := range 20 {
			p, err := fields.NewPage(w.AppendPage(nil, site, n), "", nil)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p.Whole()+fmt.Sprintf(" read %d times", n))
		}
	}
	return all
}

// distances of different texts, and of each text to ten versions of it, both in
// order.
func distances(texts []string, version func(string) string) (apart, near []int) {
	sums := make([]uint64, len(texts))
	for i, text := range texts {
		sums[i] = Of([]byte(text))
		for j := range i {
			apart = append(apart, Distance(sums[i], sums[j]))
		}
		for range 10 {
			near = append(near, Distance(sums[i], Of([]byte(version(text)))))
		}
	}
	slices.Sort(apart)
	slices.Sort(near)
	return apart, near
}

// within is the share of distances up to k.
func within(ds []int, k int) float64 {
	n, _ := slices.BinarySearch(ds, k+1)
	return float64(n) / float64(len(ds))
}

// The figures that the documentation gives.
func TestQuality(t *testing.T) {
	all := articles(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ share, least float64 }{{0.002, 1}, {0.01, 0.98}, {0.02, 0.95}, {0.05, 0.6}, {0.1, 0}} {
		apart, near := distances(all, func(text string) string { return changed(rng, text, c.share) })
		t.Logf("%d articles, %.1f%% of words changed: median %d, %.1f%% of pairs within %d; of %d pairs of different ones the nearest has %d",
			len(all), 100*c.share, near[len(near)/2], 100*within(near, Near), Near, len(apart), apart[0])
		if within(near, Near) < c.least || apart[0] <= Near {
			t.Errorf("%.1f%% of words changed: %.3f within %d; nearest of different ones %d", 100*c.share, within(near, Near), Near, apart[0])
		}
	}
	apart, near := distances(pagesOfWeb(t), func(text string) string {
		return text[:strings.LastIndex(text, " read ")] + fmt.Sprintf(" read %d times", rng.IntN(1e6))
	})
	t.Logf("synthetic web, a counter changed: median %d, %.1f%% within %d; of %d pairs of different pages the nearest has %d, %.4f%% within %d",
		near[len(near)/2], 100*within(near, Near), Near, len(apart), apart[0], 100*within(apart, Near), Near)
	if within(near, Near) < 0.99 || within(apart, Near) > 0.001 {
		t.Errorf("synthetic web: %.3f and %.5f within %d", within(near, Near), within(apart, Near), Near)
	}
}

func TestOf(t *testing.T) {
	for _, texts := range [][]string{
		{"", " .,! ", "\u00a0"},
		{"One two, three four", "one  TWO three\nfour!", "one-two three: four"},
		{"\u00c4rger mit \u00d6l", "\u00e4rger mit \u00f6l"},
		{"\u4eca\u65e5\u306f\u6674", "\u4eca \u65e5 \u306f \u6674"},
	} {
		for _, text := range texts[1:] {
			if a, b := Of([]byte(texts[0])), Of([]byte(text)); a != b {
				t.Errorf("%q %x, %q %x", texts[0], a, text, b)
			}
		}
	}
	// Stored values stay what they are.
	for text, want := range map[string]uint64{"": 0, "one": 0x437e962a87f329b3, "the quick brown fox jumps over the lazy dog": 0x79da01f480a5c47c} {
		if got := Of([]byte(text)); got != want {
			t.Errorf("%q: %#x", text, got)
		}
	}
	text := []byte(strings.Repeat("Some words of which a text is made. ", 100))
	var h Hash
	if n := testing.AllocsPerRun(10, func() { h.Reset(); h.Write(text); h.Sum() }); n != 0 {
		t.Errorf("%g allocations", n)
	}
	for i := range text { // in two pieces, and the same Hash again
		h.Reset()
		h.Write(text[:i])
		h.Write(text[i:])
		if got := h.Sum(); got != Of(text) {
			t.Fatalf("cut at %d: %#x, whole: %#x", i, got, Of(text))
		}
	}
}

func BenchmarkOf(b *testing.B) {
	text := []byte(strings.Repeat("Some words of which a text is made, and others. ", 2000))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		Of(text)
	}
}

// TestLongWord: the memory of a page that is one word does not stay with its worker.
func TestLongWord(t *testing.T) {
	var h Hash
	h.Write(bytes.Repeat([]byte("a"), 1<<20))
	h.Reset()
	if cap(h.word) > keptWord {
		t.Errorf("%d bytes are kept", cap(h.word))
	}
}
