// Package fetcher is a whole fetcher, as the program of that name and programs of
// your own run it: a crawl that is opened, what fetches, and a place among the
// crawl's members.
//
// Run is a whole crawl in one call: seeds, a handler, and an output where one is wanted.
// What it does in one go are the steps of a program that wants more: Open opens a crawl
// in this process, in a directory or in Redis; Seed admits URLs to it; Crawler makes
// what works on it; Run, Stop, Abort and Progress are that Crawler's. Close takes the
// fetcher off the crawl's members and closes what Open opened. Everything that makes a fetcher
// of a fleet is done here: servers that would lose data are refused, the filters
// are probed, what a master may have lost is forgotten, members count each other.
//
// Of a crash nothing is lost in Redis and in a directory: what was not settled is
// fetched again, and so comes to handler and output again.
package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/extract/sink"
	"seine/fetch"
	"seine/fetch/crawl"
	"seine/fetch/robots"
	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/memory"
	"seine/frontier/redis"
	"seine/shard"
)

// Config chooses the crawl that a fetcher works on. The zero value is a crawl in the
// memory of this process, which ends with it.
type Config struct {
	Seeds   []string      // URLs that Run admits, or elements in the form of the feed
	Handler crawl.Handler // of Run: code of your own that sees each page, or nil
	Sink    sink.Sink     // of Run: takes the records, and stays the caller's to close; nil: nobody wants them
	Grace   time.Duration // of Run: how long open pages have to end once its context has ended, default 30 s

	Redis    *shard.Config // servers of a crawl that any number of programs work on; nil: only in this process
	Crawl    string        // its name there, default "seine"
	Replicas int           // of a master, that have to acknowledge an admission; default none
	State    string        // directory of a crawl in this process, which goes on with the next start; "" = none

	Layout   frontier.Layout          // of a new crawl; one that is there must have what is not zero. Shards > 0 has a crawl made in Redis where there is none; Run makes one anyway, of shard.Client.DefaultShards
	Settings func(*frontier.Settings) // changes the defaults of a new crawl; one that is there must have them so, else Open fails with frontier.ErrDiffers. nil: as it has them
	Lease    time.Duration            // of visits, the same for all programs of a crawl; default 60 s
	Fetch    fetch.Config             // how pages are fetched
	Kind     string                   // of the member, default frontier.KindFetcher
	Version  string                   // of the program, in the list of members
	Log      *slog.Logger             // nil: slog.Default
}

// ErrConfig marks faults of a Config that are found before anything is opened.
var ErrConfig = errors.New("fetcher: config")

// queue is what the drivers of a frontier are here.
type queue interface {
	frontier.Operated
	crawl.Frontier
}

// ErrClosed ends the Run of a Crawler whose Fetcher was closed meanwhile.
var ErrClosed = errors.New("fetcher: closed")

// Fetcher is an open crawl, and a fetcher's place on it.
type Fetcher struct {
	queue   queue
	cfg     Config
	client  *fetch.Client
	servers *shard.Client   // nil in one process
	fleet   *redis.Frontier // queue, nil in one process

	seeding atomic.Bool
	crawler *crawl.Crawler       // nil until Crawler
	member  *frontier.Attendance // nil until Crawler, and after Withdraw
	prober  *redis.Prober        // of the filters; nil until Crawler, and in one process
	stop    func() error         // of the prober
}

// Open opens a crawl, or makes it: in Redis where Layout.Shards says how. It waits,
// until ctx ends, for servers of which none answers. It fails with ErrConfig,
// frontier.ErrNoCrawl, frontier.ErrLayout, frontier.ErrDiffers, with memory.ErrInUse
// where another process has the directory open, and with shard.ErrUnfit,
// shard.ErrNoBloom or shard.ErrForbidden where servers do not fit.
func Open(ctx context.Context, cfg Config) (*Fetcher, error) {
	if cfg.Seeds != nil || cfg.Handler != nil || cfg.Sink != nil || cfg.Grace != 0 {
		return nil, fmt.Errorf("%w: Seeds, Handler, Sink and Grace are Run's; after Open give URLs to Seed, and the others to Crawler", ErrConfig)
	}
	return open(ctx, cfg, false)
}

// open is Open; create has a crawl made in Redis where there is none.
func open(ctx context.Context, cfg Config, create bool) (*Fetcher, error) {
	if cfg.Redis != nil && cfg.State != "" {
		return nil, fmt.Errorf("%w: Redis and State are two places for one crawl, leave one of them out", ErrConfig)
	}
	if l, own := cfg.Layout, cfg.Layout.Complete(); l.Format != 0 && l.Format != own.Format || l.Canon != 0 && l.Canon != own.Canon || l.Suffixes != "" && l.Suffixes != own.Suffixes {
		return nil, fmt.Errorf("%w: Format, Canon and Suffixes of Layout are versions of this program; leave them out", ErrConfig)
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Settings == nil {
		cfg.Settings = func(*frontier.Settings) {}
	}
	if cfg.Fetch.Metrics == nil {
		cfg.Fetch.Metrics = metrics.NewSet()
	}
	cfg.Crawl, cfg.Kind = cmp.Or(cfg.Crawl, "seine"), cmp.Or(cfg.Kind, frontier.KindFetcher)
	client, err := fetch.New(cfg.Fetch)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	f := &Fetcher{cfg: cfg, client: client}
	if cfg.Redis == nil {
		err = f.openHere()
	} else {
		err = f.openRedis(ctx, create)
	}
	if err == nil {
		err = frontier.Compare(f.queue.Settings(), cfg.Settings, cfg.State)
	}
	if err == nil && cfg.Fetch.Signer != nil {
		err = checkAgents(f.queue.Settings())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// checkAgents refuses rules that have another user agent where requests are signed: the
// signature says who asks.
func checkAgents(s *frontier.Settings) error {
	for i := range s.Sites {
		if r := &s.Sites[i]; r.HasAgent() {
			return fmt.Errorf("%w: requests are signed, and the rule of site %s has a user agent of its own; leave one of them out", ErrConfig, r.Match)
		}
	}
	return nil
}

// newSettings are those of a crawl that is made now.
func (f *Fetcher) newSettings() frontier.Settings {
	s := frontier.DefaultSettings()
	f.cfg.Settings(&s)
	return s
}

// openHere opens a crawl in this process.
func (f *Fetcher) openHere() error {
	q, err := memory.New(memory.Config{Layout: f.cfg.Layout, Settings: f.newSettings(), Lease: f.cfg.Lease, Dir: f.cfg.State, Logger: f.cfg.Log})
	if err != nil {
		return err
	}
	if f.queue = q; f.cfg.State == "" {
		return nil
	}
	return q.Serve()
}

// openRedis opens a crawl in Redis.
func (f *Fetcher) openRedis(ctx context.Context, create bool) error {
	servers, layout := *f.cfg.Redis, f.cfg.Layout
	if servers.Warns == nil {
		servers.Warns = func(w shard.Warning) { f.cfg.Log.Warn(w.String()) }
	}
	if servers.Waits == nil {
		servers.Waits = func(w shard.Wait) { f.cfg.Log.Warn(w.String(), "call", w.Op, "err", w.Err) }
	}
	layout.Format, layout.Canon, layout.Suffixes = frontier.FormatVersion, frontier.CanonVersion, canon.SuffixVersion()
	var err error
	if f.servers, err = shard.OpenFit(ctx, servers, f.cfg.Replicas); err != nil {
		return err
	}
	if layout.Shards > 0 {
		if err := f.servers.WarnUneven(ctx, layout.Shards); err != nil {
			return err
		}
	}
	q, err := redis.OpenOrCreate(ctx, f.servers, f.cfg.Crawl, layout, f.newSettings())
	if create && layout.Shards == 0 && errors.Is(err, frontier.ErrNoCrawl) {
		if layout.Shards, err = f.servers.DefaultShards(ctx); err == nil {
			q, err = redis.OpenOrCreate(ctx, f.servers, f.cfg.Crawl, layout, f.newSettings())
		}
	}
	if err != nil {
		return err
	}
	f.queue, f.fleet = q, q
	if err := q.Configure(redis.Config{Lease: f.cfg.Lease, AckReplicas: f.cfg.Replicas}); err != nil {
		return err
	}
	w, err := q.WithoutWatermarks(ctx)
	if err != nil {
		return err
	}
	if w != nil {
		servers.Warns(*w)
	}
	return nil
}

// Frontier is the crawl's queue. It is safe for concurrent use, and closed by Close.
func (f *Fetcher) Frontier() frontier.Operated { return f.queue }

// Seed admits URLs, or elements in the form of the feed, and counts what became of
// them. One that is no URL is a *frontier.BadSeed in the error, and the others are
// admitted. What finds no room waits for it, until ctx ends.
func (f *Fetcher) Seed(ctx context.Context, urls ...string) (frontier.SeedCounts, error) {
	seeder, err := frontier.NewSeeder(f.queue, frontier.SeedConfig{})
	if err != nil {
		return frontier.SeedCounts{}, err
	}
	var faults []error
	for _, url := range urls {
		err := seeder.AddText(ctx, url)
		if err == nil {
			continue
		}
		faults = append(faults, err)
		if _, bad := errors.AsType[*frontier.BadSeed](err); !bad {
			break
		}
	}
	faults = append(faults, seeder.Flush(ctx))
	return seeder.Counts(), errors.Join(faults...)
}

// SetSeeding sets whether this program admits seeds: a crawl whose fetchers are to
// end with it goes on for as long as one does. The other members of the crawl see it.
func (f *Fetcher) SetSeeding(ctx context.Context, seeds bool) error {
	was := f.seeding.Swap(seeds)
	if f.crawler == nil {
		return nil
	}
	f.crawler.SetSeeding(seeds)
	if was == seeds {
		return nil
	}
	return f.member.Announce(ctx)
}

// linger is how long batches to Redis wait for company: the server's cost of a
// call is shared by what it carries.
const linger = 2 * time.Millisecond

// Crawler makes what works on the crawl, once for a Fetcher, and lists it among the
// members. Of cfg a Sink is required. What the open crawl decides is filled in, and an
// error where the caller gives it: Frontier, Canon, Lease, Exact, Epoch and Fault. A
// crawl that recrawls pages is never done, so ExitWhenDone is an error there.
func (f *Fetcher) Crawler(cfg crawl.Config) (*crawl.Crawler, error) {
	if f.crawler != nil {
		return nil, errors.New("fetcher: it has its crawler: open the crawl once more for another")
	}
	if cfg.Frontier != nil || cfg.Canon != (canon.Config{}) || cfg.Lease != 0 || cfg.Exact || cfg.Epoch != nil || cfg.Fault != nil {
		return nil, fmt.Errorf("%w: Frontier, Canon, Lease, Exact, Epoch and Fault are those of the open crawl; leave them out", ErrConfig)
	}
	if cfg.ExitWhenDone && len(f.queue.Settings().Recrawl) > 0 {
		return nil, errors.New("fetcher: the crawl recrawls pages, by its setting recrawl, and is never done: leave ExitWhenDone out")
	}
	cfg.Frontier, cfg.Canon, cfg.Lease = f.queue, f.queue.Layout().CanonConfig(), f.cfg.Lease
	cfg.Log = cmp.Or(cfg.Log, f.cfg.Log)
	cfg.Agent = cmp.Or(cfg.Agent, robots.Token(f.cfg.Fetch.UserAgent), "seine")
	if cfg.Fetcher == nil {
		cfg.Fetcher = f.client
	}
	if cfg.Accepts == nil {
		cfg.Accepts = f.client.Accepts
	}
	if q, here := f.queue.(*memory.Frontier); here {
		cfg.Fault = q.Fault
	}
	if cfg.Exact = f.servers == nil; !cfg.Exact {
		cfg.Epoch, cfg.Linger = f.servers.Epoch, cmp.Or(cfg.Linger, linger)
	}
	c, err := crawl.New(cfg)
	if err != nil {
		return nil, err
	}
	c.SetSeeding(f.seeding.Load())
	self := frontier.NewMember(f.cfg.Kind, f.cfg.Version)
	self.ID = c.ID()
	f.member, err = frontier.Attend(context.Background(), f.queue, func() frontier.Member {
		p, m := c.Progress(), self
		m.Rate, m.Growth, m.Pages, m.Bytes, m.Visits, m.Limit, m.Seeding, m.Crowded, m.Room = p.Rate, p.Growth, int64(p.Done+p.Dead), int64(p.Wire), int(p.Visits), p.Limit, f.seeding.Load(), c.Crowded(), c.HasRoom()
		return m
	}, c.SetLive)
	if err != nil {
		return nil, err
	}
	if f.crawler = c; f.fleet == nil {
		return c, nil
	}
	f.prober = f.fleet.NewProber(f.cfg.Log)
	f.stop = f.prober.Start(context.Background(), c.Busy)
	return c, nil
}

// WriteMetrics writes the metrics of fetching and of the filters, in the text
// format; those of the work itself are the Crawler's.
func (f *Fetcher) WriteMetrics(w io.Writer) {
	f.cfg.Fetch.Metrics.WritePrometheus(w)
	if f.prober != nil {
		f.prober.WriteMetrics(w)
	}
}

// leaveTime bounds how long a program that ends waits for its last words to the crawl.
const leaveTime = 2 * time.Second

// Withdraw takes the fetcher off the members of the crawl, once its Crawler has ended,
// with how it ended, as Progress has it, or "stopped". It may be
// called again.
func (f *Fetcher) Withdraw() error {
	if f.crawler == nil {
		return nil
	}
	return f.WithdrawAs(cmp.Or(f.crawler.Progress().Ended, "stopped"))
}

// WithdrawAs is Withdraw by one who knows better how it ended: the reports of the crawl
// have that word.
func (f *Fetcher) WithdrawAs(ended string) error {
	member, stop := f.member, f.stop
	f.member, f.stop = nil, nil
	if member == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	err := member.Leave(ctx, ended)
	if stop != nil {
		err = errors.Join(stop(), err)
	}
	return err
}

// Close withdraws, and closes what Open opened. A Crawler that runs is ended first, and
// its Run returns ErrClosed. Sink and handler are the caller's.
func (f *Fetcher) Close() error {
	if f.crawler != nil {
		f.crawler.Abort(ErrClosed)
	}
	err := f.Withdraw()
	switch {
	case f.servers != nil:
		err = errors.Join(err, f.servers.Close())
	case f.queue != nil:
		err = errors.Join(err, f.queue.Close())
	}
	f.client.Close()
	return err
}
