package frontier

import (
	"context"
	"time"

	"seine/frontier/canon"
)

// Insight reads what shards keep, for people who ask and for copies of a crawl.
// It changes nothing. But for WorkSites and WalledSites, each call is bounded, whatever the size of
// the shard.
type Insight interface {
	// ShardStats counts one shard.
	ShardStats(ctx context.Context, shard int) (ShardStats, error)
	// SiteStates reads what a shard keeps of some sites, SitesMost at most, in their
	// order.
	SiteStates(ctx context.Context, shard int, sites []string) ([]SiteState, error)
	// Entries reads up to count entries, EntriesMost at most, of one place of a site from offset on, in the
	// order in which they are leased. Of a queue an offset below 0 counts from its end,
	// -1 is the last.
	Entries(ctx context.Context, shard int, at EntryPlace, offset, count int64) ([]QueuedEntry, error)
	// Knows reports whether a shard knows a URL.
	Knows(ctx context.Context, shard int, url canon.Fingerprint) (bool, error)
	// Counters reads the counters of a shard.
	Counters(ctx context.Context, shard int) (*Counters, error)
	// SampleSites names up to n sites of a shard that have work or are leased: those
	// with the longest queues that Settle met, and some drawn by lot. all says that
	// these are all there are.
	SampleSites(ctx context.Context, shard int, n int) (sites []string, all bool, err error)
	// WorkSites names all sites of a shard that have work or are leased, some 0.1 KB of
	// memory each; on a live crawl one that moves meanwhile may be left out, or come twice.
	// It is bounded by their number alone; in Redis each of its calls is.
	WorkSites(ctx context.Context, shard int) ([]string, error)
	// WalledSites names the sites of a shard that the fleet backs off from, or did, since walls
	// answer there; one whose back-off ended a day ago may be left out.
	WalledSites(ctx context.Context, shard int) ([]string, error)
	// Exact says that Knows is never wrong; else a yes is, as often as the layout allows.
	Exact() bool
}

// The bounds of one call of Insight.
const (
	SitesMost   = 100 // sites
	EntriesMost = 200 // entries; those of a visit are always read whole
)

// Place is where a site stands.
type Place string

// The places of a site.
const (
	PlaceIdle   Place = "idle"   // without work
	PlaceReady  Place = "ready"  // has work, now or later
	PlacePaused Place = "paused" // has work and is paused
	PlaceLeased Place = "leased"
)

// SiteState is what a shard keeps of one site.
type SiteState struct {
	Site        string
	Known       bool // anything is kept of it
	Place       Place
	Class       int           // of a ready site
	Due         time.Duration // until a ready or held site is due, below 0 = it was
	Clock       time.Duration // until its next request may start, below 0 = it might have
	Delay       time.Duration // as the last visit left it, 0 = none yet
	Why         string
	Failures    int
	Walls       *WallRow // nil: the last answer was none
	Queued      [4]int64 // by class
	Recrawls    int64    // URLs that wait for a recrawl
	Waiting     int64
	Lease       Lease         // of a leased one
	Left        time.Duration // of its lease
	Open        int64         // URLs of it
	Paused      *Stop
	Blocked     *Stop
	Cap         int64 // of its own, 0 = as the crawl says
	Admitted    int64 // counted while it has a cap
	Override    string
	Credentials string // as Visit has them; a secret
	Totals      SiteTotals
	WantsSign   bool  // it asks for signed requests
	Dropped     *Drop // nil: no URL of it was
}

// WallRow is a row of walls that answered in place of a site.
type WallRow struct {
	Count  int
	Vendor string        // of the last
	Since  time.Time     // of the first
	Left   time.Duration // until the fleet's back-off from the site ends, 0 or less = it does not back off now
}

// Drop is when URLs of a site were last dropped, and by which verb. It stays with the
// site: such URLs are known and nowhere.
type Drop struct {
	Since time.Time
	By    string // block, or dead drop
}

// The verbs that drop URLs.
const (
	DropBlock = "block"
	DropDead  = "dead drop"
)

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

// QueuedEntry is one entry of an EntryPlace.
type QueuedEntry struct {
	Entry
	Left time.Duration // of a retry: until it may be tried
}
