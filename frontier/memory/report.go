package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"seine/frontier"
)

// KnowsSite reports whether the shard has to do with a site.
func (f *Frontier) KnowsSite(ctx context.Context, k int, name string) (bool, error) {
	p, err := f.shard(ctx, k, "met")
	if err != nil {
		return false, err
	}
	p.lock()
	defer p.mu.Unlock()
	s := p.sites[name]
	if s == nil {
		return false, nil
	}
	p.age(s)
	return s.best() < 4 || len(s.waits) > 0 || s.recrawl != nil || s.open > 0 || s.clock > 0, nil
}

// Stopped lists the sites that are paused or blocked. Cost: O(sites).
func (f *Frontier) Stopped(ctx context.Context) ([]frontier.Stop, error) {
	list := []frontier.Stop{}
	for k := range f.states {
		p, err := f.shard(ctx, k, "stopped")
		if err != nil {
			return nil, err
		}
		p.lock()
		for _, s := range p.sites {
			for i, on := range []bool{s.paused, s.blocked} {
				if on {
					why := s.more().stops[i]
					list = append(list, frontier.Stop{Site: s.name, Shard: k, Blocked: i == 1, Since: time.UnixMilli(why.since).UTC(), Reason: why.reason})
				}
			}
		}
		p.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b frontier.Stop) int {
		return cmp.Or(strings.Compare(a.Site, b.Site), cmp.Compare(boolOf(a.Blocked), boolOf(b.Blocked)))
	})
	return list, nil
}

func boolOf(v bool) int {
	if v {
		return 1
	}
	return 0
}

// Began is when the crawl was created.
func (f *Frontier) Began(ctx context.Context) (time.Time, error) { return f.began, ctx.Err() }

// Fault is why the directory of the crawl takes no writes now, nil = it does, or there is
// none. What waits for a full disk is written when it has room.
func (f *Frontier) Fault() error {
	if f.dir == nil {
		return nil
	}
	return f.dir.store.Fault()
}

// Report reads the whole state of the crawl, named by its directory.
func (f *Frontier) Report(ctx context.Context) (*frontier.Report, error) {
	settings := f.settings.Load()
	r := &frontier.Report{Crawl: f.cfg.Dir, State: "ready", Layout: f.layout, Settings: settings.Masked(), Rev: settings.Rev, Feed: -1}
	var err error
	if r.Shards, err = f.Stats(ctx); err != nil {
		return nil, err
	}
	if err := f.Fault(); err != nil {
		for k := range r.Shards {
			r.Shards[k].Fault = err.Error()
		}
	}
	r.Total = frontier.Total(r.Shards)
	paused, err := f.PausedShards(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case len(paused) == len(f.states):
		r.State = "paused"
	case len(paused) > 0:
		r.State = fmt.Sprintf("paused in shard %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(paused), " ", ","), "[]"))
	}
	stopped, err := f.Stopped(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range stopped {
		if s.Blocked {
			r.Blocked++
		} else {
			r.Paused++
		}
	}
	if r.Dead, err = frontier.DeadTotals(ctx, f); err != nil {
		return nil, err
	}
	r.Members, err = f.Members(ctx)
	r.Vanished = f.vanished()
	return r, err
}
