package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"seine/frontier"
	"seine/shard"
)

// visitMost is how many URLs the sites of one call may have together, and
// visitURLs how many a visit may have.
const (
	visitMost = 256
	visitURLs = 1000
)

// Visit turns tickets of Tick into visits and returns those that were granted.
// A ticket is good once, while its site stands as Tick left it: what another
// fetcher took, what was paused, blocked or got better work is not granted.
//
// Deadlines count from before the call. When some of the tickets fail, the
// visits that were granted before come with the error. Cost: some 10 us of the
// server for a visit and half of one for each URL.
func (f *Frontier) Visit(ctx context.Context, k int, tickets []frontier.Ticket, limits frontier.VisitLimits) ([]frontier.Visit, error) {
	limits.URLs = max(1, min(limits.URLs, visitURLs))
	limits.Undelayed = max(limits.URLs, min(limits.Undelayed, visitMost/max(1, len(tickets))))
	var visits []frontier.Visit
	for part := range slices.Chunk(tickets, max(1, visitMost/limits.URLs)) {
		deadline := time.Now().Add(f.cfg.Lease)
		granted, err := f.visit(ctx, k, part, limits)
		if err != nil {
			return visits, err
		}
		for i := range granted {
			granted[i].Shard, granted[i].Deadline = k, deadline
			limits.Safe = limits.Safe || granted[i].LastChance()
		}
		visits = append(visits, granted...)
	}
	return visits, nil
}

func (f *Frontier) visit(ctx context.Context, k int, tickets []frontier.Ticket, limits frontier.VisitLimits) ([]frontier.Visit, error) {
	safe := 0
	if limits.Safe {
		safe = 1
	}
	keys := make([]string, 0, (SiteKeys+1)*len(tickets))
	leases := make([]frontier.Lease, len(tickets))
	args := make([]any, 0, 6+4*len(tickets))
	args = append(args, f.cfg.Lease.Milliseconds(), limits.URLs, limits.Undelayed, limits.Span.Milliseconds(), Milliseconds(limits.Delay), safe, max(0, min(limits.Share, 100)))
	for i, t := range tickets {
		leases[i] = frontier.Lease{Token: f.token(t.Site), Site: t.Site}
		keys = append(f.AppendSite(keys, k, t.Site), f.keys[k].Visit(leases[i].Token))
		args = append(args, t.Site, leases[i].Token, min(t.Class, 3), t.Score)
	}
	raw, err := f.Call(ctx, k, visitScript, keys, args)
	if err != nil {
		return nil, err
	}
	reply := shard.Array(raw)
	if len(reply) != len(tickets) {
		return nil, Malformed(k, "visit", raw)
	}
	var visits []frontier.Visit
	for i, r := range reply {
		if r := shard.Array(r); len(r) > 5 {
			v, err := parseVisit(leases[i], r)
			if err != nil {
				return visits, Malformed(k, "visit", raw)
			}
			visits = append(visits, v)
		}
	}
	return visits, nil
}

// parseVisit reads delay, why, failures and walls, override, credentials, the items and cookies.
func parseVisit(l frontier.Lease, r []any) (frontier.Visit, error) {
	v := frontier.Visit{Lease: l, Why: shard.Text(r[1]), Override: shard.Text(r[3]), Credentials: shard.Text(r[4]), Items: make([]frontier.Item, 0, (len(r)-5)/2)}
	v.First = shard.Text(r[0]) == ""
	delay, _ := strconv.ParseInt(shard.Text(r[0]), 10, 64)
	v.Delay = time.Duration(delay) * time.Millisecond
	failures, walls, _ := strings.Cut(shard.Text(r[2]), " ")
	v.Failures, _ = strconv.Atoi(failures)
	v.Walls, _ = strconv.Atoi(walls)
	for r = r[5:]; len(r) >= 2; r = r[2:] {
		index, ok := r[0].(int64)
		if !ok {
			var err error
			if index, err = strconv.ParseInt(shard.Text(r[0]), 10, 64); err != nil {
				return v, err
			}
		}
		e, err := frontier.DecodeEntry(shard.Text(r[1]), l.Site)
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, frontier.Item{Index: int(index), Entry: e})
	}
	if len(r) == 1 {
		v.Cookies = shard.Text(r[0])
	}
	slices.SortFunc(v.Items, func(a, b frontier.Item) int { return a.Index - b.Index })
	return v, nil
}
