package crawl

import (
	"sync/atomic"
	"time"
)

// youth is how long a fetcher lives before it borrows URLs that two fetchers
// died with: where processes are ended again and again, by whatever, a third
// death so soon says nothing about the URL.
const youth = 10 * time.Second

// chance is the permit to borrow a URL that dies if this fetcher does. There is
// one, so that a death falls on one such URL, and a young fetcher has none.
type chance struct {
	began time.Time // when the fetcher was made
	taken atomic.Bool
}

func (c *chance) take() bool { return time.Since(c.began) >= youth && !c.taken.Swap(true) }

func (c *chance) give() { c.taken.Store(false) }
