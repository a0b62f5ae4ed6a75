package fields

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Main text against the test pages that go-readability brings, which are those
// of Readability.js: of the words of the page's expected article, how many are
// there (recall), and of the words found, how many belong to it (precision),
// counted with repetition. The text of the whole body stands beside it.
func TestMainText(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "codeberg.org/readeck/go-readability/v2").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skipf("SKIPPED: no source of go-readability here: %v", err)
	}
	sources, _ := filepath.Glob(filepath.Join(dir, "test-pages", "*", "source.html"))
	if len(sources) < 100 {
		t.Fatalf("%d pages in %s", len(sources), dir)
	}
	var main, whole quality
	for _, source := range sources {
		page, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		expected, err := os.ReadFile(filepath.Join(filepath.Dir(source), "expected.html"))
		if err != nil {
			t.Fatal(err)
		}
		want := words(pageOf(t, string(expected), "").Whole())
		p := pageOf(t, string(page), "")
		main.add(words(p.Main()), want)
		whole.add(words(p.Whole()), want)
	}
	t.Logf("main text: %s; whole text: %s", main.String(), whole.String())
	if main.f1() < 0.98 || whole.recall() < 0.95 || main.precision() < whole.precision()+0.2 {
		t.Errorf("main text: %s; whole text: %s", main.String(), whole.String())
	}
}

func words(text string) map[string]int {
	n := make(map[string]int)
	for w := range strings.FieldsSeq(text) {
		n[w]++
	}
	return n
}

// quality adds up shares of words, each page counting the same.
type quality struct {
	pages, empty int
	r, p         float64
}

func (q *quality) add(got, want map[string]int) {
	var both, g, w int
	for word, n := range got {
		g += n
		both += min(n, want[word])
	}
	for _, n := range want {
		w += n
	}
	q.pages++
	if w == 0 || g == 0 {
		if w == g {
			q.r, q.p = q.r+1, q.p+1
		}
		q.empty++
		return
	}
	q.r += float64(both) / float64(w)
	q.p += float64(both) / float64(g)
}

func (q *quality) recall() float64    { return q.r / float64(q.pages) }
func (q *quality) precision() float64 { return q.p / float64(q.pages) }
func (q *quality) f1() float64        { return 2 * q.recall() * q.precision() / (q.recall() + q.precision()) }

func (q *quality) String() string {
	return fmt.Sprintf("recall %.3f, precision %.3f, F1 %.3f on %d pages (%d empty)", q.recall(), q.precision(), q.f1(), q.pages, q.empty)
}

func BenchmarkMain(b *testing.B) {
	body := "<body><nav>" + strings.Repeat("<a href=x>menu</a> ", 50) + "</nav><article>" + strings.Repeat("<p>"+strings.Repeat("some words of an article, and more of them. ", 10)+"</p>", 40) + "</article></body>"
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if !strings.HasPrefix(pageOf(b, body, "").Main(), "some") {
			b.Fatal("no text")
		}
	}
}
