package frontier

import (
	"encoding/binary"
	"reflect"
	"sync"
	"time"

	"seine/frontier/canon"
)

// Candidate is a discovered URL that asks to be admitted. Admission copies
// what it keeps; the caller may reuse the memory afterwards.
type Candidate struct {
	URL         string            // fetch form
	Site        string            // unit of politeness; its hash is Fingerprint.Site
	Fingerprint canon.Fingerprint // decides the shard and what counts as known
	Priority    uint8             // class, 0 (first) .. 3
	Depth       uint32            // links from a seed
	Redirects   uint8             // redirects followed to get here; of a sitemap, indexes too
	Trail       Trail             // the URLs that they came from
	Seed        bool              // seed scope: in scope whatever page it stood on
	Meta        string            // JSON object carried to the page's record, or ""
	Sitemap     bool              // read as a sitemap or feed, whatever its type
	SitemapOf   string            // host whose robots.txt named it, "" = its own
	Referrer    string            // page that linked to it, as records name it; "" where that is not wanted
	From        string            // URL that redirects to it, as records name it; "" of others
	Request     Request           // method, headers and body, "" = a plain GET; Fingerprint is that of the request
	Refetch     string            // request id that queues a known URL once more, or ""
	Credentials string            // user name and password for its origin, as a URL holds them; Admit keeps them with the site, known URL or not
	Waits       bool              // whoever asks keeps it where memory is scarce: Full then, not Capped
}

// Verdict is what admission answered for one candidate.
type Verdict uint8

// The verdicts of admission.
const (
	Admitted Verdict = iota // new: in the filter and in its site's queue
	Seen                    // already known
	Capped                  // its site is blocked, at its cap, its list is full or memory scarce; not remembered
	Full                    // no room in Redis or in the filter; not remembered, try later or keep it in another place
)

// Entry is one URL as it is in a queue, a visit or a dead list.
type Entry struct {
	URL       string
	Priority  uint8
	Depth     uint32
	Redirects uint8
	Trail     Trail
	Seed      bool
	Lost      uint8 // times a fetcher was lost while it held this URL alone or first
	Attempts  uint8 // fetches that ended in retry
	Meta      string
	Sitemap   bool
	SitemapOf string
	Referrer  string
	From      string
	Request   Request
	Last      Fetched // of a URL that is recrawled
}

// Fetched is what is kept of the last fetch of a URL that is to be recrawled.
type Fetched struct {
	Interval time.Duration // from that fetch to the next, whole milliseconds
	At       int64         // when it was, Unix seconds
	Modified int64         // its Last-Modified, Unix seconds, 0 = none
	ETag     string        // as the server wrote it, "" = none
	Digest   uint64        // the first 64 bits of the digest of its body, 0 = none
}

// Lease names one lease: a site under a token.
type Lease struct {
	Token string
	Site  string
}

// Ticket is a due site as named by Tick, or one that Settle keeps; it can be turned into
// a visit while the site is still in its class with exactly this score.
type Ticket struct {
	Site  string
	Class uint8
	Score string // decimal, milliseconds + 0.5; opaque to callers
}

// Expired names a lease past its deadline, with the deadline seen.
type Expired struct {
	Lease
	Deadline int64 // server milliseconds
}

// TickRequest says what a fetcher holds in a shard and what it could take.
type TickRequest struct {
	Extend     []Lease       // leases of mine to extend by the lease duration
	Want       int           // due sites wanted, 0 = none
	Patience   time.Duration // of these, only those that have been due for so long: who holds much leaves fresh ones to others
	MaxExpired int           // expired leases wanted at most, 0 = none
	MaxLag     time.Duration // how far the server's clock may lag behind the time before it is moved on; 0 = for ever. With LastNow it also bounds a jump forward
	LastNow    int64         // TickReply.Now of the caller's last tick, 0 = it had none
	Elapsed    time.Duration // since before that call, by a clock that nobody sets
}

// TickReply is what a shard answered to a tick.
type TickReply struct {
	Gone      []Lease // of Extend: no longer mine, drop these visits at once
	Due       []Ticket
	Expired   []Expired
	Next      time.Duration // until the first site is due, for so long as Patience says; 0 = now, <0 = no site waits
	Rev       int64         // revision of the crawl's settings
	Paused    bool          // the crawl or the shard is paused
	Lag       time.Duration // of the server's clock behind the time, for it was set back; from MaxLag on it is moved on
	ClockJump time.Duration // the server's clock was set forward by so much, or the call took so long: time goes on from where it was
	Now       int64         // the shard's time, milliseconds
}

// OriginRules are the rules that the robots.txt of one origin of a site has for
// our agent, in a form that only those who store and read them know.
type OriginRules struct {
	Site   string
	Origin string        // scheme, host and port
	Rules  []byte        // the caller's, in both directions
	TTL    time.Duration // how long they hold; 0 = there are none
}

// VisitLimits bounds what one visit may take.
type VisitLimits struct {
	URLs      int           // at most so many URLs a visit
	Undelayed int           // where the site has no delay: up to so many instead, fewer where many sites are leased; less than URLs counts as URLs
	Span      time.Duration // and at most what the site's delay lets happen in this time (at least one)
	Delay     time.Duration // delay of a site that has none of its own yet
	Share     int           // per cent of a visit that URLs due to be recrawled have while others are there, 0 = what those leave
	Safe      bool          // no URL that has its last chance; else one of them at most
}

// ReserveRequest asks for one request to a site that is not leased to who asks.
type ReserveRequest struct {
	Site  string
	Delay time.Duration // delay of a site that has none of its own yet
	Slack time.Duration // the request starts at most so long after its time, or not at all
	Ahead time.Duration // its time is at most so far ahead
}

// Reservation is what a site's clock answered. Durations count from the call.
type Reservation struct {
	Granted bool
	Stopped bool          // the site is paused or blocked: nobody may ask it
	Wait    time.Duration // granted: until the request may start; else until it is worth asking again
}

// Reserve's constants of all drivers.
const (
	ReservedMost   = 8           // times given in a row to others while the URLs of a site wait
	ReserveRetry   = time.Second // at least so long until it is worth asking again; while others wait, also what a site rests after a visit
	ReserveMaxWait = time.Hour   // at most so long
)

// Item is one leased URL. Index names it in outcomes.
type Item struct {
	Index int
	Entry
}

// Visit is up to k URLs of one site, leased with the whole site until Deadline.
type Visit struct {
	Lease
	Shard       int
	Items       []Item
	Deadline    time.Time     // by the caller's monotonic clock, counted from before the call
	Delay       time.Duration // delay as the last visit left it, 0 = none yet
	Why         string        // reasons of the delay as the last visit left them
	Failures    int           // fetches failed in a row
	Walls       int           // walls that answered in a row, as of Walls.Count
	First       bool          // the site has no clock: nobody asked it in the last day, and nothing that holds for a day is kept of it
	Override    string        // per-site settings as JSON, or ""
	Cookies     string        // as Settlement.Cookies left them, "" = none
	Credentials string        // of its origins, see CredentialsFor; "" = none
}

// MaxCookies is how many bytes of cookies a site has at most, WantsSign among them.
const MaxCookies = 4096

// WantsSign begins the cookies of a site that asks for signed requests.
const WantsSign = "s"

// LastChance reports whether the URL of the visit, which is then alone, dies if
// its fetcher is lost once more.
func (v *Visit) LastChance() bool { return len(v.Items) > 0 && v.Items[0].Lost >= 2 }

// Kind is what became of one URL of a visit.
type Kind uint8

// The kinds of outcome.
const (
	Done    Kind = iota // fetched, its record and links are safe
	Retry               // to be tried again after NotBefore, one class lower, Attempts + 1
	Dead                // given up for Cause; Text says why
	Requeue             // not tried: back to the front of its queue
	Recrawl             // as Done, and it waits in its site until it is recrawled, NotBefore from now, as Next says
)

// Outcome settles one URL of a visit.
type Outcome struct {
	Index     int
	Kind      Kind
	NotBefore time.Duration // Retry, Recrawl: from now
	Next      *Next         // Recrawl
	Blameless bool          // Retry: for no reason of the URL's, so its class and attempts stay
	Cause     string        // Retry, Dead: one of the causes in extract/sink/README.md
	Text      string        // Dead: the last error, bounded by the caller
	Tries     uint8         // Dead: fetches of this visit that it ends, 0 or 1
	Unasked   bool          // Dead: no request was made, so it takes no page of Settings.MaxPages
	Facts     *Facts        // what reports count of it, nil = nothing; of a Retry only its status and wall
}

// Next is a URL that is recrawled, as it will be leased then. A site has one of a
// key: another takes its place.
type Next struct {
	Entry
	Key uint64 // of its fingerprint, or of its request, Candidate.RefetchFingerprint
}

// ID is what a site knows the URL by.
func (n *Next) ID() []byte { return binary.BigEndian.AppendUint64(nil, n.Key) }

// Renewal brings forward when a URL is recrawled.
type Renewal struct {
	Site   string
	Key    uint64        // as in Next
	Within time.Duration // from now, at the latest
}

// ID is what the site knows the URL by.
func (r *Renewal) ID() []byte { return binary.BigEndian.AppendUint64(nil, r.Key) }

// Release frees a leased site. Its values replace what the site had.
type Release struct {
	Remain   time.Duration // until the next request to the site may start
	Delay    time.Duration
	Why      string
	Failures int
	Keep     bool // nobody else is named the site before KeptFor has passed since its next request may start, see Settled
}

// KeptFor is how long a site waits for the fetcher that had it, in all drivers.
const KeptFor = 500 * time.Millisecond

// Walls is how often in a row a certain wall of a protection service answered in place of
// a site. A page that is no wall ends the row.
type Walls struct {
	Count  int           // 0 = the row has ended
	Vendor string        // of the last, of a bounded set
	Pause  time.Duration // from WallsInRow on: how long the whole fleet backs off from the site, from now on
}

// WallsInRow is how many walls in a row have the fleet back off from a site.
const WallsInRow = 3

// Bounds of WallPause.
const (
	leastWallPause = time.Hour
	mostWallPause  = 24 * time.Hour
)

// WallPause is how long the fleet backs off from a site after so many walls in a row: an
// hour after WallsInRow of them, doubling up to a day.
func WallPause(count int) time.Duration {
	if count < WallsInRow {
		return 0
	}
	return min(leastWallPause<<min(count-WallsInRow, 8), mostWallPause)
}

// Settlement is a batch of outcomes of one visit. Release, when set, releases the site
// after its last request ended. Cookies and Walls, when set, take the place of what the site
// had, while it is leased under this lease: by a settlement that settles an outcome or
// releases the site. They go with what else is kept of the site, a day after its clock. What
// Cookies hold behind WantsSign only those who store and read it know, MaxCookies bytes at
// most. While Walls have a Pause, no request to the site starts.
type Settlement struct {
	Lease
	Outcomes []Outcome
	Release  *Release
	Cookies  *string // "" = none
	Walls    *Walls
}

// Settled is what became of a settlement.
type Settled struct {
	Outcomes []bool        // whether each took effect; false means gone: already settled, or the lease was reaped
	Kept     Ticket        // of the site that was released to be kept; no Site: it has no URL that is due when its clock is
	Due      time.Duration // from the call until Kept may be used
}

// Causes that more than a driver or a fetcher knows.
const (
	CauseLost    = "lost"    // the URL's fetchers were lost three times
	CauseWall    = "wall"    // a protection service kept answering in place of the site
	CausePayment = "payment" // the site wants money for the page (402)
)

// DeadLetter is one given-up URL.
type DeadLetter struct {
	Entry
	Site  string
	Cause string
	Text  string
	Raw   string // the list element as stored, names the dead letter in RetryDead
}

// SiteChange alters what a shard keeps for one site; nil fields stay.
type SiteChange struct {
	Paused      *bool
	Blocked     *bool   // blocked: queue dropped, admission answers Capped, visits end as gone
	Cap         *int64  // URLs admitted at most, 0 = as the crawl says
	Override    *string // per-site settings as JSON, "" = none
	Credentials *string // of its origins, as Visit has them, "" = none
	EndWalls    bool    // its row of walls ends, and the back-off for them
	Reason      string  // why it is paused or blocked, for Stopped
}

// ShardStats counts one shard. Gauges say what is there, totals only grow.
type ShardStats struct {
	Shard       int    `json:"shard"`
	Ready       int64  `json:"ready"`        // sites with work, not leased
	PausedReady int64  `json:"paused_ready"` // paused sites with work
	Leases      int64  `json:"leases"`       // visits out
	Walled      int64  `json:"walled"`       // sites that the fleet backs off from now, since walls answer there
	Queued      int64  `json:"queued"`       // URLs in queues
	Waiting     int64  `json:"waiting"`      // URLs that wait for a retry
	Recrawls    int64  `json:"recrawls"`     // URLs that wait for a recrawl
	Open        int64  `json:"open"`         // URLs of visits out
	Admits      int64  `json:"admits"`       // raised by every admission and retried dead letter that changed anything
	Known       int64  `json:"known"`        // URLs admitted
	Done        int64  `json:"done"`         // fetches that ended well
	Recrawled   int64  `json:"recrawled"`    // URLs leased to be recrawled
	Forgone     int64  `json:"forgone"`      // URLs that are not recrawled, for their site has too many that are
	Retried     int64  `json:"retried"`
	Dead        int64  `json:"dead"`
	Unasked     int64  `json:"unasked"` // of these, URLs that no request was made for, such as those that robots.txt disallows
	Lost        int64  `json:"lost"`    // URLs that came back from reaped leases
	RetriedDead int64  `json:"retried_dead"`
	Dropped     int64  `json:"dropped"`     // dead letters pushed out by newer ones
	Forgotten   int64  `json:"forgotten"`   // dead letters that DropDead took away
	TurnedAway  int64  `json:"turned_away"` // times a link was turned away by the memory watermarks
	Blocked     int64  `json:"blocked"`     // URLs that went with their site's block; this and the next two are not counted in one process
	Merged      int64  `json:"merged"`      // retries that met the same URL waiting, and became one with it
	Missing     int64  `json:"missing"`     // URLs that a repair found nowhere any more
	Paused      bool   `json:"paused"`
	Silent      bool   `json:"silent,omitempty"` // RecentStats: it did not answer in time; the counts are older ones, or 0
	Fault       string `json:"fault,omitempty"`  // Report: why it takes no writes, or, of one that is silent, refuses
	Slot        int    `json:"slot"`             // in Redis Cluster; 0 in one process
	Master      string `json:"master"`
	Memory      Memory `json:"memory"`
}

// Memory is how full the master of a shard is, and what the watermarks make of it.
// In one process all is zero.
type Memory struct {
	Used          int64 `json:"used"`           // bytes, as compared with Limit; 0 = Redis does not say
	Limit         int64 `json:"limit"`          // maxmemory, bytes; 0 = none, then watermarks do nothing
	OverWatermark bool  `json:"over_watermark"` // it was above the high watermark, and not below the low one since
	Cutoff        int64 `json:"cutoff"`         // links to queues of so many URLs or more are turned away; 0 = none are
	Longest       int64 `json:"longest"`        // the longest queue that links were offered to lately; known only with watermarks
}

// Pages is how many pages of Settings.MaxPages are used up.
func (s *ShardStats) Pages() int64 { return s.Done + s.Dead - s.Unasked }

// shardCounters are the places of the counters of ShardStats, by their names.
var shardCounters = sync.OnceValue(func() map[string]int {
	counters, t := make(map[string]int), reflect.TypeFor[ShardStats]()
	for i := range t.NumField() {
		if f := t.Field(i); f.Type.Kind() == reflect.Int64 {
			counters[f.Tag.Get("json")] = i
		}
	}
	return counters
})

// Counter is the counter of a name, which is that of JSON; nil where there is none.
func (s *ShardStats) Counter(name string) *int64 {
	i, ok := shardCounters()[name]
	if !ok {
		return nil
	}
	return reflect.ValueOf(s).Elem().Field(i).Addr().Interface().(*int64)
}

// Total adds up the shards of a crawl, but for the memory of their masters.
func Total(shards []ShardStats) ShardStats {
	var t ShardStats
	for i := range shards {
		for name := range shardCounters() {
			*t.Counter(name) += *shards[i].Counter(name)
		}
		t.Paused = t.Paused || shards[i].Paused
	}
	return t
}
