package frontier

import (
	"context"
	"time"

	"seine/frontier/canon"
)

// Insight reads what shards keep, for people who ask and for copies of a crawl.
// It changes nothing. Each call is bounded, whatever the size of the shard.
type Insight interface {
	// SiteStates reads what a shard keeps of some sites, SitesMost at most, in their
	// order.
	SiteStates(ctx context.Context, shard int, sites []string) ([]SiteState, error)
	// SitesWithWork names sites of a shard that have work or are lent, page by page.
	// cursor is "" at first, and then next of the last page; next is "" at the end.
	// A site that has work or is lent all the time is named at least once.
	SitesWithWork(ctx context.Context, shard int, cursor string) (sites []string, next string, err error)
	// SampleSites names up to n sites of a shard: first those that its lists of the
	// largest have, then some with work that are drawn by lot. all says that these
	// are all that have work.
	SampleSites(ctx context.Context, shard int, n int) (sites []string, all bool, err error)
	// Entries reads up to count entries of one place of a site, from offset on.
	Entries(ctx context.Context, shard int, at EntryPlace, offset, count int64) ([]Standing, error)
	// Knows says which URLs a shard knows.
	Knows(ctx context.Context, shard int, urls []canon.Fingerprint) ([]bool, error)
	// Exact says that Knows is never wrong; else a yes is, as often as the layout allows.
	Exact() bool
	// Samples is the counts of a shard, once a minute, of the last hour, the oldest
	// first.
	Samples(ctx context.Context, shard int) ([]Sample, error)
}

// SitesMost is how many sites a call of Insight takes.
const SitesMost = 100

// Place is where a site stands.
type Place string

// The places of a site.
const (
	PlaceIdle  Place = "idle"  // without work
	PlaceReady Place = "ready" // has work, now or later
	PlaceHeld  Place = "held"  // has work and is paused
	PlaceLent  Place = "lent"
)

// SiteState is what a shard keeps of one site.
type SiteState struct {
	Site     string
	Met      bool // anything is kept of it
	Place    Place
	Class    int           // of a ready site
	Due      time.Duration // until a ready or held site is due, below 0 = it was
	Clock    time.Duration // until its next request may start, below 0 = it might have
	Delay    time.Duration // as the last visit left it, 0 = none yet
	Why      string
	Failures int
	Queued   [4]int64 // by class
	Waiting  int64
	Lease    Lease         // of a lent one
	Left     time.Duration // of its lease
	Open     int64         // URLs of it
	Paused   *Stop
	Blocked  *Stop
	Cap      int64 // of its own, 0 = as the crawl says
	Admitted int64 // counted while it has a cap
	Override string
}

// EntryPlace names a queue, the retries or the visit of a site.
type EntryPlace struct {
	Site  string
	Kind  EntryKind
	Class int    // of a queue
	Token string // of a visit
}

// EntryKind is what an EntryPlace names.
type EntryKind uint8

// The kinds of places of entries.
const (
	InQueue EntryKind = iota
	InRetries
	InVisit
)

// Standing is an entry where it stands.
type Standing struct {
	Entry
	Left time.Duration // of a retry: until it may be tried
}

// Sample is what a shard counted at one moment.
type Sample struct {
	At     time.Time `json:"at"`
	Queued int64     `json:"queued"` // and waiting
	Known  int64     `json:"known"`
	Done   int64     `json:"done"`
	Dead   int64     `json:"dead"`
}
