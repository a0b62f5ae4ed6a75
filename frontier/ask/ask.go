// Package ask answers what people ask of a crawl, wherever it is kept: why a URL
// was not fetched (Why), which sites are large or slow (Sites), how far the crawl
// is and when it ends (Stats), and what became of all of it (Report). Programs
// render the answers, pages show them; both call the same functions.
//
// All of it reads only, on a crawl at work too. The work of a server is bounded
// whatever the size of the crawl: each call takes less than about a millisecond,
// a queue is looked at for its first LookMost entries, and of many sites those of
// top lists and a sample are shown; the answers say which. No answer holds
// credentials.
package ask

import (
	"encoding/json"
	"time"
)

// LookMost is how many entries of a queue, or dead letters of a cause of death, are
// looked at for one URL.
const LookMost = 1000

// Span is a duration that JSON shows as a text such as "1.5s".
type Span time.Duration

// MarshalText writes the duration, to the millisecond.
func (d Span) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Span) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Span(v)
	return err
}

func (d Span) String() string {
	v := time.Duration(d)
	if v >= time.Minute || v <= -time.Minute {
		return v.Round(time.Second).String()
	}
	return v.Round(time.Millisecond).String()
}

// WhyQuery names the URL that Why explains.
type WhyQuery struct {
	URL    string                                        // absolute
	From   string                                        // the page that links to it, or "": as a link of its own host, or as a seed
	Robots func(stored, target []byte, to *Robots) error // fills in what stored rules say of a target, all but Origin, Ignored and Left
}

// The states of a URL, as Answer.State has them.
const (
	StateInvalid      = "invalid"      // no URL that can be crawled
	StateQueued       = "queued"       // it is in the queue of its site
	StateLeased       = "leased"       // a fetcher has it
	StateWaiting      = "waiting"      // for a retry
	StateDead         = "dead"         // given up
	StateDone         = "done"         // known, and nowhere any more: fetched, as far as is known
	StateDropped      = "dropped"      // the same, of a site of which a person dropped URLs: fetched, or one of these
	StateKnown        = "known"        // known, but more stands before the bounds of the look than was looked at
	StateRefused      = "refused"      // not known, and the crawl would not follow a link to it
	StateBlocked      = "blocked"      // its site is blocked
	StateCapped       = "capped"       // not known, and its site has as many URLs as it may
	StateUndiscovered = "undiscovered" // not known, though nothing refuses it
)

// Answer is why a URL was fetched, or was not.
type Answer struct {
	Why    string   `json:"why"`   // the conclusion, one line
	State  string   `json:"state"` // one of the states above
	URL    string   `json:"url"`   // fetch form without credentials
	Key    string   `json:"key,omitempty"`
	Site   string   `json:"site,omitempty"`
	Shard  int      `json:"shard"`
	Slot   int      `json:"slot"`
	Master string   `json:"master,omitempty"`
	Paused string   `json:"paused,omitempty"` // that the crawl or the shard is paused
	Known  *Known   `json:"known,omitempty"`
	Scope  *Scope   `json:"scope,omitempty"`
	Robots *Robots  `json:"robots,omitempty"`
	Clock  *Clock   `json:"clock,omitempty"` // of its site; nil: nothing is kept of it
	Queued *Queued  `json:"queued,omitempty"`
	Leased *Leased  `json:"leased,omitempty"`
	Wait   *Waiting `json:"waiting,omitempty"`
	Dead   *Dead    `json:"dead,omitempty"`
	Notes  []string `json:"notes,omitempty"` // what was not looked at, what else matters
}

// Known is whether a shard knows a URL.
type Known struct {
	Yes   bool    `json:"yes"`
	Exact bool    `json:"exact"`          // in one process; a filter's yes may be wrong, its no never is
	Rate  float64 `json:"rate,omitempty"` // how often a filter's yes is wrong, as the crawl allows
}

// Scope is whether the crawl's settings would follow a link to a URL.
type Scope struct {
	From    string `json:"from,omitempty"` // the page, without credentials
	Follows bool   `json:"follows"`
	Reason  string `json:"reason,omitempty"` // scope, depth, rule, extension: as the metrics of refused links have them
	Rule    string `json:"rule,omitempty"`   // what decides, as one would write it: --deny /x/
}

// Robots is what the robots.txt of a URL's origin says, as the fleet read it last.
type Robots struct {
	Origin  string `json:"origin"`
	Read    bool   `json:"read"`              // the fleet has its rules; else it asks before the first page
	Ignored bool   `json:"ignored,omitempty"` // the crawl does not go by them
	Allowed bool   `json:"allowed"`
	Agent   string `json:"agent,omitempty"` // it was read for
	Group   string `json:"group,omitempty"`
	Rule    string `json:"rule,omitempty"` // the line that decides, "" = none does
	Line    int    `json:"line,omitempty"`
	Delay   Span   `json:"delay,omitempty"` // its Crawl-delay
	Age     Span   `json:"age,omitempty"`   // since it was read, 0 = not known
	Left    Span   `json:"left,omitempty"`  // for how long it still holds

	Purpose     []string        `json:"-"`                     // of the crawl, for WhyQuery.Robots
	Preferences json.RawMessage `json:"preferences,omitempty"` // what it says of what may be done with the page
	Refuses     string          `json:"refuses,omitempty"`     // the purpose that it refuses, and how
}

// Clock is a site's politeness as its shard keeps it.
type Clock struct {
	Delay    Span   `json:"delay"`
	Reason   string `json:"reason"`             // setting, override, crawl-delay, adaptive; address: other hosts of its address are asked in between; bind: a fetcher that lacks the addresses of its rule left it to others
	Failures int    `json:"failures,omitempty"` // in a row
	Next     Span   `json:"next"`               // until its next request may start; 0 or less: now
	Due      Span   `json:"due"`                // until the site is due to be leased; 0 or less: for so long
	Walls    *Walls `json:"walls,omitempty"`    // nil: its last answer was none
	Place    string `json:"place"`              // ready, paused, leased, or idle: without work
	Paused   string `json:"paused,omitempty"`   // since when and why it is paused
	Blocked  string `json:"blocked,omitempty"`
	Queued   int64  `json:"queued"`
	Waiting  int64  `json:"waiting"`
	Cap      int64  `json:"cap,omitempty"`      // URLs that it may have
	Admitted int64  `json:"admitted,omitempty"` // of these

	WantsSign bool `json:"wants_sign,omitempty"` // it asks for signed requests
}

// Walls is the row of walls that answered in place of a site.
type Walls struct {
	Count  int       `json:"count"`          // in a row
	Vendor string    `json:"vendor"`         // of the last
	Since  time.Time `json:"since"`          // of the first
	Left   Span      `json:"left,omitempty"` // until the fleet's back-off from the site ends; 0: it does not back off now
}

// Queued is where in the queue of its site a URL stands.
type Queued struct {
	Class    int    `json:"class"`  // 0 is first
	Before   int64  `json:"before"` // URLs of the site that are asked for first, roughly
	Takes    Span   `json:"takes"`  // what these take at the site's delay, at least
	Depth    uint32 `json:"depth"`
	Attempts uint8  `json:"attempts"`
	Lost     uint8  `json:"lost,omitempty"` // fetchers that were lost with it
}

// Leased is who has a URL, and until when.
type Leased struct {
	Fetcher string `json:"fetcher,omitempty"` // host and process, "" = it is not on the list of programs
	Token   string `json:"token"`
	Left    Span   `json:"left"` // of the lease; less than 0: it comes back with the next tick
}

// Waiting is a retry.
type Waiting struct {
	Left     Span   `json:"left"` // until it may be tried
	Attempts uint8  `json:"attempts"`
	Why      string `json:"why,omitempty"` // what is known of the site's trouble
}

// Dead is a dead letter.
type Dead struct {
	Cause    string `json:"cause"`
	Text     string `json:"text"`
	Attempts uint8  `json:"attempts"`
	Depth    uint32 `json:"depth"`
}

// What Sites may be ordered by.
const (
	ByQueued = "queued" // URLs that are queued or wait
	ByRate   = "rate"   // pages a second
	ByDead   = "dead"
	ByDelay  = "delay"
	ByAge    = "age"   // since its first page
	ByWalls  = "walls" // that answered in a row; sites without any are left out
)

// Orders are the orders.
var Orders = []string{ByQueued, ByRate, ByDead, ByDelay, ByAge, ByWalls}

// SitesQuery is the question after sites.
type SitesQuery struct {
	By    string // one of the orders above, "" = ByQueued
	Site  string // only this site, or that of this host
	Limit int    // sites at most, 0 = 20
}

// SiteList is the answer.
type SiteList struct {
	By     string   `json:"by"`
	Known  int64    `json:"with_work"` // sites that have work, of the whole crawl
	Looked int      `json:"looked"`    // sites that were looked at
	Exact  bool     `json:"exact"`     // all that have work were
	Sites  []Site   `json:"sites"`
	Unread []string `json:"unread,omitempty"` // shards that did not answer
}

// Site is one site as its shard keeps it now. Pages, Dead and Rate count from
// when it was first asked; a shard forgets a site a day after its last request.
type Site struct {
	Site     string  `json:"site"`
	Shard    int     `json:"shard"`
	Place    string  `json:"place"` // as in Clock
	Queued   int64   `json:"queued"`
	Waiting  int64   `json:"waiting"`
	Open     int64   `json:"open"` // leased now
	Pages    int64   `json:"pages"`
	Dead     int64   `json:"dead"`
	Due      *Span   `json:"due,omitempty"` // as in Clock; nil: it has no work, or is leased
	Rate     float64 `json:"rate"`          // pages a second since Age
	Delay    Span    `json:"delay"`
	Reason   string  `json:"reason"`
	Failures int     `json:"failures"`
	Walls    *Walls  `json:"walls,omitempty"` // as in Clock
	Last     string  `json:"last,omitempty"`  // its last answer: a status, or the cause that there was none
	Age      Span    `json:"age"`             // since its first page
	Left     Span    `json:"left"`            // what it takes to finish at its delay, at least
}
