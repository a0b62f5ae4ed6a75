package redis

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seine/bloom"
	"seine/frontier"
	"seine/shard"
	"seine/shard/shardtest"
)

// smallFilter bounds the keys of filters in these tests: two layers of 1,000 and
// 2,000 URLs at a rate of 1e-6, 12 KB.
var smallFilter = Config{MaxFilter: 20_000}

// programsOf makes a crawl of one shard, planned for 1,000 URLs at a rate, and opens it for so
// many programs, which keep keys of filters small.
func programsOf(t *testing.T, s *shardtest.Server, programs int, rate float64) []*Frontier {
	t.Helper()
	client, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if _, err := Create(t.Context(), client, "crawl", frontier.Layout{Shards: 1, PlanURLs: 1000, ErrorRate: rate}, frontier.DefaultSettings()); err != nil {
		t.Fatal(err)
	}
	var list []*Frontier
	for range programs {
		f, err := Open(t.Context(), client, "crawl", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Configure(smallFilter); err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

// as is a stand of a program.
func as(t testing.TB, f *Frontier) *stand {
	return &stand{Frontier: f, rdb: f.client.Redis(), t: t}
}

// count admits URLs from .. to and counts each verdict.
func (s *stand) count(from, to int) string {
	s.t.Helper()
	seen := map[rune]bool{}
	text := ""
	for at := from; at < to; at += 100 {
		for _, letter := range s.admit(candidates("a.example", at, min(at+100, to))...) {
			if !seen[letter] {
				seen[letter] = true
				text += string(letter)
			}
		}
	}
	return text
}

// TestFiltersStayMovable: however many URLs a crawl gets from however many programs,
// no key of a filter grows past its bound, and every URL is admitted once.
func TestFiltersStayMovable(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		programs := programsOf(t, shardtest.Start(t, shardtest.Config{Kind: kind}), 3, 1e-6)
		const urls = 15_000
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for _, f := range programs {
			wg.Go(func() {
				for at := 0; at < urls; at += 250 {
					verdicts := make([]frontier.Verdict, 250)
					if err := f.Admit(t.Context(), 0, candidates("a.example", at, at+250), verdicts); err != nil {
						t.Error(err)
						return
					}
					for _, v := range verdicts {
						if v == frontier.Admitted {
							admitted.Add(1)
						}
					}
				}
			})
		}
		wg.Wait()
		if n := admitted.Load(); n != urls {
			t.Errorf("%d URLs were admitted, want %d", n, urls)
		}
		s := as(t, programs[0])
		if got := s.count(0, urls); got != "s" {
			t.Errorf("verdicts %s, want that all are seen", got)
		}
		states, err := s.Filters(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		state := states[0]
		if state.Keys < 5 || state.Largest > smallFilter.MaxFilter || state.Items != urls || state.Stuck {
			t.Errorf("%+v, want 5 keys or more of at most %d bytes each", state, smallFilter.MaxFilter)
		}
		s.sound(0)
	})
}

// TestFiltersGrowWhileSlotsMove: filters get further keys, each URL is admitted once
// and none is forgotten, while the slot moves back and forth.
func TestFiltersGrowWhileSlotsMove(t *testing.T) {
	t.Parallel()
	server := shardtest.Masters(t, 2)
	programs := programsOf(t, server, 2, 1e-6)
	slot := shard.Slot(programs[0].shards.Tag(0))
	const urls = 12_000
	var admitted atomic.Int64
	var admitting sync.WaitGroup
	for _, f := range programs {
		admitting.Go(func() {
			for at := 0; at < urls; at += 100 {
				verdicts := make([]frontier.Verdict, 100)
				if err := f.Admit(t.Context(), 0, candidates("a.example", at, at+100), verdicts); err != nil {
					t.Error(err)
					return
				}
				for _, v := range verdicts {
					if v == frontier.Admitted {
						admitted.Add(1)
					}
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		admitting.Wait()
		close(ended)
	}()
	moves := 0
	for over := false; !over; moves++ {
		to := server.Nodes[0]
		if server.MasterOf(t, slot) == to {
			to = server.Nodes[1]
		}
		m := server.BeginMove(t, slot, to)
		for _, key := range m.From.Do(t, "CLUSTER", "GETKEYSINSLOT", slot, 3).([]any) {
			m.Keys(t, key.(string))
		}
		m.Finish(t)
		select {
		case <-ended:
			over = true
		case <-time.After(20 * time.Millisecond): // admissions get through
		}
	}
	s := as(t, programs[0])
	if n := admitted.Load(); n != urls || moves < 3 || s.urls.each[0].Load() < 4 {
		t.Errorf("%d URLs were admitted, want %d; %d moves, %d keys", n, urls, moves, s.urls.each[0].Load())
	}
	if got := s.count(0, urls); got != "s" {
		t.Errorf("verdicts %s, want that all are seen", got)
	}
	s.sound(0)
}

// TestFurtherKeysErrAsPromised: all keys of a filter together hold no more unknown
// URLs for known than the crawl allows.
func TestFurtherKeysErrAsPromised(t *testing.T) {
	t.Parallel()
	s := as(t, programsOf(t, shardtest.One(t), 1, 1e-2)[0])
	s.count(0, 18_000)
	states, err := s.Filters(t.Context(), 100_000)
	if err != nil {
		t.Fatal(err)
	}
	if s := states[0]; s.Keys < 3 || s.Over || s.Probe.Rate() < 1e-3 {
		t.Errorf("%+v, %v measured in %d keys, want 1e-3 to 1e-2", s, s.Probe, s.Keys)
	}
}

// TestOtherBound: beside a program without a bound a filter grows too large to move,
// which a check says. One with a bound then adds a further key, which both use.
func TestOtherBound(t *testing.T) {
	t.Parallel()
	programs := programsOf(t, shardtest.One(t), 2, 1e-6)
	loose, strict := as(t, programs[0]), as(t, programs[1])
	if err := loose.Configure(Config{MaxFilter: 1 << 28}); err != nil {
		t.Fatal(err)
	}
	if got := loose.count(0, 2000); got != "a" {
		t.Fatal("without a bound: ", got)
	}
	if got := strict.count(1500, 2500); got != "sa" {
		t.Errorf("with a bound: %s, want seen and admitted", got)
	}
	if got := loose.count(1500, 9000); got != "sa" {
		t.Errorf("without a bound, after the other: %s", got)
	}
	c, err := AuditCheck(t.Context(), strict.Frontier, 0, true)
	if err != nil || c.Faulted != 0 || !strings.Contains(strings.Join(c.Notes, " "), strict.keys[0].Filter(0)+": 0 MB, too large to move") {
		t.Errorf("%+v, %v, want that the filter cannot move", c, err)
	}
	for at := 9000; ; at += 100 {
		if strict.count(at, at+100); strict.urls.each[0].Load() > 1 {
			break
		}
		if at > 20_000 {
			t.Fatal("no further key")
		}
	}
	first, err := bloomInfo(t, strict, strict.keys[0].Filter(0))
	if err != nil || first.Items > first.Capacity {
		t.Errorf("%+v, %v", first, err)
	}
	for _, s := range []*stand{loose, strict} {
		if got := s.count(0, 9000); got != "s" {
			t.Errorf("what was admitted before is %s", got)
		}
	}
	strict.sound(0)
	if _, err := Delete(t.Context(), strict.client, "crawl"); err != nil {
		t.Error(err)
	}
}

// bloomInfo is the state of one key.
func bloomInfo(t *testing.T, s *stand, key string) (info bloom.Info, err error) {
	err = s.withFilters(func(filters *bloom.Filters) error {
		info, err = filters.Info(t.Context(), 0, key)
		return err
	})
	return info, err
}

// TestFurtherKeysAreKept: what further keys hold goes into a dump and comes out of
// it, is asked by a check, is put back by a repair, and a key that is missing is
// named.
func TestFurtherKeysAreKept(t *testing.T) {
	t.Parallel()
	s := as(t, programsOf(t, shardtest.One(t), 1, 1e-6)[0])
	if got := s.count(0, 4000); got != "a" {
		t.Fatal(got)
	}
	second := s.keys[0].FilterKey(0, 1)
	var file bytes.Buffer
	if err := s.DumpFilters(t.Context(), 0, &file); err != nil {
		t.Fatal(err)
	}

	s.do("DEL", second)
	if err := s.Admit(t.Context(), 0, candidates("a.example", 0, 1), make([]frontier.Verdict, 1)); !errors.Is(err, frontier.ErrLostFilter) || !strings.Contains(err.Error(), second) {
		t.Errorf("%v, want that %s is missing", err, second)
	}
	if c, err := AuditCheck(t.Context(), s.Frontier, 0, true); err != nil || c.Faulted != 1 || !strings.Contains(c.Faults[0], second) {
		t.Errorf("%+v, %v, want that %s is missing", c, err, second)
	}
	if err := s.LoadFilters(t.Context(), 0, bytes.NewReader(file.Bytes()), true); err != nil {
		t.Fatal(err)
	}
	if got := s.count(0, 4000); got != "s" {
		t.Errorf("loaded: %s", got)
	}

	// A key that lost what it held is filled from the queues.
	s.do("DEL", second)
	s.do("BF.RESERVE", second, "0.0000001", 3000, "NONSCALING")
	if c, err := AuditRepair(t.Context(), s.Frontier, 0, true); err != nil || c.Faulted != 0 || c.Repairs != 1000 {
		t.Errorf("%+v, %v, want 1000 URLs put back", c, err)
	}
	// Without meta the shard answers nothing; the number of keys is found again.
	s.do("DEL", s.keys[0].Meta())
	if c, err := AuditRepair(t.Context(), s.Frontier, 0, true); err != nil || c.Faulted != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if got := s.count(0, 5000); got != "sa" {
		t.Errorf("repaired: %s", got)
	}
	s.sound(0)

	// Into a crawl whose filters have one key each.
	other := as(t, programsOf(t, shardtest.One(t), 1, 1e-6)[0])
	if err := other.LoadFilters(t.Context(), 0, bytes.NewReader(file.Bytes()), false); err != nil {
		t.Fatal(err)
	}
	if got := other.count(0, 4000) + other.count(4000, 4100); got != "sa" {
		t.Errorf("loaded into another crawl: %s", got)
	}
}

// TestNoMemoryForAFurtherKey: what does not fit is full, and what is known is seen.
func TestNoMemoryForAFurtherKey(t *testing.T) {
	t.Parallel()
	s := as(t, programsOf(t, shardtest.One(t), 1, 1e-6)[0])
	s.count(0, 2950)
	s.do("CONFIG", "SET", "maxmemory", 1)
	if got := s.count(2900, 3100); got != "sf" {
		t.Errorf("verdicts %s, want seen and full", got)
	}
	if n := s.do("EXISTS", s.keys[0].FilterKey(0, 1)); n != int64(0) {
		t.Error("there is a further key")
	}
	s.do("CONFIG", "SET", "maxmemory", 0)
	if got := s.count(2900, 3100); got != "sa" {
		t.Errorf("with memory again: %s", got)
	}
	s.sound(0)
}
