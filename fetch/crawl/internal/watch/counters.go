package watch

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/fetch"
	"seine/frontier"
)

// Counters are the crawler's own metrics, resolved once. They live in a set of their own
// so that several crawlers of one process do not mix.
type Counters struct {
	Started     time.Time
	Done, Dead  *metrics.Counter // settled URLs by outcome
	Retries     *metrics.Counter
	Gone        *metrics.Counter // outcomes that came after the end of their lease
	NotAcked    *metrics.Counter // admissions that no replica acknowledged
	FeedRefused *metrics.Counter // elements of the feed that are none
	Overflow    *metrics.Counter // candidates that the overflow keeps
	Unchanged   *metrics.Counter // pages recrawled or refetched that did not change
	Duplicates  *metrics.Counter // pages whose content another URL brought before
	Withheld    *metrics.Counter // pages that their site refuses for a purpose of the crawl
	Uncompared  *metrics.Counter // pages whose content was not compared, since a shard was silent
	Signing     *metrics.Counter // sites that began to ask for signed requests
	Bytes, Wire *metrics.Counter
	Links       *metrics.Counter
	Refusals    [len(frontier.ReasonNames)]*metrics.Counter
	Returned    atomic.Uint64 // pages that went back: a candidate found no room until the crawler stopped

	set      *metrics.Set
	classes  [6]*metrics.Counter // pages by status class; 0 = no answer
	known    *metrics.Counter    // links that the cache of known URLs answered
	requeues *metrics.Counter
	seconds  *metrics.PrometheusHistogram
	answers

	mu     sync.Mutex
	causes map[string]*failures
	walls  map[string]uint64 // by vendor
}

// failures are URLs that failed for one cause.
type failures struct{ retried, dead atomic.Uint64 }

// NewCounters returns counters at zero.
func NewCounters(now time.Time) *Counters {
	s := metrics.NewSet()
	c := &Counters{
		set: s, Started: now, causes: make(map[string]*failures), walls: make(map[string]uint64),
		Bytes:       s.NewCounter("seine_crawl_body_bytes_total"),
		Wire:        s.NewCounter("seine_crawl_wire_bytes_total"),
		Links:       s.NewCounter("seine_crawl_links_total"),
		known:       s.NewCounter("seine_crawl_links_known_total"),
		Gone:        s.NewCounter("seine_crawl_outcomes_gone_total"),
		NotAcked:    s.NewCounter("seine_crawl_admissions_not_acked_total"),
		FeedRefused: s.NewCounter("seine_crawl_feed_refused_total"),
		Overflow:    s.NewCounter("seine_crawl_overflow_candidates_total"),
		Retries:     s.NewCounter(`seine_crawl_outcomes_total{kind="retry"}`),
		requeues:    s.NewCounter(`seine_crawl_outcomes_total{kind="requeue"}`),
		Done:        s.NewCounter(`seine_crawl_outcomes_total{kind="done"}`),
		Dead:        s.NewCounter(`seine_crawl_outcomes_total{kind="dead"}`),
		Unchanged:   s.NewCounter("seine_crawl_pages_unchanged_total"),
		Duplicates:  s.NewCounter("seine_crawl_pages_duplicate_total"),
		Withheld:    s.NewCounter("seine_crawl_pages_withheld_total"),
		Uncompared:  s.NewCounter("seine_crawl_pages_unasked_total"),
		Signing:     s.NewCounter("seine_crawl_signing_sites_total"),
		seconds:     s.NewPrometheusHistogramExt("seine_crawl_fetch_seconds", metrics.ExponentialBuckets(1e-3, 2, 17)),
	}
	for i := range c.classes {
		class := "none"
		if i > 0 {
			class = fmt.Sprintf("%dxx", i)
		}
		c.classes[i] = s.NewCounter(fmt.Sprintf("seine_crawl_pages_total{class=%q}", class))
	}
	for i, name := range frontier.ReasonNames {
		if name != "" {
			c.Refusals[i] = s.NewCounter(fmt.Sprintf("seine_crawl_links_refused_total{reason=%q}", name))
		}
	}
	return c
}

// verdictNames is by frontier.Verdict.
var verdictNames = [4]string{"admitted", "seen", "capped", "full"}

// Verdicts are the counters of one shard's verdicts, by frontier.Verdict.
func (c *Counters) Verdicts(shard int) (v [4]*metrics.Counter) {
	for i := range v {
		v[i] = c.set.NewCounter(fmt.Sprintf(`seine_crawl_verdicts_total{shard="%d",verdict="%s"}`, shard, verdictNames[i]))
	}
	return v
}

// CountPage counts one request for a page that ended.
func (c *Counters) CountPage(r *fetch.Response) {
	c.classes[min(r.Status/100, 5)].Inc()
	c.Bytes.Add(int(r.Bytes))
	c.Wire.Add(int(r.WireBytes))
	if r.Status > 0 {
		c.seconds.Update(r.Took.Seconds())
	}
}

// CountWall counts a wall that answered in place of a site.
func (c *Counters) CountWall(vendor string) {
	c.mu.Lock()
	c.walls[vendor]++
	c.mu.Unlock()
}

// CountLinks counts what became of the links of one page.
func (c *Counters) CountLinks(f *frontier.Facts) {
	c.known.Add(int(f.Known))
	c.Links.Add(int(f.Links))
	for i, n := range f.Refused {
		if n > 0 {
			c.Refusals[i].Add(int(n))
		}
	}
}

// CountOutcome counts one settled URL.
func (c *Counters) CountOutcome(o *frontier.Outcome) {
	switch o.Kind {
	case frontier.Done, frontier.Recrawl:
		c.Done.Inc()
	case frontier.Dead:
		c.Dead.Inc()
		c.failuresOf(o.Cause).dead.Add(1)
	case frontier.Retry:
		c.Retries.Inc()
		c.failuresOf(o.Cause).retried.Add(1)
	case frontier.Requeue:
		c.requeues.Inc()
	}
}

// failuresOf is where failures of one cause are counted.
func (c *Counters) failuresOf(cause string) *failures {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.causes[cause]
	if f == nil {
		f = new(failures)
		c.causes[cause] = f
	}
	return f
}

// Classes are pages by status class, 0 = no answer.
func (c *Counters) Classes() (n [6]uint64) {
	for i := range n {
		n[i] = c.classes[i].Get()
	}
	return n
}

// Causes are URLs that failed, by cause.
func (c *Counters) Causes() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := make(map[string]int64, len(c.causes))
	for cause, f := range c.causes {
		n[cause] = int64(f.retried.Load() + f.dead.Load())
	}
	return n
}

// WriteMetrics writes all counters in Prometheus text format.
func (c *Counters) WriteMetrics(out io.Writer) {
	c.set.WritePrometheus(out)
	c.writeAnswers(out)
	c.mu.Lock()
	defer c.mu.Unlock()
	for vendor, n := range c.walls {
		metrics.WriteCounterUint64(out, fmt.Sprintf("seine_crawl_walls_total{vendor=%q}", vendor), n)
	}
	for cause, f := range c.causes {
		metrics.WriteCounterUint64(out, fmt.Sprintf(`seine_crawl_failures_total{cause=%q,kind="retry"}`, cause), f.retried.Load())
		metrics.WriteCounterUint64(out, fmt.Sprintf(`seine_crawl_failures_total{cause=%q,kind="dead"}`, cause), f.dead.Load())
	}
}
