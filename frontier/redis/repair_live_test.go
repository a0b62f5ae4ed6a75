package redis

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/shard/shardtest"
)

// TestCheckLive checks and repairs the shards of a crawl all the while fetchers
// work on them, crash, stall and repeat calls. Nothing is wrong, so nothing may be
// found; and no URL may be lost by the repairs.
func TestCheckLive(t *testing.T) {
	t.Parallel()
	s := open(t, shardtest.One(t), 2, 3)
	other := attach(s.client, s.crawl, s.layout, s.epoch) // whose calls are not repeated for ever
	d := newDriver(s, 30, 30)
	quit := make(chan struct{})
	var looks, moving int
	var checker sync.WaitGroup
	checker.Go(func() {
		for {
			for k := range d.Shards() {
				select {
				case <-quit:
					return
				default:
				}
				look := AuditCheck
				if looks%3 == 2 {
					look = AuditRepair
				}
				c, err := look(t.Context(), other, k, looks%2 == 0)
				if err != nil {
					d.fail("check: %v", err)
					return
				}
				if c.Faulted+c.Repairs > 0 {
					d.fail("shard %d: %s, mended: %s", k, strings.Join(c.Faults, "\n"), strings.Join(c.Repaired, "\n"))
					return
				}
				if looks++; c.Moving {
					moving++
				}
			}
		}
	})
	end := sync.OnceFunc(func() {
		close(quit)
		checker.Wait()
	})
	defer end()
	d.crawl(t, 4, time.Minute)
	end()
	if text := d.failed.Load(); text != nil {
		t.Fatal(*text)
	}
	if moving < 20 {
		t.Errorf("%d looks, %d of them while the shard changed: too few to tell", looks, moving)
	}
	t.Logf("%d looks, %d while the shard changed", looks, moving)
}

// TestRepairLive takes sites out of their ready sets and leases away while
// fetchers work, and repairs: no URL is lost, and no site leased to two.
func TestRepairLive(t *testing.T) {
	t.Parallel()
	s := open(t, shardtest.One(t), 2, 3)
	other := attach(s.client, s.crawl, s.layout, s.epoch)
	d := newDriver(s, 30, 30)
	other.cfg = s.cfg
	quit, repairs := make(chan struct{}), int64(0)
	var repairer sync.WaitGroup
	repairer.Go(func() {
		r := rand.New(rand.NewPCG(3, 4))
		for taken := 0; taken < 40; { // a lease that is taken away for ever never ends
			select {
			case <-quit:
				return
			default:
			}
			took, c, err := d.takeAndRepair(r, other)
			if err != nil || c.Faulted > 0 {
				d.fail("repair: %+v %v", c, err)
				return
			}
			if took {
				taken++
			}
			repairs += c.Repairs
			time.Sleep(time.Millisecond) // lets fetchers in
		}
	})
	end := sync.OnceFunc(func() {
		close(quit)
		repairer.Wait()
	})
	defer end()
	d.crawl(t, 4, time.Minute)
	end()
	if text := d.failed.Load(); text != nil {
		t.Fatal(*text)
	}
	if repairs < 5 {
		t.Errorf("%d repairs: too few to tell", repairs)
	}
	t.Logf("%d repairs", repairs)
}

// takeAndRepair takes a site out of its ready set, or a lease away, if there is one
// where it looks, and has the shard repaired before anyone looks at all.
func (d *driver) takeAndRepair(r *rand.Rand, by *Frontier) (took bool, c *Audited, err error) {
	d.world.RLock()
	defer d.world.RUnlock()
	k := r.IntN(d.Shards())
	key := d.base[k][2+r.IntN(5)] // leases, ready:0 to ready:3
	if member, ok := d.do("ZRANDMEMBER", key).(string); ok {
		d.do("ZREM", key, member)
		took = true
	}
	c, err = AuditRepair(d.t.Context(), by, k, false)
	return took, c, err
}
