package extract

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding/simplifiedchinese"

	"seine/extract/simhash"
)

// TestLongText: the text of a page is the same however it comes and whatever its
// length, up to MaxText; the simhash is that of all of it.
func TestLongText(t *testing.T) {
	gbk := func(s string) string {
		b, err := simplifiedchinese.GBK.NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const words, glued, chinese = 20_000, 200_000, 400_000
	for name, c := range map[string]struct{ kind, body, text string }{
		"words":      {"text/html", "<p>" + strings.Repeat("many &eacute;&amp;\n<b>words</b> ", words), strings.TrimSpace(strings.Repeat("many é& words ", words))},
		"no space":   {"text/html", strings.Repeat("a&eacute;b", glued), strings.Repeat("aéb", glued)},
		"utf-8":      {"text/html; charset=utf-8", strings.Repeat("今日は", chinese), strings.Repeat("今日は", chinese)},
		"gbk":        {"text/html; charset=gbk", gbk(strings.Repeat("今天天气很好，\n", chinese/8)), strings.TrimSpace(strings.Repeat("今天天气很好， ", chinese/8))},
		"unnamed":    {"text/html", strings.Repeat("tränen ", words), strings.TrimSpace(strings.Repeat("tränen ", words))},
		"no text":    {"text/html", "<p> <script>x</script>", ""},
		"whole MB":   {"text/html", strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20)},
		"one beyond": {"text/html", strings.Repeat("x", 1<<20+1), strings.Repeat("x", 1<<20+1)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{0, 1000, 100_003} {
				_, s := scanLinks(t, Config{Text: true, SimHash: true}, Doc{ContentType: c.kind}, c.body, size)
				f := s.Facts()
				want := strings.TrimRight(c.text[:min(len(c.text), 1<<20)], " ")
				want = strings.ToValidUTF8(want, "")
				if string(f.Text) != want || f.TextCut != (len(c.text) > 1<<20) {
					t.Fatalf("in pieces of %d: %d bytes of text, want %d; cut: %v", size, len(f.Text), len(want), f.TextCut)
				}
				if sum := simhash.Of([]byte(c.text)); f.SimHash != sum {
					t.Errorf("in pieces of %d: simhash %#x, want that of all text, %#x", size, f.SimHash, sum)
				}
			}
		})
	}
	_, s := scanLinks(t, Config{SimHash: true}, Doc{ContentType: "text/html"}, "<p>one two three", 0)
	if f := s.Facts(); f.Text != nil || f.SimHash != simhash.Of([]byte("one two three")) {
		t.Errorf("without text: %q, simhash %#x", f.Text, f.SimHash)
	}
}
