package frontier

import (
	"context"
	"errors"
	"strconv"

	"seine/shard"
)

// alterMost bounds how often Alter starts over because others changed the site.
const alterMost = 100

// Alter changes what the shard keeps for one site. A paused site keeps its work
// and is not lent; what is lent ends as usual. A blocked one loses its queue and
// its visits, which end as gone, and gets nothing new; its URLs stay known. URLs
// count towards a cap from when the site has one. Cost: two script calls; to
// block, also O(leases of the shard).
func (f *Frontier) Alter(ctx context.Context, k int, site string, change SiteChange) error {
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
				return &shard.Error{Shard: k, Op: "site", Err: err}
			}
		}
		keys := f.block(nil, k, site)
		args := []any{site, version, len(fields) / 2}
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
			return malformed(k, "site", raw)
		case reply == "":
			return nil
		case reply != "!open":
			version = reply
		}
	}
	return &shard.Error{Shard: k, Op: "site", Err: errors.New("frontier: " + site + " keeps changing; try again")}
}

// changes lists names and values of the fields to change, "" = none.
func changes(c SiteChange) (fields []string) {
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
	it := f.client.Redis().ZScan(ctx, f.keys[k].Leases(), 0, "", 500).Iterator()
	for it.Next(ctx) {
		if l := leaseOf(it.Val()); l.Site == site {
			tokens = append(tokens, l.Token)
		}
		if !it.Next(ctx) { // the score
			break
		}
	}
	return tokens, it.Err()
}
