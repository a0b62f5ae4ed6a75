package memory

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"seine/frontier"
)

// duplicatesOf asks for the contents of 500 pages of a site, the page of each number of
// any site being the same.
func duplicatesOf(t *testing.T, f *Frontier, site string) (duplicates int) {
	t.Helper()
	for i := range 500 {
		sum := sha256.Sum256(fmt.Append(nil, "text", i))
		c := frontier.NewContent(sum[:], fmt.Append(nil, site, i))
		answer := make([]bool, 1)
		if err := f.Duplicates(t.Context(), f.Of(c.Digest), []frontier.Content{c}, answer); err != nil {
			t.Fatal(err)
		}
		if answer[0] {
			duplicates++
		}
	}
	return duplicates
}

// TestContentsKept: a crawl on disk knows contents, and by which URLs they came, after
// a crash and after an end, from logs and from tables.
func TestContentsKept(t *testing.T) {
	f, err := New(Config{Layout: frontier.Layout{Shards: 2}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if n := duplicatesOf(t, f, "first"); n != 0 {
		t.Errorf("%d of the first are duplicates", n)
	}
	for _, crash := range []bool{true, false, false} { // the last loads tables
		f = reopened(t, f, crash)
		if first, copies := duplicatesOf(t, f, "first"), duplicatesOf(t, f, "copy"); first != 0 || copies != 500 {
			t.Errorf("crash %v: of 500 %d of the first and %d copies are duplicates, want 0 and 500", crash, first, copies)
		}
	}
}
