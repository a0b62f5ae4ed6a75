package memory

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"seine/frontier"
)

// TestLeftovers: what a crash left half written is removed when the crawl is
// opened, and nothing else.
func TestLeftovers(t *testing.T) {
	f, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{"0.7.snap.new": false, "crawl.new": false, "notes.new": true, "0.7.new": true} {
		if err := os.WriteFile(filepath.Join(f.cfg.Dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		f = reopened(t, f, false)
		if _, err := os.Stat(filepath.Join(f.cfg.Dir, name)); os.IsNotExist(err) == stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOldestLetterMovesNone: letters are taken out from the oldest on, up to
// 100,000 of a cause, so taking that one must not move the others.
func TestOldestLetterMovesNone(t *testing.T) {
	f, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := f.shards[0]
	const n = 5000
	moves := 0
	for i := range n {
		p.bury("a.example", "timeout", "", frontier.Entry{URL: "https://a.example/" + strconv.Itoa(i)})
	}
	for i := range n {
		d := p.dead["timeout"]
		var next *letter
		if i < n-1 {
			next = &d.list[d.first+1]
		}
		oldest, err := f.DeadLetters(t.Context(), 0, "timeout", 0, 1)
		if err != nil || len(oldest) != 1 || oldest[0].URL != "https://a.example/"+strconv.Itoa(i) {
			t.Fatalf("%d: %v, %v", i, oldest, err)
		}
		if done, err := f.Revive(t.Context(), 0, oldest); err != nil || done != 1 {
			t.Fatalf("%d: %d, %v", i, done, err)
		}
		if next != nil && &d.list[d.first] != next {
			moves++
		}
	}
	if moves > 4 { // to give half of the memory back
		t.Errorf("all letters moved %d times", moves)
	}
	if d := p.dead["timeout"]; d.len() != 0 || cap(d.list) != 0 {
		t.Errorf("%d letters are left, and room for %d", d.len(), cap(d.list))
	}
}
