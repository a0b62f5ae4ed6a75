package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
	"seine/shard"
)

// lookFields is how much look.lua says of each site.
const lookFields = 23

// SiteStates reads what shard k keeps of some sites, in their order. Cost: a
// script call for each SitesMost, some 10 us of the server a site, and another
// call when some of them are leased.
func (f *Frontier) SiteStates(ctx context.Context, k int, sites []string) ([]frontier.SiteState, error) {
	states := make([]frontier.SiteState, 0, len(sites))
	for part := range slices.Chunk(sites, frontier.SitesMost) {
		keys, args := []string{f.keys[k].Paused(), f.keys[k].Blocked()}, make([]any, len(part))
		for i, site := range part {
			keys, args[i] = f.AppendSite(keys, k, site), site
		}
		raw, err := f.Call(ctx, k, lookScript, keys, args)
		if err != nil {
			return nil, err
		}
		reply := shard.Array(raw)
		if len(reply) != lookFields*len(part) {
			return nil, Malformed(k, "look", raw)
		}
		first := len(states)
		for i, site := range part {
			states = append(states, siteState(k, site, reply[lookFields*i:lookFields*(i+1)]))
		}
		if err := f.countOpen(ctx, k, states[first:]); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// siteState reads what look.lua says of one site.
func siteState(k int, site string, fields []any) frontier.SiteState {
	ms := func(i int) time.Duration { return time.Duration(shard.Int(fields[i])) * time.Millisecond }
	s := frontier.SiteState{
		Site: site, Place: frontier.PlaceIdle, Clock: ms(1), Delay: ms(2), Why: shard.Text(fields[3]), Failures: int(shard.Int(fields[4])),
		Cap: shard.Int(fields[5]), Admitted: shard.Int(fields[6]), Override: shard.Text(fields[7]),
		Waiting: shard.Int(fields[14]), Recrawls: shard.Int(fields[15]),
		Paused: stopOf(k, site, false, shard.Text(fields[16])), Blocked: stopOf(k, site, true, shard.Text(fields[17])),
	}
	s.Totals = siteTotalsOf(shard.Text(fields[18]))
	s.Credentials, s.WantsSign = shard.Text(fields[19]), shard.Text(fields[21]) == frontier.WantsSign
	if drop := stopOf(k, site, false, shard.Text(fields[20])); drop != nil {
		s.Dropped = &frontier.Drop{Since: drop.Since, By: drop.Reason}
	}
	s.Walls = wallRowOf(shard.Text(fields[22]))
	for p := range s.Queued {
		s.Queued[p] = shard.Int(fields[10+p])
	}
	switch place := shard.Int(fields[8]); {
	case shard.Text(fields[0]) != "":
		s.Place, s.Lease, s.Left = frontier.PlaceLeased, frontier.Lease{Token: shard.Text(fields[0]), Site: site}, ms(9)
	case place == 4:
		s.Place, s.Due = frontier.PlacePaused, ms(9)
	case place >= 0:
		s.Place, s.Class, s.Due = frontier.PlaceReady, int(place), ms(9)
	}
	s.Known = s.Place != frontier.PlaceIdle || shard.Text(fields[1]) != "" || s.Admitted > 0
	return s
}

// wallRowOf reads how many walls there were, since when, ms until the back-off ends, and the
// vendor; nil for none.
func wallRowOf(text string) *frontier.WallRow {
	words := strings.Split(text, " ")
	if len(words) != 4 {
		return nil
	}
	left := max(0, time.Duration(shard.Int(words[2])))
	return &frontier.WallRow{Count: int(shard.Int(words[0])), Since: time.UnixMilli(shard.Int(words[1])).UTC(), Left: left * time.Millisecond, Vendor: words[3]}
}

// siteTotalsOf reads what counters.lua keeps of a site.
func siteTotalsOf(text string) (t frontier.SiteTotals) {
	words := strings.SplitN(text, " ", 4)
	if len(words) < 4 {
		return t
	}
	since := shard.Int(words[2])
	return frontier.SiteTotals{Pages: shard.Int(words[0]), Dead: shard.Int(words[1]), Last: words[3], Since: time.Unix(since, 0).UTC()}
}

// Counters reads the counters of shard k. Cost: four calls, O(counters + SeedsKept +
// TopKept).
func (f *Frontier) Counters(ctx context.Context, k int) (*frontier.Counters, error) {
	n := f.keys[k]
	counters, err := f.client.Hash(ctx, k, n.Counters())
	if err != nil {
		return nil, err
	}
	s := &frontier.Counters{Counts: make(map[string]int64, len(counters))}
	for name, v := range counters {
		s.Counts[name] = shard.Int(v)
	}
	if s.Seeds, err = f.client.Hash(ctx, k, n.Seeds()); err != nil {
		return nil, err
	}
	if s.Pages, err = f.top(ctx, k, "pages"); err != nil {
		return nil, err
	}
	s.Dead, err = f.top(ctx, k, "dead")
	return s, err
}

// NoteSeeds puts seeds on the list of those whose outcome is reported. Cost: one small call.
func (f *Frontier) NoteSeeds(ctx context.Context, k int, urls []string) error {
	args := []any{frontier.SeedsKept}
	for _, url := range urls {
		args = append(args, url)
	}
	_, err := f.Call(ctx, k, noteScript, []string{f.keys[k].Seeds()}, args)
	return err
}

// top reads a list of first sites, the first first.
func (f *Frontier) top(ctx context.Context, k int, by string) ([]frontier.TopSite, error) {
	pairs, err := f.scored(ctx, k, f.keys[k].Top(by), frontier.TopKept)
	var list []frontier.TopSite
	for _, p := range pairs {
		list = append(list, frontier.TopSite{Site: p.member, Count: p.score})
	}
	return list, err
}

// pair is a member of a zset and its score.
type pair struct {
	member string
	score  int64
}

// scored reads so many members of a zset, those of the highest scores first, in either
// protocol.
func (f *Frontier) scored(ctx context.Context, k int, key string, most int) (list []pair, err error) {
	raw, err := f.client.Do(ctx, k, key, "ZRANGE", key, 0, most-1, "REV", "WITHSCORES")
	if err != nil {
		return nil, err
	}
	reply := shard.Array(raw)
	for len(reply) > 0 {
		two := shard.Array(reply[0])
		if len(two) == 2 { // RESP3
			reply = reply[1:]
		} else if len(reply) > 1 {
			two, reply = reply[:2], reply[2:]
		} else {
			return nil, Malformed(k, "zrange", raw)
		}
		p := pair{shard.Text(two[0]), shard.Int(two[1])}
		if n, ok := two[1].(float64); ok {
			p.score = int64(n)
		}
		list = append(list, p)
	}
	return list, nil
}

// workPlaces are the zsets of shard k that its sites with work are in, and that of
// the leases of those that are leased.
func (f *Frontier) workPlaces(k int) []string {
	return append(slices.Clone(f.base[k][3:]), f.keys[k].Leases())
}

// placedSite is the site that a member of one of workPlaces stands for.
func (f *Frontier) placedSite(k int, place, member string) string {
	if place == f.keys[k].Leases() {
		return LeaseOf(member).Site
	}
	return member
}

// SampleSites names up to n sites of shard k that have work or are leased: those of
// the list of the longest queues, and some drawn by lot. Cost: a dozen calls,
// O(n) in all.
func (f *Frontier) SampleSites(ctx context.Context, k, n int) (sites []string, all bool, err error) {
	zsets := f.workPlaces(k)
	counts, total := make([]int, len(zsets)), 0
	for i, key := range zsets {
		reply, err := f.client.Do(ctx, k, key, "ZCARD", key)
		if err != nil {
			return nil, false, err
		}
		counts[i] = int(shard.Int(reply))
		total += counts[i]
	}
	if all = total <= n; !all {
		top, err := f.top(ctx, k, "queued")
		if err != nil {
			return nil, false, err
		}
		for _, t := range top[:min(len(top), n)] {
			sites = append(sites, t.Site)
		}
		n -= len(sites)
	}
	for i, key := range zsets {
		want := counts[i]
		if !all {
			want = (n*counts[i] + total - 1) / total
		}
		if want == 0 {
			continue
		}
		reply, err := f.client.Do(ctx, k, key, "ZRANDMEMBER", key, want)
		if err != nil {
			return nil, false, err
		}
		for _, v := range shard.Array(reply) {
			sites = append(sites, f.placedSite(k, key, shard.Text(v)))
		}
	}
	slices.Sort(sites)
	return slices.Compact(sites), all, nil
}

// WorkSites names all sites of shard k that have work or are leased. What moves from one
// zset to another stands still for one of two walks, as a rule. Cost: two calls for
// each scanPage of sites, O(scanPage) each.
func (f *Frontier) WorkSites(ctx context.Context, k int) ([]string, error) {
	found := map[string]struct{}{}
	for range 2 {
		for _, key := range f.workPlaces(k) {
			err := f.Pages(ctx, k, "site", []any{"ZSCAN", key}, []any{"COUNT", scanPage}, func(page []any) error {
				for i := 0; i < len(page); i += 2 { // members and their scores
					found[f.placedSite(k, key, shard.Text(page[i]))] = struct{}{}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// WalledSites names the sites of shard k that the fleet backs off from, or did, since walls
// answer there. Cost: a call for each scanPage of them.
func (f *Frontier) WalledSites(ctx context.Context, k int) (sites []string, err error) {
	err = f.Pages(ctx, k, "walled", []any{"ZSCAN", f.keys[k].Walled()}, []any{"COUNT", scanPage}, func(page []any) error {
		for i := 0; i < len(page); i += 2 { // members and their scores
			sites = append(sites, shard.Text(page[i]))
		}
		return nil
	})
	slices.Sort(sites)
	return slices.Compact(sites), err // ZSCAN may name one twice
}

// stopOf reads since when and why a site is stopped, nil when it is not.
func stopOf(k int, site string, blocked bool, text string) *frontier.Stop {
	since, reason, _ := strings.Cut(text, " ")
	ms, err := strconv.ParseInt(since, 10, 64)
	if err != nil {
		return nil
	}
	return &frontier.Stop{Site: site, Shard: k, Blocked: blocked, Since: time.UnixMilli(ms).UTC(), Reason: reason}
}

// countOpen fills in how many URLs are open of the sites that are leased.
func (f *Frontier) countOpen(ctx context.Context, k int, states []frontier.SiteState) error {
	keys := []string{f.keys[k].Paused(), f.keys[k].Blocked()}
	var leased []*frontier.SiteState
	for i := range states {
		if s := &states[i]; s.Place == frontier.PlaceLeased {
			keys, leased = append(keys, f.keys[k].Visit(s.Lease.Token)), append(leased, s)
		}
	}
	if len(leased) == 0 {
		return nil
	}
	raw, err := f.Call(ctx, k, lookScript, keys, nil)
	if err != nil {
		return err
	}
	counts := shard.Array(raw)
	if len(counts) != len(leased) {
		return Malformed(k, "look", raw)
	}
	for i, n := range counts {
		leased[i].Open = shard.Int(n)
	}
	return nil
}

// Entries reads up to count entries of one place of a site from offset on, those
// that can be read. Cost: one script call, some 0.3 us of the server an entry.
func (f *Frontier) Entries(ctx context.Context, k int, at frontier.EntryPlace, offset, count int64) ([]frontier.QueuedEntry, error) {
	count = min(count, frontier.EntriesMost)
	last := offset + count - 1
	if count <= 0 || offset < 0 && last >= 0 {
		return nil, fmt.Errorf("frontier: entries: %d from %d on", count, offset)
	}
	key, kind := f.keys[k].Queue(at.Site, at.Class), "queue"
	switch at.Kind {
	case frontier.InRetries:
		key, kind = f.keys[k].Wait(at.Site), "retries"
	case frontier.InVisit:
		key, kind = f.keys[k].Visit(at.Token), "visit"
	}
	raw, err := f.Call(ctx, k, listEntriesScript, []string{key}, []any{kind, offset, last})
	if err != nil {
		return nil, err
	}
	reply := shard.Array(raw)
	list := make([]frontier.QueuedEntry, 0, len(reply)/2)
	for i := 0; i+1 < len(reply); i += 2 {
		e, err := frontier.DecodeEntry(shard.Text(reply[i]), at.Site)
		if err != nil {
			return nil, &shard.Error{Shard: k, Op: "listentries", Err: fmt.Errorf("frontier: %s in %s: %w", frontier.LogText(shard.Text(reply[i])), key, err)}
		}
		list = append(list, frontier.QueuedEntry{Entry: e, Left: time.Duration(shard.Int(reply[i+1])) * time.Millisecond})
	}
	return list, nil
}

// Knows reports whether shard k knows a URL; a yes of its filter may be wrong. Cost: a
// call for each key of the filter, and one.
func (f *Frontier) Knows(ctx context.Context, k int, url canon.Fingerprint) (bool, error) {
	set, err := f.FilterSet(ctx, k)
	if err != nil {
		return false, err
	}
	for _, key := range set.Filter(shard.FilterOf(url, set.Plan.Filters)) {
		reply, err := f.client.Do(ctx, k, key, "BF.EXISTS", key, url.Append(nil))
		if err != nil {
			return false, err
		}
		if reply == int64(1) || reply == true {
			return true, nil
		}
	}
	return false, nil
}

// Exact: filters are sure of no only.
func (f *Frontier) Exact() bool { return false }
