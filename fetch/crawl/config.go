package crawl

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"seine/extract/fields"
	"seine/extract/sink"
	"seine/fetch"
	"seine/fetch/crawl/internal/flow"
	"seine/fetch/wall"
	"seine/frontier"
	"seine/frontier/canon"
)

// Frontier is what a Crawler needs of a crawl's queue.
type Frontier interface {
	frontier.Crawl
	frontier.Queue
	frontier.Contents
	frontier.Rules
	frontier.Counts
	frontier.Pages
}

// Overflow keeps candidates that the frontier had no room for, so that their
// pages can be settled: lines in the form of elements of a feed, which seeding
// takes back.
type Overflow interface {
	// Write takes some whole lines, which it copies, and calls done once: with nil
	// when they are safe on disk, with an error when they never will be. It must
	// not block for the disk; what waits is bounded by the crawler's OpenBytes.
	// done does not block.
	Write(lines []byte, done func(error))
	// Err is why nothing can be written just now, or nil. Lines wait meanwhile,
	// and are tried again.
	Err() error
}

// Config of a Crawler. Frontier, Fetcher and Sink are required; they stay the
// caller's to close.
type Config struct {
	Frontier Frontier
	Fetcher  fetch.Doer
	Sink     sink.Sink
	Handler  Handler      // code of your own that sees each page, or nil
	Log      *slog.Logger // nil: slog.Default
	Overflow Overflow     // takes links that find no room; nil: their pages wait for it

	Concurrency  int           // requests under way at once; default 1,024 a processor, as connections and memory allow
	Memory       int64         // of this process, bytes; default the limit of the runtime, or 1 GB
	MaxVisits    int           // sites leased at once, default what an eighth of Memory holds, 4 KB each
	Lease        time.Duration // of a visit, extended every third of it; default 60 s
	Linger       time.Duration // how long a batch waits for company, 0 for an in-process frontier
	OpenBytes    int64         // pages that wait for sink and shards, default a sixteenth of Memory, 16 to 32 MB
	SinkPages    int           // pages that wait for the sink, at which no request starts: a crash has them fetched again; default 1,000
	SinkWait     time.Duration // how long one may wait for the sink before no request starts, default 5 s
	KnownURLs    int           // size of the cache of known URLs, default 1 M (8 bytes each)
	MaxText      int           // bytes of a page's text, and of a field's value, in its record, default 1 MB
	MaxLinks     int           // links taken from one page, default 20,000
	MaxTries     int           // fetches of one URL at most, default 4
	RetryCodes   []int         // statuses worth another attempt, default 408, 425, 429, 500, 502-504, 520-529
	MaxRedirects int           // hops, default 10
	ID           string        // of this fetcher, its frontier.Member.ID; default made up
	Exact        bool          // this crawler is the only one
	ExitWhenDone bool
	GiveUp       time.Duration // with ExitWhenDone: how long a site may be unreachable, default 10 min
	IdleTimeout  time.Duration // end after so long without work, 0 = never
	Backoff      time.Duration // before a URL's first retry, and the first time that the crawl backs off from a site; doubles up to 1 h; default 5 s
	Canon        canon.Config
	Fields       sink.Fields                // what records carry beside the default
	Rules        *fields.Set                // that make the fields of records, nil for none; pages of sites that have some are kept whole while they are read
	Walls        *wall.Set                  // tells walls of protection services from pages, while the crawl's settings want it; nil: by the table of package wall
	Exchanges    bool                       // records carry their Exchange, for outputs that archive, and so does an ArchiveOnly record of each robots.txt; costs the memory of a body a worker
	Accepts      func(*fetch.Response) bool // whether a 2xx body is worth reading, default always
	Elapsed      func() time.Duration       // a clock that runs on while the machine sleeps, and that nobody sets; default the system's
	Fault        func() error               // why what keeps the crawl takes no writes, as on a full disk; nil: never
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
	fault(cfg.Lease < 0 || cfg.Lease > 0 && cfg.Lease < 5*flow.Heartbeat, "lease %s is below %s", cfg.Lease, 5*flow.Heartbeat)
	return errors.Join(errs...)
}

func (cfg *Config) fillDefaults() {
	cfg.ID = cmp.Or(cfg.ID, strings.ToLower(rand.Text()[:12]))
	cfg.Memory = cmp.Or(cfg.Memory, memoryLimit())
	conns := math.MaxInt
	if f, ok := cfg.Fetcher.(interface{ MaxConns() int }); ok {
		conns = f.MaxConns()
	}
	cfg.Concurrency = cmp.Or(cfg.Concurrency, workers(conns, cfg.Memory))
	cfg.MaxVisits = cmp.Or(cfg.MaxVisits, int(max(1024, cfg.Memory/8/visitBytes)))
	cfg.Lease = cmp.Or(cfg.Lease, time.Minute)
	cfg.OpenBytes = cmp.Or(cfg.OpenBytes, min(max(16<<20, cfg.Memory/16), 32<<20))
	cfg.SinkPages = cmp.Or(cfg.SinkPages, 1000)
	cfg.SinkWait = cmp.Or(cfg.SinkWait, 5*time.Second)
	cfg.KnownURLs = cmp.Or(cfg.KnownURLs, 1<<20)
	cfg.MaxText = cmp.Or(cfg.MaxText, 1<<20)
	cfg.MaxLinks = cmp.Or(cfg.MaxLinks, 20_000)
	cfg.MaxTries = cmp.Or(cfg.MaxTries, 4)
	cfg.MaxRedirects = cmp.Or(cfg.MaxRedirects, 10)
	cfg.GiveUp = cmp.Or(cfg.GiveUp, 10*time.Minute)
	cfg.Backoff = cmp.Or(cfg.Backoff, 5*time.Second)
	cfg.ReportEvery = cmp.Or(cfg.ReportEvery, 10*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Walls == nil {
		cfg.Walls = wall.Default()
	}
	if cfg.Elapsed == nil {
		cfg.Elapsed = systemElapsed
	}
	if cfg.Accepts == nil {
		cfg.Accepts = func(*fetch.Response) bool { return true }
	}
}

const (
	// workersPerCPU is how many workers a processor has by default: a web that answers
	// after a second keeps that many busy at the number of pages a second that a processor
	// can take.
	workersPerCPU = 1024
	// workerMemory is what a worker takes with a page at hand, bytes.
	workerMemory = 64 << 10
	// leastWorkers are there whatever the machine.
	leastWorkers = 16
	// visitBytes is what a leased site takes: its visit, its URLs, its lease.
	visitBytes = 4 << 10
)

// workers is how many requests are made at once by default, with so many connections and
// so much memory, bytes.
func workers(conns int, memory int64) int {
	return max(min(workersPerCPU*runtime.GOMAXPROCS(0), conns, int(memory/16/workerMemory)), leastWorkers)
}

// processStart is what a clock counts from that has no start of its own.
var processStart = time.Now()

// memoryLimit is what the runtime is to keep within, bytes, or else a gigabyte.
func memoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	return 1 << 30
}
