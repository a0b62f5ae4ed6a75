package watch

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// BackedOff is the sites of one cause that the crawl backed off from.
type BackedOff struct {
	Sites int    // one that answered in between counts again
	Text  string // the last error
}

// BackOffs logs the sites that the crawl backs off from: the first of each cause at once,
// the number of further ones once a minute.
type BackOffs struct {
	mu     sync.Mutex
	causes map[string]*backOffCause // bounded by the causes there are
	giveUp time.Time                // of the last site, where sites are given up
}

type backOffCause struct {
	BackedOff
	logged int // sites
	at     time.Time
}

// NewBackOffs returns a log of no sites.
func NewBackOffs() *BackOffs { return &BackOffs{causes: make(map[string]*backOffCause)} }

// AddSite notes a site that failed for a cause, and reports whether it is the first of
// that cause. A fresh one was well before. giveUp is when it is given up, zero = never.
func (b *BackOffs) AddSite(cause, text string, fresh bool, giveUp, now time.Time) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if giveUp.After(b.giveUp) {
		b.giveUp = giveUp
	}
	c := b.causes[cause]
	if first = c == nil; first {
		c = &backOffCause{logged: 1, at: now}
		b.causes[cause] = c
	}
	if fresh || first {
		c.Sites++
	}
	c.Text = text
	return first
}

// Log logs how many sites there are by now, where there are more.
func (b *BackOffs) Log(log *slog.Logger, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, cause := range slices.Sorted(maps.Keys(b.causes)) {
		c := b.causes[cause]
		if c.Sites == c.logged || now.Sub(c.at) < logPause {
			continue
		}
		log.Warn("the crawl backed off from further sites: their URLs wait", "cause", cause, "sites", c.Sites, "last", c.Text)
		c.logged, c.at = c.Sites, now
	}
}

// Counts are the sites by cause, and when the last of them is given up.
func (b *BackOffs) Counts() (map[string]BackedOff, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	byCause := make(map[string]BackedOff, len(b.causes))
	for cause, c := range b.causes {
		byCause[cause] = c.BackedOff
	}
	return byCause, b.giveUp
}
