package crawl

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seine/fetch/crawl/internal/work"
	"seine/frontier"
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

func TestValidate(t *testing.T) {
	if _, err := New(Config{Concurrency: -1, Lease: time.Second}); err == nil {
		t.Error("an empty config is taken")
	}
}
