package redis

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard/shardtest"
)

// crawl runs n fetchers until nothing is left, looks at the shards meanwhile,
// and fails the test when a URL was lost.
func (d *driver) crawl(t *testing.T, n int, limit time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := d.admitAll(ctx, d.seeds()); err != nil {
		t.Fatal(err)
	}
	work, stop := context.WithCancel(ctx)
	var fetchers sync.WaitGroup
	quit := func() {
		stop()
		fetchers.Wait()
		d.late.Wait()
	}
	defer quit() // before the servers, when a look fails
	for i := range n {
		fetchers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), uint64(time.Now().UnixNano())))
			for work.Err() == nil { // a crashed one is replaced
				if err := d.fetcher(work, r); err != nil {
					d.fail("%v", err)
				}
			}
		})
	}
	finished := false
	for !finished && ctx.Err() == nil && d.failed.Load() == nil {
		time.Sleep(d.lease / 4)
		finished = d.look(t, stop)
	}
	quit()
	if text := d.failed.Load(); text != nil {
		t.Fatal(*text)
	}
	if !d.look(t, stop) {
		t.Fatal("the crawl did not end in time, or work came up after its end")
	}
	d.account(t)
}

// look stops the world, checks every shard and reports whether nothing is left. It
// calls end then, before anyone can retry a dead letter.
func (d *driver) look(t *testing.T, end func()) bool {
	d.world.Lock()
	defer d.world.Unlock()
	left := int64(0)
	for k := range d.Shards() {
		c, err := AuditCheck(t.Context(), d.Frontier, k, false)
		if err != nil {
			t.Fatal(err)
		}
		if c.Faulted > 0 || c.Moving {
			t.Fatalf("shard %d, moving %v: %s", k, c.Moving, strings.Join(c.Faults, "\n"))
		}
		left += c.Gauges["queued"] + c.Gauges["waiting"] + c.Gauges["open"] + c.Leases
	}
	if left == 0 {
		end()
	}
	return left == 0
}

// account fails the test for every page that ended nowhere.
func (d *driver) account(t *testing.T) {
	for k := range d.Shards() {
		d.sound(k)
		for _, raw := range d.do("LRANGE", d.keys[k].Dead(frontier.CauseLost), 0, -1).([]any) {
			letter, err := ParseDeadLetter(raw.(string), frontier.CauseLost)
			if err != nil {
				t.Fatal(err)
			}
			d.dead[letter.URL] = frontier.CauseLost
		}
	}
	reached, queue, lost := make(map[string]bool), []string{}, 0
	for _, c := range d.seeds() {
		reached[c.URL], queue = true, append(queue, c.URL)
	}
	for len(queue) > 0 {
		url := queue[0]
		queue = queue[1:]
		if d.done[url] == 0 {
			if d.dead[url] == "" {
				lost++
				t.Errorf("lost: %s", url)
			}
			continue
		}
		for _, c := range d.linksOf(url) {
			if !reached[c.URL] {
				reached[c.URL] = true
				queue = append(queue, c.URL)
			}
		}
	}
	repeats := 0
	for _, n := range d.done {
		repeats += n - 1
	}
	if len(d.done)+len(d.dead) < d.sites*d.pages/2 {
		t.Errorf("only %d pages of %d were reached", len(reached), d.sites*d.pages)
	}
	if reached[d.poison] && d.dead[d.poison] != frontier.CauseLost {
		t.Errorf("the poison ended as %q", d.dead[d.poison])
	}
	t.Logf("%d pages, %d dead, %d lost, %d fetched again, %d crashes, poison leased %d times, %d calls",
		len(d.done), len(d.dead), lost, repeats, d.crashes.Load(), d.acquired.Load(), d.calls.Load())
}

// TestDriver is the third ring: simulated fetchers that crash and stall, calls
// that are repeated and that arrive late.
func TestDriver(t *testing.T) {
	t.Parallel()
	s := open(t, shardtest.One(t), 2, 3)
	d := newDriver(s, 30, 30)
	d.crawl(t, 4, time.Minute)
	if n := d.acquired.Load(); n > 3 {
		t.Errorf("the poison was leased %d times, want 3", n)
	}
}
