//go:build linux

package scale

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"seine/bench/load"
	"seine/frontier"
)

// errFull: the machine has no more memory to give.
var errFull = errors.New("less memory is available than is to be kept free")

const (
	perRun  = 12  // URLs of one site that come together, as links of a page
	perCall = 480 // URLs of an admission
)

// crawl is one crawl that grows.
type crawl struct {
	parts []*part
	spare int64 // bytes of memory that stay available

	full atomic.Bool // the machine is
}

// grow admits URLs until the crawl has so many, and settles a quarter of them.
func (c *crawl) grow(ctx context.Context, to int64) error {
	each := to / int64(len(c.parts))
	return c.all(func(p *part) error {
		if err := p.load(ctx, each, &c.full); err != nil {
			return err
		}
		return p.drain(ctx, each/4)
	})
}

// all has every part worked on at once, while there is memory.
func (c *crawl) all(do func(*part) error) error {
	results := make(chan error)
	for _, p := range c.parts {
		go func() { results <- do(p) }()
	}
	watch := time.NewTicker(time.Second)
	defer watch.Stop()
	var errs []error
	for left := len(c.parts); left > 0; {
		select {
		case err := <-results:
			errs = append(errs, err)
			left--
		case <-watch.C:
			if int64(load.Available()) < c.spare {
				c.full.Store(true)
			}
		}
	}
	return errors.Join(errs...)
}

// load admits until the part has so many URLs.
func (p *part) load(ctx context.Context, to int64, full *atomic.Bool) error {
	for p.known < to {
		if full.Load() {
			return errFull
		}
		p.start()
		for range min(perCall/perRun, (to-p.known+perRun-1)/perRun) {
			p.add(p.pick(), perRun)
		}
		if err := p.admit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// admit sends the batch, all of which is new.
func (p *part) admit(ctx context.Context) error {
	batch := p.made()
	verdicts := make([]frontier.Verdict, len(batch))
	if err := p.f.Admit(ctx, p.shard, batch, verdicts); err != nil {
		return err
	}
	for _, v := range verdicts {
		switch v {
		case frontier.Seen:
			p.wrong++
		case frontier.Admitted:
		default:
			return fmt.Errorf("shard %d: a URL was answered %d", p.shard, v)
		}
	}
	p.known += int64(len(batch))
	return nil
}

// drain leases and settles until so many URLs are settled. A site gives a part of
// its queue, so that sizes of queues stay as they are spread.
func (p *part) drain(ctx context.Context, to int64) error {
	for p.settled < to {
		tick, err := p.f.Tick(ctx, p.shard, frontier.TickRequest{Want: 500})
		if err != nil {
			return err
		}
		if len(tick.Due) == 0 && (tick.Next < 0 || tick.Next > time.Minute) {
			return fmt.Errorf("shard %d: nothing is due, %d of %d settled", p.shard, p.settled, to)
		}
		var bySize [10][]frontier.Ticket // by the logarithm of URLs leased
		for _, t := range tick.Due {
			site := p.places[t.Site]
			b := bits.Len32((p.next[site] - p.gone[site]) * 3 / 8)
			bySize[min(max(b, 1), len(bySize))-1] = append(bySize[min(max(b, 1), len(bySize))-1], t)
		}
		for b, tickets := range bySize {
			visits, err := p.f.Visit(ctx, p.shard, tickets, frontier.VisitLimits{URLs: 1 << b})
			if err == nil {
				err = p.settle(ctx, visits)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// settle settles visits as fetched.
func (p *part) settle(ctx context.Context, visits []frontier.Visit) error {
	list := make([]frontier.Settlement, 0, len(visits))
	for _, v := range visits {
		s := frontier.Settlement{Lease: v.Lease, Outcomes: make([]frontier.Outcome, len(v.Items)), Release: &frontier.Release{Delay: time.Second}}
		for i, it := range v.Items {
			s.Outcomes[i] = frontier.Outcome{Index: it.Index, Kind: frontier.Done, Facts: &fetched}
		}
		list = append(list, s)
		p.settled += int64(len(v.Items))
		if site, ours := p.places[v.Site]; ours {
			p.gone[site] += uint32(len(v.Items))
		}
	}
	_, err := p.f.Settle(ctx, p.shard, list)
	return err
}

// fetched is what is settled for every page.
var fetched = frontier.Facts{Status: 200, Media: "html", Bytes: 4711, Links: 60, Known: 20, Refused: [frontier.Reasons]uint32{1: 12, 5: 2}}
