package site

import (
	"testing"
	"time"

	"seine/frontier"
)

// TestKept: tickets are taken in the order of their times, none too early, and none when
// others may have been named its site.
func TestKept(t *testing.T) {
	var k Kept
	start := time.Now()
	if _, ok := k.Until(start); ok || k.Take(start, 9) != nil {
		t.Fatal("a ticket out of nothing")
	}
	for i, name := range []string{"c", "a", "d", "b"} {
		k.Add(frontier.Ticket{Site: name}, start.Add([]time.Duration{300, 100, 1000, 200}[i]*time.Millisecond))
	}
	for _, c := range []struct {
		after time.Duration
		n     int
		want  string
		until time.Duration // then
		left  int64
	}{
		{50, 9, "", 50, 4},
		{200, 1, "a", 0, 3},
		{300, 0, "", -100, 3},
		{300, 1, "b", 0, 2},
		{800, 9, "", 200, 1}, // too late for c
		{1000, 9, "d", 0, 0},
	} {
		now, got := start.Add(c.after*time.Millisecond), ""
		for _, ticket := range k.Take(now, c.n) {
			got += ticket.Site
		}
		until, _ := k.Until(now)
		if got != c.want || until != c.until*time.Millisecond || k.Len() != c.left {
			t.Errorf("after %d ms: %q, %v until the next, %d left; want %+v", c.after, got, until, k.Len(), c)
		}
	}
}
