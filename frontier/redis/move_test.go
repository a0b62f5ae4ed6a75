package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard"
	"seine/shard/shardtest"
)

// mover moves the slot of a shard back and forth until stop is closed, and
// rests in the middle of each move, with some keys here and some there.
func (d *driver) mover(servers *shardtest.Server, k int, stop chan struct{}) (moves int) {
	slot := shard.Slot(d.shards.Tag(k))
	for {
		select {
		case <-stop:
			return moves
		default:
		}
		d.world.RLock()
		to := servers.Nodes[0]
		if servers.MasterOf(d.t, slot) == to {
			to = servers.Nodes[1]
		}
		m := servers.BeginMove(d.t, slot, to)
		time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
		for range 3 {
			keys := m.From.Do(d.t, "CLUSTER", "GETKEYSINSLOT", slot, 30).([]any)
			for _, key := range keys {
				if rand.IntN(2) == 0 {
					m.Keys(d.t, key.(string))
				}
			}
			time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
		}
		m.Finish(d.t)
		moves++
		d.world.RUnlock()
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
}

// TestSlotMoves: slots move back and forth between two masters while fetchers
// crash and calls are repeated and come late.
func TestSlotMoves(t *testing.T) {
	t.Parallel()
	servers := shardtest.Masters(t, 2)
	s := open(t, servers, 2, 2)
	d := newDriver(s, 14, 14)
	stop, moved := make(chan struct{}), make(chan int)
	go func() { moved <- d.mover(servers, 0, stop) }()
	defer func() {
		close(stop)
		if n := <-moved; n < 3 {
			t.Errorf("the slot moved %d times only", n)
		} else {
			t.Logf("the slot moved %d times", n)
		}
	}()
	d.crawl(t, 4, 2*time.Minute)
}

// TestCheckWhileSlotsMove: a shard at rest whose slot moves has no fault, whenever
// it is looked at.
func TestCheckWhileSlotsMove(t *testing.T) {
	t.Parallel()
	servers := shardtest.Masters(t, 2)
	s := open(t, servers, 1, 2)
	d := newDriver(s, 14, 14)
	d.lateOf, d.twiceOf = 0, 0 // a tick that runs twice leases nothing
	for site := range d.sites {
		for page := range d.pages {
			if err := d.admitAll(t.Context(), []frontier.Candidate{d.page(site, page)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.pass(0, time.Second)
	due := s.tick(frontier.TickRequest{Want: 14})
	visits := s.visit(frontier.VisitLimits{URLs: 2}, due.Due...)
	if len(visits) != 14 {
		t.Fatalf("%d visits were leased, of %+v; %v", len(visits), due, s.do("HGETALL", s.keys[0].Meta()))
	}
	for i, v := range visits {
		st := all(v, frontier.Dead) // found by the names of their keys only
		for j := range st.Outcomes {
			st.Outcomes[j].Cause = fmt.Sprint("cause", i)
		}
		s.settle(st)
	}
	stop, moved := make(chan struct{}), make(chan int)
	go func() { moved <- d.mover(servers, 0, stop) }()
	for range 15 {
		c, err := AuditCheck(t.Context(), s.Frontier, 0, true)
		if err != nil || c.Faulted > 0 || c.Gauges["queued"] != 14*14-28 || c.Gauges["dead"] != 28 {
			t.Errorf("%+v %v", c, err)
			break
		}
	}
	close(stop)
	if n := <-moved; n < 3 {
		t.Errorf("the slot moved %d times only", n)
	}
}

// TestScriptsWaitForMoves: a node that a slot is leaving runs a script while it
// has all of its declared keys. If the script empties one of them and looks at
// it again, the node takes that key for moved and breaks the script off, with
// its writes kept. A key that is always missing keeps scripts from running there.
func TestScriptsWaitForMoves(t *testing.T) {
	t.Parallel()
	servers := shardtest.Masters(t, 2)
	s := open(t, servers, 1, 1)
	slot := shard.Slot(s.shards.Tag(0))
	from, to := servers.MasterOf(t, slot), servers.Nodes[0]
	if from == to {
		to = servers.Nodes[1]
	}
	var v frontier.Visit
	for v.Token == "" {
		s.admit(candidate("a.example", 0))
		v = s.acquire(1)
	}
	// Every key that settling declares is there.
	s.admit(class(candidate("a.example", 10), 0), class(candidate("a.example", 11), 1), class(candidate("a.example", 12), 2), class(candidate("a.example", 13), 3))
	for class := range uint8(4) {
		c := candidate("a.example", 20+int(class)) // of shard 0 whatever its name
		c.Site, c.Priority = "b"+string('0'+class), class
		s.admit(c)
	}
	s.do("ZADD", s.keys[0].PausedReady(), 1, "c.example")
	entry := string(frontier.AppendEntry(nil, "a.example", &frontier.Entry{URL: "https://a.example/w"}))
	s.do("ZADD", s.keys[0].Wait("a.example"), 1e15, entry)
	s.do("ZADD", s.keys[0].Recrawls("a.example"), 1e15, "w")
	s.do("HSET", s.keys[0].RecrawlEntries("a.example"), "w", entry)
	for _, hash := range []string{s.keys[0].Counters(), s.keys[0].Seeds()} {
		s.do("HSET", hash, "x", 1)
	}
	for _, list := range []string{"pages", "dead", "queued"} {
		s.do("ZADD", s.keys[0].Top(list), 1, "b0")
	}

	move := servers.BeginMove(t, slot, to)
	settle := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := s.Settle(ctx, 0, []frontier.Settlement{all(v, frontier.Done)})
		return err
	}
	open := func() int64 { // 0 also when the node asks for the key elsewhere
		return from.Client().HLen(t.Context(), s.keys[0].Visit(v.Token)).Val()
	}
	if err := settle(300 * time.Millisecond); err == nil || open() != 1 || s.stat("done") != 0 {
		t.Errorf("while the slot moves: %v, %v open, want an error and 1", err, open())
	}
	untried := shard.JoinScript("settle", allowOOM, part("prelude"), part("counters"), part("release"),
		shard.ScriptPart{File: "untried", Text: "local function try_all() end\nlocal function try_counters() end\n"}, part("settle"))
	run := s.run
	s.run = func(ctx context.Context, k int, _ *shard.Script, keys []string, args ...any) (any, error) {
		keys[8] = s.keys[0].Meta()
		return run(ctx, k, untried, keys, args...)
	}
	if err := settle(time.Minute); err == nil || !strings.Contains(err.Error(), "non local key") || open() != 0 || s.stat("done") != 0 {
		t.Errorf("without the key that is always missing: %v; if this works now, the key can go", err)
	}
	s.run = run
	move.Finish(t)
	if err := settle(time.Minute); err != nil {
		t.Errorf("after the move: %v", err)
	}
}
