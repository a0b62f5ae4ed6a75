package redis

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"seine/frontier"
	"seine/shard"
)

// alterMost bounds how often Alter starts over because others changed the site.
const alterMost = 100

// Alter changes what the shard keeps for one site. A paused site keeps its work
// and is not lent; what is lent ends as usual. A blocked one loses its queue and
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
		raw, err := f.call(ctx, k, siteScript, keys, args)
		if err != nil {
			return err
		}
		reply, ok := raw.(string)
		switch {
		case !ok:
			return Malformed(k, "site", raw)
		case reply == "":
			return nil
		case reply != "!open":
			version = reply
		}
	}
	return &shard.Error{Shard: k, Op: "site", Err: errors.New("frontier: " + site + " keeps changing; try again")}
}

// Met says whether a shard has to do with a site: URLs of it are queued, wait or
// are lent, or it was fetched from within a day. Cost: two calls.
func (f *Frontier) Met(ctx context.Context, k int, site string) (bool, error) {
	keys := f.block(nil, k, site)
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
	return append(f.block(nil, k, site), f.keys[k].Paused(), f.keys[k].Blocked())
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
	return fields
}

// tokensOf lists the tokens of a site that have a lease.
func (f *Frontier) tokensOf(ctx context.Context, k int, site string) ([]string, error) {
	var tokens []string
	err := f.pages(ctx, k, "site", []any{"ZSCAN", f.keys[k].Leases()}, []any{"COUNT", scanPage}, func(page []any) error {
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

// pages runs a command of the SCAN family to its end on the master of shard k;
// the cursor goes between head and tail.
func (f *Frontier) pages(ctx context.Context, k int, op string, head, tail []any, each func(page []any) error) error {
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
