package crawl

import (
	"math"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// youth is how long a fetcher lives before it borrows URLs that two fetchers
// died with: where processes are ended again and again, by whatever, a third
// death so soon says nothing about the URL.
const youth = 10 * time.Second

// lossPermit is the permit to borrow a URL that two fetchers were lost with,
// and that is dead if this one is. There is one, so that a loss falls on one
// such URL, and a young fetcher has none.
type lossPermit struct {
	began time.Time // when the fetcher was made
	taken atomic.Bool
}

func (lp *lossPermit) take() bool { return time.Since(lp.began) >= youth && !lp.taken.Swap(true) }

func (lp *lossPermit) giveBack() { lp.taken.Store(false) }

// visitBytes is what a lent site takes: its record, its URLs, its lease.
const visitBytes = 4 << 10

// MemoryLimit is Config.Memory by default, bytes: what the runtime was told to keep within, or else a gigabyte.
func MemoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	return 1 << 30
}
