package crawl

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"seine/frontier"
)

// doubtful is a crawl of one site whose leases, of the default length, come into
// doubt.
type doubtful struct {
	*rig
	*meddler
	slept atomic.Int64 // ns that the machine was suspended
	epoch atomic.Uint64
}

const siteDelay = 100 * time.Millisecond

func newDoubtful(t *testing.T) *doubtful {
	w := newWeb(t)
	w.rest(text(200, "x"))
	r := newRig(t, w, func(s *frontier.Settings) { s.Delay, s.VisitURLs, s.Robots = siteDelay, 1000, "ignore" })
	d := &doubtful{rig: r, meddler: meddle(r)}
	r.cfg.ExitWhenDone, r.cfg.Exact = false, false
	r.cfg.Elapsed = func() time.Duration { return systemElapsed() + time.Duration(d.slept.Load()) }
	r.cfg.Epoch = func(int) uint64 { return d.epoch.Load() }
	for i := range 200 {
		r.seed(fmt.Sprintf("http://a.example/p%d", i))
	}
	return d
}

func (d *doubtful) asked() int { return len(d.web.requests("", false)) }

// checkRests holds that no request starts any more, but one that was starting.
func (d *doubtful) checkRests(t *testing.T) {
	t.Helper()
	before := d.asked()
	time.Sleep(10 * siteDelay)
	if n := d.asked(); n > before+1 {
		t.Errorf("%d requests started while the leases were in doubt", n-before)
	}
}

// TestLeasesInDoubt: after a gap between ticks, as of a machine that was
// suspended, and after the connection to a shard broke, no request starts before
// a tick named the leases; then the visit goes on, or is dropped.
func TestLeasesInDoubt(t *testing.T) {
	t.Parallel()
	for name, shake := range map[string]func(*doubtful){
		"suspended": func(d *doubtful) { d.slept.Add(int64(25 * time.Second)) },
		"broken":    func(d *doubtful) { d.epoch.Add(1) },
	} {
		for _, gone := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", gone ", gone), func(t *testing.T) {
				d := newDoubtful(t)
				crawler := d.crawler()
				wait := d.start(crawler)
				until(t, "requests are made", func() bool { return d.asked() > 2 })
				d.frozen.Store(true)
				until(t, "ticks are held", func() bool {
					n := d.ticks.Load()
					time.Sleep(2 * heartbeat)
					return d.ticks.Load() == n
				})
				shake(d)
				d.checkRests(t)
				d.mu.Lock()
				d.gone["a.example"] = gone
				d.mu.Unlock()
				d.frozen.Store(false)
				if gone {
					until(t, "the visit is dropped", func() bool { return crawler.visits.Load() == 0 })
				} else {
					n := d.asked()
					until(t, "the visit goes on", func() bool { return d.asked() > n+2 })
				}
				crawler.Stop()
				if err := wait(); err != nil {
					t.Fatal(err)
				}
				checkIdle(t, crawler)
			})
		}
	}
}

// TestOutcomeGone: an outcome that came too late makes the next tick, at once, ask
// for the lease, long before it is to be extended.
func TestOutcomeGone(t *testing.T) {
	d := newDoubtful(t)
	crawler := d.crawler()
	wait := d.start(crawler)
	until(t, "requests are made", func() bool { return d.asked() > 2 })
	began := time.Now()
	d.mu.Lock()
	d.gone["a.example"] = true
	d.mu.Unlock()
	until(t, "the visit is dropped", func() bool { return crawler.visits.Load() == 0 })
	if took := time.Since(began); took > crawler.cfg.Lease/6 {
		t.Errorf("dropped after %v", took)
	}
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	checkIdle(t, crawler)
}
