package ask

import (
	"time"

	"seine/frontier"
)

// Progress is how far a crawl is, who works on it, and what is wrong. Its State is
// "ready" only where Troubles has nothing.
type Progress struct {
	frontier.Report
	frontier.Fleet
	Troubles []string `json:"troubles"` // shards that are silent, full or take no writes; State tells of the rest
	DeadNow  int64    `json:"dead_now"` // dead letters kept now; Total.Dead is what ever died
	ETA      ETA      `json:"eta"`
}

// ETA is when a crawl will be done: the later of the end of all that is left, as the
// fleet made it shrink over the last minutes, and of the queue of the site that takes
// longest at its delay. With --max-pages no later than those are fetched.
type ETA struct {
	Known   bool      `json:"known"`
	At      time.Time `json:"at,omitzero"`
	Left    Span      `json:"left,omitempty"`
	By      string    `json:"by"`                     // what it rests on; where it is not known, why
	Slowest Span      `json:"slowest_site,omitempty"` // what the site that takes longest has left at its delay
}

// Summary is what became of a whole crawl.
type Summary struct {
	Crawl    string              `json:"crawl"`
	Ended    string              `json:"ended"` // how, or that it has not
	Began    time.Time           `json:"began,omitzero"`
	Total    frontier.ShardStats `json:"total"`
	Bytes    int64               `json:"bytes"`              // of all pages, decoded
	Codes    []Count             `json:"codes"`              // pages by status
	Media    []Count             `json:"media"`              // pages by media type
	Causes   []Count             `json:"causes"`             // dead URLs by cause, all that ever were
	Retries  []Count             `json:"retries"`            // retries by cause
	Walls    []Count             `json:"walls,omitempty"`    // walls that answered in place of sites, by vendor
	Withheld []Count             `json:"withheld,omitempty"` // pages by the purpose that their site refuses
	Sites    []Count             `json:"sites"`              // sites by what came of their last request
	Links    Links               `json:"links"`
	Seeds    Seeds               `json:"seeds"`
	Fetchers map[string]int      `json:"fetchers"`         // the last runs, frontier.RunsKept at most, by how they ended; "at work", "vanished"
	Largest  []Top               `json:"largest"`          // sites with most pages
	Deadest  []Top               `json:"most_dead"`        // sites with most dead URLs
	Shards   int                 `json:"shards"`           // that are in it
	Unread   []string            `json:"unread,omitempty"` // shards that cannot be read, and are not in it
}

// Count is how often something was met.
type Count struct {
	Name  string `json:"name"`
	URLs  int64  `json:"urls"`
	Bytes int64  `json:"bytes,omitempty"`
}

// Links is what became of the links of all pages.
type Links struct {
	Found      int64   `json:"found"`
	Duplicates int64   `json:"duplicates"` // led to what was known already
	Refused    []Count `json:"refused"`    // by reason
}

// Seeds is what became of the seeds.
type Seeds struct {
	Total    int64   `json:"total"`    // that were settled, each as often as it was
	Outcomes []Count `json:"outcomes"` // by status or cause
	List     []Seed  `json:"list"`     // the first of each shard; those with no page first
	Left     int64   `json:"left"`     // of List, that are not settled yet
	Whole    bool    `json:"whole"`    // List has all of them
}

// Seed is what became of one seed.
type Seed struct {
	URL     string `json:"url"`     // without credentials
	Outcome string `json:"outcome"` // a status or a cause; of one that is not settled what it waits for
}

// Top is one of the first of a list. Its count is short by at most Short.
type Top struct {
	Site  string `json:"site"`
	Count int64  `json:"count"`
	Short int64  `json:"short"`
}
