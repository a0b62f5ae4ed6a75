package audit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"seine/frontier/redis"
	"seine/shard"
)

// claimMost is how far, in milliseconds, a ticket may push a site on.
const claimMost = 10 * 60 * 1000

// checkSites looks at every site, each at one moment of its own, and again at
// those that seem wrong.
func (c *checker) checkSites(ctx context.Context) error {
	var suspects []string
	err := c.look(ctx, slices.Sorted(maps.Keys(c.sites)), func(s *siteState) {
		c.report.Gauges["queued"] += s.queued
		c.report.Gauges["waiting"] += s.waiting
		c.report.Gauges["recrawls"] += s.recrawls
		if s.token != "" {
			c.holders[s.token] = s.site
		}
		if c.faultsOf(s) != nil {
			suspects = append(suspects, s.site)
		}
	})
	if err != nil || suspects == nil {
		return err
	}
	if err := c.awaitSecondLook(ctx); err != nil {
		return err
	}
	ruled := false
	return c.look(ctx, suspects, func(s *siteState) {
		for _, x := range c.faultsOf(s) {
			switch x.kind {
			case wrongRules:
				if ruled {
					continue // one fault of the shard
				}
				ruled, c.todo.ruled = true, true
			case wrongLease:
				c.todo.site(s.site).leased(s.token)
			case wrongRecrawls:
				c.todo.site(s.site)
			case wrongPlace:
				c.todo.site(s.site).place = true
			}
			c.report.fault(x.key, "%s", x.what)
		}
	})
}

// siteState is what a site was at one moment.
type siteState struct {
	site            string
	now, clock      float64 // ms
	token           string
	leased          bool
	paused, blocked bool
	capped, ruled   bool
	class           int // best that has entries, -1 none
	queued, waiting int64
	recrawls, kept  int64     // to be recrawled: times and entries
	firstWait       float64   // of a retry, or of one to be recrawled
	scores          [5]string // in ready:0 to ready:3 and ready:paused, "" = not there
}

// look reads sites in pages.
func (c *checker) look(ctx context.Context, sites []string, each func(*siteState)) error {
	for page := range slices.Chunk(sites, checkPage) {
		var keys []string
		var args []any
		for _, site := range page {
			keys = c.f.AppendSite(keys, c.k, site)
			args = append(args, site)
		}
		raw, err := c.f.Call(ctx, c.k, checkScript, keys, args)
		if err != nil {
			return err
		}
		reply := shard.Array(raw)
		if len(reply) != len(page)+2 {
			return redis.Malformed(c.k, "check", raw)
		}
		for i, site := range page {
			r := shard.Array(reply[i+2])
			if len(r) != 20 {
				return redis.Malformed(c.k, "check", raw)
			}
			s := parseSite(site, r)
			s.now, s.ruled = number(reply[0]), shard.Text(reply[1]) != ""
			each(s)
		}
	}
	return nil
}

// parseSite reads what the script says of one site.
func parseSite(site string, r []any) *siteState {
	s := &siteState{site: site, clock: number(r[0]), token: shard.Text(r[1]), leased: shard.Text(r[17]) != "",
		paused: shard.Text(r[2]) != "", blocked: shard.Text(r[3]) != "", capped: shard.Text(r[18]) != "",
		class: -1, waiting: int64(number(r[8])), recrawls: int64(number(r[9])), kept: int64(number(r[19])), firstWait: math.Inf(1)}
	for _, first := range r[10:12] {
		if shard.Text(first) != "" {
			s.firstWait = min(s.firstWait, number(first))
		}
	}
	for p := 3; p >= 0; p-- {
		n := int64(number(r[4+p]))
		s.queued += n
		if n > 0 {
			s.class = p
		}
	}
	for z := range s.scores {
		s.scores[z] = shard.Text(r[12+z])
	}
	return s
}

// The kinds of what may be wrong with a site.
const (
	wrongLease = iota
	wrongPlace
	wrongRecrawls
	wrongRules
)

type siteFault struct {
	kind      int
	key, what string
}

// faultsOf holds the rules against what a site was.
func (c *checker) faultsOf(s *siteState) (list []siteFault) {
	fault := func(kind int, key, format string, args ...any) {
		list = append(list, siteFault{kind, key, fmt.Sprintf(format, args...)})
	}
	want, due := s.class, max(s.clock, 0)
	if s.class < 0 && s.waiting+s.recrawls > 0 {
		want, due = 3, max(s.clock, s.firstWait)
	}
	if s.recrawls != s.kept {
		fault(wrongRecrawls, c.keys.Recrawls(s.site), "%d URLs have a time of their recrawl, and %d their entry in %s", s.recrawls, s.kept, c.keys.RecrawlEntries(s.site))
	}
	if s.token != "" && !s.leased {
		fault(wrongLease, c.keys.Site(s.site), "leased to %s, which has no lease", s.token)
	}
	if s.blocked && want >= 0 {
		fault(wrongPlace, c.keys.Site(s.site), "blocked, with work")
	}
	if (s.blocked || s.capped) && !s.ruled {
		fault(wrongRules, c.keys.Meta(), "does not say that rules of sites bind, and %s has one", s.site)
	}
	if s.token != "" {
		want = -1
	} else if want >= 0 && s.paused {
		want = 4
	}
	places := c.places()
	for z, score := range s.scores {
		key := places[z]
		switch {
		case z != want && score != "":
			fault(wrongPlace, key, "%s stands there, and should not", s.site)
		case z == want && score == "":
			fault(wrongPlace, key, "%s does not stand there", s.site)
		case z == want && z < 4 && number(score) < due:
			fault(wrongPlace, key, "%s is due at %s, before its time %.0f", s.site, score, due)
		case z == want && z < 4 && number(score) > max(due, s.now)+claimMost:
			fault(wrongPlace, key, "%s is due at %s, long after its time %.0f", s.site, score, due)
		}
	}
	return list
}

// number reads a number of a reply, 0 for none.
func number(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	n, _ := strconv.ParseFloat(shard.Text(v), 64)
	return n
}
