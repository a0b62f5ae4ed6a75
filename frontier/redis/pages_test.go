package redis

import (
	"fmt"
	"testing"

	"seine/frontier"
)

// A fleet ends at its page limit, whoever is killed, and what a killed fetcher
// held comes back when all others are through.
func TestPagesOfAFleet(t *testing.T) {
	t.Parallel()
	const limit, fetchers = 1000, 20
	s := one(t)
	s.admit(candidates("a.example", 0, 10)...)
	s.settle(all(s.acquire(10), frontier.Done)) // before there was a limit
	type fetcher struct{ held, settled, seq int64 }
	members := make([]fetcher, fetchers)
	name := func(i int) string { return fmt.Sprint("f", i) }
	claim := func(i int, want int64) frontier.PageGrant {
		t.Helper()
		m := &members[i]
		m.seq++
		g, err := s.ClaimPages(t.Context(), frontier.PageClaim{Limit: limit, Fetcher: name(i), Seq: m.seq, Settled: m.settled, Want: want})
		if err != nil {
			t.Fatal(err)
		}
		m.held = g.Granted
		return g
	}
	held := func() (sum int64) {
		for _, m := range members {
			sum += m.held
		}
		return sum
	}
	for i := range members {
		if _, err := s.Announce(t.Context(), frontier.Member{ID: name(i), Kind: frontier.KindFetcher}); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	for left := int64(1); left > 0; calls++ {
		left = claim(calls%fetchers, 1<<40).Left
	}
	if held() != limit-10 || calls > 400 {
		t.Errorf("%d pages are held after %d calls", held(), calls)
	}
	for i := range members {
		if members[i].held < limit/fetchers/10 {
			t.Errorf("fetcher %d got %d pages", i, members[i].held)
		}
	}
	// Half is settled in the shards; f0 is gone with what it holds, the others have settled theirs.
	lost := members[0].held
	if err := s.Leave(t.Context(), frontier.Member{ID: name(0)}); err != nil {
		t.Fatal(err)
	}
	s.do("HINCRBY", s.keys[0].Stats(), "done", held()-lost)
	if g := claim(1, 1<<40); g.Left != 0 {
		t.Fatal("pages of a killed fetcher came back while others hold some", g)
	}
	for i := 1; i < fetchers; i++ {
		members[i].settled = members[i].held
		g := claim(i, members[i].held)
		if i == fetchers-1 && g.Left != lost { // by the very call that they came back with
			t.Errorf("%d pages are left, want %d of the fetcher that is gone", g.Left, lost)
		}
	}
	if g := claim(1, members[1].held); g.Left != lost {
		t.Errorf("%d pages are left, want %d of the fetcher that is gone", g.Left, lost)
	}
}

// Two fetchers that saw the same books free the pages of a killed one once, even if these
// are granted again in between.
func TestPagesFreedOnce(t *testing.T) {
	t.Parallel()
	const limit = 10
	s := one(t)
	call := func(id string, seq, want int64) books {
		t.Helper()
		b, err := s.callClaim(t.Context(), frontier.PageClaim{Limit: limit, Fetcher: id, Seq: seq, Want: want})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for seq := range int64(9) {
		call("killed", seq+1, limit)
	}
	seen := call("f1", 1, 0)
	if !seen.quiet || seen.taken != limit {
		t.Fatalf("%+v, want all pages taken by a fetcher that is gone", seen)
	}
	if back, err := s.rebook(t.Context(), seen); !back || err != nil {
		t.Fatal(back, err)
	}
	if _, err := s.Announce(t.Context(), frontier.Member{ID: "f2", Kind: frontier.KindFetcher}); err != nil {
		t.Fatal(err)
	}
	for seq := range int64(9) {
		call("f2", seq+1, limit)
	}
	if b := call("f2", 10, limit); b.grant.Granted != limit {
		t.Fatalf("%+v, want the pages of the fetcher that is gone", b)
	}
	if back, err := s.rebook(t.Context(), seen); back || err != nil {
		t.Error("pages were freed that a fetcher at work holds", err)
	}
	if b := call("f1", 2, limit); b.grant.Granted != 0 {
		t.Errorf("%+v, want no page above the limit", b)
	}
}
