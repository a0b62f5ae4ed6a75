package crawl

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seine/fetch/crawl/internal/work"
	"seine/frontier"
	"seine/frontier/canon"
)

func TestPaceDelay(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		p    siteClock
		want time.Duration
		why  string
	}{
		{siteClock{setting: s}, s, whySetting},
		{siteClock{setting: s, override: new(s / 5)}, s / 5, whyOverride},
		{siteClock{setting: s, override: new(s / 5), crawlDelay: 2 * s}, 2 * s, whyCrawlDelay},
		{siteClock{setting: s, crawlDelay: s / 2}, s, whySetting},
		{siteClock{setting: s, crawlDelay: 2 * s, adaptive: 3 * s}, 3 * s, whyAdaptive},
	} {
		if d, why := c.p.delay(); d != c.want || why != c.why {
			t.Errorf("%+v: %v by %s", c.p, d, why)
		}
	}
}

func TestPaceStarted(t *testing.T) {
	start := time.Now()
	for _, c := range []struct {
		jitter    float64
		latency   time.Duration
		low, high time.Duration
	}{
		{0, 3 * time.Millisecond, time.Second + 3*time.Millisecond, time.Second + 3*time.Millisecond},
		{0, 0, time.Second + startSlack, time.Second + startSlack},
		{0, time.Minute, time.Second + startSlack, time.Second + startSlack},
		{0.5, time.Millisecond, time.Second, 1500*time.Millisecond + time.Millisecond},
	} {
		lowest, highest := time.Hour, time.Duration(0)
		for range 1000 {
			sc := siteClock{setting: time.Second, jitter: c.jitter}
			sc.started(start, c.latency)
			lowest, highest = min(lowest, sc.next.Sub(start)), max(highest, sc.next.Sub(start))
		}
		if lowest < c.low || highest > c.high {
			t.Errorf("jitter %v, latency %v: %v to %v, want %v to %v", c.jitter, c.latency, lowest, highest, c.low, c.high)
		}
		if spread := highest - lowest; (spread > 400*time.Millisecond) != (c.jitter > 0) {
			t.Errorf("jitter %v spreads over %v", c.jitter, spread)
		}
	}
	sc := siteClock{}
	if sc.started(start, 0); sc.next.After(start) {
		t.Error("a site without delay waits")
	}
}

func TestPaceRefused(t *testing.T) {
	sc := siteClock{setting: 2 * time.Second}
	now := time.Now()
	sc.refused(now, work.Failure{Slower: true})
	if sc.adaptive != 4*time.Second {
		t.Errorf("one refusal sets %v", sc.adaptive)
	}
	sc.refused(now, work.Failure{Slower: true})
	if sc.adaptive != 4*time.Second {
		t.Errorf("requests that were under way together double twice: %v", sc.adaptive)
	}
	sc.refused(time.Now(), work.Failure{})
	if sc.adaptive != 4*time.Second || sc.failures != 3 {
		t.Errorf("a plain failure: %v, %d in a row", sc.adaptive, sc.failures)
	}
	for range 10 {
		sc.refused(time.Now(), work.Failure{Slower: true})
	}
	if sc.adaptive != maxAdaptive {
		t.Errorf("many refusals set %v", sc.adaptive)
	}
	before := sc.adaptive
	if sc.answered(); sc.adaptive >= before || sc.adaptive < before/2 || sc.failures != 0 {
		t.Errorf("one success: %v, %d failures", sc.adaptive, sc.failures)
	}
	for range 200 {
		sc.answered()
	}
	if sc.adaptive != 0 {
		t.Errorf("many successes leave %v", sc.adaptive)
	}
	sc = siteClock{}
	if sc.refused(time.Now(), work.Failure{After: 24 * time.Hour}); time.Until(sc.next) > work.MaxRetryAfter || time.Until(sc.next) < work.MaxRetryAfter-time.Minute {
		t.Errorf("Retry-After of a day holds for %v", time.Until(sc.next))
	}
}

func TestAsideSoFar(t *testing.T) {
	sc := siteClock{failures: asideAfter + 3}
	if got := sc.asideSoFar(time.Second); got != 7*time.Second {
		t.Errorf("kept waiting for %v", got)
	}
}

func TestExtraHeaders(t *testing.T) {
	get := func(h [][2]string, name string) (v string, n int) {
		for _, kv := range h {
			if kv[0] == name {
				v, n = kv[1], n+1
			}
		}
		return v, n
	}
	if h := extraHeaders("", nil); h != nil {
		t.Errorf("nothing makes %v", h)
	}
	h := extraHeaders("bot/1", &frontier.SiteRule{Headers: map[string]string{"X-A": "b"}, Auth: "u:p"})
	for name, want := range map[string]string{"User-Agent": "bot/1", "X-A": "b", "Authorization": "Basic dTpw"} {
		if v, n := get(h, name); v != want || n != 1 {
			t.Errorf("%s is %q, %d times", name, v, n)
		}
	}
	h = extraHeaders("bot/1", &frontier.SiteRule{Headers: map[string]string{"user-agent": "own"}})
	if v, n := get(h, "user-agent"); v != "own" || n != 1 || len(h) != 1 {
		t.Errorf("a site's own user agent: %v", h)
	}
}

func TestBudget(t *testing.T) {
	b := budget{need: make(chan struct{}, 1)}
	if _, ok := b.claim(0, 10); ok || !b.mayBorrow() || !b.take() || b.spent() {
		t.Error("bounded without a limit")
	}
	b.settle() // before there is one: the books have it
	c, ok := b.claim(100, 10)
	if !ok || c.Settled != 0 || c.Want != 10 || c.Seq != 1 {
		t.Errorf("%+v", c)
	}
	b.granted(c, frontier.PageGrant{Held: 3, Left: 5})
	for range 3 {
		if !b.take() {
			t.Fatal("a page that is held may not start")
		}
	}
	if b.take() || b.spent() || b.mayBorrow() || len(b.need) != 1 {
		t.Error("more starts than is held, or no more is asked for")
	}
	b.settle()
	b.giveBack() // to be fetched again
	if !b.take() {
		t.Error("a page given back cannot start")
	}
	early := c
	if c, _ = b.claim(100, 0); c.Settled != 1 || c.Want != 3 || c.Seq != 2 {
		t.Errorf("%+v", c)
	}
	b.granted(c, frontier.PageGrant{Held: 3})
	b.granted(early, frontier.PageGrant{Held: 9, Left: 9}) // its answer comes late
	if !b.spent() || b.holds() {
		t.Error("pages are left where none are")
	}
}

// Visits are served at their time, no more at once than there are workers, and
// those that wait for one in their order.
func TestAgenda(t *testing.T) {
	const size, visits = 3, 200
	var mu sync.Mutex
	var order []*visit
	var under, most, made atomic.Int32
	begun, hold := make(chan struct{}, 2*visits), make(chan struct{})
	a := newAgenda(size, func(_ *worker, v *visit) {
		if n := under.Add(1); n > most.Load() {
			most.Store(n)
		}
		if v.at.After(time.Now()) {
			t.Error("served before its time")
		}
		begun <- struct{}{}
		<-hold
		mu.Lock()
		order = append(order, v)
		mu.Unlock()
		under.Add(-1)
	}, func() *worker { made.Add(1); return new(worker) }, func() {})
	if n := a.room(); n != 2*size {
		t.Errorf("room for %d, want %d", n, 2*size)
	}
	all := make([]*visit, visits)
	for i := range all {
		all[i] = &visit{}
		a.put(all[i], time.Time{})
	}
	for range size {
		<-begun
	}
	if _, ready := a.waiting(); ready != visits-size || a.busy() != size || a.room() != 0 {
		t.Errorf("%d wait, %d workers are busy, room for %d", ready, a.busy(), a.room())
	}
	close(hold)
	until(t, "all are served", func() bool { return a.busy() == 0 })
	if most.Load() != size || made.Load() != size {
		t.Errorf("%d were served at once by %d workers", most.Load(), made.Load())
	}
	if slices.Index(order, all[visits-1]) < visits-1-size {
		t.Error("the last in line was served before others")
	}
	soon := time.Now().Add(50 * time.Millisecond)
	for i := range 50 {
		a.put(&visit{}, soon.Add(time.Duration(i%7)*time.Millisecond))
	}
	never := &visit{}
	a.put(never, time.Now().Add(time.Hour))
	until(t, "all but one are served", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == visits+50 })
	if later, _ := a.waiting(); later != 1 {
		t.Errorf("%d wait for their time", later)
	}
	never.at = time.Time{}
	a.drain()
	until(t, "none waits", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == visits+51 })
	a.close()
}

// Workers end that had nothing to do from one sweep to the next; those that had
// something stay, and the one that waits for least is asked first.
func TestAgendaSweep(t *testing.T) {
	hold := make(chan struct{})
	served := make(chan *worker, 8)
	a := newAgenda(4, func(w *worker, _ *visit) { served <- w; <-hold }, func() *worker { return new(worker) }, func() {})
	idle := func() int { a.mu.Lock(); defer a.mu.Unlock(); return len(a.idle) }
	workers := func() int { a.mu.Lock(); defer a.mu.Unlock(); return a.workers }
	for range 4 {
		a.put(&visit{}, time.Time{})
		<-served
	}
	a.sweep()
	if workers() != 4 {
		t.Errorf("%d workers of 4 that are busy", workers())
	}
	for range 4 {
		hold <- struct{}{}
	}
	until(t, "all wait", func() bool { return idle() == 4 })
	a.sweep() // none waited when the last one was
	if workers() != 4 {
		t.Errorf("%d workers are left of 4 that have worked", workers())
	}
	a.put(&visit{}, time.Time{})
	last := <-served
	hold <- struct{}{}
	until(t, "all wait again", func() bool { return idle() == 4 })
	a.sweep()
	if workers() != 1 || idle() != 1 {
		t.Errorf("%d workers, %d idle, where one has worked", workers(), idle())
	}
	a.put(&visit{}, time.Time{})
	if w := <-served; w != last {
		t.Error("another one worked than the last")
	}
	closed := make(chan struct{})
	go func() { a.close(); close(closed) }()
	until(t, "it closes", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.closed })
	hold <- struct{}{} // a worker that comes to wait only now ends too
	<-closed
	a.sweep()
	if workers() != 0 || idle() != 0 {
		t.Errorf("%d workers, %d idle, when it is closed", workers(), idle())
	}
}

// A site that is lent costs little while it waits.
func BenchmarkLentSite(b *testing.B) {
	c := &Crawler{ctx: context.Background()}
	c.policy.Store(&work.Policy{Settings: &frontier.Settings{Delay: time.Second}})
	c.deadSites = newDeadSites(time.Minute, 0)
	a := newAgenda(1, func(*worker, *visit) {}, func() *worker { return new(worker) }, func() {})
	l := &shardLoop{crawler: c, visits: make(map[string]*visit)}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	for b.Loop() {
		site := "www." + strconv.Itoa(n) + ".example.org"
		lent := frontier.Visit{Lease: frontier.Lease{Token: "0123456789a" + strconv.Itoa(n), Site: site}, Items: make([]frontier.Item, 8)}
		for i := range lent.Items {
			lent.Items[i] = frontier.Item{Index: i, Entry: frontier.Entry{URL: "https://" + site + "/some/path/of/a/page-" + strconv.Itoa(i) + ".html"}}
		}
		v := newVisit(l, lent, time.Minute)
		l.visits[lent.Token] = v
		a.put(v, time.Now().Add(time.Hour))
		n++
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/float64(n), "B/site")
	runtime.KeepAlive(l)
}

func TestKnown(t *testing.T) {
	k := newKnownURLs(1000)
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]canon.Fingerprint, 1000)
	for i := range all {
		all[i] = canon.Fingerprint{Site: uint64(i % 7), Key: r.Uint64()}
	}
	at := func(i uint64) canon.Fingerprint { return all[i] }
	for i := range uint64(1000) {
		if k.has(at(i), i%3) {
			t.Fatalf("%d is known before", i)
		}
		if k.add(at(i), i%3); !k.has(at(i), i%3) {
			t.Fatalf("%d is not known after", i)
		}
	}
	kept := 0
	for i := range uint64(1000) {
		if k.has(at(i), i%3) {
			kept++
		}
	}
	// Of 256 buckets of four, each chosen by chance, 814 is the mean, and fewer
	// than 740 are kept once in 6e12 tables: the seed is another in each run.
	if kept < 740 {
		t.Errorf("%d of 1000 are remembered in 1024 places", kept)
	}
	for i := range uint64(1000) {
		if k.has(at(i), i%3+1) {
			t.Fatalf("%d is known in the next epoch", i)
		}
	}
	if n := testing.AllocsPerRun(100, func() { k.add(at(3), 1); k.has(at(4), 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFlow(t *testing.T) {
	opened := 0
	f := newFlow(&Config{OpenBytes: 100, SinkPages: 1, SinkWait: time.Hour}, func() { opened++ })
	stop := make(chan struct{})
	f.add(99)
	if f.blocked() || !f.enter(t.Context(), stop) {
		t.Fatal("blocked below the bound")
	}
	f.leave()
	f.add(1)
	f.add(50)
	var wg sync.WaitGroup
	var through atomic.Int32
	for range 10 {
		wg.Go(func() {
			if f.enter(t.Context(), stop) {
				through.Add(1)
				f.end(0)
			}
		})
	}
	f.add(-50)
	if !f.blocked() || opened != 0 {
		t.Error("open at the bound")
	}
	f.add(-1)
	wg.Wait()
	if through.Load() != 10 || opened != 1 {
		t.Errorf("%d of 10 got through, told %d times", through.Load(), opened)
	}
	f.add(1)
	close(stop)
	if f.enter(t.Context(), stop) {
		t.Error("a stop lets through")
	}
	if f.underway != 0 || len(f.line) != 0 {
		t.Errorf("%d are under way, %d in line", f.underway, len(f.line))
	}
}

// TestFlowExpects: near the bound requests under way count as what their pages
// usually come to; far from it any number may be under way, however large pages are.
func TestFlowExpects(t *testing.T) {
	f := newFlow(&Config{OpenBytes: 100 << 10, SinkPages: 1, SinkWait: time.Hour}, func() {})
	for range 200 { // pages of 10 KB
		f.enter(t.Context(), nil)
		f.add(10 << 10)
		f.end(10 << 10)
		f.add(-10 << 10)
	}
	enterAll := func(most int) (n int) {
		for ; n < most && f.hasRoom(); n++ {
			f.enter(t.Context(), nil)
		}
		return n
	}
	f.add(80 << 10)
	if n := enterAll(100); n < 2 || n > 3 {
		t.Errorf("%d requests of 10 KB each may start where 20 KB are left", n)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if f.enter(ended, nil) || f.holdsUp() || f.blocked() {
		t.Error("one that was given up went in, or stays in line")
	}
	entered := make(chan bool)
	go func() { entered <- f.enter(t.Context(), nil) }()
	until(t, "a request that waits holds up", f.holdsUp)
	f.add(-10 << 10)
	if !<-entered || f.holdsUp() {
		t.Error("room is not given to who waits")
	}
	f.add(-70 << 10)
	if n := enterAll(100); n != 100 {
		t.Errorf("%d more may start although no page waits", n)
	}
	f = newFlow(&Config{OpenBytes: 100, SinkPages: 1, SinkWait: time.Hour}, func() {})
	f.enter(t.Context(), nil)
	f.end(1 << 20)
	if !f.hasRoom() {
		t.Error("no request may start since pages are usually larger than what all may hold")
	}
}

func TestValidate(t *testing.T) {
	if _, err := New(Config{Concurrency: -1, Lease: time.Second}); err == nil {
		t.Error("an empty config is taken")
	}
}
