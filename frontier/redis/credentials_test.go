package redis

import (
	"testing"
	"time"

	"seine/frontier"
)

// TestCredentialsStay: they stay while the site has work, and a day longer.
func TestCredentialsStay(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 1)
	maker := frontier.NewMaker(f.Layout())
	admit := func(url string) {
		t.Helper()
		c, err := maker.Make(url)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Admit(t.Context(), 0, []frontier.Candidate{c}, make([]frontier.Verdict, 1)); err != nil {
			t.Fatal(err)
		}
	}
	key := f.keys[0].Site("a.example")
	stays := func(what string, want bool) {
		t.Helper()
		left := f.client.Redis().PTTL(t.Context(), key).Val()
		if want && left != -1 || !want && (left <= 23*time.Hour || left > 25*time.Hour) {
			t.Errorf("%s: they are kept for %v", what, left)
		}
	}
	visit := func() frontier.Visit {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			reply, err := f.Tick(t.Context(), 0, frontier.TickRequest{Want: 10})
			if err != nil {
				t.Fatal(err)
			}
			visits, err := f.Visit(t.Context(), 0, reply.Due, frontier.VisitLimits{URLs: 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(visits) == 1 {
				return visits[0]
			}
		}
		t.Fatal("the site is not due")
		panic("unreachable")
	}
	end := func(v frontier.Visit, kind frontier.Kind) {
		t.Helper()
		outcome := frontier.Outcome{Index: v.Items[0].Index, Kind: kind}
		if kind == frontier.Recrawl {
			outcome.NotBefore, outcome.Next = 100*24*time.Hour, &frontier.Next{Entry: v.Items[0].Entry, Key: 1}
		}
		if _, err := f.Settle(t.Context(), 0, []frontier.Settlement{{Lease: v.Lease, Outcomes: []frontier.Outcome{outcome}, Release: &frontier.Release{}}}); err != nil {
			t.Fatal(err)
		}
	}
	admit("http://u:p@a.example/1")
	stays("a queued site", true)
	admit("http://a.example/2")
	v := visit()
	stays("a leased one", true)
	end(v, frontier.Done)
	stays("one with work left", true)
	end(visit(), frontier.Done)
	stays("one without work", false)
	admit("http://u:p@a.example/2")
	stays("one whose seed was known", false)
	admit("http://a.example/3")
	stays("one that has work again", true)
	end(visit(), frontier.Recrawl)
	stays("one that is recrawled", true)
}
