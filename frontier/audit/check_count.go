package audit

import (
	"context"
	"maps"
	"slices"
	"strconv"
)

// counters are what the sums of a shard are made of, and what rises whenever a
// URL moves; a repair expects each as it was read, so nothing that moves a URL
// can come in between.
var counters = [...]string{"visits", "queued", "waiting", "open", "known", "revived", "done", "dead", "merged", "blocked",
	"missing", "dropped", "forgotten", "calls", "admits", "retried", "lost"}

// stats is the hash of counters as it is stored.
func (c *checker) stats(ctx context.Context) (map[string]string, error) {
	return c.client.Hash(ctx, c.k, c.keys.Stats())
}

// compare holds the counters against what was found, when nothing moved. To set
// them right it believes what is there: queued, waiting and open become what was
// counted. Letters more than counted raise dead, fewer raise dropped; URLs more
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
	for _, gauge := range []string{"queued", "waiting", "open"} {
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
	dead, letters := s["dead"]-s["dropped"]-s["revived"]-s["forgotten"], c.report.Gauges["dead"]
	if dead != letters {
		c.report.fault(key, "counters make %d dead letters, there are %d", dead, letters)
		change("dead", s["dead"]+max(0, letters-dead))
		change("dropped", s["dropped"]+max(0, dead-letters))
	}
	came := s["known"] + s["revived"]
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
