package redis

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"cmp"
	"strings"
	"time"

	"seine/frontier"
	"seine/shard"
)

// alterMost bounds how often Alter starts over because others changed the site.
const alterMost = 100

// Alter changes what the shard keeps for one site. A paused site keeps its work
// and is not leased; what is leased ends as usual. A blocked one loses its queue and
// its visits, which end as gone, and gets nothing new; its URLs stay known. URLs
// count towards a cap from when the site has one. Cost: two script calls; to
// block, also O(leases of the shard).
func (f *Frontier) Alter(ctx context.Context, k int, site string, change frontier.SiteChange) error {
	fields := changes(change)
	if len(fields) == 0 {
		return nil
	}
	block := change.Blocked != nil && *change.Blocked
	version := ""
	for range alterMost {
		var tokens []string
		if block {
			var err error
			if tokens, err = f.tokensOf(ctx, k, site); err != nil {
				return err
			}
		}
		keys := f.siteKeys(k, site)
		args := []any{site, version, change.Reason, len(fields) / 2}
		for _, v := range fields {
			args = append(args, v)
		}
		for _, token := range tokens {
			keys = append(keys, f.keys[k].Visit(token))
			args = append(args, token)
		}
		raw, err := f.Call(ctx, k, siteScript, keys, args)
		if code, _ := shard.Code(err); code == "OPEN" {
			continue
		}
		if err != nil {
			return err
		}
		reply, ok := raw.(string)
		switch {
		case !ok:
			return Malformed(k, "site", raw)
		case reply == "":
			return nil
		}
		version = reply
	}
	return &shard.Error{Shard: k, Op: "site", Err: errors.New("frontier: " + site + " keeps changing; try again")}
}

// KnowsSite reports whether a shard has to do with a site: URLs of it are queued, wait or
// are leased, or it was fetched from within a day. Cost: two calls.
func (f *Frontier) KnowsSite(ctx context.Context, k int, site string) (bool, error) {
	keys := f.AppendSite(nil, k, site)
	work := []any{"EXISTS"}
	for _, key := range keys[1:] {
		work = append(work, key)
	}
	for _, ask := range [][]any{work, {"HEXISTS", keys[0], "clock"}} {
		reply, err := f.client.Do(ctx, k, keys[0], ask...)
		if err != nil || shard.Int(reply) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// siteKeys are the keys of the script before those of visits.
func (f *Frontier) siteKeys(k int, site string) []string {
	return append(f.AppendSite(nil, k, site), f.keys[k].Paused(), f.keys[k].Blocked(), f.keys[k].Walled())
}

// changes lists names and values of the fields to change, "" = none.
func changes(c frontier.SiteChange) (fields []string) {
	flag := func(name string, v *bool) {
		switch {
		case v == nil:
		case *v:
			fields = append(fields, name, "1")
		default:
			fields = append(fields, name, "")
		}
	}
	flag("paused", c.Paused)
	flag("blocked", c.Blocked)
	if c.Cap != nil {
		limit := ""
		if *c.Cap > 0 {
			limit = strconv.FormatInt(*c.Cap, 10)
		}
		fields = append(fields, "cap", limit)
	}
	if c.Override != nil {
		fields = append(fields, "override", *c.Override)
	}
	if c.Credentials != nil {
		fields = append(fields, "auth", *c.Credentials)
	}
	if c.EndWalls {
		fields = append(fields, "walls", "")
	}
	return fields
}

// tokensOf lists the tokens of a site that have a lease.
func (f *Frontier) tokensOf(ctx context.Context, k int, site string) ([]string, error) {
	var tokens []string
	err := f.Pages(ctx, k, "site", []any{"ZSCAN", f.keys[k].Leases()}, []any{"COUNT", scanPage}, func(page []any) error {
		for i := 0; i < len(page); i += 2 { // members and their scores
			if l := LeaseOf(shard.Text(page[i])); l.Site == site && !slices.Contains(tokens, l.Token) {
				tokens = append(tokens, l.Token)
			}
		}
		return nil
	})
	return tokens, err
}

// scanPage is how many members one call of the SCAN family is to look at.
const scanPage = 500

// Pages runs a command of the SCAN family to its end on the master of shard k;
// the cursor goes between head and tail.
func (f *Frontier) Pages(ctx context.Context, k int, op string, head, tail []any, each func(page []any) error) error {
	for cursor := "0"; ; {
		raw, err := f.client.Do(ctx, k, f.keys[k].Meta(), slices.Concat(head, []any{cursor}, tail)...)
		if err != nil {
			return err
		}
		reply := shard.Array(raw)
		if len(reply) != 2 {
			return Malformed(k, op, raw)
		}
		if err := each(shard.Array(reply[1])); err != nil {
			return err
		}
		if cursor = shard.Text(reply[0]); cursor == "0" {
			return nil
		}
	}
}

func kindOf(s frontier.Stop) string {
	if s.Blocked {
		return "blocked"
	}
	return "paused"
}

// Stopped lists the sites that Alter has paused or blocked, by name; one that is
// both comes twice. Shards that do not answer are passed over, as of EachShard. Cost: a
// call for each 500 of them, two a shard at least.
func (f *Frontier) Stopped(ctx context.Context) ([]frontier.Stop, error) {
	var list []frontier.Stop
	partial := frontier.EachShard(ctx, f, nil, func(k int) error {
		for _, blocked := range []bool{false, true} {
			err := f.Pages(ctx, k, "stopped", []any{"HSCAN", f.stopped(k, blocked)}, []any{"COUNT", scanPage}, func(page []any) error {
				for i := 0; i+1 < len(page); i += 2 {
					since, reason, _ := strings.Cut(shard.Text(page[i+1]), " ")
					ms, err := strconv.ParseInt(since, 10, 64)
					if err != nil {
						return Malformed(k, "stopped", page)
					}
					list = append(list, frontier.Stop{Site: shard.Text(page[i]), Shard: k, Blocked: blocked, Since: time.UnixMilli(ms).UTC(), Reason: reason})
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if partial != nil && !errors.Is(partial, frontier.ErrPartial) {
		return nil, partial
	}
	// HSCAN may name one twice.
	slices.SortFunc(list, func(a, b frontier.Stop) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(kindOf(a), kindOf(b)))
	})
	return slices.CompactFunc(list, func(a, b frontier.Stop) bool { return a.Site == b.Site && a.Blocked == b.Blocked }), partial
}

// stopped is the key of the paused or the blocked sites of a shard.
func (f *Frontier) stopped(k int, blocked bool) string {
	if blocked {
		return f.keys[k].Blocked()
	}
	return f.keys[k].Paused()
}

// countStopped is how many sites are paused and how many blocked, over some
// shards.
func (f *Frontier) countStopped(ctx context.Context, shards []int) (paused, blocked int64, err error) {
	var counts [2]int64
	for _, k := range shards {
		for i := range counts {
			key := f.stopped(k, i == 1)
			n, err := f.client.Do(ctx, k, key, "HLEN", key)
			if err != nil {
				return 0, 0, err
			}
			counts[i] += shard.Int(n)
		}
	}
	return counts[0], counts[1], nil
}
