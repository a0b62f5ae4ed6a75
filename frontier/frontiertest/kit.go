package frontiertest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// kit is a backend with the sentences that tests speak in.
type kit struct {
	testing.TB
	b   Backend
	f   frontier.Frontier
	ctx context.Context
}

func newKit(t testing.TB, b Backend) *kit {
	t.Cleanup(func() { b.Frontier.Close() })
	return &kit{TB: t, b: b, f: b.Frontier, ctx: context.Background()}
}

func (k *kit) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// same fails unless got is want.
func same[T comparable](k *kit, what string, got, want T) {
	k.Helper()
	if got != want {
		k.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// sameList fails unless got is want.
func sameList[T comparable](k *kit, what string, got []T, want ...T) {
	k.Helper()
	if !slices.Equal(got, want) {
		k.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// url is a candidate of a site.
func (k *kit) url(site, path string) frontier.Candidate { return urlOf(site, path) }

func urlOf(site, path string) frontier.Candidate {
	url := "https://" + site + "/" + path
	return frontier.Candidate{URL: url, Site: site, Fingerprint: canon.FingerprintOf([]byte(site), []byte(url)), Priority: 1}
}

// request is one with a header and a body.
func request(method, body string) frontier.Request {
	r, err := frontier.NewRequest(method, [][2]string{{"X-Of", method}}, []byte(body))
	if err != nil {
		panic(err)
	}
	return r
}

// requestTo is a candidate with such a request.
func requestTo(site, path, method, body string) frontier.Candidate {
	c := urlOf(site, path)
	c.Request = request(method, body)
	c.Fingerprint = c.Request.Fingerprint(c.Fingerprint)
	return c
}

// shard is the shard of a site.
func (k *kit) shard(site string) int { return k.f.Of(k.url(site, "").Fingerprint) }

// advance lets time pass.
func (k *kit) advance(d time.Duration) { k.b.Advance(d) }

// admit admits candidates, one call a shard, and returns their verdicts.
func (k *kit) admit(candidates ...frontier.Candidate) []frontier.Verdict {
	k.Helper()
	out := make([]frontier.Verdict, len(candidates))
	for shard := range k.f.Shards() {
		var batch []frontier.Candidate
		var at []int
		for i, c := range candidates {
			if k.f.Of(c.Fingerprint) == shard {
				batch, at = append(batch, c), append(at, i)
			}
		}
		if batch == nil {
			continue
		}
		verdicts := make([]frontier.Verdict, len(batch))
		k.must(k.f.Admit(k.ctx, shard, batch, verdicts))
		for i, v := range verdicts {
			out[at[i]] = v
		}
	}
	return out
}

// fill admits n new URLs of a site and class, named prefix0, prefix1 ...
func (k *kit) fill(site, prefix string, class uint8, n int) {
	k.Helper()
	var batch []frontier.Candidate
	for i := range n {
		c := k.url(site, fmt.Sprint(prefix, i))
		c.Priority = class
		batch = append(batch, c)
	}
	for i, v := range k.admit(batch...) {
		if v != frontier.Admitted {
			k.Fatalf("%s: verdict %d, want admitted", batch[i].URL, v)
		}
	}
}

// tick asks the shard of a site.
func (k *kit) tick(site string, req frontier.TickRequest) frontier.TickReply {
	k.Helper()
	reply, err := k.f.Tick(k.ctx, k.shard(site), req)
	k.must(err)
	return reply
}

// due claims all due sites of all shards, in order of their shards.
func (k *kit) due(want int) []frontier.Ticket {
	k.Helper()
	var out []frontier.Ticket
	for shard := range k.f.Shards() {
		reply, err := k.f.Tick(k.ctx, shard, frontier.TickRequest{Want: want})
		k.must(err)
		out = append(out, reply.Due...)
	}
	return out
}

// ticket claims a site, which must be due.
func (k *kit) ticket(site string) frontier.Ticket {
	k.Helper()
	for _, t := range k.tick(site, frontier.TickRequest{Want: 100}).Due {
		if t.Site == site {
			return t
		}
	}
	k.Fatalf("%s is not due", site)
	panic("unreachable")
}

// notDue claims all due sites of a shard, of which site must be none.
func (k *kit) notDue(site string) {
	k.Helper()
	for _, t := range k.tick(site, frontier.TickRequest{Want: 100}).Due {
		if t.Site == site {
			k.Fatalf("%s is due in class %d", site, t.Class)
		}
	}
}

// visit turns tickets of one shard into visits.
func (k *kit) visit(limits frontier.VisitLimits, tickets ...frontier.Ticket) []frontier.Visit {
	k.Helper()
	visits, err := k.f.Visit(k.ctx, k.shard(tickets[0].Site), tickets, limits)
	k.must(err)
	return visits
}

// visitURLs acquires up to urls URLs of a site, which must be due.
func (k *kit) visitURLs(site string, urls int) frontier.Visit {
	k.Helper()
	visits := k.visit(frontier.VisitLimits{URLs: urls}, k.ticket(site))
	if len(visits) != 1 || visits[0].Site != site {
		k.Fatalf("%d visits granted, want one of %s", len(visits), site)
	}
	return visits[0]
}

// paths names the URLs of a visit without scheme and site.
func paths(v frontier.Visit) []string {
	var out []string
	for _, it := range v.Items {
		out = append(out, it.URL[len("https://")+len(v.Site)+1:])
	}
	return out
}

// settle settles outcomes of a visit; free may be nil.
func (k *kit) settle(v frontier.Visit, free *frontier.Release, outcomes ...frontier.Outcome) []bool {
	k.Helper()
	return k.settleVisit(v, free, outcomes...).Outcomes
}

// releaseKept settles outcomes of a visit and has its site kept.
func (k *kit) releaseKept(v frontier.Visit, remain time.Duration, outcomes ...frontier.Outcome) frontier.Settled {
	k.Helper()
	return k.settleVisit(v, &frontier.Release{Remain: remain, Keep: true}, outcomes...)
}

func (k *kit) settleVisit(v frontier.Visit, free *frontier.Release, outcomes ...frontier.Outcome) frontier.Settled {
	k.Helper()
	out, err := k.f.Settle(k.ctx, k.shard(v.Site), []frontier.Settlement{{Lease: v.Lease, Outcomes: outcomes, Release: free}})
	k.must(err)
	if len(out) != 1 || len(out[0].Outcomes) != len(outcomes) {
		k.Fatalf("settle answered %v to %d outcomes", out, len(outcomes))
	}
	return out[0]
}

// finish settles all of a visit as done and frees its site.
func (k *kit) finish(v frontier.Visit) {
	k.Helper()
	for i, ok := range k.settle(v, &frontier.Release{}, all(v, frontier.Done)...) {
		if !ok {
			k.Fatalf("%s: outcome of %s is gone", v.Token, v.Items[i].URL)
		}
	}
}

// all makes one outcome for each URL of a visit.
func all(v frontier.Visit, kind frontier.Kind) []frontier.Outcome {
	var out []frontier.Outcome
	for _, it := range v.Items {
		out = append(out, frontier.Outcome{Index: it.Index, Kind: kind})
	}
	return out
}

// expire lets the lease of a visit run out, with somebody ticking all the time,
// and returns it as the shard names it.
func (k *kit) expire(site string, token string) frontier.Expired {
	k.Helper()
	for range 14 {
		k.advance(lease / 6)
		for _, e := range k.tick(site, frontier.TickRequest{MaxExpired: 100}).Expired {
			if e.Token == token {
				return e
			}
		}
	}
	k.Fatalf("the lease of %s did not expire", site)
	panic("unreachable")
}

// reap reaps and says how many took effect.
func (k *kit) reap(expired ...frontier.Expired) int {
	k.Helper()
	n, err := k.f.Reap(k.ctx, k.shard(expired[0].Site), expired)
	k.must(err)
	return n
}

// stats is the sum over all shards.
func (k *kit) stats() frontier.ShardStats {
	k.Helper()
	shards, err := k.f.Stats(k.ctx)
	k.must(err)
	var sum frontier.ShardStats
	for _, s := range shards {
		sum.Ready += s.Ready
		sum.PausedReady += s.PausedReady
		sum.Leases += s.Leases
		sum.Walled += s.Walled
		sum.Queued += s.Queued
		sum.Waiting += s.Waiting
		sum.Open += s.Open
		sum.Recrawls += s.Recrawls
		sum.Recrawled += s.Recrawled
		sum.Admits += s.Admits
		sum.Known += s.Known
		sum.Done += s.Done
		sum.Retried += s.Retried
		sum.Dead += s.Dead
		sum.Lost += s.Lost
		sum.RetriedDead += s.RetriedDead
		sum.Dropped += s.Dropped
		sum.Forgotten += s.Forgotten
		sum.Paused = sum.Paused || s.Paused
	}
	return sum
}

// alter changes a site.
func (k *kit) alter(site string, change frontier.SiteChange) {
	k.Helper()
	k.must(k.f.Alter(k.ctx, k.shard(site), site, change))
}

// changeSettings changes the settings.
func (k *kit) changeSettings(change func(*frontier.Settings)) {
	k.Helper()
	_, _, err := k.f.Set(k.ctx, func(s *frontier.Settings) error { change(s); return nil })
	k.must(err)
}

// drain visits and finishes all that is due in all shards.
func (k *kit) drain() {
	k.Helper()
	for k.stats().Queued > 0 {
		k.advance(claimed)
		for _, t := range k.due(100) {
			for _, v := range k.visit(frontier.VisitLimits{URLs: 1000}, t) {
				k.finish(v)
			}
		}
	}
}
