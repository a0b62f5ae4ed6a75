package crawl

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"seine/fetch/crawl/internal/work"
)

// Aside is the sites of one cause that were set aside: their URLs wait.
type Aside struct {
	Sites int    // that were, one that answered in between counts again
	Text  string // the last error
}

// asideLog tells of sites that are set aside: the first of each cause at once, how
// many there are by now a minute later.
type asideLog struct {
	mu     sync.Mutex
	causes map[string]*asideCause // bounded by the causes there are
	giveUp time.Time              // when the last of them is given up, where that is done
}

type asideCause struct {
	Aside
	told int // sites
	at   time.Time
}

func newAsideLog() *asideLog { return &asideLog{causes: make(map[string]*asideCause)} }

// add notes that a site is set aside, or stays so, and says whether it is the first
// of its cause. giveUp is when it is given up, zero = never.
func (al *asideLog) add(f work.Failure, fresh bool, giveUp time.Time) (first bool) {
	al.mu.Lock()
	defer al.mu.Unlock()
	if giveUp.After(al.giveUp) {
		al.giveUp = giveUp
	}
	c := al.causes[f.Cause]
	if first = c == nil; first {
		c = &asideCause{told: 1, at: time.Now()}
		al.causes[f.Cause] = c
	}
	if fresh || first {
		c.Sites++
	}
	c.Text = f.Text
	return first
}

// report logs what has come since it was told.
func (al *asideLog) report(log *slog.Logger, now time.Time) {
	al.mu.Lock()
	defer al.mu.Unlock()
	for _, cause := range slices.Sorted(maps.Keys(al.causes)) {
		c := al.causes[cause]
		if c.Sites == c.told || now.Sub(c.at) < tellAgain {
			continue
		}
		log.Warn("further sites cannot be crawled now and are set aside: their URLs wait", "cause", cause, "sites", c.Sites, "last", c.Text)
		c.told, c.at = c.Sites, now
	}
}

// counts is what there is by now, and when the last site is given up.
func (al *asideLog) counts() (map[string]Aside, time.Time) {
	al.mu.Lock()
	defer al.mu.Unlock()
	byCause := make(map[string]Aside, len(al.causes))
	for cause, c := range al.causes {
		byCause[cause] = c.Aside
	}
	return byCause, al.giveUp
}
