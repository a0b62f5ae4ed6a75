package frontier

import (
	"context"
	"maps"
	"slices"

	"seine/frontier/canon"
	"seine/shard"
)

// do runs a plain command on the master of the shard.
func (c *checker) do(ctx context.Context, args ...any) (any, error) {
	return c.f.client.Do(ctx, c.k, c.keys.Meta(), args...)
}

// length is the reply of a command that counts.
func (c *checker) length(ctx context.Context, command, key string) (int64, error) {
	raw, err := c.do(ctx, command, key)
	n, _ := raw.(int64)
	return n, err
}

// pages is Frontier.pages for the shard of the check.
func (c *checker) pages(ctx context.Context, head, tail []any, each func(page []any) error) error {
	return c.f.pages(ctx, c.k, "check", head, tail, each)
}

// checkLeases finds leases that lend nothing and visits without a lease.
func (c *checker) checkLeases(ctx context.Context) error {
	c.report.Leases = int64(len(c.leases))
	for _, l := range c.leases {
		open, err := c.length(ctx, "HLEN", c.keys.Visit(l.Token))
		if err != nil {
			return err
		}
		token, err := c.do(ctx, "HGET", c.keys.Site(l.Site), "token")
		if err != nil {
			return err
		}
		if open == 0 && str(token) != l.Token {
			c.report.fault("%s: the lease %s lends nothing", l.Site, l.Token)
		}
	}
	for token, leased := range c.tokens {
		key := c.keys.Visit(token)
		n, err := c.length(ctx, "HLEN", key)
		if err != nil {
			return err
		}
		c.report.Gauges["open"] += n
		if !leased && n > 0 {
			c.report.fault("%s: open without a lease", key)
		}
	}
	for cause := range c.causes {
		n, err := c.length(ctx, "LLEN", c.keys.Dead(cause))
		if err != nil {
			return err
		}
		c.report.Gauges["dead"] += n
	}
	return nil
}

// checkURLs looks for every URL of the shard in its filter.
func (c *checker) checkURLs(ctx context.Context) error {
	if !c.urls {
		return nil
	}
	c.parser = canon.NewParser(canon.Config{StripParams: c.f.layout.StripParams, SortQuery: c.f.layout.SortQuery})
	for _, site := range slices.Sorted(maps.Keys(c.sites)) {
		for class := range 4 {
			if err := c.list(ctx, c.keys.Queue(site, class), func(raw string) error { return c.probe(ctx, site, raw) }); err != nil {
				return err
			}
		}
		err := c.pages(ctx, []any{"ZSCAN", c.keys.Wait(site)}, []any{"COUNT", checkPage}, func(page []any) error {
			for i := 0; i < len(page); i += 2 {
				if err := c.probe(ctx, site, str(page[i])); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, l := range c.leases {
		raw, err := c.do(ctx, "HVALS", c.keys.Visit(l.Token))
		if err != nil {
			return err
		}
		for _, v := range array(raw) {
			if err := c.probe(ctx, l.Site, str(v)); err != nil {
				return err
			}
		}
	}
	for cause := range c.causes {
		err := c.list(ctx, c.keys.Dead(cause), func(raw string) error {
			d, err := parseLetter(raw, cause)
			if err != nil {
				c.report.fault("dead letter of %s cannot be read: %q", cause, raw)
				return nil
			}
			return c.known(ctx, d.Site, d.Entry.URL)
		})
		if err != nil {
			return err
		}
	}
	return c.ask(ctx)
}

// list goes through a list in pages.
func (c *checker) list(ctx context.Context, key string, each func(raw string) error) error {
	for from := 0; ; from += checkPage {
		raw, err := c.do(ctx, "LRANGE", key, from, from+checkPage-1)
		if err != nil {
			return err
		}
		page := array(raw)
		for _, v := range page {
			if err := each(str(v)); err != nil {
				return err
			}
		}
		if len(page) < checkPage {
			return nil
		}
	}
}

// probe decodes an entry and looks for its URL.
func (c *checker) probe(ctx context.Context, site, raw string) error {
	e, err := decodeEntry(raw, site)
	if err != nil {
		c.report.fault("%s: entry cannot be read: %q", site, raw)
		return nil
	}
	return c.known(ctx, site, e.URL)
}

// known looks for a URL, together with others.
func (c *checker) known(ctx context.Context, site, url string) error {
	if err := c.parser.Parse(&c.url, []byte(url)); err != nil {
		c.report.fault("%s: %q is no URL: %v", site, url, err)
		return nil
	}
	fp := canon.FingerprintOf([]byte(site), c.url.Key())
	if own := c.f.shards.Of(fp); own != c.k {
		c.report.fault("%s: belongs to shard %d", site, own)
	}
	c.asked = append(c.asked, url)
	c.prints = append(c.prints, fp)
	if len(c.prints) < checkPage {
		return nil
	}
	return c.ask(ctx)
}

// ask looks for the URLs that known has gathered.
func (c *checker) ask(ctx context.Context) error {
	for j := range c.f.layout.Filters {
		if slices.Contains(c.lost, j) {
			continue // one fault, told already
		}
		args, which := []any{"BF.MEXISTS", c.keys.Filter(j)}, []int{}
		for i, fp := range c.prints {
			if shard.FilterOf(fp, c.f.layout.Filters) == j {
				args, which = append(args, fp.Append(nil)), append(which, i)
			}
		}
		if len(which) == 0 {
			continue
		}
		raw, err := c.do(ctx, args...)
		if err != nil {
			return err
		}
		c.report.Probed += int64(len(which))
		for x, v := range array(raw) {
			if v != int64(1) && v != true {
				c.report.fault("%s is not in its filter", c.asked[which[x]])
			}
		}
	}
	c.asked, c.prints = c.asked[:0], c.prints[:0]
	return nil
}

// compare holds the counters against what was found, when nothing moved.
func (c *checker) compare(before, after map[string]int64) {
	if c.report.Moving = !maps.Equal(before, after); c.report.Moving {
		return
	}
	s := after
	for _, gauge := range []string{"queued", "waiting", "open"} {
		if s[gauge] != c.report.Gauges[gauge] {
			c.report.fault("counter %s is %d, there are %d", gauge, s[gauge], c.report.Gauges[gauge])
		}
	}
	if dead := s["dead"] - s["dropped"] - s["revived"] - s["forgotten"]; dead != c.report.Gauges["dead"] {
		c.report.fault("counters make %d dead letters, there are %d", dead, c.report.Gauges["dead"])
	}
	came := s["known"] + s["revived"]
	went := s["done"] + s["dead"] + s["merged"] + s["blocked"] + s["queued"] + s["waiting"] + s["open"]
	if came != went {
		c.report.fault("%d URLs came, and %d are there or went", came, went)
	}
}
