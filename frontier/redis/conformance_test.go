package redis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/frontiertest"
	"seine/frontier/memory"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

// fleet makes crawls on one server or cluster.
type fleet struct {
	client *shard.Client
	shards int
	made   atomic.Int64
	repeat *repeater
}

// newFleet connects to a server. Its crawls have so many shards.
func newFleet(t testing.TB, s *shardtest.Server, shards int) *fleet {
	client, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	f := &fleet{client: client, shards: shards, repeat: &repeater{rand: rand.New(rand.NewPCG(1, 2))}}
	each(t, client, func(n *goredis.Client) { n.AddHook(f.repeat) })
	return f
}

// each calls f with every master.
func each(t testing.TB, c *shard.Client, f func(*goredis.Client)) {
	switch r := c.Redis().(type) {
	case *goredis.ClusterClient:
		var mu sync.Mutex
		if err := r.ForEachMaster(context.Background(), func(_ context.Context, n *goredis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			f(n)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	case *goredis.Client:
		f(r)
	}
}

// open makes an empty crawl with low bounds whose time stands still: it runs
// far ahead of the server's, moved by the last tick that scripts are never
// behind.
func (fl *fleet) open(t testing.TB) frontiertest.Backend { return fl.openWith(t, 40, 20) }

func (fl *fleet) openWide(t testing.TB) frontiertest.Backend { return fl.openWith(t, 0, 0) }

// openGrown makes a crawl whose filters have three keys each.
func (fl *fleet) openGrown(t testing.TB) frontiertest.Backend {
	b := fl.open(t)
	f := b.Frontier.(*redis.Frontier)
	for range 2 {
		if err := f.Grow(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // a further key is large, and the next crawl must fit beside it
		for k := range f.Shards() {
			for i := 1; i <= 2; i++ {
				fl.client.Redis().Del(context.Background(), f.Keys(k).FilterKey(0, i))
			}
		}
	})
	return b
}

// openSmall makes one whose filters get further keys after each thousand URLs.
func (fl *fleet) openSmall(t testing.TB) frontiertest.Backend {
	b := fl.openWide(t)
	if err := b.Frontier.(*redis.Frontier).Configure(redis.Config{MaxFilter: 20_000}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (fl *fleet) openWith(t testing.TB, list, dead int) frontiertest.Backend {
	ctx := context.Background()
	crawl := fmt.Sprint("conformance-", fl.made.Add(1))
	layout := frontier.Layout{Shards: fl.shards, PlanURLs: 20_000, ErrorRate: 1e-6}
	f, err := redis.Create(ctx, fl.client, crawl, layout, frontier.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	cfg := redis.Config{MaxList: int64(list), MaxDead: int64(dead)}
	if list > 0 {
		cfg.MaxListBytes = frontiertest.MaxBytes
	}
	if err := f.Configure(cfg); err != nil {
		t.Fatal(err)
	}
	c := &crawlClock{client: fl.client, crawl: crawl, tags: shard.NewMap(fl.shards)}
	c.must(t, c.start(ctx))
	return frontiertest.Backend{
		Frontier: f, MaxList: list, MaxDead: dead,
		Advance: func(d time.Duration) { c.must(t, c.advance(ctx, d)) },
		Silent: func(d time.Duration) time.Duration {
			moved, err := c.silent(ctx, d)
			c.must(t, err)
			return moved
		},
	}
}

// crawlClock moves the time of a crawl.
type crawlClock struct {
	client *shard.Client
	crawl  string
	tags   shard.Map
}

func (c *crawlClock) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ahead is how far the time of a crawl runs before the server's.
const ahead = 24 * time.Hour

func (c *crawlClock) start(ctx context.Context) error {
	at := time.Now().Add(ahead).UnixMilli()
	for k := range c.tags.Len() {
		if err := c.client.Redis().HSet(ctx, shard.KeysOf(c.crawl, c.tags.Tag(k)).Meta(), "tick", at).Err(); err != nil {
			return err
		}
	}
	return nil
}

func (c *crawlClock) advance(ctx context.Context, d time.Duration) error {
	for k := range c.tags.Len() {
		if err := c.client.Redis().HIncrBy(ctx, shard.KeysOf(c.crawl, c.tags.Tag(k)).Meta(), "tick", d.Milliseconds()).Err(); err != nil {
			return err
		}
	}
	return nil
}

// shift moves all times of a shard back, so that its last tick was so many
// milliseconds ago by the server's clock.
var shift = goredis.NewScript(`
local T = redis.call('TIME')
local now = T[1] * 1000 + math.floor(T[2] / 1000)
local by = now - ARGV[1] - redis.call('HGET', KEYS[1], 'tick')
for i, key in ipairs(KEYS) do
  if redis.call('TYPE', key).ok == 'zset' then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, string.format('%.0f', by), member) end
  else
    for _, field in ipairs({'clock', 'tick', 'quiet'}) do
      local v = redis.call('HGET', key, field)
      if v then redis.call('HSET', key, field, string.format('%.0f', v + by)) end
    end
  end
end
return by`)

// silent lets time pass without a tick, and returns how far that moved the times
// of the shard of a.example. Time no longer stands still then.
func (c *crawlClock) silent(ctx context.Context, d time.Duration) (moved time.Duration, err error) {
	own := c.tags.Of(canon.FingerprintOf([]byte("a.example"), nil))
	for k := range c.tags.Len() {
		keys := shard.KeysOf(c.crawl, c.tags.Tag(k))
		timed := []string{keys.Meta(), keys.Leases(), keys.PausedReady(), keys.Ready(0), keys.Ready(1), keys.Ready(2), keys.Ready(3)}
		for _, site := range []string{"a.example"} {
			timed = append(timed, keys.Site(site), keys.Wait(site))
		}
		by, err := shift.Run(ctx, c.client.Redis(), timed, d.Milliseconds()).Int64()
		if err != nil {
			return 0, err
		}
		if k == own {
			moved = time.Duration(by) * time.Millisecond
		}
	}
	return moved, nil
}

// What a repeater does with a call.
const (
	once       = iota
	twice      // runs it twice and answers what it said first
	unreliable // repeats some calls, and sends copies of a tenth late
)

// in says what the repeater does during a test.
func (fl *fleet) in(mode int32, open func(testing.TB) frontiertest.Backend) func(testing.TB) frontiertest.Backend {
	return func(t testing.TB) frontiertest.Backend {
		fl.repeat.mode.Store(once)
		b := open(t)
		fl.repeat.mu.Lock()
		fl.repeat.old = nil
		fl.repeat.mu.Unlock()
		fl.repeat.mode.Store(mode)
		t.Cleanup(func() { fl.repeat.mode.Store(once) })
		return b
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		server := shardtest.Start(t, shardtest.Config{Kind: kind})
		conform(t, newFleet(t, server, 2))
	})
	t.Run("valkey-bloom", func(t *testing.T) {
		conform(t, newFleet(t, shardtest.Start(t, shardtest.Config{ValkeyBloom: true}), 2))
	})
	t.Run("six masters", func(t *testing.T) { conform(t, newFleet(t, shardtest.Masters(t, 6), 6)) })
}

// conform runs the suite, plain and with every script run twice, and the random
// drivers.
func conform(t *testing.T, fl *fleet) {
	t.Run("plain", func(t *testing.T) { frontiertest.Run(t, fl.in(once, fl.open)) })
	t.Run("twice", func(t *testing.T) { frontiertest.Run(t, fl.in(twice, fl.open)) })
	t.Run("further keys of filters", func(t *testing.T) { frontiertest.Run(t, fl.in(twice, fl.openGrown)) })
	t.Run("filters get further keys", func(t *testing.T) { frontiertest.Run(t, fl.in(once, fl.openSmall)) })
	t.Run("drive", func(t *testing.T) { frontiertest.Drive(t, fl.in(once, fl.openWide), 1, 1500) })
	t.Run("drive unreliably", func(t *testing.T) { frontiertest.Drive(t, fl.in(unreliable, fl.openWide), 2, 1500) })
}

// TestCompareWithMemory takes random steps on Redis and on the model.
func TestCompareWithMemory(t *testing.T) {
	t.Parallel()
	fl := newFleet(t, shardtest.One(t), 2)
	frontiertest.Compare(t, openModel, fl.open)
}

// openModel makes a frontier in memory whose time passes as that of the crawls
// in Redis does here: with somebody ticking all the time.
func openModel(t testing.TB) frontiertest.Backend {
	now := time.Now()
	f, err := memory.New(memory.Config{Layout: frontier.Layout{Shards: 2}, Now: func() time.Time { return now }, MaxList: 40, MaxDead: 20})
	if err != nil {
		t.Fatal(err)
	}
	advance := func(d time.Duration) {
		for d > 0 {
			step := min(d, 20*time.Second)
			now = now.Add(step)
			d -= step
			for k := range f.Shards() {
				if _, err := f.Tick(context.Background(), k, frontier.TickRequest{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	advance(2 * time.Minute) // past the quiet time after the first tick
	return frontiertest.Backend{Frontier: f, Advance: advance}
}
