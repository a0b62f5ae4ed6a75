// Package watch is what a fetcher knows of its own work: what it counts, how fast it is,
// what bounds it and what holds it up.
//
// The nouns: Counters are the metrics of one crawler. Recent has when sites last answered,
// failed or refused. Handlers are the calls of the crawl's own code. A Sight is how the
// crawler looks at one moment, and names what bounds its rate. Troubles are what shards,
// outputs and handlers lack, logged as they begin, grow and end. BackOffs are sites that
// wait since they failed.
//
// Whoever does the work counts it, from any goroutine. One goroutine looks once a second
// and logs. Nothing here changes what the crawler does, and a crash loses nothing.
package watch

import (
	"math"
	"sync/atomic"
	"time"
)

// Recent is when requests last ended, by how. Its zero value has seen none.
type Recent struct {
	ended    atomic.Int64 // a request, Unix ms
	answered atomic.Int64 // with an answer of any kind
	failed   atomic.Int64 // without
	served   atomic.Int64 // with what was asked for
	refused  atomic.Int64 // with a status that is retried
	walled   atomic.Int64 // with a wall
}

// Begin counts all as well from now on.
func (r *Recent) Begin(now time.Time) {
	for _, at := range []*atomic.Int64{&r.ended, &r.answered, &r.served} {
		at.Store(now.UnixMilli())
	}
}

// Ended notes that a request ended, and whether a site answered it.
func (r *Recent) Ended(now time.Time, answered bool) {
	r.ended.Store(now.UnixMilli())
	if answered {
		r.answered.Store(now.UnixMilli())
	} else {
		r.failed.Store(now.UnixMilli())
	}
}

// Served notes that a site answered with what was asked for.
func (r *Recent) Served(now time.Time) { r.served.Store(now.UnixMilli()) }

// Refused notes an answer with a status that is retried.
func (r *Recent) Refused(now time.Time) { r.refused.Store(now.UnixMilli()) }

// Walled notes that a wall answered in place of a site.
func (r *Recent) Walled(now time.Time) { r.walled.Store(now.UnixMilli()) }

// SinceEnded is how long ago a request last ended.
func (r *Recent) SinceEnded(now time.Time) time.Duration {
	return now.Sub(time.UnixMilli(r.ended.Load()))
}

// IsUnreachable reports whether all requests failed lately.
func (r *Recent) IsUnreachable(now time.Time) bool { return onlyLately(now, &r.failed, &r.answered) }

// IsRefused reports whether sites answered lately with refusals only.
func (r *Recent) IsRefused(now time.Time) bool { return onlyLately(now, &r.refused, &r.served) }

// IsWalled reports whether walls answered lately, and no site did.
func (r *Recent) IsWalled(now time.Time) bool { return onlyLately(now, &r.walled, &r.served) }

// noneFor is for how long no site may have answered, or served a page, while others
// failed or refused.
const noneFor = 5 * time.Second

// onlyLately reports whether bad came last, and good not for noneFor.
func onlyLately(now time.Time, bad, good *atomic.Int64) bool {
	last := good.Load()
	return bad.Load() > last && now.Sub(time.UnixMilli(last)) > noneFor
}

const (
	rateSpan = 3 * time.Second
	// growthSpan is the time in which the weight of old growth falls to a third: pages
	// with many links are rare.
	growthSpan = 3 * time.Minute
)

// Rate is how many pages ended per second over the last few, and by how much the queue
// grew per second over the last minutes.
type Rate struct {
	pages, growth atomic.Uint64 // bits of a float64

	last, found  uint64
	since        time.Time
	grown, spans float64 // sums over time; old parts lose weight
}

// Pages is how many pages ended per second.
func (r *Rate) Pages() float64 { return math.Float64frombits(r.pages.Load()) }

// Growth is found URLs less ended pages, per second.
func (r *Rate) Growth() float64 { return math.Float64frombits(r.growth.Load()) }

// Update takes the numbers of pages ended and of URLs found so far. One goroutine calls it.
func (r *Rate) Update(pages, found uint64, now time.Time) {
	span := now.Sub(r.since)
	if span < rateSpan {
		return
	}
	if !r.since.IsZero() {
		ended := float64(pages - r.last)
		r.pages.Store(math.Float64bits(ended / span.Seconds()))
		fade := math.Exp(-span.Seconds() / growthSpan.Seconds())
		r.grown = r.grown*fade + float64(found-r.found) - ended
		r.spans = r.spans*fade + span.Seconds()
		r.growth.Store(math.Float64bits(r.grown / r.spans))
	}
	r.last, r.found, r.since = pages, found, now
}
