package frontier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"seine/frontier/canon"
	"seine/shard"
)

// claimMost is how far, in milliseconds, a ticket may push a site on.
const claimMost = 10 * 60 * 1000

// checkPage is how many keys, sites or entries one call of a check reads.
const checkPage = 200

// faultsMost is how many faults a check tells of.
const faultsMost = 100

// Check is what a shard was found to hold, and what is wrong with it.
type Check struct {
	Shard   int              `json:"shard"`
	Sites   int64            `json:"sites"`   // with keys of their own
	Leases  int64            `json:"leases"`  // visits out
	Gauges  map[string]int64 `json:"gauges"`  // queued, waiting, open and dead as counted key by key
	Probed  int64            `json:"probed"`  // URLs looked for in the filters
	Moving  bool             `json:"moving"`  // the shard changed meanwhile: counters were not compared
	Faults  []string         `json:"faults"`  // the first 100
	Faulted int64            `json:"faulted"` // all of them
}

func (c *Check) fault(format string, args ...any) {
	c.Faulted++
	if len(c.Faults) < faultsMost {
		c.Faults = append(c.Faults, fmt.Sprintf(format, args...))
	}
}

// Check compares shard k with the rules that hold it together: every site
// stands where the ready rule wants it, leases and visits match, counters are
// what there is, no filter is missing, and, with urls, every URL that is queued, waiting, lent or dead
// is in its filter. It reads only, in pages, and may run on a live crawl; then
// counters are not compared, and a lease that ends meanwhile may look like a
// fault. Cost: O(keys of the server), with urls also O(URLs of the shard).
func (f *Frontier) Check(ctx context.Context, k int, urls bool) (*Check, error) {
	c := &checker{f: f, k: k, keys: f.keys[k], urls: urls,
		report: &Check{Shard: k, Gauges: make(map[string]int64)},
		sites:  make(map[string]bool), tokens: make(map[string]bool), causes: make(map[string]bool)}
	before, err := c.stats(ctx)
	if err != nil {
		return nil, err
	}
	if c.lost, err = f.lostFilters(ctx, k); err != nil {
		return nil, err
	}
	for _, j := range c.lost {
		c.report.fault("the filter %s is missing: nothing is admitted until it is restored from a dump", c.keys.Filter(j))
	}
	for _, step := range []func(context.Context) error{c.scan, c.zsets, c.checkSites, c.checkLeases, c.checkURLs} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	after, err := c.stats(ctx)
	if err != nil {
		return nil, err
	}
	c.compare(before, after)
	return c.report, nil
}

// checker is one check on its way.
type checker struct {
	f      *Frontier
	k      int
	keys   shard.Keys
	urls   bool
	report *Check
	sites  map[string]bool // found by their keys or in a zset
	tokens map[string]bool // found by their v; true = leased
	causes map[string]bool // of dead lists
	leases []Lease
	lost   []int // filters that are missing

	parser *canon.Parser
	url    canon.URL
	asked  []string // URLs to look for
	prints []canon.Fingerprint
}

// stats is the hash of counters.
func (c *checker) stats(ctx context.Context) (map[string]int64, error) {
	raw, err := c.do(ctx, "HGETALL", c.keys.Stats())
	if err != nil {
		return nil, err
	}
	stats := make(map[string]int64)
	for l := array(raw); len(l) >= 2; l = l[2:] {
		if stats[str(l[0])], err = strconv.ParseInt(str(l[1]), 10, 64); err != nil {
			return nil, malformed(c.k, "check", raw)
		}
	}
	return stats, nil
}

// scanTries is how often scan looks for the node that has the shard.
const scanTries = 50

// scan collects sites, tokens and causes from the names of the shard's keys.
// SCAN names no key, so a node that lost the slot does not redirect: what lacks
// the shard's meta was another node, or half of a moving slot.
func (c *checker) scan(ctx context.Context) error {
	for try := range scanTries {
		found, err := c.scanNode(ctx)
		if found || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return &shard.Error{Shard: c.k, Op: "check", Err: context.Cause(ctx)}
		case <-time.After(time.Duration(try) * 10 * time.Millisecond):
		}
		if _, err := c.length(ctx, "HLEN", c.keys.Meta()); err != nil { // is redirected
			return err
		}
	}
	return &shard.Error{Shard: c.k, Op: "check", Err: errors.New("frontier: the shard is moving to another master; try later")}
}

// scanNode scans one node and says whether it has the shard.
func (c *checker) scanNode(ctx context.Context) (found bool, err error) {
	meta := c.keys.Meta()
	prefix := strings.TrimSuffix(meta, "meta")
	err = c.pages(ctx, []any{"SCAN"}, []any{"MATCH", c.keys.Pattern(), "COUNT", 10 * checkPage}, func(page []any) error {
		for _, key := range page {
			found = found || str(key) == meta
			kind, name, _ := strings.Cut(strings.TrimPrefix(str(key), prefix), ":")
			switch kind {
			case "s", "w":
				c.sites[name] = true
			case "q":
				c.sites[name[:max(0, strings.LastIndexByte(name, ':'))]] = true
			case "v":
				c.tokens[name] = false
			case "dead":
				c.causes[name] = true
			}
		}
		return nil
	})
	return found, err
}

// zsets collects the sites of ready, held and leases: one without any key of
// its own is a fault that checkSites finds.
func (c *checker) zsets(ctx context.Context) error {
	for z := 2; z < 8; z++ {
		err := c.pages(ctx, []any{"ZSCAN", c.f.base[c.k][z]}, []any{"COUNT", checkPage}, func(page []any) error {
			for i := 0; i+1 < len(page); i += 2 {
				site := str(page[i])
				if z == 2 {
					l := leaseOf(site)
					c.tokens[l.Token], site = true, l.Site
					c.leases = append(c.leases, l)
				}
				c.sites[site] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.report.Sites = int64(len(c.sites))
	return nil
}

// checkSites looks at every site at one moment of its own.
func (c *checker) checkSites(ctx context.Context) error {
	for page := range slices.Chunk(slices.Sorted(maps.Keys(c.sites)), checkPage) {
		var keys []string
		var args []any
		for _, site := range page {
			keys = c.f.block(keys, c.k, site)
			args = append(args, site)
		}
		raw, err := c.f.call(ctx, c.k, checkScript, keys, args)
		if err != nil {
			return err
		}
		reply := array(raw)
		if len(reply) != len(page)+1 {
			return malformed(c.k, "check", raw)
		}
		now := number(reply[0])
		for i, site := range page {
			c.checkSite(site, now, array(reply[i+1]))
		}
	}
	return nil
}

// checkSite holds the ready rule against what the script read of one site.
func (c *checker) checkSite(site string, now float64, r []any) {
	if len(r) != 16 {
		c.report.fault("%s: cannot be read", site)
		return
	}
	clock, token, paused, blocked := number(r[0]), str(r[1]), str(r[2]) != "", str(r[3]) != ""
	class, first := -1, number(r[9])
	for p := 3; p >= 0; p-- {
		n := int64(number(r[4+p]))
		c.report.Gauges["queued"] += n
		if n > 0 {
			class = p
		}
	}
	waiting := int64(number(r[8]))
	c.report.Gauges["waiting"] += waiting
	due := max(clock, 0)
	want := class
	if class < 0 && waiting > 0 {
		want, due = 3, max(clock, first)
	}
	if token != "" && str(r[15]) == "" {
		c.report.fault("%s: lent to %s, which has no lease", site, token)
	}
	if blocked && want >= 0 {
		c.report.fault("%s: blocked, with work", site)
	}
	if token != "" {
		want = -1
	} else if want >= 0 && paused {
		want = 4
	}
	names := [...]string{"ready:0", "ready:1", "ready:2", "ready:3", "held"}
	for z, name := range names {
		score := str(r[10+z])
		switch {
		case z != want && score != "":
			c.report.fault("%s: stands in %s, and should not", site, name)
		case z == want && score == "":
			c.report.fault("%s: does not stand in %s", site, name)
		case z == want && z < 4 && number(score) < due:
			c.report.fault("%s: due in %s at %s, before its time %.0f", site, name, score, due)
		case z == want && z < 4 && number(score) > max(due, now)+claimMost:
			c.report.fault("%s: due in %s at %s, long after its time %.0f", site, name, score, due)
		}
	}
}

// number reads a number of a reply, 0 for none.
func number(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	n, _ := strconv.ParseFloat(str(v), 64)
	return n
}
