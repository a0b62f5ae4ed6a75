package memory

import (
	"strconv"
	"testing"

	"seine/frontier"
)

// TestOldestLetterMovesNone: dead letters are taken out from the oldest on, up to
// 100,000 of a cause, so taking that one must not move the others.
func TestOldestLetterMovesNone(t *testing.T) {
	f, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := f.states[0]
	const n = 5000
	moves := 0
	for i := range n {
		p.deadLetter("a.example", "timeout", "", frontier.Entry{URL: "https://a.example/" + strconv.Itoa(i)})
	}
	for i := range n {
		d := p.dead["timeout"]
		var next *deadEntry
		if i < n-1 {
			next = &d.list[d.first+1]
		}
		oldest, err := f.DeadLetters(t.Context(), 0, "timeout", 0, 1)
		if err != nil || len(oldest) != 1 || oldest[0].URL != "https://a.example/"+strconv.Itoa(i) {
			t.Fatalf("%d: %v, %v", i, oldest, err)
		}
		if done, err := f.RetryDead(t.Context(), 0, oldest); err != nil || done != 1 {
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
