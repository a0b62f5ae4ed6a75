// Package audit holds the shards of a crawl in Redis against the rules that keep
// them together, on a live crawl, and mends what can be mended.
//
// Check looks at everything twice, a moment apart, and calls a fault what both
// looks show. Repair checks, mends by scripts that judge again by themselves, and
// checks again.
package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/redis"
	"seine/shard"
)

// checkPage is how many keys, sites or entries one call of a check reads.
const checkPage = 200

// faultsMost is how many faults, and mends, are told of.
const faultsMost = 100

// secondLook is how long after the first a check looks again at what seemed
// wrong: a fault is what both see.
const secondLook = 50 * time.Millisecond

// Report is what a shard was found to hold, and what is wrong with it. A fault
// starts with its key; one that Repair cannot mend says what to do.
type Report struct {
	Shard   int              `json:"shard"`
	Sites   int64            `json:"sites"`            // with keys of their own
	Leases  int64            `json:"leases"`           // visits out
	Gauges  map[string]int64 `json:"gauges"`           // queued, waiting, open and dead as counted key by key
	Probed  int64            `json:"probed"`           // URLs looked for in the filters
	Moving  bool             `json:"moving"`           // the shard changed meanwhile
	Notes   []string         `json:"notes,omitempty"`  // what could not be judged or mended, and why
	Faults  []string         `json:"faults"`           // the first 100
	Faulted int64            `json:"faulted"`          // all of them
	Mended  []string         `json:"mended,omitempty"` // by Repair, the first 100
	Mends   int64            `json:"mends,omitempty"`  // all of them
}

func (r *Report) fault(key, format string, args ...any) {
	r.Faulted++
	if len(r.Faults) < faultsMost {
		r.Faults = append(r.Faults, key+": "+fmt.Sprintf(format, args...))
	}
}

// mended notes what a repair did.
func (r *Report) mended(key, format string, args ...any) {
	r.Mends++
	if len(r.Mended) < faultsMost {
		r.Mended = append(r.Mended, key+": "+fmt.Sprintf(format, args...))
	}
}

// note says what could not be judged, or mended.
func (r *Report) note(what string) {
	if !slices.Contains(r.Notes, what) {
		r.Notes = append(r.Notes, what)
	}
}

// Check compares shard k with the rules that hold it together: every site
// stands where the ready rule wants it, leases and visits match, counters are
// what there is, no filter is missing, and, with urls, every URL that is queued,
// waiting, lent or dead is in its filter. It reads only, in pages, and may run on
// a live crawl: a fault is what two looks, one a moment after the other, both
// show, and what cannot be judged while the shard changes is named. Cost:
// O(keys of the server), with urls also O(URLs of the shard). Memory: the names
// of the shard's sites and visits, 0.1 KB each (1 GB for 10 million sites, which
// cost Redis 6 GB and more), twice that for sites that are wrong; URLs are held a
// page at a time.
func Check(ctx context.Context, f *redis.Frontier, k int, urls bool) (*Report, error) {
	c, err := check(ctx, f, k, urls, nil)
	if err != nil {
		return nil, err
	}
	return c.report, nil
}

// newChecker is one of shard k that saw nothing yet.
func newChecker(f *redis.Frontier, k int, urls bool, sum *Report) *checker {
	return &checker{f: f, client: f.Client(), k: k, keys: f.Keys(k), urls: urls, sum: sum,
		report: &Report{Shard: k, Gauges: make(map[string]int64)},
		sites:  make(map[string]bool), visits: make(map[string]bool), leased: make(map[string]bool),
		holders: make(map[string]string), causes: make(map[string]int64), todo: todo{sites: make(map[string]*siteTodo)}}
}

// checkAll is one check of all that there is to judge.
func checkAll(ctx context.Context, f *redis.Frontier, k int, urls bool, sum *Report) (*checker, error) {
	c := newChecker(f, k, urls, sum)
	if alive, err := c.checkMeta(ctx); err != nil || !alive {
		return c, err
	}
	before, err := c.stats(ctx)
	if err != nil {
		return nil, err
	}
	if c.lost, err = f.LostFilters(ctx, k); err != nil {
		return nil, err
	}
	for _, j := range c.lost {
		c.report.fault(c.keys.Filter(j), "the filter is missing: nothing is admitted until it is restored from a dump (frontier bloom load); without one, create the crawl anew and seed it")
	}
	for _, step := range []func(context.Context) error{c.checkFilterTypes, c.gather, c.checkSites, c.checkLoans, c.checkDead, c.checkProbes, c.checkURLs} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	after, err := c.stats(ctx)
	if err != nil {
		return nil, err
	}
	c.compare(before, after)
	return c, nil
}

// checker is one check on its way.
type checker struct {
	f       *redis.Frontier
	client  *shard.Client
	k       int
	keys    shard.Keys
	urls    bool
	report  *Report
	sum     *Report // what a repair did, nil = only look
	todo    todo
	sites   map[string]bool   // found by their keys or in a zset
	visits  map[string]bool   // tokens found by their v
	leases  []frontier.Lease  // each once
	leased  map[string]bool   // tokens of leases
	holders map[string]string // token -> site that names it
	causes  map[string]int64  // of dead lists, with their lengths
	lost    []int             // filters that are missing

	parser *canon.Parser
	url    canon.URL
	asked  []wanted
}

// checkMeta looks at the shard's copy of the root. alive is false when it lacks
// the epoch: then nothing else can be judged.
func (c *checker) checkMeta(ctx context.Context) (alive bool, err error) {
	root, err := c.f.Root(ctx, c.k)
	if err != nil && !errors.Is(err, frontier.ErrStale) {
		return false, err
	}
	h, e := c.client.Hash(ctx, c.k, c.keys.Meta())
	switch {
	case e != nil:
		return false, e
	case h["epoch"] == "" && err == nil && !root.Deleting:
		c.report.fault(c.keys.Meta(), "the epoch is missing: every call is refused")
		c.report.note("all else was not judged: without its epoch the shard answers nothing")
		c.todo.meta = shard.Fields{"epoch", ""}
		return false, nil
	case h["epoch"] != c.f.Epoch():
		return false, &shard.Error{Shard: c.k, Op: "check", Err: frontier.ErrStale}
	case h["rev"] == "":
		c.report.fault(c.keys.Meta(), "the revision is missing: fetchers do not see changes of settings")
	case err != nil || h["rev"] != root.Rev || (h["paused"] != "") == root.Paused:
		return true, nil // a change that is under way is published soon
	default:
		c.report.fault(c.keys.Meta(), "the pause differs from %s", shard.RootKey(c.f.Crawl()))
	}
	c.todo.meta = shard.Fields{"epoch", c.f.Epoch(), "rev", h["rev"], "paused", h["paused"]}
	return true, nil
}

// again waits for the second look.
func (c *checker) again(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return &shard.Error{Shard: c.k, Op: "check", Err: context.Cause(ctx)}
	case <-time.After(secondLook):
		return nil
	}
}
