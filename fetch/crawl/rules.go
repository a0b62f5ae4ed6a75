package crawl

import (
	"sync"
	"time"

	"seine/fetch/robots"
)

const (
	robotsCached = 10_000   // origins a process remembers
	robotsBytes  = 64 << 20 // and what their rules may take
)

// robotsCache remembers rules by origin, in this process only; the shard keeps
// them for the fleet.
type robotsCache struct {
	mu      sync.Mutex
	origins map[string]robotsEntry
	bytes   int // of their rules
}

type robotsEntry struct {
	rules   *robots.Rules
	agent   string // they were read for
	expires time.Time
	bytes   int
}

func newRobotsCache() *robotsCache { return &robotsCache{origins: make(map[string]robotsEntry)} }

// get returns the rules of origin for agent, nil when they are not there.
func (c *robotsCache) get(origin []byte, agent string) *robots.Rules {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.origins[string(origin)]
	if !ok || e.agent != agent || time.Now().After(e.expires) {
		return nil
	}
	return e.rules
}

func (c *robotsCache) put(origin, agent string, r *robots.Rules, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := robotsEntry{r, agent, time.Now().Add(ttl), len(origin) + r.Bytes()}
	c.drop(origin)
	for len(c.origins) > 0 && (len(c.origins) >= robotsCached || c.bytes+e.bytes > robotsBytes) {
		c.drop(c.victim())
	}
	c.origins[origin] = e
	c.bytes += e.bytes
}

// victim is the largest of a few that stand at random, as map order is: a site
// with huge rules for each of its many origins shall not drive out all others.
func (c *robotsCache) victim() (origin string) {
	n, most := 0, 0
	for o, e := range c.origins {
		if e.bytes > most {
			origin, most = o, e.bytes
		}
		if n++; n == 8 {
			break
		}
	}
	return origin
}

// drop forgets an origin. The lock is held.
func (c *robotsCache) drop(origin string) {
	c.bytes -= c.origins[origin].bytes
	delete(c.origins, origin)
}
