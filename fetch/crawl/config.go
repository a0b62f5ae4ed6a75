package crawl

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier/canon"
)

// Config of a Crawler. Frontier, Fetcher and Sink are required; they stay the
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
	Exact        bool          // this crawler is the only one: MaxPages is exact
	ExitWhenDone bool
	GiveUp       time.Duration // with ExitWhenDone: how long a site may be unreachable, default 10 min
	IdleTimeout  time.Duration // end after so long without work, 0 = never
	Backoff      time.Duration // of a URL's first retry and of a site first set aside, doubling up to 1 h; default 5 s
	Canon        canon.Config
	Fields       sink.Fields                // what records carry beside the default
	Exchanges    bool                       // records carry their Exchange, for outputs that archive; costs the memory of a body a worker
	Accepts      func(*fetch.Response) bool // whether a 2xx body is worth reading, default always
	Epoch        func(shard int) uint64     // rises when a shard may have lost acknowledged admissions, nil: never
	Report       func(Progress)             // called every ReportEvery while the crawler runs, or nil
	ReportEvery  time.Duration              // default 10 s
	Agent        string                     // our token in robots.txt and robots metas, when the settings name none
}

// Validate joins all faults of a Config.
func (cfg *Config) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("crawl: "+format, args...))
		}
	}
	fault(cfg.Frontier == nil, "no frontier")
	fault(cfg.Fetcher == nil, "no fetcher")
	fault(cfg.Sink == nil, "no sink")
	fault(cfg.Concurrency < 0, "concurrency %d is negative", cfg.Concurrency)
	fault(cfg.Lease < 0 || cfg.Lease > 0 && cfg.Lease < 5*heartbeat, "lease %s is below %s", cfg.Lease, 5*heartbeat)
	return errors.Join(errs...)
}

func (cfg *Config) fillDefaults() {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&cfg.Concurrency, 256)
	def(&cfg.KnownURLs, 1<<20)
	def(&cfg.MaxLinks, 20_000)
	def(&cfg.MaxTries, 4)
	def(&cfg.MaxRedirects, 10)
	if cfg.Lease == 0 {
		cfg.Lease = time.Minute
	}
	if cfg.GiveUp == 0 {
		cfg.GiveUp = 10 * time.Minute
	}
	if cfg.Backoff == 0 {
		cfg.Backoff = 5 * time.Second
	}
	if cfg.ReportEvery == 0 {
		cfg.ReportEvery = 10 * time.Second
	}
	if cfg.OpenBytes == 0 {
		cfg.OpenBytes = 64 << 20
	}
	if cfg.Accepts == nil {
		cfg.Accepts = func(*fetch.Response) bool { return true }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
}

// Causes of retries and of the dead that the crawler itself names; the others
// are the classes of fetch.Error.
const (
	causeInvalid      = "invalid"       // the stored URL does not parse (a newer version wrote it)
	causeRobots       = "robots"        // robots.txt disallows it
	causeStatus       = "status"        // the server kept answering with a code that is retried
	causeRedirectLoop = "redirect_loop" // redirects to itself, or too many in a row
	causeUnreachable  = "unreachable"   // its site could not be reached for too long
	causeOther        = "other"
)

// maxErrorText bounds the error text kept with a dead URL and in its record.
const maxErrorText = 300

// retryCode reports whether a status is worth another attempt.
func (cfg *Config) retryCode(status int) bool {
	if cfg.RetryCodes != nil {
		return slices.Contains(cfg.RetryCodes, status)
	}
	switch status {
	case 408, 425, 429, 500, 502, 503, 504:
		return true
	}
	return status >= 520 && status < 530
}

func statusText(status int) string {
	if t := http.StatusText(status); t != "" {
		return t
	}
	return "unknown status"
}
