package frontier

import (
	"time"

	"seine/frontier/canon"
)

// Layout is what a crawl is built on. It is fixed when the crawl is created; a
// program with another layout refuses to work on it (ErrLayout).
type Layout struct {
	Format      int           `json:"format"`       // version of keys, entries and scripts
	Shards      int           `json:"shards"`       // n
	LimitBy     canon.LimitBy `json:"limit_by"`     // site rule
	Suffixes    string        `json:"suffixes"`     // version of the public suffix list
	Canon       int           `json:"canon"`        // version of the canonical form
	StripParams bool          `json:"strip_params"` // key rule
	SortQuery   bool          `json:"sort_query"`   // key rule
	PlanURLs    int64         `json:"plan_urls"`    // URLs the filters are planned for, all shards
	ErrorRate   float64       `json:"error_rate"`   // false positives a probe
	Filters     int           `json:"filters"`      // filters a shard
}

// Settings is what belongs to the crawl and may change while it runs. Running
// fetchers pick a change up within seconds by its revision.
type Settings struct {
	Delay          time.Duration `json:"delay"`
	PerSite        int           `json:"per_site"`
	VisitURLs      int           `json:"visit_urls"`
	Scope          string        `json:"scope"` // site, host, any
	MaxDepth       int           `json:"max_depth"`
	MaxPages       int64         `json:"max_pages"`
	MaxPerSite     int64         `json:"max_per_site"`
	Allow          []string      `json:"allow,omitempty"`
	Deny           []string      `json:"deny,omitempty"`
	Priority       []string      `json:"priority,omitempty"` // REGEX=0..3
	Order          string        `json:"order"`              // breadth, depth
	SkipExt        []string      `json:"skip_ext,omitempty"`
	UserAgent      string        `json:"user_agent"`
	Robots         string        `json:"robots"` // obey, ignore
	RobotsAgent    string        `json:"robots_agent"`
	Sitemaps       bool          `json:"sitemaps"`
	IgnoreNofollow bool          `json:"ignore_nofollow"`
	Follow         []string      `json:"follow,omitempty"` // kinds of links that are followed
	FeedKey        string        `json:"feed_key"`
	FeedAgain      bool          `json:"feed_again"`
	Sites          []SiteRule    `json:"sites,omitempty"`
}

// SiteRule overrides settings for the sites that match; the first match wins.
type SiteRule struct {
	Match    string            `json:"match"` // host, or *.domain
	Delay    time.Duration     `json:"delay,omitempty"`
	PerSite  int               `json:"per_site,omitempty"`
	MaxPages int64             `json:"max_pages,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Auth     string            `json:"auth,omitempty"` // user:password, never logged
}
