package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// driver runs simulated fetchers on a small web of known shape. They crash and
// stall; calls are repeated, and copies of calls arrive late.
type driver struct {
	*stand
	sites, pages int
	links        int           // a page
	lease        time.Duration // of the crawl
	poison       string        // URL that kills whoever holds it

	world   sync.RWMutex // held for reading by who works, for writing to look at all
	late    sync.WaitGroup
	run     runner
	lateOf  float64 // share of calls of which a copy arrives late
	twiceOf float64 // share of calls that are repeated at once

	mu       sync.Mutex
	done     map[string]int
	dead     map[string]string
	holders  map[string]frontier.Visit // by site
	crashes  atomic.Int64
	acquired atomic.Int64 // of the poison
	calls    atomic.Int64
	// How often operate took dead letters: who takes some alone never reads that
	// somebody else does.
	operators struct{ begun, ended atomic.Int64 }
	failed    atomic.Pointer[string]
}

func newDriver(s *stand, sites, pages int) *driver {
	d := &driver{stand: s, sites: sites, pages: pages, links: 8, lease: 600 * time.Millisecond, lateOf: 0.1, twiceOf: 0.1,
		done: make(map[string]int), dead: make(map[string]string), holders: make(map[string]frontier.Visit)}
	if err := s.Configure(Config{Lease: d.lease, Claim: 50 * time.Millisecond}); err != nil {
		s.t.Fatal(err)
	}
	d.poison = d.page(sites/2, pages/2).URL
	d.run = s.Frontier.run
	s.Frontier.run = d.repeat
	return d
}

func (d *driver) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.failed.CompareAndSwap(nil, &text)
}

func (d *driver) page(site, page int) frontier.Candidate {
	name := fmt.Sprintf("s%d.example", site%d.sites)
	url := fmt.Sprintf("https://%s/%d", name, page%d.pages)
	return frontier.Candidate{URL: url, Site: name, Fingerprint: canon.FingerprintOf([]byte(name), []byte(url)), Priority: uint8(page % 4)}
}

// seeds are what a crawl starts with: more than one page, for any page may die.
func (d *driver) seeds() (list []frontier.Candidate) {
	for site := range 8 {
		list = append(list, d.page(site, 0))
	}
	return list
}

// linksOf are the pages that a page leads to: the next of its site, so that all
// are reached, and others by its name.
func (d *driver) linksOf(url string) (list []frontier.Candidate) {
	var site, page int
	if _, err := fmt.Sscanf(url, "https://s%d.example/%d", &site, &page); err != nil {
		d.fail("%s: %v", url, err)
	}
	list = append(list, d.page(site, page+1), d.page(site+1, 0))
	r := rand.New(rand.NewPCG(uint64(site), uint64(page)))
	for len(list) < d.links {
		list = append(list, d.page(r.IntN(d.sites), r.IntN(d.pages)))
	}
	return list
}

// admitAll admits to whatever shards the candidates belong to.
func (d *driver) admitAll(ctx context.Context, list []frontier.Candidate) error {
	byShard := make(map[int][]frontier.Candidate)
	for _, c := range list {
		k := d.Of(c.Fingerprint)
		byShard[k] = append(byShard[k], c)
	}
	for k, batch := range byShard {
		if err := d.Admit(ctx, k, batch, make([]frontier.Verdict, len(batch))); err != nil {
			return err
		}
	}
	return nil
}

// held is what a simulated fetcher holds.
type held struct {
	visit frontier.Visit
	left  []frontier.Item
	gone  bool
}

// fetcher works on all shards until the crawl is done. It returns when it
// crashed, with all it held.
func (d *driver) fetcher(ctx context.Context, r *rand.Rand) error {
	mine := make([][]*held, d.Shards())
	var last time.Time
	for {
		if ctx.Err() != nil {
			return nil
		}
		if r.Float64() < 0.01 { // it stalls, and goes on as if nothing had been
			time.Sleep(d.lease + d.lease/2)
		}
		full := time.Since(last) > d.lease/10
		if full {
			last = time.Now()
		}
		for k := range mine {
			err := d.turn(ctx, r, k, &mine[k], full)
			if err == errCrash || ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
}

var errCrash = fmt.Errorf("crash")

// turn is one round of a fetcher on one shard.
func (d *driver) turn(ctx context.Context, r *rand.Rand, k int, mine *[]*held, full bool) error {
	d.world.RLock()
	defer d.world.RUnlock()
	req := frontier.TickRequest{Want: max(0, 3-len(*mine))}
	if full {
		req.MaxExpired = 5
		for _, h := range *mine {
			req.Extend = append(req.Extend, h.visit.Lease)
		}
	}
	if full || req.Want > 0 {
		reply, err := d.Tick(ctx, k, req)
		if err != nil {
			return err
		}
		*mine = slices.DeleteFunc(*mine, func(h *held) bool { return slices.Contains(reply.Gone, h.visit.Lease) })
		if _, err := d.Reap(ctx, k, reply.Expired); err != nil {
			return err
		}
		visits, err := d.Visit(ctx, k, reply.Due, frontier.VisitLimits{URLs: 1 + r.IntN(8)})
		if err != nil {
			return err
		}
		d.hold(visits)
		for _, v := range visits {
			*mine = append(*mine, &held{visit: v, left: v.Items})
			if slices.ContainsFunc(v.Items, func(it frontier.Item) bool { return it.URL == d.poison }) {
				d.acquired.Add(1)
				d.crashes.Add(1)
				return errCrash
			}
		}
	}
	if r.Float64() < 0.02 {
		if err := d.operate(ctx, r, k); err != nil {
			return err
		}
	}
	if len(*mine) == 0 {
		time.Sleep(time.Millisecond) // nothing is due
		return nil
	}
	if r.Float64() < 0.02 {
		d.crashes.Add(1)
		return errCrash
	}
	return d.work(ctx, r, k, mine)
}

// hold notes who holds which sites, and fails when a site is leased twice at once.
// Of a visit that ended before its fetcher came to know of it others may be ahead.
func (d *driver) hold(visits []frontier.Visit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range visits {
		now := time.Now()
		if !now.Before(v.Deadline) {
			continue
		}
		if h, ok := d.holders[v.Site]; ok && now.Before(h.Deadline) {
			d.fail("%s is leased to %s and to %s", v.Site, h.Token, v.Token)
		}
		d.holders[v.Site] = v
	}
}

// release notes which sites are about to be released.
func (d *driver) release(batch []frontier.Settlement) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, st := range batch {
		if st.Release != nil && d.holders[st.Site].Token == st.Token {
			delete(d.holders, st.Site)
		}
	}
}

// operate does what an operator may: it pauses a site for a moment, or retries
// dead letters.
func (d *driver) operate(ctx context.Context, r *rand.Rand, k int) error {
	if site := d.page(r.IntN(d.sites), 0); d.Of(site.Fingerprint) == k {
		if err := d.Alter(ctx, k, site.Site, frontier.SiteChange{Paused: ptr(true)}); err != nil {
			return err
		}
		d.late.Go(func() {
			time.Sleep(d.lease / 10)
			d.world.RLock()
			defer d.world.RUnlock()
			if err := d.Alter(context.Background(), k, site.Site, frontier.SiteChange{Paused: ptr(false)}); err != nil {
				d.fail("%v", err)
			}
		})
	}
	begun := d.operators.begun.Add(1)
	defer d.operators.ended.Add(1)
	shared := begun-d.operators.ended.Load() > 1
	letters, err := d.DeadLetters(ctx, k, "gone", 0, 2)
	if err == nil {
		_, err = d.RetryDead(ctx, k, letters)
	}
	if shared = shared || d.operators.begun.Load() > begun; shared && err != nil && strings.Contains(err.Error(), "another program takes dead letters") {
		return nil // it is true
	}
	return err
}

// work settles some of what a fetcher holds.
func (d *driver) work(ctx context.Context, r *rand.Rand, k int, mine *[]*held) error {
	var batch []frontier.Settlement
	for _, h := range *mine {
		st := frontier.Settlement{Lease: h.visit.Lease}
		n := r.IntN(len(h.left) + 1)
		for _, it := range h.left[:n] {
			o := frontier.Outcome{Index: it.Index, Kind: frontier.Done}
			switch x := r.Float64(); {
			case x < 0.05:
				o.Kind, o.NotBefore = frontier.Retry, time.Duration(r.IntN(100))*time.Millisecond
			case x < 0.06:
				o.Kind, o.Cause, o.Text = frontier.Dead, "gone", "410"
			case x < 0.10:
				o.Kind = frontier.Requeue
			default:
				if err := d.admitAll(ctx, d.linksOf(it.URL)); err != nil {
					return err
				}
			}
			st.Outcomes = append(st.Outcomes, o)
		}
		h.left = h.left[n:]
		if (len(h.left) == 0 || r.Float64() < 0.1) && !h.gone {
			st.Release = &frontier.Release{Remain: time.Duration(r.IntN(3)) * time.Millisecond, Delay: time.Millisecond, Failures: r.IntN(3)}
			h.gone = true
		}
		batch = append(batch, st)
	}
	d.release(batch)
	if _, err := d.Settle(ctx, k, batch); err != nil {
		return err
	}
	d.note(*mine, batch)
	*mine = slices.DeleteFunc(*mine, func(h *held) bool { return len(h.left) == 0 && h.gone })
	return nil
}

// note remembers pages whose links were admitted before they were settled;
// what a repeat calls gone counts as well, for the page is safe.
func (d *driver) note(mine []*held, batch []frontier.Settlement) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, st := range batch {
		for _, o := range st.Outcomes {
			at := slices.IndexFunc(mine[i].visit.Items, func(it frontier.Item) bool { return it.Index == o.Index })
			url := mine[i].visit.Items[at].URL
			switch o.Kind {
			case frontier.Done:
				d.done[url]++
			case frontier.Dead:
				d.dead[url] = o.Cause
			}
		}
	}
}
