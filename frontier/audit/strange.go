package audit

import (
	"context"
	"errors"
	"slices"
	"strings"

	"seine/frontier/redis"
	"seine/shard"
)

// strange is a key of another type than a crawl gives it: somebody wrote it by
// hand. Every script that meets it breaks off.
type strange struct{ key, kind string }

// typeOf is the type that a key of a shard must have, by the first part of its
// name; "" where any will do.
func typeOf(part string) string {
	switch part {
	case "meta", "stats", "probes", "paused", "blocked", "s", "v", "r":
		return "hash"
	case "ready", "held", "leases", "w":
		return "zset"
	case "q", "dead", "broken":
		return "list"
	case "probing":
		return "string"
	}
	return ""
}

// check is one check; the checker knows what a repair has to do. With sum it is
// of a repair and mends URLs and entries, which may be many, as it goes. Where it
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

// checkFilterTypes looks for filters that are none; what a module calls its own
// type is its business.
func (c *checker) checkFilterTypes(ctx context.Context) error {
	for j := range c.f.Layout().Filters {
		key := c.keys.Filter(j)
		kind, err := c.kindOf(ctx, key)
		if err != nil {
			return err
		}
		if slices.Contains([]string{"string", "list", "set", "zset", "hash", "stream"}, kind) {
			c.lost = append(c.lost, j)
			c.isStrange(key, kind, "a Bloom filter")
		}
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

// mendTypes renames keys of a wrong type: what they hold is kept, out of the way.
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
		aside := prefix + "aside:" + strings.TrimPrefix(s.key, prefix)
		raw, err := c.client.Do(ctx, c.k, s.key, "RENAMENX", s.key, aside)
		if err != nil {
			return err
		}
		if raw == int64(1) || raw == true {
			c.sum.mended(s.key, "of type %s, is kept as %s now", s.kind, aside)
		} else {
			c.sum.note(aside + " is there already: delete it, or " + s.key + ", and repair again")
		}
	}
	return nil
}
