// Package redis keeps the frontier of a crawl in Redis.
//
// A crawl is split into shards; all keys of a shard share one slot, so one
// script changes them together. Every file here stands beside the script that
// it calls, in lua:
//
//   - Admit makes candidates known: what is new goes from the filter into the
//     queue of its site and class, unless memory is scarce and that queue long.
//   - Duplicates says which contents of pages came before, and remembers new ones.
//   - Tick names sites that are due, each with a ticket: a claim on the site
//     that holds for a few seconds.
//   - Visit turns tickets into visits: some URLs of the site, leased with the
//     whole site to one fetcher under a token until a deadline.
//   - Settle says what became of each URL, and releases the site with the
//     time before which nobody may ask it again.
//   - Renew has URLs that wait for a recrawl fetched sooner.
//   - Reap takes back what a dead fetcher held.
//   - Alter pauses, blocks or caps a site; RetryDead queues dead letters again.
//     Package audit holds a shard against all of these rules, and repairs it.
//
// The ready rule, in lua/prelude.lua, says where a site stands. A site without
// work, or leased, is in no ready set; a paused one with work is in ready:paused; any
// other is in the class of its best queue from its clock on, or, with retries
// only, or URLs to be recrawled, in the last class from the first of these on. Time is the server's and
// never behind the last tick; callers send and get durations.
//
// Calls may be repeated and may arrive late; every script has the same effect
// then as once. While a shard moves to another master its scripts wait, for they
// declare a key that never exists. A crash of a fetcher loses nothing: what it held comes back
// when its lease has passed.
package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seine/bloom"
	"seine/frontier"
	"seine/frontier/canon"
	"seine/shard"
)

// Config says how this program works on a crawl. Zero fields are the
// documented defaults; all programs of a crawl should have the same.
type Config struct {
	Lease        time.Duration // how long a visit lives without Tick, default 60 s; at least five tick intervals
	Claim        time.Duration // how long a ticket keeps others from its site, default 5 s
	MaxList      int64         // entries of one site and class, default 8 million: a longer list could not move to another master
	MaxListBytes int64         // bytes that they may take in Redis, default 256 MB, for the same reason
	MaxRecrawls  int64         // URLs of one site that may wait to be recrawled, default 2 million, for the same reason
	MaxDead      int64         // dead letters of one cause and shard, default 100,000
	AckReplicas  int           // replicas that must acknowledge an admission, default none
	AckTimeout   time.Duration // how long to wait for them, default 2 s
	MaxFilter    int64         // bytes that a key of a filter grows to, default 256 MB: a larger one could not move to another master
}

// Validate joins all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	fault := func(wrong bool, text string) {
		if wrong {
			errs = append(errs, errors.New("frontier: config: "+text))
		}
	}
	fault(c.Lease < 0 || c.Lease > 0 && c.Lease < 10*time.Millisecond, "Lease must be 10 ms or more, or 0 for the default")
	fault(c.Claim < 0, "Claim must not be negative")
	fault(c.MaxList < 0, "MaxList must not be negative")
	fault(c.MaxRecrawls < 0, "MaxRecrawls must not be negative")
	fault(c.MaxListBytes < 0, "MaxListBytes must not be negative")
	fault(c.MaxDead < 0, "MaxDead must not be negative")
	fault(c.AckReplicas < 0, "AckReplicas must not be negative")
	fault(c.MaxFilter < 0, "MaxFilter must not be negative")
	fault(c.AckTimeout < 0, "AckTimeout must not be negative")
	return errors.Join(errs...)
}

func (c Config) complete() Config {
	c.Lease = cmp.Or(c.Lease, time.Minute)
	c.Claim = cmp.Or(c.Claim, 5*time.Second)
	c.MaxList = cmp.Or(c.MaxList, 8_000_000)
	c.MaxRecrawls = cmp.Or(c.MaxRecrawls, 2_000_000)
	c.MaxListBytes = cmp.Or(c.MaxListBytes, bloom.MaxKeyBytes)
	c.MaxDead = cmp.Or(c.MaxDead, 100_000)
	c.AckTimeout = cmp.Or(c.AckTimeout, 2*time.Second)
	c.MaxFilter = cmp.Or(c.MaxFilter, bloom.MaxKeyBytes)
	return c
}

// Frontier is one crawl in Redis. It is safe for concurrent use.
type Frontier struct {
	feedRefused atomic.Int64 // elements of the feed that this process refused
	client      *shard.Client
	crawl       string
	layout      frontier.Layout
	plan        bloom.Plan // of the filters, which follows from the layout
	epoch       string     // of this creation of the crawl; scripts answer stale to another
	shards      shard.Map
	keys        []shard.Keys
	settings    atomic.Pointer[frontier.Settings]

	cfg           Config
	base          [][]string // KEYS[1..8] of every script, by shard
	process       string     // makes tokens of this process differ from those of others
	run           runner     // client.Run, or what a test puts in its place
	tokens        atomic.Uint64
	urls          family                                // filters of what is known
	contents      family                                // the filter of contents
	longest       []atomic.Uint32                       // by shard: the longest queue of its master, as Stats last saw it
	recent        atomic.Pointer[[]frontier.ShardStats] // as RecentStats last saw them
	readsOnly     atomic.Bool                           // its user may not write, as a try showed
	rightsUntried []atomic.Bool                         // by shard: it was silent when the program's rights were asked for
	admissions    sync.Pool                             // of *admission
}

// runner runs a script on the master that owns a shard.
type runner func(ctx context.Context, k int, s *shard.Script, keys []string, args ...any) (any, error)

// attach binds a client to a crawl whose root was read: its layout is valid.
func attach(client *shard.Client, crawl string, layout frontier.Layout, epoch string) *Frontier {
	f := &Frontier{client: client, crawl: crawl, layout: layout, epoch: epoch, shards: shard.NewMap(layout.Shards)}
	f.plan, _ = planOf(layout) // each valid layout has one
	f.cfg, f.longest = Config{}.complete(), make([]atomic.Uint32, layout.Shards)
	f.urls = family{field: "keys", each: make([]atomic.Int64, layout.Shards)}
	f.contents = family{field: "contents", each: make([]atomic.Int64, layout.Shards)}
	f.rightsUntried = make([]atomic.Bool, layout.Shards)
	f.process, f.run = strings.ToLower(rand.Text()[:11]), client.Run
	for k := range layout.Shards {
		keys := shard.KeysOf(crawl, f.shards.Tag(k))
		f.keys = append(f.keys, keys)
		f.base = append(f.base, []string{keys.Meta(), keys.Stats(), keys.Leases(),
			keys.Ready(0), keys.Ready(1), keys.Ready(2), keys.Ready(3), keys.PausedReady()})
	}
	f.settings.Store(&frontier.Settings{})
	return f
}

// Configure sets how this program works on the crawl. Call it before all else.
func (f *Frontier) Configure(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	f.cfg = cfg.complete()
	return nil
}

// Shards is the number of shards.
func (f *Frontier) Shards() int { return f.layout.Shards }

// Of is the shard that owns a fingerprint.
func (f *Frontier) Of(fp canon.Fingerprint) int { return f.shards.Of(fp) }

// Layout is what the crawl is built on.
func (f *Frontier) Layout() frontier.Layout { return f.layout }

// Settings is the crawl's settings as last read; do not change what it points to.
func (f *Frontier) Settings() *frontier.Settings { return f.settings.Load() }

// Call runs a script of shard k. keys are those after KEYS[9], args those after
// ARGV[1].
func (f *Frontier) Call(ctx context.Context, k int, s *shard.Script, keys []string, args []any) (any, error) {
	all := append(f.sharedKeys(make([]string, 0, preludeKeys+len(keys)), k, s), keys...)
	return f.callWhole(ctx, k, s, all, append([]any{f.epoch}, args...))
}

// callWhole is Call with KEYS and ARGV from the first on.
func (f *Frontier) callWhole(ctx context.Context, k int, s *shard.Script, keys []string, args []any) (any, error) {
	if err := f.awaitRights(ctx, k); err != nil {
		return nil, err
	}
	var reply any
	err := f.attempt(ctx, k, s.Name, func(ctx context.Context) (err error) {
		reply, err = f.run(ctx, k, s, keys, args...)
		return err
	})
	if err != nil {
		return nil, f.refusal(k, s.Name, err)
	}
	return reply, nil
}

// preludeKeys is how many keys the prelude of each script has, see sharedKeys.
const preludeKeys = 9

// sharedKeys appends KEYS[1..9] of a script. The last never exists; it bears the
// name of the script for those who read SLOWLOG.
func (f *Frontier) sharedKeys(dst []string, k int, s *shard.Script) []string {
	return append(append(dst, f.base[k]...), f.keys[k].Never(s.Name))
}

// refusal is what an error of a script of shard k stands for: ErrStale, or the error.
func (f *Frontier) refusal(k int, op string, err error) error {
	if code, _ := shard.Code(err); code == "STALE" {
		return &shard.Error{Shard: k, Op: op, Err: frontier.ErrStale}
	}
	return err
}

// SiteKeys is how many keys scripts know a site by.
const SiteKeys = 8

// AppendSite appends the keys that scripts know a site by: s, q of each class, w,
// a, e.
func (f *Frontier) AppendSite(keys []string, k int, site string) []string {
	return f.keys[k].AppendSite(keys, site)
}

// token names a visit. It is unlike any other token of this or another process,
// and ends with the hash of the site, by which a repair finds it again.
func (f *Frontier) token(site string) string {
	return f.process + strconv.FormatUint(f.tokens.Add(1), 36) + SiteSuffix(site)
}

// SiteSuffix is the end of the tokens of a site.
func SiteSuffix(site string) string {
	return "." + strconv.FormatUint(canon.FingerprintOf([]byte(site), nil).Site, 36)
}

// SuffixOf is the suffix that a token bears; one without is its own.
func SuffixOf(token string) string { return token[max(0, strings.LastIndexByte(token, '.')):] }

// Milliseconds rounds a duration up; a negative one is 0.
func Milliseconds(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

// MemberOf is a lease as it is in leases.
func MemberOf(l frontier.Lease) string { return l.Token + " " + l.Site }

// LeaseOf is the lease of a member.
func LeaseOf(member string) frontier.Lease {
	token, site, _ := strings.Cut(member, " ")
	return frontier.Lease{Token: token, Site: site}
}

// Malformed is the error of a reply that no script gives.
func Malformed(k int, op string, reply any) error {
	return &shard.Error{Shard: k, Op: op, Err: errors.New("frontier: reply has a form that this program does not know; run one version on a crawl")}
}

// ShardOf is the shard that owns a site.
func (f *Frontier) ShardOf(site string) int {
	return f.Of(canon.FingerprintOf([]byte(site), nil))
}
