package crawl

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"seine/frontier"
)

// rulesCounter counts the calls about rules and what they were about.
type rulesCounter struct {
	Frontier
	asks, asked, gives, given atomic.Int64
}

func (rc *rulesCounter) Rules(ctx context.Context, k int, batch []frontier.OriginRules) error {
	rc.asks.Add(1)
	rc.asked.Add(int64(len(batch)))
	return rc.Frontier.Rules(ctx, k, batch)
}

func (rc *rulesCounter) SetRules(ctx context.Context, k int, batch []frontier.OriginRules) error {
	rc.gives.Add(1)
	rc.given.Add(int64(len(batch)))
	return rc.Frontier.SetRules(ctx, k, batch)
}

// TestRulesInBatches: the shard is asked once for the rules of all sites that are
// leased together and once for each origin, for none of a site that nobody asked
// before, and is given those that were read together; with the rules of another
// fetcher no robots.txt is asked for.
func TestRulesInBatches(t *testing.T) {
	const sites = 200
	w := newWeb(t)
	w.rest(html())
	r := newRig(t, w, nil)
	r.cfg.Concurrency, r.cfg.Linger = 256, 20*time.Millisecond
	counted := &rulesCounter{Frontier: r.cfg.Frontier}
	r.cfg.Frontier = counted
	seed := func(path string) {
		for i := range sites {
			r.seed(fmt.Sprintf("http://s%d.example/%s", i, path))
		}
	}
	seed("a")
	r.run() // all is given before it ends
	if n := len(w.requests("", true)); n != sites {
		t.Errorf("%d requests for robots.txt of %d sites", n, sites)
	}
	if asked := counted.asked.Load(); asked != 0 {
		t.Errorf("asked for the rules of %d origins of new sites", asked)
	}
	if gives, given := counted.gives.Load(), counted.given.Load(); given != sites || gives > sites/4 {
		t.Errorf("%d calls gave the rules of %d origins", gives, given)
	}
	seed("b")
	r.run() // another process
	if n := len(w.requests("", true)); n != sites {
		t.Errorf("%d requests for robots.txt of %d sites that were known", n-sites, sites)
	}
	if asks, asked := counted.asks.Load(), counted.asked.Load(); asked != sites || asks > sites/4 {
		t.Errorf("%d calls asked for the rules of %d origins", asks, asked)
	}
	r.checkEmpty()
}
