package redis

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard/shardtest"
)

// TestHugeSite offers ten times what fills the memory: all of one huge site, and
// beside it a little of 200 others. Memory stays below maxmemory, the others are
// all let in, and the huge one again when it was fetched for a while.
func TestHugeSite(t *testing.T) {
	t.Parallel()
	const room, perCall = 2 << 20, 500
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		s := marked(t, kind, 75, 85, 1)
		s.do("DEL", s.keys[0].Filter(0))
		s.do("BF.RESERVE", s.keys[0].Filter(0), "0.000001", 200_000)
		offer := func(from, to int) string {
			var batch []frontier.Candidate
			for i := from; i < to; i++ {
				batch = append(batch, benchCandidate("huge.example", i))
			}
			return s.admit(batch...)
		}
		offer(0, perCall) // what scripts themselves take
		limit := s.memory().Used + room
		s.do("CONFIG", "SET", "maxmemory", limit)
		low := limit * 75 / 100
		filled, most, turned, small := 0, int64(0), 0, make([]int, 200)
		for i := perCall; filled == 0 || i < 10*filled; i += perCall {
			got := offer(i, i+perCall)
			if turned += strings.Count(got, "c"); turned > 0 && filled == 0 {
				filled = i
			}
			if strings.Contains(got, "f") {
				t.Fatalf("%s after %d URLs", got, i)
			}
			if site := i / perCall % len(small); small[site] < 20 {
				name := fmt.Sprintf("small-%d.example", site)
				if got := s.admit(candidates(name, small[site], small[site]+5)...); got != "aaaaa" {
					t.Fatalf("%s: %s, memory %+v", name, got, s.memory())
				}
				small[site] += 5
			}
			if i/perCall%10 == 0 {
				m := s.memory()
				if most = max(most, m.Used); m.Used > limit {
					t.Fatalf("%d bytes of %d after %d URLs", m.Used, limit, i)
				}
			}
		}
		queue := s.number("LLEN", s.keys[0].Queue("huge.example", 2))
		t.Logf("%d URLs until the first was turned away, %d turned away in all, %d queued; memory up to %.1f%% of maxmemory",
			filled, turned, queue, 100*float64(most)/float64(limit))
		stats, err := s.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text := stats[0].Pressure(s.Settings()); stats[0].TurnedAway != int64(turned) || stats[0].Queued != queue+int64(sum(small)) ||
			!strings.Contains(text, fmt.Sprintf("links to queues of %d URLs or more are turned away", stats[0].Memory.Cutoff)) {
			t.Errorf("%+v, %s", stats[0], text)
		}
		s.sound(0)

		for s.memory().Used >= low-100<<10 { // what connections take comes and goes
			s.pass(0, 2*time.Millisecond)
			for _, v := range s.visit(frontier.VisitLimits{URLs: 1000}, s.tick(frontier.TickRequest{Want: 500}).Due...) {
				s.settle(all(v, frontier.Done))
			}
		}
		if got := offer(10*filled+perCall, 10*filled+perCall+9); got != "aaaaaaaaa" {
			t.Errorf("below the low watermark: %s, memory %+v", got, s.memory())
		}
		if m := s.memory(); m.OverWatermark || m.Cutoff != 0 {
			t.Errorf("below the low watermark: %+v", m)
		}
		s.sound(0)
	})
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

// TestLongestOfAMaster: shards of one server share what they know of long queues,
// those of others do not.
func TestLongestOfAMaster(t *testing.T) {
	t.Parallel()
	server := shardtest.Masters(t, 2)
	s := open(t, server, 4, 1)
	s.settings.Store(&frontier.Settings{MemoryHigh: 99})
	for k, longest := range []int{100, 7, 9, 8} {
		s.do("HSET", s.keys[k].Meta(), "longest", longest)
	}
	for _, n := range server.Nodes {
		n.Do(t, "CONFIG", "SET", "maxmemory", 1<<40)
	}
	if _, err := s.Stats(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []uint32
	for k := range s.longest {
		got = append(got, s.longest[k].Load())
	}
	if !slices.Equal(got, []uint32{100, 100, 9, 9}) {
		t.Error(got)
	}
}

// TestLongestFades: the length of the longest queue follows what links are
// offered to: up at once, down a little once a second, and by halves every ten
// when that queue is offered none.
func TestLongestFades(t *testing.T) {
	t.Parallel()
	s := marked(t, shardtest.Redis, 40, 60, 1)
	for _, c := range []struct {
		longest int
		age     time.Duration
		want    int64 // after links to a queue that has 100 then
	}{
		{99, -time.Hour, 99}, {99, 2 * time.Second, 100}, {90, -time.Hour, 100}, {104, -time.Hour, 104}, {104, 2 * time.Second, 100},
		{1000, -time.Hour, 1000}, {1000, 2 * time.Second, 1000}, {1000, 11 * time.Second, 500}, {150, 11 * time.Second, 100},
	} {
		s.do("CONFIG", "SET", "maxmemory", 0)
		s.reset(t)
		s.admit(candidates("a.example", 0, 98)...)
		s.settings.Store(&frontier.Settings{MemoryLow: 40, MemoryHigh: 60})
		s.fill(30)
		s.do("HSET", s.keys[0].Meta(), "longest", c.longest, "since", time.Now().Add(-c.age).UnixMilli())
		s.admit(candidates("a.example", 98, 100)...)
		if got := s.memory().Longest; got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
