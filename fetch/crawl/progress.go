package crawl

import (
	"time"

	"seine/frontier"
)

// Progress is what a crawler did so far.
type Progress struct {
	Elapsed   time.Duration
	Done      uint64
	Dead      uint64
	Retried   uint64
	Classes   [6]uint64 // pages by status class, 0 = no answer
	Causes    map[string]int64
	Unchanged uint64 // pages that were recrawled or refetched and did not change
	Bytes     uint64 // decoded
	Wire      uint64
	Links     uint64               // seen
	New       uint64               // admitted
	Overflow  uint64               // kept by the overflow
	Returned  uint64               // pages that went back: candidates of theirs found no room until the crawler stopped
	Visits    int64                // open
	Requests  int                  // under way
	Rate      float64              // pages per second, over the last seconds
	Growth    float64              // URLs found less pages that ended, per second, over some minutes
	Limit     string               // what bounds the rate now
	Ended     string               // why it ended by itself, "" = it did not
	BackedOff map[string]BackedOff // by cause: sites that the crawl backed off from
	GivesUp   time.Duration        // until the last site that does not answer, or is behind a wall, is given up, 0 = some site answers, or none is given up

	// Of the whole crawl, as read within the last second or two.
	Queued  int64
	Waiting int64
	Known   int64
}

// BackedOff is the sites of one cause that the crawl backed off from: their URLs wait.
type BackedOff struct {
	Sites int    // one that answered in between counts again
	Text  string // the last error
}

// Why a crawler ended by itself, as reports name it.
const (
	EndFinished = frontier.EndFinished     // nothing is left
	EndMaxPages = "--max-pages reached"    // the crawl is at its page limit
	EndIdle     = "--idle-timeout reached" // it had nothing to do for Config.IdleTimeout
)
