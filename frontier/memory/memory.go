// Package memory keeps a crawl's frontier in one process, with the contract
// that the frontier in Redis has. It serves crawls that need no servers, and it
// is the model that the scripts in Redis are compared with, so it follows their
// rules to the letter and is exact where they use a Bloom filter.
//
// A crawl is split into shards, each behind one mutex. A shard knows URLs by
// fingerprint (set), keeps the URLs that wait in the queues of their sites
// (queue), and orders sites, not URLs, by the time they are due: one heap for
// each class, where a site is in the class of its best queue. Tick names
// due sites and pushes them a few seconds on, a soft claim whose score is the
// ticket; Visit takes a site whose score is still the ticket's out of its heap
// and leases it under a token; Settle takes outcomes and releases the site;
// Reap does so for a fetcher that died. What no longer has work is forgotten a
// day after its clock.
//
// Nothing here waits for time: all of it passes by Config.Now, never backwards.
//
// Without Config.Dir a crawl ends with its process. With it, each change is in
// the store (package store) before the call returns, so a killed process loses
// nothing that it acknowledged, and a power cut loses at most what was done since
// the last sync. URLs that were leased at that moment stand at the front of their
// queues. The first of each visit counts as lost once more, for it may be what
// killed the process: it is leased alone next time, and from the second loss on as
// VisitLimits.Safe allows. After Close nothing counts as lost. While the disk is full
// calls wait for room until their ctx ends; after a sync that failed all fail, and the next
// process goes on from what the disk has.
package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// Config of a frontier; zero fields are the documented defaults.
type Config struct {
	Layout       frontier.Layout   // default one shard; of a crawl on disk, what it must have
	Settings     frontier.Settings // of a new crawl, default frontier.DefaultSettings; one on disk has its own
	Lease        time.Duration     // how long a visit lives without Tick, default 60 s
	Claim        time.Duration     // how long a ticket keeps others off its site, default 5 s
	MaxList      int               // entries a list, default 8 million; beyond, URLs are Capped
	MaxListBytes int               // bytes that they take, default 256 MB
	MaxDead      int               // dead letters a cause and shard, default 100,000; beyond, the oldest are dropped
	Now          func() time.Time  // default time.Now, never set back

	Dir    string        // where the crawl is kept, made when missing; default: nowhere
	Sync   time.Duration // what a power cut may undo, default 500 ms; negative: nothing, at the price of a sync each call
	Logger *slog.Logger  // for a full disk and failures in the background; default none

	memTable int // of the store, in tests
}

// complete fills in the defaults.
func (c Config) complete() Config {
	c.Layout.Shards = cmp.Or(c.Layout.Shards, 1)
	c.Layout = c.Layout.Complete()
	if reflect.ValueOf(c.Settings).IsZero() {
		c.Settings = frontier.DefaultSettings()
	}
	c.Settings.Rev = 1
	c.Lease = cmp.Or(c.Lease, time.Minute)
	c.Claim = cmp.Or(c.Claim, 5*time.Second)
	c.MaxList = cmp.Or(c.MaxList, 8_000_000)
	c.MaxListBytes = cmp.Or(c.MaxListBytes, 256_000_000)
	c.MaxDead = cmp.Or(c.MaxDead, 100_000)
	if c.Now == nil {
		began := time.Now()
		c.Now = func() time.Time { return began.Add(time.Since(began)) } // whatever is done to the clock meanwhile
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate joins all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	fault := func(wrong bool, text string) {
		if wrong {
			errs = append(errs, errors.New("memory: "+text))
		}
	}
	fault(c.Lease < 0, "Lease must not be negative")
	fault(c.Claim < 0, "Claim must not be negative")
	fault(c.MaxList < 0, "MaxList must not be negative")
	fault(c.MaxListBytes < 0, "MaxListBytes must not be negative")
	fault(c.MaxDead < 0, "MaxDead must not be negative")
	whole := c.complete()
	return errors.Join(append(errs, whole.Layout.Validate(), whole.Settings.Validate())...)
}

// Frontier is one crawl in this process. It is safe for concurrent use.
type Frontier struct {
	cfg      Config
	layout   frontier.Layout
	settings atomic.Pointer[frontier.Settings]
	changing sync.Mutex // held by Set and Pause
	states   []*shardState
	began    time.Time // when it was created
	run      string    // makes tokens of this process differ from those of others
	tokens   atomic.Uint64

	membership sync.Mutex
	members    map[string]frontier.Member
	runs       []frontier.Member // of fetchers, the last first

	pages pages

	ahead int64 // milliseconds that time runs before the clock

	dir         *dir         // nil when nothing is kept on disk
	adminServer *adminServer // serves other processes, or nil
}

// New makes an empty crawl, or opens the one that is in cfg.Dir. It fails with
// ErrLayout when that one has another layout, with ErrInUse when another
// process has it open, and with a store.DamageError, which names the file, when it
// is not what was written.
func New(cfg Config) (*Frontier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	want := cfg.Layout
	cfg = cfg.complete()
	f := &Frontier{began: cfg.Now().UTC()}
	if cfg.Dir != "" {
		d, err := openDir(cfg)
		if err != nil {
			return nil, err
		}
		if f.dir = d; d.found != nil {
			if err := d.found.check(want); err != nil {
				return nil, errors.Join(err, d.abandon())
			}
			cfg.Layout, cfg.Settings = d.found.Layout, d.found.Settings
			f.began = d.found.Began
		}
	}
	f.build(cfg)
	if f.dir != nil {
		if err := f.dir.load(f); err != nil {
			return nil, errors.Join(err, f.dir.abandon())
		}
		f.keepTime()
	}
	return f, nil
}

// keepTime lets the time of all shards go on from where that of the latest stood
// when the clock was set back since the crawl was last open.
func (f *Frontier) keepTime() {
	now := f.cfg.Now().UnixMilli()
	for _, p := range f.states {
		f.ahead = max(f.ahead, p.now-now)
	}
}

// build makes an empty crawl of f.
func (f *Frontier) build(cfg Config) {
	f.cfg, f.layout = cfg, cfg.Layout
	f.run = strings.ToLower(rand.Text()[:10])
	f.settings.Store(&cfg.Settings)
	for k := range cfg.Layout.Shards {
		f.states = append(f.states, newShardState(f, k))
	}
}

// Close writes what is not on disk yet. URLs that are out return to their
// queues with the next New. It is an error to use f afterwards.
func (f *Frontier) Close() error {
	if f.dir == nil {
		return nil
	}
	var err error
	if d := f.adminServer; d != nil {
		f.adminServer = nil
		err = d.close()
	}
	return errors.Join(err, f.dir.close())
}

// Shards is the number of shards.
func (f *Frontier) Shards() int { return len(f.states) }

// Of is the shard that owns a fingerprint.
func (f *Frontier) Of(fp canon.Fingerprint) int { return fp.Shard(len(f.states)) }

// Layout is what the crawl is built on.
func (f *Frontier) Layout() frontier.Layout { return f.layout }

// Settings is the crawl's settings; do not change what it points to.
func (f *Frontier) Settings() *frontier.Settings { return f.settings.Load() }

// Refresh is Settings: here they are never out of date.
func (f *Frontier) Refresh(ctx context.Context) (*frontier.Settings, error) {
	return f.settings.Load(), ctx.Err()
}

// Set applies change to the settings and raises their revision, which tells
// fetchers with their next tick. It returns them as they were and as they are.
func (f *Frontier) Set(ctx context.Context, change func(*frontier.Settings) error) (before, after *frontier.Settings, err error) {
	f.changing.Lock()
	defer f.changing.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	before = f.settings.Load()
	settings := *before
	if err := change(&settings); err != nil {
		return nil, nil, err
	}
	if err := settings.Validate(); err != nil {
		return nil, nil, err
	}
	settings.Rev++
	if err := f.keep(ctx, &settings); err != nil {
		return nil, nil, err
	}
	return before, &settings, nil
}

// Pause stops or resumes leasing: of one shard, or of the whole crawl when k is
// negative. What is leased goes on to its end; admission goes on.
func (f *Frontier) Pause(ctx context.Context, k int, paused bool) error {
	f.changing.Lock()
	defer f.changing.Unlock()
	first, last := k, k
	if k < 0 {
		first, last = 0, len(f.states)-1
	}
	for k := first; k <= last; k++ {
		p, err := f.shard(ctx, k, "pause")
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.stats.Paused = paused
		p.mu.Unlock()
	}
	settings := *f.settings.Load()
	settings.Rev++
	return f.keep(ctx, &settings)
}

// keep takes settings over, on disk too.
func (f *Frontier) keep(ctx context.Context, s *frontier.Settings) error {
	if f.dir != nil {
		if err := f.dir.keep(ctx, s, false); err != nil {
			return fmt.Errorf("memory: settings: %w", err)
		}
	}
	f.settings.Store(s)
	return nil
}

// PausedShards names the shards that are paused.
func (f *Frontier) PausedShards(ctx context.Context) ([]int, error) {
	var list []int
	for k := range f.states {
		p, err := f.shard(ctx, k, "pause")
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		if p.stats.Paused {
			list = append(list, k)
		}
		p.mu.Unlock()
	}
	return list, nil
}

// shard returns shard k.
func (f *Frontier) shard(ctx context.Context, k int, op string) (*shardState, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("frontier: shard %d: %s: %w", k, op, err)
	}
	if k < 0 || k >= len(f.states) {
		return nil, fmt.Errorf("memory: %s: no shard %d in a crawl of %d shards", op, k, len(f.states))
	}
	return f.states[k], nil
}

// token names a visit. It is unlike any other token of this or another run.
func (f *Frontier) token() string {
	return f.run + strconv.FormatUint(f.tokens.Add(1), 36)
}

// delay is what a site waits that has no delay of its own.
func (f *Frontier) delay() time.Duration { return f.settings.Load().Delay }
