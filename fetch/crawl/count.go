package crawl

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/fetch"
	"seine/frontier"
)

// counters are the worker's own metrics, resolved once. They live in a set of
// their own so that several workers of one process do not mix.
type counters struct {
	set      *metrics.Set
	start    time.Time
	classes  [6]*metrics.Counter // pages by status class; 0 = no answer
	bytes    *metrics.Counter
	wire     *metrics.Counter
	links    *metrics.Counter
	known    *metrics.Counter // links the cache of known URLs answered
	gone     *metrics.Counter
	notAcked *metrics.Counter
	overflow *metrics.Counter // links that the overflow keeps
	retries  *metrics.Counter
	requeues *metrics.Counter
	done     *metrics.Counter
	dead     *metrics.Counter
	seconds  *metrics.PrometheusHistogram

	refusals [refusals]*metrics.Counter
	turned   atomic.Uint64 // pages whose links found no room until the worker stopped

	mu     sync.Mutex
	causes map[string]*atomic.Int64 // failures by cause: dead and retried
}

// verdictNames is by frontier.Verdict.
var verdictNames = [4]string{"admitted", "seen", "capped", "full"}

func newCounters() *counters {
	s := metrics.NewSet()
	c := &counters{
		set: s, start: time.Now(),
		bytes:    s.NewCounter("seine_crawl_body_bytes_total"),
		wire:     s.NewCounter("seine_crawl_wire_bytes_total"),
		links:    s.NewCounter("seine_crawl_links_total"),
		known:    s.NewCounter("seine_crawl_links_known_total"),
		gone:     s.NewCounter("seine_crawl_outcomes_gone_total"),
		notAcked: s.NewCounter("seine_crawl_admissions_not_acked_total"),
		overflow: s.NewCounter("seine_crawl_overflow_links_total"),
		retries:  s.NewCounter(`seine_crawl_outcomes_total{kind="retry"}`),
		requeues: s.NewCounter(`seine_crawl_outcomes_total{kind="requeue"}`),
		done:     s.NewCounter(`seine_crawl_outcomes_total{kind="done"}`),
		dead:     s.NewCounter(`seine_crawl_outcomes_total{kind="dead"}`),
		seconds:  s.NewPrometheusHistogramExt("seine_crawl_fetch_seconds", metrics.ExponentialBuckets(1e-3, 2, 17)),
		causes:   make(map[string]*atomic.Int64),
	}
	for i := range c.classes {
		c.classes[i] = s.NewCounter(fmt.Sprintf(`seine_crawl_pages_total{class="%s"}`, className(i)))
	}
	for r := accepted + 1; r < refusals; r++ {
		c.refusals[r] = s.NewCounter(fmt.Sprintf(`seine_crawl_links_refused_total{reason="%s"}`, refusalNames[r]))
	}
	return c
}

// verdictsOf are the counters of one shard's verdicts.
func (c *counters) verdictsOf(shard int) (v [4]*metrics.Counter) {
	for i := range v {
		v[i] = c.set.NewCounter(fmt.Sprintf(`seine_crawl_verdicts_total{shard="%d",verdict="%s"}`, shard, verdictNames[i]))
	}
	return v
}

func className(i int) string {
	if i == 0 {
		return "none"
	}
	return fmt.Sprintf("%dxx", i)
}

// page counts one answered request for a page.
func (c *counters) page(r *fetch.Response) {
	c.classes[min(r.Status/100, 5)].Inc()
	c.bytes.Add(int(r.Bytes))
	c.wire.Add(int(r.WireBytes))
	if r.Status > 0 {
		c.seconds.Update(r.Took.Seconds())
	}
}

// outcome counts one settled URL.
func (c *counters) outcome(o frontier.Outcome) {
	switch o.Kind {
	case frontier.Done:
		c.done.Inc()
	case frontier.Dead:
		c.dead.Inc()
		c.cause(o.Cause)
	case frontier.Retry:
		c.retries.Inc()
		c.cause(o.Cause)
	case frontier.Requeue:
		c.requeues.Inc()
	}
}

func (c *counters) cause(name string) {
	c.mu.Lock()
	n := c.causes[name]
	if n == nil {
		n = new(atomic.Int64)
		c.causes[name] = n
	}
	c.mu.Unlock()
	n.Add(1)
}

// Progress is what a worker did so far.
type Progress struct {
	Elapsed  time.Duration
	Done     uint64
	Dead     uint64
	Retried  uint64
	Classes  [6]uint64 // pages by status class, 0 = no answer
	Causes   map[string]int64
	Bytes    uint64 // decoded
	Wire     uint64
	Links    uint64  // seen
	New      uint64  // admitted
	Overflow uint64  // kept by the overflow
	Turned   uint64  // pages that went back: links of theirs found no room until the worker stopped
	Visits   int64   // in hand
	Requests int     // under way
	Rate     float64 // pages a second, lately
	Limit    string  // what bounds the rate now

	// Of the whole crawl, as read within the last second or two.
	Queued  int64
	Waiting int64
	Known   int64
}

// Progress reads the counters.
func (w *Worker) Progress() Progress {
	c := w.count
	p := Progress{
		Elapsed: time.Since(c.start), Done: c.done.Get(), Dead: c.dead.Get(), Retried: c.retries.Get(),
		Bytes: c.bytes.Get(), Wire: c.wire.Get(), Links: c.links.Get(), Overflow: c.overflow.Get(), Turned: c.turned.Load(),
		Visits: w.loaned.Load(), Requests: w.slots.busy(), Causes: make(map[string]int64), Limit: w.limit.get(), Rate: w.rate.get(),
	}
	for i := range c.classes {
		p.Classes[i] = c.classes[i].Get()
	}
	for _, l := range w.lanes {
		p.New += l.verdicts[frontier.Admitted].Get()
	}
	if t := w.totals.Load(); t != nil {
		p.Queued, p.Waiting, p.Known = t.Queued, t.Waiting, t.Known
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range c.causes {
		p.Causes[name] = n.Load()
	}
	return p
}
