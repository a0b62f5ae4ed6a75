package frontier

import "time"

// Report is a crawl as people want to see it.
type Report struct {
	Crawl    string           `json:"crawl"`
	State    string           `json:"state"` // ready, paused, partly paused; or that filters are missing
	Layout   Layout           `json:"layout"`
	Settings *Settings        `json:"settings"` // secrets masked
	Rev      int64            `json:"rev"`
	Lost     []string         `json:"lost_filters,omitempty"` // filters that are missing, by key
	Over     []int            `json:"filters_over,omitempty"` // shards with a filter that errs more often than the crawl allows
	Unread   []string         `json:"unread,omitempty"`       // why what probing found, the feed or the list of programs cannot be read
	Pressure []string         `json:"pressure,omitempty"`     // shards that are full, what the memory watermarks do; and where they do nothing
	Total    ShardStats       `json:"total"`
	Shards   []ShardStats     `json:"shards"`
	Dead     map[string]int64 `json:"dead"` // dead letters kept, by cause
	Paused   int64            `json:"sites_paused"`
	Blocked  int64            `json:"sites_blocked"`
	Feed     int64            `json:"feed"`               // elements that wait, -1 = unread
	Members  []Member         `json:"members"`            // nil = unread
	Vanished []Member         `json:"vanished,omitempty"` // programs that did not leave, and were heard of last within VanishedFor; the last first
}

// Listed is one crawl of a Redis.
type Listed struct {
	Crawl   string    `json:"crawl"`
	State   string    `json:"state"`           // creating, ready, paused, deleting, unreadable, forbidden
	Fault   string    `json:"fault,omitempty"` // why it is unreadable or forbidden
	Layout  Layout    `json:"layout"`
	Created time.Time `json:"created"`
}

// Stop is a pause or a block of one site.
type Stop struct {
	Site    string    `json:"site"`
	Shard   int       `json:"shard"`
	Blocked bool      `json:"blocked"` // else paused
	Since   time.Time `json:"since"`
	Reason  string    `json:"reason,omitempty"`
}

// DeadFilter chooses dead letters.
type DeadFilter struct {
	Cause string // "" = all causes
	Site  string // "" = all sites
	Limit int64  // dead letters at most, 0 = all
}
