package web

import (
	"context"
	"sync"
	"time"

	"seine/frontier"
	"seine/frontier/ask"
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

	longest *ask.Site // as read at asked
	asked   time.Time // when it and fills were read

	mu     sync.Mutex
	report *ask.Progress
	fills  []fill
	err    error // of the last reading, which then left report as it was
	points []Point
	bytes  map[string]int64 // of each fetcher, as last read
	moved  int64

	sitesMu sync.Mutex
	lists   map[string]sitesAt // by order
}

// sitesAt is a list of sites when it was read.
type sitesAt struct {
	list *ask.SiteList
	at   time.Time
}

func newWatcher(f frontier.Operated) *watcher { return &watcher{f: f, lists: map[string]sitesAt{}} }

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
	now := time.Now()
	slow := now.Sub(wt.asked) >= slowEvery
	r, err := ask.StatsWith(short, wt.f, func(ctx context.Context) (*ask.Site, error) {
		if !slow {
			return wt.longest, nil
		}
		site, err := ask.Longest(ctx, wt.f)
		if err == nil {
			wt.longest = site
		}
		return site, err
	})
	var fills []fill
	if slow && err == nil {
		wt.asked, fills = now, wt.readFills(short)
	}
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
	wt.addSample(r, now)
}

// slowEvery is how often is read what takes a call for each filter, or looks at many
// sites.
const slowEvery = 10 * time.Second

// fill is how full the fullest filter of a shard is, and how often its filters err.
type fill struct {
	Shard  int     `json:"shard"`
	Fill   float64 `json:"fill"`
	Rate   float64 `json:"rate"`
	Probed bool    `json:"probed"` // Rate was measured
}

// readFills reads the filters of a crawl that has some; nil when it did not.
func (wt *watcher) readFills(ctx context.Context) []fill {
	f, ok := wt.f.(*redis.Frontier)
	if !ok {
		return nil
	}
	list, err := f.Filters(ctx, 0)
	if err != nil {
		return nil // the report has what is wrong
	}
	fills := make([]fill, f.Shards())
	for _, s := range list {
		if s.Filter == redis.ContentsFilter {
			continue
		}
		to := &fills[s.Shard]
		to.Shard, to.Fill, to.Rate = s.Shard, max(to.Fill, s.Fill), max(to.Rate, s.Live.Rate)
		to.Probed = to.Probed || s.Live.All.N > 0
	}
	return fills
}

// addSample keeps a point, unless a shard is silent: what is not counted would look like
// a loss.
func (wt *watcher) addSample(r *ask.Progress, now time.Time) {
	for i := range r.Shards {
		if r.Shards[i].Silent {
			return
		}
	}
	t := r.Total
	p := Point{At: now.UnixMilli(), Done: t.Done, Dead: t.Dead, Retried: t.Retried, Queued: t.Queued + t.Waiting, Known: t.Known, Rate: r.Rate, Limits: r.Limits}
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
func (wt *watcher) now(since int64) (*ask.Progress, []fill, []Point, error) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	from := 0
	for from < len(wt.points) && wt.points[from].At <= since {
		from++
	}
	return wt.report, wt.fills, append([]Point{}, wt.points[from:]...), wt.err
}

// sites are the first of an order, as they were a few seconds ago: one reading serves
// all pages.
func (wt *watcher) sites(ctx context.Context, q ask.SitesQuery) (*ask.SiteList, error) {
	wt.sitesMu.Lock()
	defer wt.sitesMu.Unlock()
	if kept, ok := wt.lists[q.By]; ok && time.Since(kept.at) < slowEvery/2 {
		return kept.list, nil
	}
	list, err := ask.Sites(ctx, wt.f, q)
	if err == nil {
		wt.lists[q.By] = sitesAt{list, time.Now()}
	}
	return list, err
}
