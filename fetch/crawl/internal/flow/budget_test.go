package flow

import (
	"testing"

	"seine/frontier"
)

func TestBudget(t *testing.T) {
	b := NewBudget()
	if _, ok := b.NextClaim(0, 10); ok || !b.MayStart() || !b.StartPage() || b.IsSpent() {
		t.Error("bounded without a limit")
	}
	b.SettlePage() // before there is one: the books have it
	c, ok := b.NextClaim(100, 10)
	if !ok || c.Settled != 0 || c.Want != 10 || c.Seq != 1 {
		t.Errorf("%+v", c)
	}
	b.ApplyGrant(c, frontier.PageGrant{Granted: 3, Left: 5})
	for range 3 {
		if !b.StartPage() {
			t.Fatal("a page that is held may not start")
		}
	}
	if b.StartPage() || b.IsSpent() || b.MayStart() || len(b.need) != 1 {
		t.Error("more starts than is held, or no more is asked for")
	}
	b.SettlePage()
	b.ReturnPage() // to be fetched again
	if !b.StartPage() {
		t.Error("a page given back cannot start")
	}
	early := c
	if c, _ = b.NextClaim(100, 0); c.Settled != 1 || c.Want != 3 || c.Seq != 2 {
		t.Errorf("%+v", c)
	}
	b.ApplyGrant(c, frontier.PageGrant{Granted: 3})
	b.ApplyGrant(early, frontier.PageGrant{Granted: 9, Left: 9}) // its answer comes late
	if !b.IsSpent() || b.HasSpare() {
		t.Error("pages are left where none are")
	}
}
