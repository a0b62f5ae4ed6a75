package web

import (
	"context"
	"sync"
	"time"

	"seine/frontier"
	"seine/frontier/redis"
)

const (
	// watchEvery is how often the crawl is read, by one reader for all pages.
	watchEvery = 2 * time.Second
	// watchWait bounds a reading.
	watchWait = 8 * time.Second
	// keptFor is for how long points are kept, in memory: 1,800 of them.
	keptFor = time.Hour
)

// Point is the crawl at one moment. Totals are those of the crawl; Rate and Limits
// are what its fetchers say.
type Point struct {
	At      int64          `json:"at"` // Unix milliseconds
	Done    int64          `json:"done"`
	Dead    int64          `json:"dead"`
	Retried int64          `json:"retried"`
	Queued  int64          `json:"queued"` // and waiting
	Known   int64          `json:"known"`
	Bytes   int64          `json:"bytes"` // on the wire, since the page's program started
	Rate    float64        `json:"rate"`  // pages a second
	Limits  map[string]int `json:"limits"`
}

// watcher reads a crawl all the time and keeps the last hour.
type watcher struct {
	f frontier.Operated

	mu     sync.Mutex
	report *frontier.Report
	fills  []fill
	asked  time.Time // when fills were read
	err    error     // of the last reading, which then left report as it was
	points []Point
	bytes  map[string]int64 // of each fetcher, as last read
	moved  int64
}

func newWatcher(f frontier.Operated) *watcher { return &watcher{f: f} }

// run reads until ctx ends.
func (wt *watcher) run(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		wt.read(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (wt *watcher) read(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, watchWait)
	defer cancel()
	r, err := wt.f.Report(short)
	fills := wt.readFills(short, err)
	wt.mu.Lock()
	defer wt.mu.Unlock()
	wt.err = err
	if fills != nil {
		wt.fills = fills
	}
	if err != nil {
		return
	}
	wt.report = r
	wt.add(r, time.Now())
}

// fillEvery is how often filters are read: it takes a call each.
const fillEvery = 10 * time.Second

// fill is how full the fullest filter of a shard is, and how often its filters err.
type fill struct {
	Shard  int     `json:"shard"`
	Fill   float64 `json:"fill"`
	Rate   float64 `json:"rate"`
	Probed bool    `json:"probed"` // Rate was measured
}

// readFills reads the filters of a crawl that has some, now and then; nil when it
// did not.
func (wt *watcher) readFills(ctx context.Context, fault error) []fill {
	f, ok := wt.f.(*redis.Frontier)
	if !ok || fault != nil || time.Since(wt.asked) < fillEvery {
		return nil
	}
	wt.asked = time.Now()
	list, err := f.Filters(ctx, 0)
	if err != nil {
		return nil // the report tells what is wrong
	}
	fills := make([]fill, f.Shards())
	for _, s := range list {
		to := &fills[s.Shard]
		to.Shard, to.Fill, to.Rate = s.Shard, max(to.Fill, s.Fill), max(to.Rate, s.Live.Rate)
		to.Probed = to.Probed || s.Live.All.N > 0
	}
	return fills
}

// add keeps a point, unless a shard is silent: what is not counted would look like
// a loss.
func (wt *watcher) add(r *frontier.Report, now time.Time) {
	for i := range r.Shards {
		if r.Shards[i].Silent {
			return
		}
	}
	t, fleet := r.Total, frontier.FleetOf(r.Members)
	p := Point{At: now.UnixMilli(), Done: t.Done, Dead: t.Dead, Retried: t.Retried, Queued: t.Queued + t.Waiting, Known: t.Known, Rate: fleet.Rate, Limits: fleet.Limits}
	bytes := make(map[string]int64)
	var moved int64
	for _, m := range r.Members {
		if m.Kind != frontier.KindFetcher {
			continue
		}
		bytes[m.ID] = m.Bytes
		if was, ok := wt.bytes[m.ID]; ok {
			moved += max(0, m.Bytes-was)
		}
	}
	wt.bytes = bytes
	wt.moved += moved
	p.Bytes = wt.moved
	first := now.Add(-keptFor).UnixMilli()
	for len(wt.points) > 0 && wt.points[0].At < first {
		wt.points = wt.points[1:]
	}
	wt.points = append(wt.points, p)
}

// now is the last reading, and the points since a moment.
func (wt *watcher) now(since int64) (*frontier.Report, []fill, []Point, error) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	from := 0
	for from < len(wt.points) && wt.points[from].At <= since {
		from++
	}
	return wt.report, wt.fills, append([]Point{}, wt.points[from:]...), wt.err
}
