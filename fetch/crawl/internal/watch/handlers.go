package watch

import (
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/fetch/crawl/internal/work"
)

// Handlers are the calls of the crawl's Handler: those that run, and what came of the
// others. Nil is a crawl without one.
type Handlers struct {
	Items *metrics.Counter

	seconds *metrics.PrometheusHistogram
	results [len(resultNames)]*metrics.Counter

	mu      sync.Mutex
	running map[*HandlerCall]struct{}
	causes  map[string]bool
}

// HandlerCall is one call that runs.
type HandlerCall struct {
	url   string
	began time.Time
}

// HandlerResult is what a call came to.
type HandlerResult uint8

// The results of a call.
const (
	HandlerOK HandlerResult = iota
	HandlerFailed
	HandlerPanicked
)

var resultNames = [...]string{HandlerOK: "ok", HandlerFailed: "error", HandlerPanicked: "panic"}

// NewHandlers has its metrics among c.
func NewHandlers(c *Counters) *Handlers {
	h := &Handlers{
		seconds: c.set.NewPrometheusHistogramExt("seine_crawl_handler_seconds", metrics.ExponentialBuckets(1e-5, 4, 12)),
		Items:   c.set.NewCounter("seine_crawl_handler_items_total"),
		running: make(map[*HandlerCall]struct{}),
		causes:  make(map[string]bool),
	}
	for i, name := range resultNames {
		h.results[i] = c.set.NewCounter(fmt.Sprintf("seine_crawl_handler_calls_total{result=%q}", name))
	}
	return h
}

// Begin notes a call for the page of url.
func (h *Handlers) Begin(url string, now time.Time) *HandlerCall {
	call := &HandlerCall{url: url, began: now}
	h.mu.Lock()
	h.running[call] = struct{}{}
	h.mu.Unlock()
	return call
}

// End counts a call that returned.
func (h *Handlers) End(call *HandlerCall, r HandlerResult, now time.Time) {
	h.mu.Lock()
	delete(h.running, call)
	h.mu.Unlock()
	h.seconds.Update(now.Sub(call.began).Seconds())
	h.results[r].Inc()
}

var causeForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// mostCauses is how many causes of handlers a process counts by name: each has a list of dead
// letters and metrics of its own.
const mostCauses = 100

// Cause is the name under which a handler's cause is counted.
func (h *Handlers) Cause(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.causes[name] {
		return name
	}
	if !causeForm.MatchString(name) || len(h.causes) >= mostCauses {
		return work.CauseHandler
	}
	h.causes[name] = true
	return name
}

// handlerHangs is how long a handler may take before it counts as hanging.
const handlerHangs = time.Minute

// RunningHandlers are the calls that run at one moment.
type RunningHandlers struct {
	Calls, Hanging int
	Oldest         time.Duration // since the oldest began; it hangs if any does
	URL            string        // of its page
}

// Running looks at the calls that run now.
func (h *Handlers) Running(now time.Time) (r RunningHandlers) {
	if h == nil {
		return r
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r.Calls = len(h.running)
	for call := range h.running {
		age := now.Sub(call.began)
		if age > r.Oldest {
			r.Oldest, r.URL = age, call.url
		}
		if age >= handlerHangs {
			r.Hanging++
		}
	}
	return r
}

// WriteMetrics writes what the handlers do now.
func (h *Handlers) WriteMetrics(out io.Writer, now time.Time) {
	if h == nil {
		return
	}
	r := h.Running(now)
	metrics.WriteGaugeUint64(out, "seine_crawl_handlers_active", uint64(r.Calls))
	metrics.WriteGaugeUint64(out, "seine_crawl_handler_oldest_seconds", uint64(r.Oldest.Seconds()))
}
