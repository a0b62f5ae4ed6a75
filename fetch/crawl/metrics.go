package crawl

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/fetch"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// WriteMetrics writes the crawler's metrics and its view of the shards in
// Prometheus text format.
func (c *Crawler) WriteMetrics(out io.Writer) {
	c.count.set.WritePrometheus(out)
	c.count.answers.write(out)
	c.count.writeFailures(out)
	gauge := func(name string, v int64) { metrics.WriteGaugeUint64(out, name, uint64(max(v, 0))) }
	gauge("seine_crawl_visits_active", c.visits.Load())
	gauge("seine_crawl_workers", int64(c.agenda.Size()))
	gauge("seine_crawl_workers_busy", int64(c.agenda.Busy()))
	gauge("seine_crawl_visits_delayed", int64(c.delayed()))
	gauge("seine_crawl_open_bytes", c.gate.Held())
	for _, n := range c.cfg.Rules.Counts() {
		rule := fmt.Sprintf("seine_crawl_fields_total{field=%q,at=%q,", n.Name, n.At)
		metrics.WriteCounterUint64(out, rule+`result="found"}`, n.Found)
		metrics.WriteCounterUint64(out, rule+`result="failed"}`, n.Failed)
		metrics.WriteCounterUint64(out, rule+`result="missing"}`, n.Missing)
	}
	if c.handling != nil {
		c.handling.write(gauge)
	}
	now := c.bottleneck.get()
	for _, name := range limitNames {
		v := int64(0)
		if name == now {
			v = 1
		}
		gauge(fmt.Sprintf("seine_crawl_limited_by{bound=%q}", name), v)
	}
	gauge("seine_crawl_live_programs", c.live.Load())
	if stats := c.stats.Load(); stats != nil {
		frontier.WriteMetrics(out, *stats)
	}
}

// counters are the crawler's own metrics, resolved once. They live in a set of
// their own so that several crawlers of one process do not mix.
type counters struct {
	set         *metrics.Set
	start       time.Time
	classes     [6]*metrics.Counter // pages by status class; 0 = no answer
	bytes       *metrics.Counter
	wire        *metrics.Counter
	links       *metrics.Counter
	known       *metrics.Counter // links the cache of known URLs answered
	gone        *metrics.Counter
	notAcked    *metrics.Counter
	feedRefused *metrics.Counter // elements of the feed that are none
	overflow    *metrics.Counter // candidates that the overflow keeps
	retries     *metrics.Counter
	requeues    *metrics.Counter
	done        *metrics.Counter
	dead        *metrics.Counter
	same        *metrics.Counter // pages fetched again that did not change
	seconds     *metrics.PrometheusHistogram

	duplicates *metrics.Counter // pages whose content another URL brought before
	unasked    *metrics.Counter // pages whose content was not asked for, its shard being silent

	refusals [work.Refusals]*metrics.Counter
	returned atomic.Uint64 // pages that went back: a candidate of theirs found no room until the crawler stopped

	answers answers

	mu     sync.Mutex
	causes map[string]*failures
}

// failures are URLs that failed for one cause.
type failures struct{ retried, dead atomic.Uint64 }

// verdictNames is by frontier.Verdict.
var verdictNames = [4]string{"admitted", "seen", "capped", "full"}

func newCounters() *counters {
	s := metrics.NewSet()
	cs := &counters{
		set: s, start: time.Now(),
		bytes:       s.NewCounter("seine_crawl_body_bytes_total"),
		wire:        s.NewCounter("seine_crawl_wire_bytes_total"),
		links:       s.NewCounter("seine_crawl_links_total"),
		known:       s.NewCounter("seine_crawl_links_known_total"),
		gone:        s.NewCounter("seine_crawl_outcomes_gone_total"),
		notAcked:    s.NewCounter("seine_crawl_admissions_not_acked_total"),
		feedRefused: s.NewCounter("seine_crawl_feed_refused_total"),
		overflow:    s.NewCounter("seine_crawl_overflow_candidates_total"),
		retries:     s.NewCounter(`seine_crawl_outcomes_total{kind="retry"}`),
		requeues:    s.NewCounter(`seine_crawl_outcomes_total{kind="requeue"}`),
		done:        s.NewCounter(`seine_crawl_outcomes_total{kind="done"}`),
		dead:        s.NewCounter(`seine_crawl_outcomes_total{kind="dead"}`),
		same:        s.NewCounter("seine_crawl_pages_unchanged_total"),
		duplicates:  s.NewCounter("seine_crawl_pages_duplicate_total"),
		unasked:     s.NewCounter("seine_crawl_pages_unasked_total"),
		seconds:     s.NewPrometheusHistogramExt("seine_crawl_fetch_seconds", metrics.ExponentialBuckets(1e-3, 2, 17)),
		causes:      make(map[string]*failures),
	}
	for i := range cs.classes {
		cs.classes[i] = s.NewCounter(fmt.Sprintf(`seine_crawl_pages_total{class="%s"}`, className(i)))
	}
	for r := work.Accepted + 1; r < work.Refusals; r++ {
		cs.refusals[r] = s.NewCounter(fmt.Sprintf(`seine_crawl_links_refused_total{reason="%s"}`, work.RefusalNames[r]))
	}
	return cs
}

// verdictsOf are the counters of one shard's verdicts.
func (cs *counters) verdictsOf(shard int) (v [4]*metrics.Counter) {
	for i := range v {
		v[i] = cs.set.NewCounter(fmt.Sprintf(`seine_crawl_verdicts_total{shard="%d",verdict="%s"}`, shard, verdictNames[i]))
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
func (cs *counters) page(r *fetch.Response) {
	cs.classes[min(r.Status/100, 5)].Inc()
	cs.bytes.Add(int(r.Bytes))
	cs.wire.Add(int(r.WireBytes))
	if r.Status > 0 {
		cs.seconds.Update(r.Took.Seconds())
	}
}

// countLinks counts what became of the links of one page.
func (cs *counters) countLinks(f *frontier.Facts) {
	cs.known.Add(int(f.Known))
	cs.links.Add(int(f.Links))
	for i, n := range f.Refused {
		if n > 0 {
			cs.refusals[i].Add(int(n))
		}
	}
}

// outcome counts one settled URL.
func (cs *counters) outcome(o frontier.Outcome) {
	switch o.Kind {
	case frontier.Done, frontier.Recrawl:
		cs.done.Inc()
	case frontier.Dead:
		cs.dead.Inc()
		cs.cause(o.Cause).dead.Add(1)
	case frontier.Retry:
		cs.retries.Inc()
		cs.cause(o.Cause).retried.Add(1)
	case frontier.Requeue:
		cs.requeues.Inc()
	}
}

// cause is where failures of one cause are counted.
func (cs *counters) cause(name string) *failures {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	n := cs.causes[name]
	if n == nil {
		n = new(failures)
		cs.causes[name] = n
	}
	return n
}

// writeFailures shows failures by cause, and by what follows of each.
func (cs *counters) writeFailures(out io.Writer) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for name, n := range cs.causes {
		metrics.WriteCounterUint64(out, fmt.Sprintf(`seine_crawl_failures_total{cause=%q,kind="retry"}`, name), n.retried.Load())
		metrics.WriteCounterUint64(out, fmt.Sprintf(`seine_crawl_failures_total{cause=%q,kind="dead"}`, name), n.dead.Load())
	}
}

// Progress is what a crawler did so far.
type Progress struct {
	Elapsed   time.Duration
	Done      uint64
	Dead      uint64
	Retried   uint64
	Classes   [6]uint64 // pages by status class, 0 = no answer
	Causes    map[string]int64
	Unchanged uint64 // of those that were fetched again
	Bytes     uint64 // decoded
	Wire      uint64
	Links     uint64           // seen
	New       uint64           // admitted
	Overflow  uint64           // kept by the overflow
	Returned  uint64           // pages that went back: candidates of theirs found no room until the crawler stopped
	Visits    int64            // open
	Requests  int              // under way
	Rate      float64          // pages a second, lately
	Growth    float64          // URLs found less pages that ended, a second, over some minutes
	Limit     string           // what bounds the rate now
	Ended     string           // why it ended by itself, "" = it did not
	Aside     map[string]Aside // by cause: sites that were set aside
	GivesUp   time.Duration    // until the last site that does not answer is given up, 0 = some site answers, or none is given up

	// Of the whole crawl, as read within the last second or two.
	Queued  int64
	Waiting int64
	Known   int64
}

// found is how many URLs this crawler had admitted.
func (c *Crawler) found() (n uint64) {
	for _, l := range c.loops {
		n += l.verdicts[frontier.Admitted].Get()
	}
	return n
}

// Progress reads the counters.
func (c *Crawler) Progress() Progress {
	cs := c.count
	p := Progress{
		Elapsed: time.Since(cs.start), Done: cs.done.Get(), Dead: cs.dead.Get(), Retried: cs.retries.Get(),
		Unchanged: cs.same.Get(), Bytes: cs.bytes.Get(), Wire: cs.wire.Get(), Links: cs.links.Get(), Overflow: cs.overflow.Get(), Returned: cs.returned.Load(),
		Visits: c.visits.Load(), Requests: c.agenda.Busy(), Causes: make(map[string]int64), Limit: c.bottleneck.get(), Rate: c.rate.get(), Growth: c.rate.grows(),
	}
	if end := c.ended.Load(); end != nil {
		p.Ended = *end
	}
	var giveUp time.Time
	if p.Aside, giveUp = c.aside.counts(); !giveUp.IsZero() && c.unreachable() {
		p.GivesUp = max(0, time.Until(giveUp))
	}
	for i := range cs.classes {
		p.Classes[i] = cs.classes[i].Get()
	}
	p.New = c.found()
	if t := c.totals.Load(); t != nil {
		p.Queued, p.Waiting, p.Known = t.Queued, t.Waiting, t.Known
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for name, n := range cs.causes {
		p.Causes[name] = int64(n.retried.Load() + n.dead.Load())
	}
	return p
}
