package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/watch"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// meddler is a frontier between a crawler and its own.
type meddler struct {
	Frontier
	ticks   atomic.Int64
	full    atomic.Bool   // admission has no room for what is new
	slow    atomic.Bool   // admission does not answer
	frozen  atomic.Bool   // ticks do not answer
	silent  atomic.Int32  // the number of a shard that answers nothing, counted from 1
	delay   time.Duration // of every tick
	tickErr atomic.Pointer[error]
	admit   atomic.Pointer[error]
	mu      sync.Mutex
	gone    map[string]bool // sites whose leases are lost
}

func (m *meddler) hold(ctx context.Context, b *atomic.Bool) error {
	for b.Load() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// hush waits while shard k answers nothing.
func (m *meddler) hush(ctx context.Context, k int) error {
	for m.silent.Load() == int32(k)+1 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func (m *meddler) Tick(ctx context.Context, k int, req frontier.TickRequest) (frontier.TickReply, error) {
	m.ticks.Add(1)
	if err := m.tickErr.Load(); err != nil {
		return frontier.TickReply{}, *err
	}
	if err := errors.Join(m.hold(ctx, &m.frozen), m.hush(ctx, k)); err != nil {
		return frontier.TickReply{}, err
	}
	if m.delay > 0 {
		time.Sleep(m.delay) // what a far Redis does
	}
	reply, err := m.Frontier.Tick(ctx, k, req)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range req.Extend {
		if m.gone[l.Site] {
			reply.Gone = append(reply.Gone, l)
		}
	}
	return reply, err
}

func (m *meddler) Settle(ctx context.Context, k int, batch []frontier.Settlement) ([]frontier.Settled, error) {
	if err := m.hush(ctx, k); err != nil {
		return nil, err
	}
	settled, err := m.Frontier.Settle(ctx, k, batch)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range settled {
		if m.gone[batch[i].Lease.Site] {
			clear(settled[i].Outcomes)
		}
	}
	return settled, err
}

func (m *meddler) Admit(ctx context.Context, k int, batch []frontier.Candidate, v []frontier.Verdict) error {
	if err := errors.Join(m.hold(ctx, &m.slow), m.hush(ctx, k)); err != nil {
		return err
	}
	if err := m.admit.Load(); err != nil {
		return *err
	}
	if m.full.Load() {
		for i := range v {
			if v[i] = frontier.Full; strings.Contains(batch[i].URL, "/known") {
				v[i] = frontier.Seen
			}
		}
		return nil
	}
	return m.Frontier.Admit(ctx, k, batch, v)
}

func meddle(r *rig) *meddler {
	m := &meddler{Frontier: r.queue, gone: make(map[string]bool)}
	r.cfg.Frontier = m
	return m
}

// TestSideBySide: several requests at once keep the delay between their starts.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Delay, s.PerSite = 60*time.Millisecond, 4 })
	var under, most atomic.Int32
	two := make(chan struct{}) // closed when two are under way
	once := sync.OnceFunc(func() { close(two) })
	w.rest(func(rw http.ResponseWriter, rq *http.Request) {
		n := under.Add(1)
		defer under.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n > 1 {
			once()
		}
		select {
		case <-two:
		case <-rq.Context().Done():
		}
		time.Sleep(200 * time.Millisecond) // a slow site
		html()(rw, rq)
	})
	for i := range 16 {
		r.seed(fmt.Sprintf("http://a.example/p%d", i))
	}
	crawler := r.run()
	w.checkGaps(t, 60*time.Millisecond)
	if n := most.Load(); n < 2 || n > 4 {
		t.Errorf("%d requests at once, 4 are allowed", n)
	}
	if n := len(r.store.by(t)); n != 16 {
		t.Errorf("%d of 16 records", n)
	}
	checkIdle(t, crawler)
}

// TestPoliteness: delays within visits and between them.
func TestPoliteness(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) {
		s.Delay, s.VisitURLs, s.Jitter = 50*time.Millisecond, 3, 0.5
		s.Sites = []frontier.SiteRule{{Match: "slow.example", Delay: new(150 * time.Millisecond)}}
	})
	for i := range 20 {
		w.tree(fmt.Sprintf("s%d.example", i), 8)
		r.seed(fmt.Sprintf("http://s%d.example/p0", i))
	}
	w.tree("slow.example", 5)
	r.seed("http://slow.example/p0")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "politeness is named", func() bool { return crawler.Progress().Limit == watch.LimitPoliteness || crawler.isStopping() })
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	w.checkGaps(t, 50*time.Millisecond)
	log := w.requests("slow.example", false)
	for i := range log[1:] {
		if gap := log[i+1].at.Sub(log[i].at); gap < 150*time.Millisecond {
			t.Errorf("override of 150 ms: %v", gap)
		}
	}
	if n := len(r.store.by(t)); n != 165 {
		t.Errorf("%d of 165 records", n)
	}
}

// shortLease is for tests in which a lease ends.
const shortLease = 6 * time.Second

// TestLeaseLost: a visit whose lease is gone is dropped at once, its request cut.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newLeaseRig(t, w, shortLease, nil)
	m := meddle(r)
	r.cfg.ExitWhenDone, r.cfg.Exact = false, false
	cut := make(chan struct{})
	var once sync.Once
	w.on("a.example/hang", func(rw http.ResponseWriter, rq *http.Request) {
		<-rq.Context().Done()
		once.Do(func() { close(cut) })
	})
	r.seed("http://a.example/hang")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "the request is under way", func() bool { return w.times("http://a.example/hang") == 1 })
	m.mu.Lock()
	m.gone["a.example"] = true
	m.mu.Unlock()
	<-cut
	until(t, "the visit is dropped", func() bool { return crawler.visits.Load() == 0 })
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	checkIdle(t, crawler)
	if n := len(r.store.by(t)); n != 0 {
		t.Errorf("%d records of a page that was cut", n)
	}
}

// TestLeaseShort: without an answer to ticks no request starts when the lease is
// nearly over.
func TestLeaseShort(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newLeaseRig(t, w, shortLease, func(s *frontier.Settings) { s.Delay, s.VisitURLs, s.Robots = 400*time.Millisecond, 100, "ignore" })
	m := meddle(r)
	for i := range 60 {
		r.seed(fmt.Sprintf("http://a.example/p%d", i))
	}
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "requests are made", func() bool { return len(w.requests("", false)) > 1 })
	m.frozen.Store(true)
	frozen := time.Now() // no lease was extended by a call that began later
	until(t, "the visit is over", func() bool {
		return crawler.delayed() == 0 && time.Since(frozen) > shortLease
	})
	log := w.requests("", false)
	if last := log[len(log)-1].at.Sub(frozen); last > shortLease-time.Second {
		t.Errorf("a request starts %v after the last word of a lease of %v", last, shortLease)
	}
	m.frozen.Store(false)
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	checkIdle(t, crawler)
}

// TestStop: what rests is given back at once, untried.
func TestStop(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Delay = 8 * time.Second })
	for i := range 50 {
		r.seed(fmt.Sprintf("http://a.example/p%d", i), fmt.Sprintf("http://s%d.example/", i))
	}
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "visits rest", func() bool { return crawler.delayed() > 20 })
	crawler.Stop()
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	checkIdle(t, crawler)
	if s := r.stats(); s.Leases != 0 || s.Open != 0 || s.Queued+s.Done != 100 {
		t.Errorf("after a stop: %+v", s)
	}
}

// TestCut: an end of the context cuts requests and leaves them to their leases.
func TestCut(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.on("a.example/hang", func(rw http.ResponseWriter, rq *http.Request) { <-rq.Context().Done() })
	r.seed("http://a.example/hang")
	ctx, cancel := context.WithCancelCause(t.Context())
	crawler := r.crawler()
	ended := make(chan error, 1)
	go func() { ended <- crawler.Run(ctx) }()
	until(t, "the request is under way", func() bool { return w.times("http://a.example/hang") == 1 })
	why := errors.New("out of time")
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("ended with %v", err)
	}
	if s := r.stats(); s.Open != 1 || s.Leases != 1 {
		t.Errorf("%+v", s)
	}
}

// TestEnds: errors after which there is no going on, and an idle end.
func TestEnds(t *testing.T) {
	for _, why := range []error{frontier.ErrStale, frontier.ErrLostFilter} {
		t.Run(why.Error(), func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, nil)
			m := meddle(r)
			w.page("/", "/next")
			r.seed("http://a.example/")
			if errors.Is(why, frontier.ErrStale) {
				m.tickErr.Store(&why)
			} else {
				m.admit.Store(&why)
			}
			if err := r.start(r.crawler())(); !errors.Is(err, why) {
				t.Errorf("ended with %v", err)
			}
			if s := r.stats(); s.Done != 0 {
				t.Errorf("settled: %+v", s)
			}
		})
	}
	t.Run("idle", func(t *testing.T) {
		w := newWeb(t)
		r := newRig(t, w, nil)
		r.cfg.ExitWhenDone, r.cfg.IdleTimeout = false, 100*time.Millisecond
		r.run()
	})
}

// TestNotAcked: a page is settled only when a replica has its links.
func TestNotAcked(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	m := meddle(r)
	w.page("/", "/next")
	r.seed("http://a.example/")
	why := fmt.Errorf("replica: %w", frontier.ErrNotAcked)
	m.admit.Store(&why)
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "an admission is not acknowledged", func() bool { return crawler.count.NotAcked.Get() > 0 })
	if s := r.stats(); s.Done != 0 || s.Open != 1 {
		t.Errorf("settled without a replica: %+v", s)
	}
	until(t, "it is named", func() bool { return crawler.Progress().Limit == watch.LimitReplica })
	if err := crawler.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "no replica of shard") || strings.Contains(err.Error(), "full") {
		t.Errorf("ready: %v", err)
	}
	if s := crawler.situation(time.Now()); s.Unacked != 1 || s.Full != 0 {
		t.Errorf("%d shards without replicas, %d full", s.Unacked, s.Full)
	}
	m.admit.Store(nil)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if len(r.store.by(t)) != 2 {
		t.Error("the link was not followed")
	}
	if err := crawler.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
}

// TestNotAckedStop: a crawler that stops while no replica acknowledges gives its pages
// back.
func TestNotAckedStop(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	m := meddle(r)
	w.page("/", "/next")
	r.seed("http://a.example/")
	why := error(frontier.ErrNotAcked)
	m.admit.Store(&why)
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "an admission is not acknowledged", func() bool { return crawler.count.NotAcked.Get() > 0 })
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if s := r.stats(); s.Done != 0 || s.Open != 0 || s.Queued != 1 {
		t.Errorf("%+v", s)
	}
	if n := crawler.Progress().Returned; n != 1 {
		t.Errorf("%d pages went back", n)
	}
}

// TestFull: pages with new links stay open while a shard has no room, those
// whose links are known are settled, and all goes on when there is room.
func TestFull(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	m := meddle(r)
	m.full.Store(true)
	w.page("a.example/", "/new")
	w.page("b.example/", "/known")
	r.seed("http://a.example/", "http://b.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "the page with a known link is settled", func() bool { return r.stats().Done == 1 })
	until(t, "the state is named", func() bool { return crawler.Progress().Limit == watch.LimitRedis })
	if err := crawler.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("ready: %v", err)
	}
	if s := r.stats(); s.Open != 1 || s.Done != 1 {
		t.Errorf("%+v", s)
	}
	m.full.Store(false)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if w.times("http://a.example/new") != 1 || w.times("http://a.example/") != 1 {
		t.Error("the page was fetched again, or its link lost")
	}
	checkIdle(t, crawler)
}

// TestFullStop: a crawler that stops while there is no room gives its pages back.
func TestFullStop(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	m := meddle(r)
	m.full.Store(true)
	w.page("a.example/", "/new")
	r.seed("http://a.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "a link is parked", func() bool { return crawler.anyShard(func(s *shard) bool { return s.admitter.HasParked() }) })
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if s := r.stats(); s.Queued != 1 || s.Open != 0 || s.Leases != 0 {
		t.Errorf("%+v", s)
	}
	checkIdle(t, crawler)
}

// fed is a frontier with one element in its feed.
type fed struct {
	*meddler
	item    frontier.FeedItem
	drained atomic.Bool // the element was taken off
}

func (f *fed) FeedRefused() int64 { return 0 }

func (f *fed) DrainFeed(ctx context.Context, admit func(context.Context, []frontier.FeedItem) ([]int, error)) (int, error) {
	if f.drained.Load() {
		return 0, nil
	}
	if late, err := admit(ctx, []frontier.FeedItem{f.item}); err != nil || len(late) > 0 {
		return 0, err
	}
	f.drained.Store(true)
	return 1, nil
}

// TestFullStopFeed: an element of the feed for which there was no room when the
// crawler stopped stays in the feed.
func TestFullStopFeed(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	c, err := frontier.NewMaker(r.queue.Layout()).Make("http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	f := &fed{meddler: meddle(r), item: frontier.FeedItem{Candidate: c}}
	f.full.Store(true)
	r.cfg.Frontier, r.cfg.ExitWhenDone = f, false
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "the element found no room", func() bool { return crawler.shardOf(c.Fingerprint).admitter.IsFull(time.Now()) })
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if f.drained.Load() {
		t.Error("the element was taken off the feed and never admitted")
	}
}

// TestSlowAdmission: pages that wait for a shard are bounded, also when it owes
// an answer for long.
func TestSlowAdmission(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	m := meddle(r)
	r.cfg.OpenBytes = 4000
	m.slow.Store(true)
	for i := range 100 {
		w.page(fmt.Sprintf("s%d.example/", i), "/x", "/y")
		r.seed(fmt.Sprintf("http://s%d.example/", i))
	}
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "flow control blocks", crawler.gate.IsBlocked)
	until(t, "the bound is named", func() bool { return crawler.Progress().Limit == watch.LimitRedis })
	if n := len(w.requests("", false)); n > 4000/(2*work.CandidateOverhead)+r.cfg.Concurrency {
		t.Errorf("%d pages were fetched", n)
	}
	m.slow.Store(false)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if n := len(r.store.by(t)); n != 300 {
		t.Errorf("%d of 300 pages", n)
	}
	checkIdle(t, crawler)
}

// checkTicks watches for a while whether each of three shards is ticked twice a
// second at most, and once more: a busy loop would show.
func (m *meddler) checkTicks(t *testing.T, d time.Duration) {
	t.Helper()
	began, ticks := time.Now(), m.ticks.Load()
	time.Sleep(d)
	n, took := m.ticks.Load()-ticks, time.Since(began) // longer than d where others keep the processors busy
	if most := 3 * (1 + 2*took.Seconds()); float64(n) > most {
		t.Errorf("%d ticks of 3 shards in %v, want %.0f at most", n, took, most)
	}
}

// TestPause: nothing starts while the crawl is paused, without a busy loop.
func TestPause(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Delay = 20 * time.Millisecond })
	m := meddle(r)
	w.tree("a.example", 60)
	r.seed("http://a.example/p0")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "pages come", func() bool { return len(w.requests("", false)) > 2 })
	pause := func(on bool) {
		for k := range r.queue.Shards() {
			if err := r.queue.Pause(t.Context(), k, on); err != nil {
				t.Fatal(err)
			}
		}
	}
	pause(true)
	until(t, "the visit ends", func() bool { return r.stats().Leases == 0 })
	asked := len(w.requests("", false))
	m.checkTicks(t, 1500*time.Millisecond)
	if n := len(w.requests("", false)); n != asked {
		t.Errorf("%d requests in a pause", n-asked)
	}
	if err := crawler.Ready(t.Context()); err != nil {
		t.Errorf("a paused crawler: %v", err)
	}
	pause(false)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if len(r.store.by(t)) != 60 {
		t.Error("pages are missing after the pause")
	}
}

// TestIdle: a crawler with nothing to do, or nothing it may do, uses no time.
func TestIdle(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"empty", "later", "no room"} {
		t.Run(what, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, func(s *frontier.Settings) { s.Delay = 20 * time.Second })
			m := meddle(r)
			r.cfg.ExitWhenDone, r.cfg.Exact = false, false
			crawler := r.crawler()
			switch what {
			case "later":
				r.seed("http://a.example/1", "http://a.example/2")
			case "no room":
				crawler.gate.AddBytes(r.cfg.OpenBytes + 64<<20)
				r.seed("http://a.example/1", "http://b.example/2")
			}
			wait := r.start(crawler)
			until(t, "it has looked", func() bool { return m.ticks.Load() > 6 && crawler.agenda.Busy() == 0 })
			used := cpuTime()
			m.checkTicks(t, time.Second)
			t.Logf("%v of CPU meanwhile", cpuTime()-used)
			if what == "no room" {
				crawler.gate.AddBytes(-r.cfg.OpenBytes - 64<<20)
				until(t, "it goes on when there is room", func() bool { return len(w.requests("", true)) > 0 })
			}
			crawler.Stop()
			if err := wait(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSettingsChange: a running crawler follows.
func TestSettingsChange(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Delay = 20 * time.Millisecond })
	w.rest(func(rw http.ResponseWriter, rq *http.Request) {
		var n int
		fmt.Sscanf(rq.URL.Path, "/p%d", &n)
		html(fmt.Sprintf("/p%d", n+1), fmt.Sprintf("/p%d/old", n))(rw, rq)
	})
	r.cfg.ExitWhenDone = false
	r.seed("http://a.example/p0")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "pages come", func() bool { return len(w.requests("", false)) > 3 })
	r.queue.Set(t.Context(), func(s *frontier.Settings) error {
		s.UserAgent, s.Deny, s.Delay = "other/9", []string{"old$"}, 40*time.Millisecond
		return nil
	})
	until(t, "the new user agent", func() bool {
		log := w.requests("", false)
		return log[len(log)-1].head.Get("User-Agent") == "other/9"
	})
	until(t, "no more of what is denied", func() bool {
		log := w.requests("", false)
		for _, a := range log[len(log)-min(10, len(log)):] {
			if strings.HasSuffix(a.path, "old") {
				return false
			}
		}
		return true
	})
	log := w.requests("", false)
	for i := len(log) - 5; i < len(log); i++ {
		if gap := log[i].at.Sub(log[i-1].at); gap < 40*time.Millisecond {
			t.Errorf("gap of %v after the delay was raised to 40 ms", gap)
		}
	}
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}

// TestMaxPagesOfFleet: crawlers that know of each other only by the books of the
// page limit end exactly at it.
func TestMaxPagesOfFleet(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.MaxPages, s.Delay = 100, 5*time.Millisecond })
	r.cfg.Exact, r.cfg.Concurrency = false, 4
	for i := range 20 {
		w.tree(fmt.Sprintf("s%d.example", i), 40)
		r.seed(fmt.Sprintf("http://s%d.example/p0", i))
	}
	var waits []func() error
	for range 3 {
		waits = append(waits, r.start(r.crawler()))
	}
	for _, wait := range waits {
		if err := wait(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.store.by(t)); n != 100 {
		t.Errorf("%d pages, the limit is 100", n)
	}
}

// bookkeeper hands out so many pages of the limit.
type bookkeeper struct {
	Frontier
	held  atomic.Int64
	looks atomic.Int64 // at the counters
}

func (b *bookkeeper) ClaimPages(_ context.Context, c frontier.PageClaim) (frontier.PageGrant, error) {
	held := max(c.Settled, min(c.Want, b.held.Load()))
	return frontier.PageGrant{Granted: held, Left: max(0, b.held.Load()-held)}, nil
}

func (b *bookkeeper) RecentStats(ctx context.Context) ([]frontier.ShardStats, error) {
	b.looks.Add(1)
	return b.Frontier.RecentStats(ctx)
}

// TestLimitNotReached: while a fetcher that died holds what is missing of the limit,
// nobody calls it reached; when that comes back it is used. Where no URL is left for
// it, the crawl is finished.
func TestLimitNotReached(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		pages, want int
		end         string
	}{{40, 30, EndMaxPages}, {20, 20, EndFinished}} {
		t.Run(x.end, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, func(s *frontier.Settings) { s.MaxPages = 30 })
			b := &bookkeeper{Frontier: r.queue}
			b.held.Store(20)
			r.cfg.Frontier, r.cfg.Exact = b, false
			var log locked
			r.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			w.tree("a.example", x.pages)
			w.on("/robots.txt", text(200, "User-agent: *\nDisallow: /forbidden/"))
			for i := range 30 { // these use up nothing of the limit
				r.seed(fmt.Sprintf("http://a.example/forbidden/%d", i))
			}
			r.seed("http://a.example/p0")
			crawler := r.crawler()
			wait := r.start(crawler)
			if x.want > 20 {
				until(t, "the pages it holds are settled", func() bool { s := r.stats(); return s.Pages() == 20 && crawler.quiet() })
				from := b.looks.Load()
				until(t, "it has looked whether the limit is reached", func() bool { return b.looks.Load() > from+4 || crawler.isStopping() })
				if crawler.isStopping() || strings.Contains(log.String(), "has fetched its --max-pages") {
					t.Errorf("20 of 30 pages are called the limit: %s", log.String())
				}
				b.held.Store(30)
			}
			if err := wait(); err != nil {
				t.Fatal(err)
			}
			if s := r.stats(); s.Pages() != int64(x.want) || crawler.Progress().Ended != x.end {
				t.Errorf("%+v, want %d pages; ended: %s", s, x.want, crawler.Progress().Ended)
			}
		})
	}
}

// TestVisitsAreSpread: a fetcher that holds more than its fair share of the sites
// leaves them to others that have room.
func TestVisitsAreSpread(t *testing.T) {
	t.Parallel()
	const sites, fetchers = 60, 3
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Delay, s.VisitURLs = 200*time.Millisecond, 2 })
	r.cfg.Exact, r.cfg.ExitWhenDone, r.cfg.Concurrency = false, false, 100
	for i := range sites {
		w.tree(fmt.Sprintf("s%d.example", i), 100_000)
		r.seed(fmt.Sprintf("http://s%d.example/p0", i))
	}
	var crawlers []*Crawler
	var waits []func() error
	start := func() {
		crawlers = append(crawlers, r.crawler())
		waits = append(waits, r.start(crawlers[len(crawlers)-1]))
	}
	// held is how many sites each holds, once all have heard of all.
	held := func() (list []int64, all int64) {
		meet(crawlers)
		for i, c := range crawlers {
			list = append(list, c.visits.Load())
			all += list[i]
		}
		return list, all
	}
	start()
	until(t, "the first fetcher holds the sites", func() bool { _, all := held(); return all > sites*3/4 })
	for range fetchers - 1 {
		start()
	}
	steady := 0
	until(t, "the fetchers hold as many sites each", func() bool {
		time.Sleep(50 * time.Millisecond) // between looks
		list, all := held()
		switch {
		case slices.Max(list) > sites/fetchers+sites/10:
			steady = 0
		case all > sites/2:
			steady++
		}
		return steady >= 20
	})
	for i, c := range crawlers {
		c.Stop()
		if err := waits[i](); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSharedAddress: a site whose requests wait for other hosts of its address says so,
// with the pace that it has.
func TestSharedAddress(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Delay = 10 * time.Millisecond })
	r.cfg.Fetcher = w.client(t, 25)
	for i := range 8 {
		w.tree(fmt.Sprintf("s%d.example", i), 6)
		r.seed(fmt.Sprintf("http://s%d.example/p0", i))
	}
	r.run()
	bound := 0
	for i := range 8 {
		name := fmt.Sprintf("s%d.example", i)
		states, err := r.queue.SiteStates(t.Context(), frontier.ShardOf(r.queue, name), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		if s := states[0]; s.Why == site.WhyAddress && s.Delay > 100*time.Millisecond {
			bound++
		}
	}
	if bound == 0 {
		t.Error("no site of eight on one address names it")
	}
}

// TestLimits: the bounds that no other test meets.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.ExitWhenDone, r.cfg.Concurrency = false, 2
	held := make(chan struct{})
	w.rest(func(rw http.ResponseWriter, rq *http.Request) { <-held })
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "nothing is left", func() bool { return crawler.Progress().Limit == watch.LimitEmpty })
	r.seed("http://a.example/", "http://b.example/", "http://c.example/")
	until(t, "the workers are named", func() bool { return crawler.Progress().Limit == watch.LimitWorkers && crawler.agenda.Busy() == 2 })
	if v := metric(t, crawler, `seine_crawl_limited_by{bound="workers"}`); v != "1" {
		t.Errorf("metric: %q", v)
	}
	close(held)
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	crawler.cpu.At, crawler.cpu.Used = time.Now().Add(-time.Millisecond), cpuTime()-time.Minute
	if crawler.findLimit(time.Now()); crawler.Progress().Limit != watch.LimitCPU {
		t.Errorf("a minute of CPU in a millisecond is limited by %s", crawler.Progress().Limit)
	}
}

// TestIdleFleet: the more programs are at work on a crawl, the less often an idle
// fetcher looks, so that together they ask a shard no more often.
func TestIdleFleet(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.ExitWhenDone = false
	m := meddle(r)
	crawler := r.crawler()
	crawler.SetLive(frontier.Present{Programs: 1000}, frontier.Member{})
	wait := r.start(crawler)
	shards := int64(r.cfg.Frontier.Shards())
	until(t, "all shards were asked", func() bool { return m.ticks.Load() >= shards })
	began, before := time.Now(), m.ticks.Load()
	time.Sleep(3 * heartbeat) // nothing is to happen
	if n := m.ticks.Load() - before; n > shards*int64(1+time.Since(began)/crawler.idlePause()) {
		t.Errorf("%d ticks of %d shards in %v by one of 1,000 idle fetchers", n, shards, time.Since(began))
	}
	crawler.SetLive(frontier.Present{Programs: 1}, frontier.Member{})
	r.seed("http://a.example/") // another fetcher would hear it from the shard only
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}

// TestSeedingKeepsOn: a crawl that has no work is not called finished while this
// process admits seeds, though no list of programs says so.
func TestSeedingKeepsOn(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	m := meddle(r)
	crawler := r.crawler()
	crawler.SetSeeding(true)
	wait := r.start(crawler)
	shards := int64(r.cfg.Frontier.Shards())
	until(t, "it has looked for work twice", func() bool { return m.ticks.Load() >= 3*shards })
	r.seed("http://a.example/")
	until(t, "the seed is fetched", func() bool { return w.times("http://a.example/") == 1 })
	crawler.SetSeeding(false)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}
