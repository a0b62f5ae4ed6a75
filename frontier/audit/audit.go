// Package audit holds the shards of a crawl in Redis against the rules that keep
// them together, on a live crawl, and repairs what it can.
//
// Check looks at everything twice, a moment apart, and calls a fault what both
// looks show. Repair checks, and repairs by scripts that judge again by themselves, and
// checks again.
package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"maps"
	"strconv"
	"strings"

	"seine/bloom"
	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/redis"
	"seine/shard"
)

// checkPage is how many keys, sites or entries one call of a check reads.
const checkPage = 200

// faultsMost is how many faults, and repairs, a report lists.
const faultsMost = 100

// secondLook is how long after the first a check looks again at what seemed
// wrong: a fault is what both see.
const secondLook = 50 * time.Millisecond

// Report is what a shard was found to hold, and what is wrong with it. A fault
// starts with its key; one that Repair cannot mend says what to do.
type Report struct {
	Shard    int              `json:"shard"`
	Sites    int64            `json:"sites"`              // with keys of their own
	Leases   int64            `json:"leases"`             // visits out
	Gauges   map[string]int64 `json:"gauges"`             // queued, waiting, recrawls, open and dead as counted key by key
	Probed   int64            `json:"probed"`             // URLs looked for in the filters
	Moving   bool             `json:"moving"`             // the shard changed meanwhile
	Notes    []string         `json:"notes,omitempty"`    // what could not be judged or repaired, and why
	Faults   []string         `json:"faults"`             // the first 100
	Faulted  int64            `json:"faulted"`            // all of them
	Repaired []string         `json:"repaired,omitempty"` // by Repair, the first 100
	Repairs  int64            `json:"repairs,omitempty"`  // all of them
}

func (r *Report) fault(key, format string, args ...any) {
	r.Faulted++
	if len(r.Faults) < faultsMost {
		r.Faults = append(r.Faults, key+": "+fmt.Sprintf(format, args...))
	}
}

// repaired notes what a repair did.
func (r *Report) repaired(key, format string, args ...any) {
	r.Repairs++
	if len(r.Repaired) < faultsMost {
		r.Repaired = append(r.Repaired, key+": "+fmt.Sprintf(format, args...))
	}
}

// note says what could not be judged, or repaired.
func (r *Report) note(what string) {
	if !slices.Contains(r.Notes, what) {
		r.Notes = append(r.Notes, what)
	}
}

// Check compares shard k with the rules that hold it together: every site
// stands where the ready rule wants it, leases and visits match, counters are
// what there is, no filter is missing, and, with urls, every URL that is queued,
// waiting, leased or dead is in its filter. It reads only, in pages, and may run on
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
	if c.filters, err = f.FilterSet(ctx, k); err != nil {
		return nil, err
	}
	if c.lost, err = f.LostFilters(ctx, c.filters); err != nil {
		return nil, err
	}
	for _, key := range c.lost {
		c.report.fault(key, "the filter is missing: nothing is admitted until it is restored from a dump (frontier bloom load); without one, create the crawl anew and seed it")
	}
	if c.contents, err = f.ContentSet(ctx, k); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{c.checkFilters, c.checkContents, c.gather, c.checkSites, c.checkLeases, c.checkDead, c.checkProbes, c.checkURLs} {
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
	f        *redis.Frontier
	client   *shard.Client
	k        int
	keys     shard.Keys
	urls     bool
	report   *Report
	sum      *Report // what a repair did, nil = only look
	todo     todo
	sites    map[string]bool   // found by their keys or in a zset
	visits   map[string]bool   // tokens found by their v
	leases   []frontier.Lease  // each once
	leased   map[string]bool   // tokens of leases
	holders  map[string]string // token -> site that names it
	causes   map[string]int64  // of dead lists, with their lengths
	filters  bloom.Set
	epoch    string    // of the shard, "" when it is missing
	lost     []string  // keys of filters that are missing
	empty    bool      // nothing of the shard is there
	contents bloom.Set // the filter of contents, of no key where there is none

	parser *canon.Parser
	url    canon.URL
	read   []wanted
}

// checkMeta looks at the shard's copy of the root. alive is false when it lacks
// the epoch: then nothing else can be judged.
func (c *checker) checkMeta(ctx context.Context) (alive bool, err error) {
	root, err := c.f.Root(ctx, c.k)
	if err != nil && !errors.Is(err, frontier.ErrStale) && !errors.Is(err, frontier.ErrLostShard) {
		return false, err
	}
	h, e := c.client.Hash(ctx, c.k, c.keys.Meta())
	c.epoch = h["epoch"]
	switch {
	case e != nil:
		return false, e
	case h["epoch"] == "" && err == nil && !root.Deleting:
		if c.filters, e = c.f.FilterSet(ctx, c.k); e == nil {
			c.lost, e = c.f.LostFilters(ctx, c.filters)
		}
		if e != nil {
			return false, e
		}
		if c.empty = len(c.lost) == len(c.filters.All()); c.empty {
			c.report.fault(c.keys.Meta(), "%s", c.f.LossOf(ctx, c.k))
		} else {
			c.report.fault(c.keys.Meta(), "the epoch is missing: every call is refused")
		}
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
	c.todo.meta = shard.Fields{"epoch", h["epoch"], "rev", h["rev"], "paused", h["paused"]}
	return true, nil
}

// awaitSecondLook waits until it is time for it.
func (c *checker) awaitSecondLook(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return &shard.Error{Shard: c.k, Op: "check", Err: context.Cause(ctx)}
	case <-time.After(secondLook):
		return nil
	}
}

// gatherTries is how often gather looks for the node that has the shard.
const gatherTries = 50

// gather collects what there is by the names of the shard's keys and the members
// of its zsets. SCAN names no key, so a node that lost the slot does not redirect,
// and one that is losing it shows a part. So a script, which waits while a slot
// moves, runs before and after, and the shard must have stayed where it was.
func (c *checker) gather(ctx context.Context) error {
	for try := range gatherTries {
		if err := c.settled(ctx); err != nil {
			return err
		}
		place := c.client.Epoch(c.k)
		c.forget()
		found, err := c.scan(ctx)
		if err == nil && found {
			err = c.zsets(ctx)
		}
		if err == nil {
			err = c.settled(ctx)
		}
		if err != nil || found && c.client.Epoch(c.k) == place {
			return err
		}
		select {
		case <-ctx.Done():
			return &shard.Error{Shard: c.k, Op: "check", Err: context.Cause(ctx)}
		case <-time.After(time.Duration(try) * 10 * time.Millisecond):
		}
	}
	return &shard.Error{Shard: c.k, Op: "check", Err: errors.New("frontier: the shard keeps moving to other masters; try later")}
}

// settled waits until the shard's slot is not moving.
func (c *checker) settled(ctx context.Context) error {
	_, err := c.f.Call(ctx, c.k, checkScript, nil, nil)
	return err
}

// forget drops what an earlier try gathered.
func (c *checker) forget() {
	c.leases = nil
	clear(c.sites)
	clear(c.visits)
	clear(c.leased)
	clear(c.causes)
}

// scan collects sites, tokens and causes, and reports whether the node has the shard.
func (c *checker) scan(ctx context.Context) (found bool, err error) {
	meta := c.keys.Meta()
	prefix := strings.TrimSuffix(meta, "meta")
	err = c.pages(ctx, []any{"SCAN"}, []any{"MATCH", c.keys.Pattern(), "COUNT", 10 * checkPage}, func(page []any) error {
		for _, key := range page {
			found = found || shard.Text(key) == meta
			kind, name, _ := strings.Cut(strings.TrimPrefix(shard.Text(key), prefix), ":")
			switch kind {
			case "s", "w", "a", "e":
				c.site(name)
			case "q":
				c.site(name[:max(0, strings.LastIndexByte(name, ':'))])
			case "v":
				c.visits[name] = true
			case "dead":
				c.causes[name] = 0
			}
		}
		return nil
	})
	return found, err
}

// site notes a site; its name no longer holds on to the key it is part of.
func (c *checker) site(name string) {
	if !c.sites[name] {
		c.sites[strings.Clone(name)] = true
	}
}

// zsets collects the sites of ready, held and leases: one without any key of
// its own is a fault that checkSites finds.
func (c *checker) zsets(ctx context.Context) error {
	seen := make(map[frontier.Lease]bool)
	for z, key := range append([]string{c.keys.Leases()}, c.places()...) {
		err := c.members(ctx, key, func(site string) error {
			if z == 0 {
				l := redis.LeaseOf(site)
				if !seen[l] {
					seen[l], c.leased[l.Token] = true, true
					c.leases = append(c.leases, l)
				}
				site = l.Site
			}
			c.site(site)
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.report.Sites = int64(len(c.sites))
	c.report.Leases = int64(len(c.leases))
	return nil
}

// places are the zsets that a site may be in: ready:0 to ready:3, ready:paused.
func (c *checker) places() []string {
	return []string{c.keys.Ready(0), c.keys.Ready(1), c.keys.Ready(2), c.keys.Ready(3), c.keys.PausedReady()}
}

// members calls each with the members of a zset; some may come twice.
func (c *checker) members(ctx context.Context, key string, each func(member string) error) error {
	return c.pages(ctx, []any{"ZSCAN", key}, []any{"COUNT", checkPage}, func(page []any) error {
		for i := 0; i+1 < len(page); i += 2 {
			if err := each(shard.Text(page[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// do runs a plain command on the master of the shard.
func (c *checker) do(ctx context.Context, args ...any) (any, error) {
	return c.client.Do(ctx, c.k, c.keys.Meta(), args...)
}

// length is the reply of a command that counts.
func (c *checker) length(ctx context.Context, command, key string) (int64, error) {
	raw, err := c.do(ctx, command, key)
	n, _ := raw.(int64)
	return n, err
}

// pages is Frontier.pages for the shard of the check.
func (c *checker) pages(ctx context.Context, head, tail []any, each func(page []any) error) error {
	return c.f.Pages(ctx, c.k, "check", head, tail, each)
}

// counters are what the counters of a shard are made of, and what rises whenever a
// URL moves; a repair expects each as it was read, so nothing that moves a URL
// can come in between.
var counters = [...]string{"visits", "queued", "waiting", "open", "known", "retried_dead", "done", "dead", "merged", "blocked",
	"missing", "dropped", "forgotten", "calls", "admits", "retried", "lost", "recrawls", "recrawled", "forgone", "unasked"}

// stats is the hash of counters as it is stored.
func (c *checker) stats(ctx context.Context) (map[string]string, error) {
	return c.client.Hash(ctx, c.k, c.keys.Stats())
}

// compare holds the counters against what was found, when nothing moved. To set
// them right it believes what is there: queued, waiting, recrawls and open become what was
// counted. Dead letters more than counted raise dead, fewer raise dropped; URLs, those that came to be recrawled among them, more
// than came raise known, fewer raise missing, which counts what is nowhere.
func (c *checker) compare(before, after map[string]string) {
	if c.report.Moving = !maps.Equal(before, after); c.report.Moving {
		c.report.note("the shard changed meanwhile: counters were not compared, and URLs that moved may not have been looked at")
		return
	}
	key, s, set := c.keys.Stats(), make(map[string]int64), make(map[string]int64)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		n, err := strconv.ParseInt(after[name], 10, 64)
		if s[name] = n; err != nil {
			c.report.fault(key, "%s is %q, which is no number", name, after[name])
			set[name] = 0
		}
	}
	change := func(name string, to int64) {
		if s[name] != to {
			s[name], set[name] = to, to
		}
	}
	for _, gauge := range []string{"queued", "waiting", "recrawls", "open"} {
		if n := c.report.Gauges[gauge]; s[gauge] != n {
			c.report.fault(key, "%s is %d, there are %d", gauge, s[gauge], n)
			change(gauge, n)
		}
	}
	for _, cause := range slices.Sorted(maps.Keys(c.causes)) {
		name, n := "dead:"+cause, c.causes[cause]
		if s[name] < n {
			c.report.fault(key, "%s is %d, there are %d", name, s[name], n)
			change(name, n)
		}
	}
	dead, letters := s["dead"]-s["dropped"]-s["retried_dead"]-s["forgotten"], c.report.Gauges["dead"]
	if dead != letters {
		c.report.fault(key, "counters make %d dead letters, there are %d", dead, letters)
		change("dead", s["dead"]+max(0, letters-dead))
		change("dropped", s["dropped"]+max(0, dead-letters))
	}
	came := s["known"] + s["retried_dead"] + s["recrawled"]
	went := s["done"] + s["dead"] + s["merged"] + s["blocked"] + s["missing"] + s["queued"] + s["waiting"] + s["open"]
	if came != went {
		c.report.fault(key, "%d URLs came, and %d are there or went", came, went)
		change("known", s["known"]+max(0, went-came))
		change("missing", s["missing"]+max(0, came-went))
	}
	if len(set) == 0 {
		return
	}
	for _, name := range counters {
		c.todo.expect = append(c.todo.expect, name, after[name])
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		c.todo.set = append(c.todo.set, name, strconv.FormatInt(set[name], 10))
	}
}
