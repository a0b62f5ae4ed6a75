package site

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seine/extract/sink/sinktest"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

func TestPaceDelay(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		p    Clock
		want time.Duration
		why  string
	}{
		{Clock{setting: s}, s, WhySetting},
		{Clock{setting: s, override: new(s / 5)}, s / 5, WhyOverride},
		{Clock{setting: s, override: new(s / 5), crawlDelay: 2 * s}, 2 * s, WhyCrawlDelay},
		{Clock{setting: s, crawlDelay: s / 2}, s, WhySetting},
		{Clock{setting: s, crawlDelay: 2 * s, Adaptive: 3 * s}, 3 * s, WhyAdaptive},
	} {
		if d, why := c.p.Delay(); d != c.want || why != c.why {
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
		{0, 0, time.Second + StartSlack, time.Second + StartSlack},
		{0, time.Minute, time.Second + StartSlack, time.Second + StartSlack},
		{0.5, time.Millisecond, time.Second, 1500*time.Millisecond + time.Millisecond},
	} {
		lowest, highest := time.Hour, time.Duration(0)
		for range 1000 {
			sc := Clock{setting: time.Second, jitter: c.jitter}
			sc.Started(start, c.latency)
			lowest, highest = min(lowest, sc.Next.Sub(start)), max(highest, sc.Next.Sub(start))
		}
		if lowest < c.low || highest > c.high {
			t.Errorf("jitter %v, latency %v: %v to %v, want %v to %v", c.jitter, c.latency, lowest, highest, c.low, c.high)
		}
		if spread := highest - lowest; (spread > 400*time.Millisecond) != (c.jitter > 0) {
			t.Errorf("jitter %v spreads over %v", c.jitter, spread)
		}
	}
	sc := Clock{}
	if sc.Started(start, 0); sc.Next.After(start) {
		t.Error("a site without delay waits")
	}
}

func TestPaceRefused(t *testing.T) {
	sc := Clock{setting: 2 * time.Second}
	now := time.Now()
	sc.Refused(time.Now(), now, work.Failure{Slower: true})
	if sc.Adaptive != 4*time.Second {
		t.Errorf("one refusal sets %v", sc.Adaptive)
	}
	sc.Refused(time.Now(), now, work.Failure{Slower: true})
	if sc.Adaptive != 4*time.Second {
		t.Errorf("requests that were under way together double twice: %v", sc.Adaptive)
	}
	sc.Refused(time.Now(), time.Now(), work.Failure{})
	if sc.Adaptive != 4*time.Second || sc.Failures != 3 {
		t.Errorf("a plain failure: %v, %d in a row", sc.Adaptive, sc.Failures)
	}
	for range 10 {
		sc.Refused(time.Now(), time.Now(), work.Failure{Slower: true})
	}
	if sc.Adaptive != maxAdaptive {
		t.Errorf("many refusals set %v", sc.Adaptive)
	}
	before := sc.Adaptive
	if sc.Answered(); sc.Adaptive >= before || sc.Adaptive < before/2 || sc.Failures != 0 {
		t.Errorf("one success: %v, %d failures", sc.Adaptive, sc.Failures)
	}
	for range 200 {
		sc.Answered()
	}
	if sc.Adaptive != 0 {
		t.Errorf("many successes leave %v", sc.Adaptive)
	}
	sc = Clock{}
	if sc.Refused(time.Now(), time.Now(), work.Failure{After: 24 * time.Hour}); time.Until(sc.Next) > work.MaxRetryAfter || time.Until(sc.Next) < work.MaxRetryAfter-time.Minute {
		t.Errorf("Retry-After of a day holds for %v", time.Until(sc.Next))
	}
}

func TestBackedOffSoFar(t *testing.T) {
	sc := Clock{Failures: BackOffAfter + 3}
	if got := sc.BackedOffFor(time.Second); got != 7*time.Second {
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
	if h := Headers("", nil); h != nil {
		t.Errorf("nothing makes %v", h)
	}
	h := Headers("bot/1", &frontier.SiteRule{Headers: map[string]string{"X-A": "b"}, Auth: "u:p"})
	for name, want := range map[string]string{"User-Agent": "bot/1", "X-A": "b", "Authorization": "Basic dTpw"} {
		if v, n := get(h, name); v != want || n != 1 {
			t.Errorf("%s is %q, %d times", name, v, n)
		}
	}
	h = Headers("bot/1", &frontier.SiteRule{Headers: map[string]string{"user-agent": "own"}})
	if v, n := get(h, "user-agent"); v != "own" || n != 1 || len(h) != 1 {
		t.Errorf("a site's own user agent: %v", h)
	}
}

// A visit and a worker of these tests.
type (
	visit  struct{ at time.Time }
	worker struct{ _ int }
)

// Visits are served at their time, no more at once than there are workers, and
// those that wait for one in their order.
func TestAgenda(t *testing.T) {
	const size, visits = 3, 200
	var mu sync.Mutex
	var order []*visit
	var under, most, made atomic.Int32
	begun, hold := make(chan struct{}, 2*visits), make(chan struct{})
	serve := func(v *visit) {
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
	}
	a := NewAgenda(size, func() func(*visit) { made.Add(1); return serve }, func() {})
	if n := a.Room(); n != 2*size {
		t.Errorf("room for %d, want %d", n, 2*size)
	}
	all := make([]*visit, visits)
	for i := range all {
		all[i] = &visit{}
		a.Schedule(all[i], time.Time{})
	}
	for range size {
		<-begun
	}
	if _, ready := a.Waiting(); ready != visits-size || a.Busy() != size || a.Room() != 0 {
		t.Errorf("%d wait, %d workers are busy, room for %d", ready, a.Busy(), a.Room())
	}
	close(hold)
	sinktest.Until(t, "all are served", func() bool { return a.Busy() == 0 })
	if most.Load() != size || made.Load() != size {
		t.Errorf("%d were served at once by %d workers", most.Load(), made.Load())
	}
	if slices.Index(order, all[visits-1]) < visits-1-size {
		t.Error("the last in line was served before others")
	}
	soon := time.Now().Add(50 * time.Millisecond)
	for i := range 50 {
		at := soon.Add(time.Duration(i%7) * time.Millisecond)
		a.Schedule(&visit{at}, at)
	}
	never := &visit{time.Now().Add(time.Hour)}
	a.Schedule(never, time.Now().Add(time.Hour))
	sinktest.Until(t, "all but one are served", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == visits+50 })
	if later, _ := a.Waiting(); later != 1 {
		t.Errorf("%d wait for their time", later)
	}
	never.at = time.Time{}
	a.Drain()
	sinktest.Until(t, "none waits", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == visits+51 })
	a.Close()
}

// Workers end that had nothing to do from one sweep to the next; those that had
// something stay, and the one that waits for least is asked first.
func TestAgendaSweep(t *testing.T) {
	hold := make(chan struct{})
	served := make(chan *worker, 8)
	a := NewAgenda(4, func() func(*visit) { w := new(worker); return func(*visit) { served <- w; <-hold } }, func() {})
	idle := func() int { a.mu.Lock(); defer a.mu.Unlock(); return len(a.idle) }
	workers := func() int { a.mu.Lock(); defer a.mu.Unlock(); return a.workers }
	for range 4 {
		a.Schedule(&visit{}, time.Time{})
		<-served
	}
	a.sweep()
	if workers() != 4 {
		t.Errorf("%d workers of 4 that are busy", workers())
	}
	for range 4 {
		hold <- struct{}{}
	}
	sinktest.Until(t, "all wait", func() bool { return idle() == 4 })
	a.sweep() // none waited when the last one was
	if workers() != 4 {
		t.Errorf("%d workers are left of 4 that have worked", workers())
	}
	a.Schedule(&visit{}, time.Time{})
	last := <-served
	hold <- struct{}{}
	sinktest.Until(t, "all wait again", func() bool { return idle() == 4 })
	a.sweep()
	if workers() != 1 || idle() != 1 {
		t.Errorf("%d workers, %d idle, where one has worked", workers(), idle())
	}
	a.Schedule(&visit{}, time.Time{})
	if w := <-served; w != last {
		t.Error("another one worked than the last")
	}
	closed := make(chan struct{})
	go func() { a.Close(); close(closed) }()
	sinktest.Until(t, "it closes", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.closed })
	hold <- struct{}{} // a worker that comes to wait only now ends too
	<-closed
	a.sweep()
	if workers() != 0 || idle() != 0 {
		t.Errorf("%d workers, %d idle, when it is closed", workers(), idle())
	}
}

// Visits come off the heap in the order of their times, and neither way allocates.
func TestVisitHeap(t *testing.T) {
	var h visitHeap[visit]
	now := time.Now()
	for i := range 1000 {
		at := now.Add(time.Duration(i*7919%1009) * time.Second)
		h.push(appointment[visit]{&visit{at}, at})
	}
	last := time.Time{}
	for range 1000 {
		v := h.pop()
		if v.at.Before(last) {
			t.Fatalf("%v after %v", v.at, last)
		}
		last = v.at
	}
	a := appointment[visit]{&visit{}, now}
	if n := testing.AllocsPerRun(100, func() { h.push(a); h.pop() }); len(h) != 0 || n != 0 {
		t.Errorf("%d are left, %v allocations", len(h), n)
	}
}

// TestLateCrawlDelay: a Crawl-delay that the shard did not know when it kept the site's
// clock holds from the last request on, whoever made that.
func TestLateCrawlDelay(t *testing.T) {
	const crawlDelay = 7 * time.Second
	for _, c := range []struct {
		leased frontier.Visit
		least  time.Duration
	}{
		{frontier.Visit{}, crawlDelay}, // for its robots.txt, by a visit of another site
		{frontier.Visit{Delay: time.Second}, crawlDelay - time.Second},
		{frontier.Visit{Delay: crawlDelay}, 0},
		{frontier.Visit{First: true}, 0},
	} {
		now := time.Now()
		v := NewVisit(t.Context(), 0, &c.leased, time.Minute, time.Minute, 8)
		v.clock.crawlCap = time.Minute
		v.Obey(crawlDelay)
		if wait := max(0, v.NextRequest().Sub(now)); wait < c.least || wait > c.least+time.Second {
			t.Errorf("%+v: the next request waits for %v, want %v", c.leased, wait, c.least)
		}
		v.Cancel()
	}
}
