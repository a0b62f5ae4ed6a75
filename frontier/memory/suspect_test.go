package memory

import (
	"sync"
	"testing"

	"seine/frontier"
)

// TestOneSuspectAtATime: shards that are asked at the same moment lend one URL
// that was lost twice, not one each.
func TestOneSuspectAtATime(t *testing.T) {
	f, err := New(Config{Layout: frontier.Layout{Shards: 2}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 3000 {
		var tickets [2][]frontier.Ticket
		for k, p := range f.shards {
			p.lock()
			s := p.site("a.example")
			if s.best() == 4 {
				p.pushFront(s, &frontier.Entry{URL: "https://a.example/", Lost: 2})
			}
			s.clock = 0
			p.place(s)
			p.mu.Unlock()
			reply, err := f.Tick(t.Context(), k, frontier.TickRequest{Want: 1})
			if err != nil || len(reply.Due) != 1 {
				t.Fatalf("shard %d: %v, %v", k, reply.Due, err)
			}
			tickets[k] = reply.Due
		}
		var visits [2][]frontier.Visit
		var start, done sync.WaitGroup
		start.Add(1)
		for k := range visits {
			done.Go(func() {
				start.Wait()
				visits[k], _ = f.Visit(t.Context(), k, tickets[k], frontier.VisitLimits{URLs: 8})
			})
		}
		start.Done()
		done.Wait()
		if n := len(visits[0]) + len(visits[1]); n != 1 {
			t.Fatalf("%d suspects were lent, want 1", n)
		}
		for k := range visits {
			for _, v := range visits[k] {
				st := frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1, Kind: frontier.Done}}, Free: &frontier.Release{}}
				if _, err := f.Settle(t.Context(), k, []frontier.Settlement{st}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
