package frontiertest

import (
	"time"

	"seine/frontier"
)

// settleSome settles some URLs of a visit, which may have been reaped meanwhile.
func (d *driver) settleSome(f *fetcher) {
	if f.stalled > d.now || len(f.visits) == 0 {
		return
	}
	h := f.visits[d.rand.IntN(len(f.visits))]
	st := frontier.Settlement{Lease: h.Lease}
	for index := range len(h.Items) {
		if d.rand.IntN(2) == 0 {
			st.Outcomes = append(st.Outcomes, d.outcome(h.Visit, index+1))
		}
	}
	if d.rand.IntN(2) == 0 {
		st.Release = &frontier.Release{Remain: time.Duration(d.rand.IntN(3000)) * time.Millisecond, Delay: time.Second, Keep: d.rand.IntN(2) == 0}
	}
	if count := d.rand.IntN(20); count <= frontier.WallsInRow {
		st.Walls = &frontier.Walls{Count: count, Vendor: "acme", Pause: time.Duration(d.rand.IntN(9)) * time.Second}
	}
	settle := func() frontier.Settled {
		settled, err := d.f.Settle(d.ctx, h.Shard, []frontier.Settlement{st})
		d.must(err)
		return settled[0]
	}
	settled := settle()
	if settled.Kept.Site != "" {
		f.kept = append(f.kept, kept{settled.Kept, h.Shard, d.now + settled.Due})
	}
	for i, ok := range settled.Outcomes {
		if ok {
			d.noteOutcome(h, st.Outcomes[i])
		}
	}
	if st.Release != nil && d.leased[h.Site] == h {
		delete(d.leased, h.Site)
		h.freed = true
	}
	if h.freed && len(h.open) == 0 {
		f.drop(h)
	}
	d.repeat(func() {
		settled := settle()
		same(d.kit, "a site kept twice", settled.Kept.Site, "")
		for _, ok := range settled.Outcomes {
			same(d.kit, "an outcome settled twice", ok, false)
		}
	})
}

func (d *driver) outcome(v frontier.Visit, index int) frontier.Outcome {
	o := frontier.Outcome{Index: index}
	switch d.rand.IntN(10) {
	case 0:
		o.Kind, o.Cause = frontier.Dead, "timeout"
	case 1, 2:
		o.Kind, o.NotBefore = frontier.Retry, time.Duration(d.rand.IntN(30))*time.Second
	case 3:
		o.Kind = frontier.Requeue
	case 4:
		return recrawlOutcome(v, index-1, time.Duration(d.rand.IntN(60))*time.Second)
	}
	return o
}

// noteOutcome notes an outcome that took effect.
func (d *driver) noteOutcome(h *openVisit, o frontier.Outcome) {
	url, ok := h.open[o.Index]
	if !ok {
		d.Fatalf("%s: outcome %d was settled twice", h.Site, o.Index)
	}
	delete(h.open, o.Index)
	u := d.urls[url]
	if u.leasedBy != h {
		d.Fatalf("%s is settled by a fetcher that does not lease it", url)
	}
	u.leasedBy = nil
	if o.Kind == frontier.Done || o.Kind == frontier.Dead {
		u.over = true
	} else {
		u.causes++
	}
}

// finishCrawl lets one fetcher finish the crawl, and checks the counters.
func (d *driver) finishCrawl() {
	for round := 0; ; round++ {
		done, err := d.f.Finished(d.ctx)
		d.must(err)
		if done {
			break
		}
		if round > 20_000 {
			d.Fatalf("the crawl does not end: %+v", d.stats())
		}
		d.advanceClock(3 * time.Second)
		for shard := range d.f.Shards() {
			reply, err := d.f.Tick(d.ctx, shard, frontier.TickRequest{Want: 50, MaxExpired: 50})
			d.must(err)
			d.reapAll(shard, reply.Expired)
			if len(reply.Due) == 0 {
				continue
			}
			last := &fetcher{}
			d.acquire(last, shard, reply.Due)
			for _, h := range last.visits {
				for i := range d.settle(h.Visit, &frontier.Release{}, all(h.Visit, frontier.Done)...) {
					d.noteOutcome(h, frontier.Outcome{Index: h.Items[i].Index})
				}
				delete(d.leased, h.Site)
			}
		}
	}
	d.checkCounters()
}

// checkCounters compares the counters of the backend with what the driver noted.
func (d *driver) checkCounters() {
	lost := 0
	for shard := range d.f.Shards() {
		dead, err := d.f.DeadLetters(d.ctx, shard, "lost", 0, 1<<20)
		d.must(err)
		for _, l := range dead {
			lost++
			d.urls[l.URL].over = true
		}
	}
	for url, u := range d.urls {
		if !u.over {
			d.Errorf("%s is lost", url)
		}
	}
	s := d.stats()
	same(d.kit, "known", s.Known, int64(len(d.urls)))
	same(d.kit, "queued, waiting, recrawls, open", s.Queued+s.Waiting+s.Recrawls+s.Open, 0)
	same(d.kit, "done and dead", s.Done+s.Dead, s.Known+s.Recrawled)
	if d.crashes > 0 && d.reaped == 0 || d.repeats == 0 {
		d.Errorf("%d crashes, %d reaped, %d repeats: too few to tell", d.crashes, d.reaped, d.repeats)
	}
	d.Logf("%d URLs, %d crashes, %d visits reaped, %d repeated calls, %d dead as lost", len(d.urls), d.crashes, d.reaped, d.repeats, lost)
}
