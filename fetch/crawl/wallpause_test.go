package crawl

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seine/fetch/crawl/internal/watch"
	"seine/frontier"
)

// TestWalledForEver: a site behind a wall is asked a few times and then given up, so that the
// crawl ends. Its URLs are dead of `wall`; a person has them tried again.
func TestWalledForEver(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *web, r *rig) {
		r.cfg.GiveUp = time.Second
		var log locked
		r.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		var open atomic.Bool
		w.rest(func(rw http.ResponseWriter, rq *http.Request) {
			if rq.Host == "walled.example" && !open.Load() {
				answered(403, checkpoint)(rw, rq)
				return
			}
			html()(rw, rq)
		})
		const urls = 30
		for i := range urls {
			r.seed(fmt.Sprintf("http://walled.example/p%d", i), fmt.Sprintf("http://calm.example/p%d", i))
		}
		c := r.run()
		r.checkEmpty()
		checkIdle(t, c)
		if n := len(w.requests("walled.example", false)); n < frontier.WallsInRow+1 || n > urls/2 { // once more for each GiveUp that the rest takes
			t.Errorf("a walled site was asked %d times", n)
		}
		if n := len(w.requests("calm.example", false)); n != urls {
			t.Errorf("another site was asked %d times", n)
		}
		for url, rec := range r.store.by(t) {
			if walled := strings.Contains(url, "walled"); walled != (rec.Error != nil) || walled && rec.Error.Class != frontier.CauseWall {
				t.Errorf("%s: %+v", url, rec.Error)
			}
		}
		if got := log.String(); strings.Count(got, "backed off") != 1 || !strings.Contains(got, "cause=wall") || !strings.Contains(got, "given_up_in") {
			t.Error(got)
		}
		if p := c.Progress(); p.BackedOff[frontier.CauseWall].Sites != 1 || p.Causes[frontier.CauseWall] == 0 {
			t.Errorf("%+v", p)
		}
		if metric(t, c, `seine_crawl_walls_total{vendor="anubis"}`) == "" {
			t.Error("walls are not counted by vendor")
		}

		f := r.queue.(frontier.Operated)
		open.Store(true)
		k := frontier.ShardOf(f, "walled.example")
		letters, err := f.DeadLetters(t.Context(), k, frontier.CauseWall, 0, 2*urls)
		if err != nil || len(letters) != urls {
			t.Fatalf("%d dead letters: %v", len(letters), err)
		}
		if n, err := f.RetryDead(t.Context(), k, letters); n != urls || err != nil {
			t.Fatalf("%d retried: %v", n, err)
		}
		r.store = new(store)
		r.cfg.Sink = r.store
		r.run()
		r.checkEmpty()
		for url, rec := range r.store.by(t) {
			if rec.Error != nil {
				t.Errorf("%s: %+v", url, rec.Error)
			}
		}
		if n := r.store.urls(); n != urls {
			t.Errorf("%d records of %d", n, urls)
		}
		if states, err := f.SiteStates(t.Context(), k, []string{"walled.example"}); err != nil || states[0].Walls != nil {
			t.Errorf("%+v, %v: the row of walls has ended", states, err)
		}
	})
}

// TestWalledAfterRestart: a fetcher that met no wall itself says that the fleet backs off from
// all sites for them, and asks none. The end of the back-offs has them asked.
func TestWalledAfterRestart(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *web, r *rig) {
		r.cfg.ExitWhenDone = false
		w.rest(answered(403, checkpoint))
		for i := range 9 {
			r.seed(fmt.Sprintf("http://a.example/p%d", i))
		}
		c := r.crawler()
		wait := r.start(c)
		until(t, "the fleet backs off", func() bool { return r.stats().Walled == 1 && r.stats().Leases == 0 })
		c.Stop()
		if err := wait(); err != nil {
			t.Fatal(err)
		}
		asked := len(w.requests("", false))
		if asked != frontier.WallsInRow {
			t.Errorf("asked %d times", asked)
		}
		c = r.crawler()
		wait = r.start(c)
		until(t, "the bound is named", func() bool { return c.Progress().Limit == watch.LimitWalls })
		if n := len(w.requests("", false)); n != asked {
			t.Errorf("asked %d times during the back-off", n-asked)
		}
		w.rest(html())
		if n, err := frontier.EndWalls(t.Context(), r.queue.(frontier.Operated)); n != 1 || err != nil {
			t.Fatalf("%d ended: %v", n, err)
		}
		until(t, "all is fetched", func() bool { return r.stats().Done == 9 })
		c.Stop()
		if err := wait(); err != nil {
			t.Fatal(err)
		}
	})
}
