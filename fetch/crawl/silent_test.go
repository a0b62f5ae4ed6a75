package crawl

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"seine/frontier"
)

// pile is an overflow in memory.
type pile struct {
	mu    sync.Mutex
	lines []byte
}

func (h *pile) Write(lines []byte, done func(error)) {
	h.mu.Lock()
	h.lines = append(h.lines, lines...)
	h.mu.Unlock()
	done(nil)
}

func (h *pile) Err() error { return nil }

// TestSilentShard: every page links to a shard that answers nothing. The sites of
// the others are asked as often as before, for as long as that lasts, though what
// may be open is little: pages go back for a while, or their links go to the overflow.
func TestSilentShard(t *testing.T) {
	t.Parallel()
	const sites, delay, ill = 30, 100 * time.Millisecond, 2
	for name, over := range map[string]*pile{"back": nil, "overflow": {}} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, func(s *frontier.Settings) {
				s.Delay, s.VisitURLs, s.Robots, s.Scope = delay, 8, "ignore", "any"
				s.MaxPages = 1_000_000 // never reached; a limit that is counted on all shards lets others go on, too
			})
			m := meddle(r)
			r.cfg.OpenBytes, r.cfg.Concurrency, r.cfg.ExitWhenDone, r.cfg.Exact = 100_000, 64, false, false
			if over != nil {
				r.cfg.Overflow = over
			}
			isIll := make(map[string]bool)
			var sick []string // sites of the shard
			for i := range sites {
				site := fmt.Sprintf("s%d.example", i)
				c, err := frontier.NewMaker(r.queue.Layout()).Make("http://" + site)
				if err != nil {
					t.Fatal(err)
				}
				if r.queue.Of(c.Fingerprint) == ill {
					isIll[site] = true
					sick = append(sick, site)
				}
				for p := range 300 {
					r.seed(fmt.Sprintf("http://%s/p%d", site, p))
				}
			}
			w.rest(func(rw http.ResponseWriter, rq *http.Request) {
				html("http://"+sick[0]+"/of/"+rq.Host+rq.URL.Path, "http://"+sick[1]+"/of/"+rq.Host+rq.URL.Path)(rw, rq)
			})
			well := func() (n int) {
				for _, a := range w.requests("", false) {
					if !isIll[a.host] {
						n++
					}
				}
				return n
			}
			rate := func(d time.Duration) float64 {
				n, began := well(), time.Now()
				time.Sleep(d)
				return float64(well()-n) / time.Since(began).Seconds()
			}
			crawler := r.crawler()
			wait := r.start(crawler)
			until(t, "the crawl is under way", func() bool { return well() > 2*sites })
			before := rate(3 * time.Second)
			m.silent.Store(ill + 1)
			until(t, "the shard is given up on", func() bool { return crawler.shards[ill].admitter.IsUnresponsive() })
			rate(2 * time.Second)                                 // what filled up meanwhile goes
			if after := rate(6 * time.Second); after < before/2 { // it is none where requests stop; other work on the machine takes its part
				t.Errorf("%.0f requests/s beside a silent shard, %.0f before", after, before)
			}
			if over != nil {
				until(t, "links are in the overflow", func() bool {
					over.mu.Lock()
					defer over.mu.Unlock()
					return bytes.Count(over.lines, []byte("/of/")) > 100
				})
			} else if metric(t, crawler, `seine_crawl_causes_total{cause="silent_shard"}`) == "0" {
				t.Error("no page went back")
			}
			m.silent.Store(0)
			crawler.Stop()
			if err := wait(); err != nil {
				t.Fatal(err)
			}
			checkIdle(t, crawler)
			for _, a := range w.requests("", false) {
				if n := w.times("http://" + a.host + a.path); n > 1 {
					t.Fatalf("%s%s was asked for %d times", a.host, a.path, n)
				}
			}
		})
	}
}
