package memory_test

import (
	"sync"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/frontiertest"
	"seine/frontier/memory"
)

// clock is the time of a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) silent(d time.Duration) (moved time.Duration) { c.Advance(d); return 0 }

// open makes an empty crawl of n shards with low bounds, whose time stands
// still.
func open(n int) func(testing.TB) frontiertest.Backend { return openWith(n, 40, 20) }

func openWith(n, list, dead int) func(testing.TB) frontiertest.Backend {
	return func(t testing.TB) frontiertest.Backend {
		c := &clock{now: time.Now()}
		cfg := memory.Config{Layout: frontier.Layout{Shards: n}, Now: c.Now, MaxList: list, MaxDead: dead}
		if list > 0 {
			cfg.MaxListBytes = frontiertest.MaxBytes
		}
		f, err := memory.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return frontiertest.Backend{Frontier: f, Advance: c.Advance, Silent: c.silent, MaxList: list, MaxDead: dead}
	}
}

func TestContract(t *testing.T) {
	t.Run("one shard", func(t *testing.T) { frontiertest.Run(t, open(1)) })
	t.Run("six shards", func(t *testing.T) { frontiertest.Run(t, open(6)) })
}

func TestDrive(t *testing.T) {
	for seed := range uint64(4) {
		frontiertest.Drive(t, openWith(1+2*int(seed%2), 0, 0), seed, 4000)
	}
}

func TestCompareWithItself(t *testing.T) {
	frontiertest.Compare(t, open(2), open(2))
}
