package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"errors"

	"seine/bloom"
	"seine/frontier"
	"seine/frontier/redis"
	"seine/shard"
)

// todo is what a repair can do about the faults of a check.
type todo struct {
	meta        shard.Fields // what meta is expected to be, when it is to be as the root says
	ruled       bool         // meta is to say that rules of sites bind
	sites       map[string]*siteTodo
	strange     []strange
	expect, set shard.Fields // of the counters
}

// siteTodo is what seemed wrong with a site.
type siteTodo struct {
	place  bool
	tokens []string
}

// leased adds a token that the site is leased under, or seems to be.
func (s *siteTodo) leased(token string) {
	if !slices.Contains(s.tokens, token) {
		s.tokens = append(s.tokens, token)
	}
}

func (t *todo) site(name string) *siteTodo {
	s := t.sites[name]
	if s == nil {
		s = &siteTodo{}
		t.sites[name] = s
	}
	return s
}

// repairRounds bounds how often Repair checks and repairs: the epoch comes before
// all else, counters come last, and a site may need a second go.
const repairRounds = 6

// Repair checks shard k, repairs what it can and checks again; what it
// returns is the last check, with what was repaired on the way. It may run on a
// live crawl: each mend is one script, which judges again by itself. A lost lease
// is released, to its fetcher or the reaper; a site is freed of a token that
// leases nothing and placed by the ready rule; a blocked one loses its work; a URL
// is put into its filter; an entry or a record that cannot be read, or a key of a
// wrong type, is moved to another name; counters are set to what was counted unless anything
// changed since. With an error comes what was repaired until then. Cost and memory: those
// of a few checks.
func Repair(ctx context.Context, f *redis.Frontier, k int, urls bool) (*Report, error) {
	sum := &Report{Shard: k}
	for round := 0; ; round++ {
		into, before := sum, sum.Repairs
		if round == repairRounds {
			into = nil // look only
		}
		c, err := check(ctx, f, k, urls, into)
		if err == nil && into != nil {
			err = c.mend(ctx, before)
		}
		if err != nil {
			return sum, err
		}
		if into != nil && (sum.Repairs > before || c.todo.set != nil) { // counters may have changed meanwhile
			continue
		}
		c.report.Repaired, c.report.Repairs = sum.Repaired, sum.Repairs
		for _, note := range sum.Notes {
			c.report.note(note)
		}
		return c.report, nil
	}
}

// mend does what the check found to be done, and notes it in sum, which had so
// many repairs before the check. Counters wait until the rest, which changes them,
// is done or cannot be.
func (c *checker) mend(ctx context.Context, before int64) error {
	for _, step := range []func(context.Context) error{c.mendTypes, c.mendMeta, c.mendSites} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if c.sum.Repairs > before || c.todo.set == nil {
		return nil
	}
	ok, err := c.client.CompareAndSet(ctx, c.k, c.keys.Stats(), c.todo.expect, c.todo.set)
	if ok {
		for i := 0; i < len(c.todo.set); i += 2 {
			c.sum.repaired(c.keys.Stats(), "%s set to %s", c.todo.set[i], c.todo.set[i+1])
		}
	}
	return err
}

// mendMeta copies the root to the shard.
func (c *checker) mendMeta(ctx context.Context) error {
	meta := c.keys.Meta()
	if c.todo.meta != nil {
		root, err := c.f.Root(ctx, c.k)
		if err != nil {
			return err
		}
		paused := ""
		if root.Paused {
			paused = "1"
		}
		if c.empty {
			if err := c.f.ReserveShard(ctx, c.k); err != nil {
				return err
			}
			c.sum.repaired(c.keys.FilterKey(0, 0), "the shard starts again with empty filters: it fetches URLs that it knew again where they are found")
		}
		each, contents, err := c.f.FoundKeys(ctx, c.k)
		if err != nil {
			return err
		}
		// Without knowing whether rules bind, admission looks for them.
		set := shard.Fields{"epoch", c.f.Epoch(), "rev", root.Rev, "paused", paused, "ruled", "1", "layout", root.Layout}
		if each > 1 {
			set = append(set, "keys", strconv.Itoa(each))
		}
		if contents > 0 {
			set = append(set, "contents", strconv.Itoa(contents))
		}
		ok, err := c.client.CompareAndSet(ctx, c.k, meta, c.todo.meta, set)
		if err != nil {
			return err
		}
		if ok {
			c.sum.repaired(meta, "epoch, revision and pause set as the root has them")
		}
	}
	if c.todo.ruled {
		ok, err := c.client.CompareAndSet(ctx, c.k, meta, shard.Fields{"epoch", c.epoch, "ruled", ""}, shard.Fields{"ruled", "1"})
		if err != nil {
			return err
		}
		if ok {
			c.sum.repaired(meta, "says again that rules of sites bind")
		}
	}
	return nil
}

// evict moves an entry that cannot be read to a list of such.
func (c *checker) evict(ctx context.Context, m misfit) (gone bool, err error) {
	raw, err := c.f.Call(ctx, c.k, evictScript, []string{c.keys.Broken(), m.key, m.beside(c.keys)}, []any{m.kind, m.raw, m.index})
	if err != nil {
		return false, err
	}
	if gone = raw == int64(1); gone {
		c.sum.repaired(m.key, "%s is kept in %s now", frontier.LogText(m.raw), c.keys.Broken())
	}
	return gone, nil
}

// mendTexts say what the codes of the script mean; the first gets the token.
var mendTexts = map[byte]string{
	'r': "the lease of %s is given back; unless its fetcher goes on, its URLs return when it ends",
	't': "is no longer leased to %s",
	'l': "the lease of %s, which held no URL, is ended",
}

// mendSites puts sites in order, each at one moment.
func (c *checker) mendSites(ctx context.Context) error {
	for _, site := range slices.Sorted(maps.Keys(c.todo.sites)) {
		t := c.todo.sites[site]
		keys, place := c.f.AppendSite(nil, c.k, site), 0
		if t.place {
			place = 1
		}
		args := []any{site, place, redis.Milliseconds(c.f.Settings().DelayOf(site)), c.f.Config().Lease.Milliseconds()}
		for _, token := range t.tokens {
			keys, args = append(keys, c.keys.Visit(token)), append(args, token)
		}
		raw, err := c.f.Call(ctx, c.k, mendScript, keys, args)
		if err != nil {
			return err
		}
		reply := shard.Array(raw)
		if len(reply) != 4 || len(shard.Text(reply[0])) != len(t.tokens) {
			return redis.Malformed(c.k, "mend", raw)
		}
		key := c.keys.Site(site)
		for i, token := range t.tokens {
			if text := mendTexts[shard.Text(reply[0])[i]]; text != "" {
				c.sum.repaired(key, text, token)
			}
		}
		if n, _ := reply[1].(int64); n > 0 {
			c.sum.repaired(key, "is blocked: %d URLs dropped", n)
		}
		if n, _ := reply[3].(int64); n > 0 {
			c.sum.repaired(c.keys.Recrawls(site), "%d recrawls whose time was missing are due now, those whose entry was are no more", n)
		}
		if reply[2] == int64(1) {
			c.sum.repaired(key, "stands where the ready rule wants it")
		}
	}
	return nil
}

// mendURLs puts URLs, a page at most, into their filters. Where Redis is full the
// fault stays.
func (c *checker) mendURLs(ctx context.Context, list []wanted) error {
	for j, share := range byFilter(list, c.filters.Plan.Filters) {
		if len(share) == 0 {
			continue
		}
		refused, err := c.f.Remember(ctx, c.k, j, withPrints(share))
		if err != nil && strings.Contains(err.Error(), "OOM") {
			c.sum.note("Redis is full: URLs that are not in their filters could not be put there; make room and repair again")
			return nil
		}
		if err != nil {
			return err
		}
		for i := range share {
			if !refused[i] {
				c.sum.repaired(share[i].key, "%s is in its filter", frontier.HideCredentials(share[i].url))
			}
		}
	}
	return nil
}

// strange is a key that no program of a crawl wrote so: it is of another type, and
// every script that meets it breaks off, or what it holds cannot be read. It is set
// moved away, and what can be made anew is.
type strange struct{ key, kind string }

// typeOf is the type that a key of a shard must have, by the first part of its
// name; "" where any will do.
func typeOf(part string) string {
	switch part {
	case "meta", "stats", "probes", "paused", "blocked", "s", "v", "r", "e", "counters", "seeds":
		return "hash"
	case "ready", "leases", "w", "a", "top", "walled":
		return "zset"
	case "q", "dead", "broken":
		return "list"
	case "probing":
		return "string"
	}
	return ""
}

// check is one check; the checker knows what a repair has to do. With sum it is
// of a repair and repairs URLs and entries, which may be many, as it goes. Where it
// breaks off at a key of a wrong type it tells of such keys alone.
func check(ctx context.Context, f *redis.Frontier, k int, urls bool, sum *Report) (*checker, error) {
	c, err := checkAll(ctx, f, k, urls, sum)
	if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		return c, err
	}
	c = newChecker(f, k, urls, sum)
	if other := c.checkTypes(ctx); other != nil || c.todo.strange == nil {
		return nil, errors.Join(err, other)
	}
	c.report.note("all else was not judged, for a key of a wrong type is in the way")
	return c, nil
}

// checkTypes looks for keys of a wrong type, when a check broke off at one. Cost:
// a call a key.
func (c *checker) checkTypes(ctx context.Context) error {
	prefix := strings.TrimSuffix(c.keys.Meta(), "meta")
	seen := make(map[string]bool)
	return c.pages(ctx, []any{"SCAN"}, []any{"MATCH", c.keys.Pattern(), "COUNT", 10 * checkPage}, func(page []any) error {
		for _, v := range page {
			key := shard.Text(v)
			part, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), ":")
			want := typeOf(part)
			if want == "" || seen[key] {
				continue
			}
			kind, err := c.kindOf(ctx, key)
			if err != nil {
				return err
			}
			if kind == want || kind == "none" {
				continue
			}
			seen[key] = true
			c.isStrange(key, kind, want)
		}
		return nil
	})
}

// checkFilters looks for filters that are none, and for those that cannot move.
func (c *checker) checkFilters(ctx context.Context) error {
	strange, err := c.noFilters(ctx, c.filters)
	c.lost = append(c.lost, strange...)
	if err != nil || strange != nil { // asked how large it is it would be an error
		return err
	}
	return c.checkStuck(ctx, c.filters)
}

// checkContents is checkFilters of the filter of contents. One that is missing is
// made anew when somebody asks, and is no fault.
func (c *checker) checkContents(ctx context.Context) error {
	if c.contents.Each == 0 {
		return nil
	}
	strange, err := c.noFilters(ctx, c.contents)
	if err != nil || strange != nil {
		return err
	}
	lost, err := c.f.LostFilters(ctx, c.contents)
	if err != nil {
		return err
	}
	for _, key := range lost {
		c.report.note(key + ": this key of the filter of contents is missing; it is made anew, empty, when a fetcher asks, and pages that it held pass for first ones once more")
	}
	return c.checkStuck(ctx, c.contents)
}

// noFilters names keys of filters that are of another type. What a module calls its
// own type is its business.
func (c *checker) noFilters(ctx context.Context, set bloom.Set) (strange []string, err error) {
	for _, key := range set.All() {
		kind, err := c.kindOf(ctx, key)
		if err != nil {
			return nil, err
		}
		if slices.Contains([]string{"string", "list", "set", "zset", "hash", "stream"}, kind) {
			strange = append(strange, key)
			c.isStrange(key, kind, "a Bloom filter")
		}
	}
	return strange, nil
}

// checkStuck tells of keys of filters that cannot move.
func (c *checker) checkStuck(ctx context.Context, set bloom.Set) error {
	stuck, err := c.f.Stuck(ctx, set)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(stuck)) {
		c.report.note(fmt.Sprintf("%s: %d MB, too large to move to another master; it does not grow any more. "+
			"to move its slot all the same, first CONFIG SET proto-max-bulk-len 4gb on the master that gets it; both stand still for some 16 s a GB, "+
			"which must be less than cluster-node-timeout", key, stuck[key]/1_000_000))
	}
	return nil
}

// isStrange tells of a key of a wrong type.
func (c *checker) isStrange(key, kind, want string) {
	c.todo.strange = append(c.todo.strange, strange{key, kind})
	c.report.fault(key, "is of type %s and must be %s: scripts break off at it", kind, want)
}

func (c *checker) kindOf(ctx context.Context, key string) (string, error) {
	raw, err := c.client.Do(ctx, c.k, key, "TYPE", key)
	return shard.Text(raw), err
}

// mendTypes renames strange keys: what they hold is kept, out of the way.
func (c *checker) mendTypes(ctx context.Context) error {
	prefix := strings.TrimSuffix(c.keys.Meta(), "meta")
	for _, s := range c.todo.strange {
		kind, err := c.kindOf(ctx, s.key)
		if err != nil {
			return err
		}
		if kind != s.kind {
			continue
		}
		moved := prefix + "moved:" + strings.TrimPrefix(s.key, prefix)
		raw, err := c.client.Do(ctx, c.k, s.key, "RENAMENX", s.key, moved)
		if err != nil {
			return err
		}
		if raw == int64(1) || raw == true {
			c.sum.repaired(s.key, "is kept as %s now", moved)
		} else {
			c.sum.note(moved + " is there already: delete it, or " + s.key + ", and repair again")
		}
	}
	return nil
}
