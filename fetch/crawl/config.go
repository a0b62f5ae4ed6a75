package crawl

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier/canon"
)

// Config of a Worker. Frontier, Fetcher and Sink are required; they stay the
// caller's to close.
type Config struct {
	Frontier Frontier
	Fetcher  fetch.Doer
	Sink     sink.Sink
	Log      *slog.Logger // nil: discarded
	Overflow Overflow     // takes links that find no room; nil: their pages wait for it

	Concurrency  int           // requests under way at once, default 256
	Lease        time.Duration // of a visit, extended every third of it; default 60 s
	Linger       time.Duration // how long a batch waits for company, 0 for an in-process frontier
	OpenBytes    int64         // pages that wait for sink and shards, default 64 MB
	KnownURLs    int           // size of the cache of known URLs, default 1 M (8 bytes each)
	MaxLinks     int           // links taken from one page, default 20,000
	MaxTries     int           // fetches of one URL at most, default 4
	RetryCodes   []int         // statuses worth another attempt, default 408, 425, 429, 500, 502-504, 520-529
	MaxRedirects int           // hops, default 10
	Exact        bool          // this worker is the only one: MaxPages is exact
	ExitWhenDone bool
	GiveUp       time.Duration // with ExitWhenDone: how long a site may be unreachable, default 10 min
	IdleTimeout  time.Duration // end after so long without work, 0 = never
	Backoff      time.Duration // of a URL's first retry and of a site first set aside, doubling up to 1 h; default 5 s
	Canon        canon.Config
	Fields       sink.Fields                // what records carry beside the default
	Accepts      func(*fetch.Response) bool // whether a 2xx body is worth reading, default always
	Epoch        func(shard int) uint64     // rises when a shard may have lost acknowledged admissions, nil: never
	Report       func(Progress)             // called every ReportEvery while the worker runs, or nil
	ReportEvery  time.Duration              // default 10 s
	Agent        string                     // our token in robots.txt and robots metas, when the settings name none
}

// Validate joins all faults of a Config.
func (c *Config) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("crawl: "+format, args...))
		}
	}
	fault(c.Frontier == nil, "no frontier")
	fault(c.Fetcher == nil, "no fetcher")
	fault(c.Sink == nil, "no sink")
	fault(c.Concurrency < 0, "concurrency %d is negative", c.Concurrency)
	fault(c.Lease < 0 || c.Lease > 0 && c.Lease < 5*heartbeat, "lease %s is below %s", c.Lease, 5*heartbeat)
	return errors.Join(errs...)
}

func (c *Config) fillDefaults() {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&c.Concurrency, 256)
	def(&c.KnownURLs, 1<<20)
	def(&c.MaxLinks, 20_000)
	def(&c.MaxTries, 4)
	def(&c.MaxRedirects, 10)
	if c.Lease == 0 {
		c.Lease = time.Minute
	}
	if c.GiveUp == 0 {
		c.GiveUp = 10 * time.Minute
	}
	if c.Backoff == 0 {
		c.Backoff = 5 * time.Second
	}
	if c.ReportEvery == 0 {
		c.ReportEvery = 10 * time.Second
	}
	if c.OpenBytes == 0 {
		c.OpenBytes = 64 << 20
	}
	if c.Accepts == nil {
		c.Accepts = func(*fetch.Response) bool { return true }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}
