package frontiertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"seine/frontier"
)

// Drive lets simulated fetchers work on a backend for some steps: they crash,
// stall beyond their leases, repeat calls at once and send copies of old ones,
// a tenth of all. Then it lets them finish, and fails when a URL was lost, was
// done or given up twice, was leased to two at once, or when a site was.
func Drive(t testing.TB, open func(testing.TB) Backend, seed uint64, steps int) {
	t.Logf("seed %d", seed)
	d := &driver{kit: newKit(t, open(t)), rand: rand.New(rand.NewPCG(seed, 1)), urls: map[string]*history{}, leased: map[string]*openVisit{}}
	for range 4 {
		d.fetchers = append(d.fetchers, &fetcher{})
	}
	for range steps {
		d.step()
	}
	d.finishCrawl()
}

// history is what happened to one URL.
type history struct {
	over     bool       // done or dead
	leasedBy *openVisit // who leases it
	leases   int
	causes   int // why it may be leased: admission, retry, requeue, loss, a retried dead letter
}

// openVisit is one visit as the driver knows it.
type openVisit struct {
	frontier.Visit
	open     map[int]string // index -> URL
	freed    bool
	deadline time.Duration // of the driver's time
}

type fetcher struct {
	visits  []*openVisit
	kept    []kept
	stalled time.Duration // until then
}

// kept is a ticket of a site that waits for a fetcher.
type kept struct {
	frontier.Ticket
	shard int
	due   time.Duration // of the driver's time
}

type driver struct {
	*kit
	rand     *rand.Rand
	now      time.Duration
	fetchers []*fetcher
	urls     map[string]*history
	leased   map[string]*openVisit // by site, not freed
	copies   []func()              // calls made once, to be made late
	repeats  int
	crashes  int
	reaped   int
}

func (d *driver) step() {
	f := d.fetchers[d.rand.IntN(len(d.fetchers))]
	switch n := d.rand.IntN(100); {
	case n < 12:
		d.discover()
	case n < 45:
		d.tickAndVisit(f)
	case n < 80:
		d.settleSome(f)
	case n < 82:
		d.crashes++
		f.visits, f.kept = nil, nil // a new fetcher takes its place
	case n < 84:
		f.stalled = d.now + time.Duration(d.rand.Int64N(int64(3*lease)))
	case n < 90:
		d.advanceClock(time.Duration(d.rand.IntN(8)) * time.Second)
	default:
		d.repeatLate()
	}
}

func (d *driver) advanceClock(t time.Duration) {
	d.now += t
	d.advance(t)
}

// repeat makes a call once more now and then, and keeps a copy for later.
func (d *driver) repeat(call func()) {
	if d.rand.IntN(10) == 0 {
		d.repeats++
		call()
	}
	d.copies = append(d.copies, call)
	if len(d.copies) > 300 {
		d.copies = d.copies[100:]
	}
}

func (d *driver) repeatLate() {
	if len(d.copies) > 0 {
		d.repeats++
		d.copies[d.rand.IntN(len(d.copies))]()
	}
}

// discover admits some URLs, known ones among them.
func (d *driver) discover() {
	site := fmt.Sprintf("s%d.example", d.rand.IntN(12))
	var batch []frontier.Candidate
	for range 1 + d.rand.IntN(10) {
		c := d.url(site, fmt.Sprint(d.rand.IntN(4000)))
		c.Priority = uint8(d.rand.IntN(4))
		batch = append(batch, c)
	}
	call := func() {
		verdicts := make([]frontier.Verdict, len(batch))
		d.must(d.f.Admit(d.ctx, d.shard(site), batch, verdicts))
		for i, c := range batch {
			known := d.urls[c.URL] != nil
			switch {
			case known && verdicts[i] != frontier.Seen && !repeated(batch, i):
				d.Fatalf("%s: verdict %d of a known URL", c.URL, verdicts[i])
			case !known && verdicts[i] != frontier.Capped:
				d.urls[c.URL] = &history{causes: 1} // seen: by an earlier try of this call
			}
		}
	}
	call()
	d.repeat(call)
}

// repeated reports whether the i-th URL of a batch is in it earlier.
func repeated(batch []frontier.Candidate, i int) bool {
	for _, c := range batch[:i] {
		if c.URL == batch[i].URL {
			return true
		}
	}
	return false
}

// tickAndVisit has a fetcher extend its leases, reap those that expired and acquire sites.
func (d *driver) tickAndVisit(f *fetcher) {
	if f.stalled > d.now {
		return
	}
	for shard := range d.f.Shards() {
		req := frontier.TickRequest{Want: d.rand.IntN(3), MaxExpired: 4}
		var mine []*openVisit
		for _, h := range f.visits {
			if h.Shard == shard {
				mine = append(mine, h)
				req.Extend = append(req.Extend, h.Lease)
			}
		}
		reply, err := d.f.Tick(d.ctx, shard, req)
		d.must(err)
		gone := map[frontier.Lease]bool{}
		for _, l := range reply.Gone {
			gone[l] = true
		}
		for _, h := range mine {
			h.deadline = d.now + lease
			if gone[h.Lease] {
				f.drop(h)
			}
		}
		d.reapAll(shard, reply.Expired)
		if due := append(f.keptTickets(d, shard), reply.Due...); len(due) > 0 {
			d.acquire(f, shard, due)
		}
	}
}

// keptTickets takes the tickets of the sites that wait for a fetcher and may be visited, and
// now and then one that may not yet.
func (f *fetcher) keptTickets(d *driver, shard int) (due []frontier.Ticket) {
	f.kept = slices.DeleteFunc(f.kept, func(k kept) bool {
		takes := k.shard == shard && (k.due <= d.now || d.rand.IntN(20) == 0)
		if takes {
			due = append(due, k.Ticket)
		}
		return takes
	})
	return due
}

func (f *fetcher) drop(h *openVisit) {
	for i, x := range f.visits {
		if x == h {
			f.visits = append(f.visits[:i], f.visits[i+1:]...)
			return
		}
	}
}

// acquire leases sites. A copy that comes later must lease nothing.
func (d *driver) acquire(f *fetcher, shard int, tickets []frontier.Ticket) {
	limits := frontier.VisitLimits{URLs: 1 + d.rand.IntN(6)}
	call := func() {
		visits, err := d.f.Visit(d.ctx, shard, tickets, limits)
		d.must(err)
		for _, v := range visits {
			d.noteVisit(f, v)
		}
	}
	call()
	call = func() {
		visits, err := d.f.Visit(d.ctx, shard, tickets, limits)
		d.must(err)
		for _, v := range visits {
			d.Fatalf("%s: a ticket was good twice", v.Site)
		}
	}
	d.repeat(call)
}

// noteVisit notes a granted visit.
func (d *driver) noteVisit(f *fetcher, v frontier.Visit) {
	h := &openVisit{Visit: v, open: map[int]string{}, deadline: d.now + lease}
	if other := d.leased[v.Site]; other != nil {
		d.Fatalf("%s is leased to two", v.Site)
	}
	d.leased[v.Site] = h
	for _, it := range v.Items {
		u := d.urls[it.URL]
		switch {
		case u == nil:
			d.Fatalf("%s was never admitted", it.URL)
		case u.over:
			d.Fatalf("%s is leased after its end", it.URL)
		case u.leasedBy != nil:
			d.Fatalf("%s is leased to two", it.URL)
		case it.Lost > 0 && len(v.Items) > 1:
			d.Fatalf("%s was lost %d times and is not alone", it.URL, it.Lost)
		}
		u.leasedBy = h
		u.leases++
		if u.leases > u.causes {
			d.Fatalf("%s is leased %d times for %d causes", it.URL, u.leases, u.causes)
		}
		h.open[it.Index] = it.URL
	}
	f.visits = append(f.visits, h)
}

// reapAll reaps what expired, and does so again later.
func (d *driver) reapAll(shard int, expired []frontier.Expired) {
	for _, e := range expired {
		n, err := d.f.Reap(d.ctx, shard, []frontier.Expired{e})
		d.must(err)
		if n == 1 {
			d.reaped++
			d.noteReaped(e)
		}
		d.repeat(func() {
			n, err := d.f.Reap(d.ctx, shard, []frontier.Expired{e})
			d.must(err)
			same(d.kit, "a lease reaped twice", n, 0)
		})
	}
}

// noteReaped notes that the URLs of a lease are back in their queues.
func (d *driver) noteReaped(e frontier.Expired) {
	if h := d.leased[e.Site]; h != nil && h.Token == e.Token {
		delete(d.leased, e.Site)
	}
	for _, u := range d.urls {
		if u.leasedBy != nil && u.leasedBy.Token == e.Token {
			if u.leasedBy.deadline >= d.now {
				d.Fatalf("%s was reaped before its lease was over", e.Site)
			}
			u.leasedBy = nil
			u.causes++
		}
	}
}
