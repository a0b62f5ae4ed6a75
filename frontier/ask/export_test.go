package ask

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"seine/frontier"
	"seine/frontier/memory"
)

// moving is a crawl in which a visit ends and another begins before each look.
type moving struct {
	*memory.Frontier
	t      *testing.T
	leased []frontier.Visit
	n      int
	done   map[string]bool
}

func (m *moving) Entries(ctx context.Context, k int, at frontier.EntryPlace, offset, count int64) ([]frontier.QueuedEntry, error) {
	m.move(ctx, k)
	return m.Frontier.Entries(ctx, k, at, offset, count)
}

// move settles what is leased, each outcome in its turn, and leases more.
func (m *moving) move(ctx context.Context, k int) {
	var settle []frontier.Settlement
	for _, v := range m.leased {
		s := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
		for _, it := range v.Items {
			o := frontier.Outcome{Index: it.Index}
			switch m.n++; m.n % 4 {
			case 0:
				o.Kind, m.done[it.URL] = frontier.Done, true
			case 1:
				o.Kind = frontier.Retry
			case 2:
				o.Kind, o.Cause = frontier.Dead, "timeout"
			case 3:
				o.Kind = frontier.Requeue
			}
			s.Outcomes = append(s.Outcomes, o)
		}
		settle = append(settle, s)
	}
	if _, err := m.Settle(ctx, k, settle); err != nil {
		m.t.Fatal(err)
	}
	reply, err := m.Tick(ctx, k, frontier.TickRequest{Want: 10})
	if err != nil {
		m.t.Fatal(err)
	}
	if m.leased, err = m.Visit(ctx, k, reply.Due, frontier.VisitLimits{URLs: 8}); err != nil {
		m.t.Fatal(err)
	}
}

// seeded is a crawl of one shard with n seeds.
func seeded(t *testing.T, n int, name func(i int) string) *memory.Frontier {
	f, err := memory.New(memory.Config{Layout: frontier.Layout{Shards: 1}, Settings: frontier.DefaultSettings()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	seeder, err := frontier.NewSeeder(f, frontier.SeedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := seeder.AddText(t.Context(), name(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := seeder.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestExportOfLiveCrawl: an export has each URL that is not done when it ends,
// however visits move URLs meanwhile.
func TestExportOfLiveCrawl(t *testing.T) {
	const urls = 5000
	name := func(i int) string { return fmt.Sprintf("https://a.example/%d", i) }
	f := seeded(t, urls, name)
	m := &moving{Frontier: f, t: t, done: map[string]bool{}}
	got := map[string]bool{}
	if _, err := Export(t.Context(), m, func(e *Exported) error { got[e.URL] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if m.n < 8 {
		t.Fatal("hardly anything moved: ", m.n)
	}
	for i := range urls {
		if u := name(i); !got[u] && !m.done[u] {
			t.Errorf("%s is missing", u)
		}
	}
}

// counting is a crawl that counts what is asked of it.
type counting struct {
	*memory.Frontier
	states, entries atomic.Int64
}

func (c *counting) SiteStates(ctx context.Context, k int, sites []string) ([]frontier.SiteState, error) {
	c.states.Add(1)
	return c.Frontier.SiteStates(ctx, k, sites)
}

func (c *counting) Entries(ctx context.Context, k int, at frontier.EntryPlace, offset, count int64) ([]frontier.QueuedEntry, error) {
	c.entries.Add(1)
	return c.Frontier.Entries(ctx, k, at, offset, count)
}

// TestExportOfManySites: sites are asked after a hundred at a time, a small site takes
// one call for its queue, and those of a site stay together and in order.
func TestExportOfManySites(t *testing.T) {
	const sites, each = 250, 3
	f := seeded(t, sites*each, func(i int) string { return fmt.Sprintf("https://s%03d.example/%d", i%sites, i/sites) })
	c := &counting{Frontier: f}
	n := 0
	left, err := Export(t.Context(), c, func(e *Exported) error {
		if want := fmt.Sprintf("https://s%03d.example/%d", n/each, n%each); e.URL != want {
			t.Fatalf("%d: %s, want %s", n, e.URL, want)
		}
		n++
		return nil
	})
	if err != nil || left.Queued != sites*each {
		t.Fatalf("%+v %v", left, err)
	}
	if states, entries := c.states.Load(), c.entries.Load(); states != 6 || entries != sites {
		t.Errorf("%d calls for states, %d for entries", states, entries)
	}
}
