package crawl

import (
	"sync"
	"time"
)

// given remembers sites that were given up, so that what they still have is
// buried without another request. Each is asked once more when its time is over.
type given struct {
	mu    sync.Mutex
	sites map[string]givenUp
	hold  time.Duration
}

type givenUp struct {
	why   *doom
	until time.Time
}

const maxGiven = 100_000

func newGiven(hold time.Duration) *given {
	return &given{sites: make(map[string]givenUp), hold: hold}
}

func (g *given) put(site string, d *doom) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.sites) >= maxGiven {
		clear(g.sites) // each costs one more request
	}
	g.sites[site] = givenUp{d, time.Now().Add(g.hold)}
}

func (g *given) get(site string) *doom {
	g.mu.Lock()
	defer g.mu.Unlock()
	e, ok := g.sites[site]
	if !ok {
		return nil
	}
	if time.Now().After(e.until) {
		delete(g.sites, site)
		return nil
	}
	return e.why
}
