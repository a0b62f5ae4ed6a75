package audit

import (
	"context"
	"maps"
	"slices"

	"errors"
	"fmt"
	"strconv"

	"seine/bloom"
	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/redis"
	"seine/shard"
)

// wanted is a URL to look for in its filter.
type wanted struct {
	key   string // where it stands
	url   string
	print canon.Fingerprint
}

// checkURLs looks for every URL of the shard in its filter.
func (c *checker) checkURLs(ctx context.Context) error {
	if !c.urls {
		return nil
	}
	if err := c.checkEntries(ctx, slices.Sorted(maps.Keys(c.sites))); err != nil {
		return err
	}
	for _, l := range c.leases {
		key := c.keys.Visit(l.Token)
		raw, err := c.do(ctx, "HGETALL", key)
		if err != nil {
			return err
		}
		for open := shard.Array(raw); len(open) >= 2; open = open[2:] {
			if _, err := c.entry(ctx, l.Site, misfit{key: key, kind: "open", raw: shard.Text(open[1]), index: shard.Text(open[0])}); err != nil {
				return err
			}
		}
	}
	return c.checkDeadLetters(ctx)
}

// entriesMost is how many entries one call reads of many sites.
const entriesMost = 500

// checkEntries looks for the URLs that sites have queued and waiting, of many sites
// in one call; what fills a call alone is read list by list.
func (c *checker) checkEntries(ctx context.Context, sites []string) error {
	for size := checkPage; len(sites) > 0; {
		page := sites[:min(len(sites), size)]
		var keys []string
		for _, site := range page {
			keys = c.f.AppendSite(keys, c.k, site)
		}
		raw, err := c.f.Call(ctx, c.k, entriesScript, keys, []any{entriesMost})
		if err != nil {
			return err
		}
		reply := shard.Array(raw)
		read := len(reply)
		if read > len(page) {
			return redis.Malformed(c.k, "check", raw)
		}
		for i, r := range reply {
			if err := c.entriesOf(ctx, page[i], shard.Array(r)); err != nil {
				return err
			}
		}
		if read == 0 {
			if err := c.listsOf(ctx, page[0]); err != nil {
				return err
			}
			read = 1
		}
		size = min(2*read, checkPage) // as many as may fit in the next call
		sites = sites[read:]
	}
	return nil
}

// entriesOf looks for the URLs of one site in a reply of the script: its queues, its
// retries, and what is kept to be recrawled.
func (c *checker) entriesOf(ctx context.Context, site string, lists []any) error {
	if len(lists) > 5 {
		if err := c.kept(ctx, site, shard.Array(lists[5])); err != nil {
			return err
		}
		lists = lists[:5]
	}
	for p, list := range lists {
		at := misfit{kind: "queued"}
		if p < 4 {
			at.key = c.keys.Queue(site, p)
		} else {
			at.key, at.kind = c.keys.Wait(site), "waiting"
		}
		for _, raw := range shard.Array(list) {
			at.raw = shard.Text(raw)
			if _, err := c.entry(ctx, site, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// listsOf looks for the URLs of one site that has many.
func (c *checker) listsOf(ctx context.Context, site string) error {
	for class := range 4 {
		key := c.keys.Queue(site, class)
		err := c.list(ctx, key, func(raw string) (bool, error) {
			return c.entry(ctx, site, misfit{key: key, kind: "queued", raw: raw})
		})
		if err != nil {
			return err
		}
	}
	key := c.keys.Wait(site)
	err := c.members(ctx, key, func(raw string) error {
		_, err := c.entry(ctx, site, misfit{key: key, kind: "waiting", raw: raw})
		return err
	})
	if err != nil {
		return err
	}
	return c.pages(ctx, []any{"HSCAN", c.keys.RecrawlEntries(site)}, []any{"COUNT", checkPage}, func(page []any) error { return c.kept(ctx, site, page) })
}

// kept looks for URLs that are to be recrawled: names and entries by turns.
func (c *checker) kept(ctx context.Context, site string, pairs []any) error {
	key := c.keys.RecrawlEntries(site)
	for ; len(pairs) >= 2; pairs = pairs[2:] {
		at := misfit{key: key, kind: "recrawls", site: site, raw: shard.Text(pairs[1]), index: shard.Text(pairs[0])}
		if _, err := c.entry(ctx, site, at); err != nil {
			return err
		}
	}
	return nil
}

// checkDeadLetters looks for the URLs of dead letters.
func (c *checker) checkDeadLetters(ctx context.Context) error {
	for cause := range c.causes {
		key := c.keys.Dead(cause)
		err := c.list(ctx, key, func(raw string) (bool, error) {
			d, err := redis.ParseDeadLetter(raw, cause)
			if err != nil {
				return c.unreadable(ctx, misfit{key: key, kind: "dead", raw: raw})
			}
			return false, c.known(ctx, key, d.Site, &d.Entry)
		})
		if err != nil {
			return err
		}
	}
	return c.ask(ctx)
}

// list goes through a list in pages; each reports whether it took the entry out.
func (c *checker) list(ctx context.Context, key string, each func(raw string) (gone bool, err error)) error {
	for from := 0; ; {
		raw, err := c.do(ctx, "LRANGE", key, from, from+checkPage-1)
		if err != nil {
			return err
		}
		page := shard.Array(raw)
		for _, v := range page {
			gone, err := each(shard.Text(v))
			if err != nil {
				return err
			}
			if !gone {
				from++
			}
		}
		if len(page) < checkPage {
			return nil
		}
	}
}

// misfit is an entry that cannot be read, or not yet.
type misfit struct {
	key   string // where it stands
	kind  string // what is there: queued, waiting, recrawls, open or dead
	raw   string
	site  string
	index string // of an open one; what one to be recrawled is known by
}

// beside is the other key that names the entry.
func (m *misfit) beside(keys shard.Keys) string {
	if m.kind == "recrawls" {
		return keys.Recrawls(m.site)
	}
	return m.key
}

// entry decodes an entry and looks for its URL. gone says that a repair took it
// out.
func (c *checker) entry(ctx context.Context, site string, at misfit) (gone bool, err error) {
	e, err := frontier.DecodeEntry(at.raw, site)
	if err != nil {
		return c.unreadable(ctx, at)
	}
	return false, c.known(ctx, at.key, site, &e)
}

// unreadable tells of an entry that cannot be read; a repair moves it at
// once.
func (c *checker) unreadable(ctx context.Context, m misfit) (gone bool, err error) {
	c.report.fault(m.key, "an entry cannot be read: %s", frontier.LogText(m.raw))
	if c.sum == nil {
		return false, nil
	}
	return c.evict(ctx, m)
}

// printOf is the fingerprint of an entry of a site.
func (c *checker) printOf(site string, e *frontier.Entry) (canon.Fingerprint, error) {
	if c.parser == nil {
		c.parser = canon.NewParser(c.f.Layout().CanonConfig())
	}
	if err := c.parser.Parse(&c.url, []byte(e.URL)); err != nil {
		return canon.Fingerprint{}, err
	}
	return e.Request.Fingerprint(canon.FingerprintOf([]byte(site), c.url.Key())), nil
}

// known looks for an entry, together with others.
func (c *checker) known(ctx context.Context, key, site string, e *frontier.Entry) error {
	url := e.URL
	fp, err := c.printOf(site, e)
	if err != nil {
		c.report.fault(key, "%s is no URL: %v", frontier.HideCredentials(url), err)
		return nil
	}
	if own := c.f.Of(fp); own != c.k {
		c.report.fault(key, "%s belongs to shard %d: queue it with frontier seed --refetch, then delete the key", frontier.HideCredentials(url), own)
		return nil
	}
	c.read = append(c.read, wanted{key, url, fp})
	if len(c.read) < checkPage {
		return nil
	}
	return c.ask(ctx)
}

// ask looks for the URLs that known has gathered, twice for those not found; a
// repair puts these into their filters at once.
func (c *checker) ask(ctx context.Context) error {
	missing, err := c.missing(ctx, c.read)
	if err == nil && len(missing) > 0 {
		if err = c.awaitSecondLook(ctx); err == nil {
			c.filters, err = c.f.FilterSet(ctx, c.k) // they may have got further keys meanwhile
		}
		if err == nil {
			missing, err = c.missing(ctx, missing)
		}
	}
	if err != nil {
		return err
	}
	c.report.Probed += int64(len(c.read))
	for _, w := range missing {
		c.report.fault(w.key, "%s is not in its filter", frontier.HideCredentials(w.url))
	}
	c.read = c.read[:0]
	if c.sum == nil {
		return nil
	}
	return c.mendURLs(ctx, missing)
}

// missing are those of some URLs that are in no filter; of filters that are
// missing themselves nothing is reported.
func (c *checker) missing(ctx context.Context, list []wanted) (missing []wanted, err error) {
	for j, share := range byFilter(list, c.filters.Plan.Filters) {
		keys := c.filters.Filter(j)
		if slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(c.lost, key) }) {
			continue
		}
		for _, key := range keys {
			if share, err = c.unknown(ctx, key, share); err != nil {
				return nil, err
			}
		}
		missing = append(missing, share...)
	}
	return missing, nil
}

// unknown are those of some URLs that a key of a filter does not hold.
func (c *checker) unknown(ctx context.Context, key string, list []wanted) (unknown []wanted, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	raw, err := c.do(ctx, withPrints(list, "BF.MEXISTS", key)...)
	if err != nil {
		return nil, err
	}
	reply := shard.Array(raw)
	if len(reply) != len(list) {
		return nil, redis.Malformed(c.k, "check", raw)
	}
	for i, v := range reply {
		if v != int64(1) && v != true {
			unknown = append(unknown, list[i])
		}
	}
	return unknown, nil
}

// withPrints is a command on the fingerprints of some URLs.
func withPrints(list []wanted, command ...any) []any {
	for _, w := range list {
		command = append(command, w.print.Append(nil))
	}
	return command
}

// byFilter groups URLs by the filter they belong to.
func byFilter(list []wanted, filters int) [][]wanted {
	groups := make([][]wanted, filters)
	for _, w := range list {
		j := shard.FilterOf(w.print, filters)
		groups[j] = append(groups[j], w)
	}
	return groups
}

// checkProbes looks for records that cannot be read, which keep a filter from
// being measured. Those of another version are left to the program that has it.
func (c *checker) checkProbes(ctx context.Context) error {
	key := c.keys.Probes()
	kind, err := c.kindOf(ctx, key)
	if err != nil {
		return err
	}
	if want := typeOf("probes"); kind != want && kind != "none" {
		c.isStrange(key, kind, want)
		return nil
	}
	stored, err := c.client.Hash(ctx, c.k, key)
	if err != nil {
		return err
	}
	for j := range c.filters.Plan.Filters {
		field := strconv.Itoa(j)
		if stored[field] == "" {
			continue
		}
		switch _, err := bloom.ParseRecord(stored[field]); {
		case errors.Is(err, bloom.ErrVersion):
			c.report.note(fmt.Sprintf("%s: field %s was not judged: %v", key, field, err))
		case err != nil:
			c.report.fault(key, "field %s cannot be read, and its filter not be measured: %v", field, err)
			if s := (strange{key, kind}); !slices.Contains(c.todo.strange, s) {
				c.todo.strange = append(c.todo.strange, s)
			}
		}
	}
	return nil
}
