package redis

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard"
	"seine/shard/shardtest"
)

// contentsOf are those of the pages from..to of a site; the page of each number of any
// site is the same.
func contentsOf(site string, from, to int) []frontier.Content {
	var list []frontier.Content
	for i := from; i < to; i++ {
		sum := sha256.Sum256(fmt.Append(nil, "text", i))
		list = append(list, frontier.NewContent(sum[:], fmt.Append(nil, site, i)))
	}
	return list
}

// countDuplicates asks a crawl of one shard.
func countDuplicates(t *testing.T, f *Frontier, list []frontier.Content) (n int) {
	t.Helper()
	answers := make([]bool, len(list))
	if err := f.Duplicates(t.Context(), 0, list, answers); err != nil {
		t.Fatal(err)
	}
	for _, d := range answers {
		if d {
			n++
		}
	}
	return n
}

// TestContentsLost: where a key of the filter of contents is lost, what it held passes
// for new once more, and programs that were under way go on. Nothing else is reported of it.
func TestContentsLost(t *testing.T) {
	t.Parallel()
	programs := programsOf(t, shardtest.One(t), 2, 1e-6)
	a, b := programs[0], programs[1]
	const pages = 4000
	first, copies := contentsOf("first", 0, pages), contentsOf("copy", 0, pages)
	if n, m := countDuplicates(t, a, first), countDuplicates(t, b, copies); n != 0 || m != pages {
		t.Fatalf("%d of the first and %d copies are duplicates, want 0 and %d", n, m, pages)
	}
	set, err := a.ContentSet(t.Context(), 0)
	if err != nil || set.Each < 2 {
		t.Fatalf("%d keys, %v, want several", set.Each, err)
	}
	s := as(t, a)
	s.count(0, 10)
	for i := range set.Each {
		s.do("DEL", set.Key(0, i))
		if lost, err := a.LostContents(t.Context(), 0); err != nil || len(lost) != 1 {
			t.Errorf("%q are said to be lost, %v, want %s", lost, err, set.Key(0, i))
		}
		countDuplicates(t, b, first) // what was lost is remembered by it
		if n, m := countDuplicates(t, a, first), countDuplicates(t, a, copies); n != 0 || m != pages {
			t.Errorf("without key %d of %d: %d of the first and %d copies are duplicates, want 0 and %d", i, set.Each, n, m, pages)
		}
	}
	s.sound(0)
	if set, err = a.ContentSet(t.Context(), 0); err != nil { // it got further keys for what was remembered again
		t.Fatal(err)
	}
	for i := range set.Each {
		s.do("DEL", set.Key(0, i))
	}
	if n := countDuplicates(t, b, copies); n != 0 {
		t.Errorf("%d pages are duplicates though nothing is remembered", n)
	}
	if n, m := countDuplicates(t, a, first), countDuplicates(t, b, copies); n != pages || m != 0 {
		t.Errorf("%d and %d are duplicates, want %d and 0: the copies came first", n, m, pages)
	}
}

// TestContentsMove: while a slot moves nothing is answered out of half of the filter,
// and afterwards it is as it was.
func TestContentsMove(t *testing.T) {
	t.Parallel()
	server := shardtest.Masters(t, 2)
	f := programsOf(t, server, 1, 1e-6)[0]
	const pages = 3000
	first, copies := contentsOf("first", 0, pages), contentsOf("copy", 0, pages)
	countDuplicates(t, f, first)
	set, err := f.ContentSet(t.Context(), 0)
	if err != nil || set.Each < 2 {
		t.Fatalf("%d keys, %v, want several", set.Each, err)
	}
	slot := shard.Slot(f.shards.Tag(0))
	to := server.Nodes[0]
	if server.MasterOf(t, slot) == to {
		to = server.Nodes[1]
	}
	m := server.BeginMove(t, slot, to)
	m.Keys(t, set.Key(0, 0))
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := f.Duplicates(short, 0, copies[:100], make([]bool, 100)); err == nil {
		t.Error("half of the filter answered")
	}
	m.Finish(t)
	if n, m := countDuplicates(t, f, first), countDuplicates(t, f, copies); n != 0 || m != pages {
		t.Errorf("after the move %d of the first and %d copies are duplicates, want 0 and %d", n, m, pages)
	}
}
