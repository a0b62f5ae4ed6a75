package watch

import (
	"sync"
	"time"
)

// leftLately is how long a site that was left to other fetchers counts: longer than it
// rests.
const leftLately = 10 * time.Second

// Left counts visits that ended since their sites are left to other fetchers. Its zero
// value has none.
type Left struct {
	mu   sync.Mutex
	n    int
	at   time.Time // of the last
	text string    // why
}

// Add counts a visit that ended for a reason.
func (l *Left) Add(why error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	l.at, l.text = now, why.Error()
}

// Count is how many there were, and why the last was one.
func (l *Left) Count() (n int, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n, l.text
}

// IsAll reports whether there was one lately, while no request ended; the last one did so
// long ago.
func (l *Left) IsAll(now time.Time, ended time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	elapsed := now.Sub(l.at)
	return l.n > 0 && elapsed < leftLately && elapsed < ended && ended > noneFor
}
