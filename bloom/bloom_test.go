package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"seine/bloom"
	"seine/frontier/canon"
	"seine/shard"
	"seine/shard/shardtest"
)

// shelf is one shard of a crawl with its filters, on servers of its own.
type shelf struct {
	t       testing.TB
	server  *shardtest.Server
	client  *shard.Client
	filters *bloom.Filters
	keys    shard.Keys
	plan    bloom.Plan
}

// set names filters of one key each.
func set(k int, keys shard.Keys, plan bloom.Plan) bloom.Set {
	return bloom.Set{Shard: k, Keys: keys, Plan: plan, Each: 1}
}

func newShelf(t testing.TB, server *shardtest.Server, plan bloom.Plan) *shelf {
	t.Helper()
	client, err := shard.Open(t.Context(), shard.Config{Addrs: server.Addrs[:1]})
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{t, server, client, bloom.New(client), shard.KeysOf("c", shard.NewMap(plan.Shards).Tag(0)), plan}
	t.Cleanup(func() {
		if err := errors.Join(s.filters.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	for j := range plan.Filters {
		if err := s.filters.Reserve(within(t), 0, s.keys.Filter(j), plan); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// within is a context that ends when even a busy machine should have answered.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// fingerprint is the i-th of the fingerprints that tests admit.
func fingerprint(i int) canon.Fingerprint {
	return canon.FingerprintOf([]byte("example.com"), fmt.Appendf(nil, "https://example.com/%d", i))
}

// each sends a BF command with the fingerprints from .. to-1 to their filters and
// returns how many were answered with 1.
func (s *shelf) each(command string, from, to int) (ones int) {
	s.t.Helper()
	var buf [16]byte
	for from < to {
		batches := make(map[int][]any)
		for ; from < to && len(batches[0]) < 1000; from++ {
			f := fingerprint(from)
			j := s.plan.Filter(f)
			if batches[j] == nil {
				batches[j] = []any{command, s.keys.Filter(j)}
			}
			batches[j] = append(batches[j], string(f.Append(buf[:0])))
		}
		for j, words := range batches {
			reply, err := s.client.Do(within(s.t), 0, s.keys.Filter(j), words...)
			if err != nil {
				s.t.Fatal(err)
			}
			for _, r := range reply.([]any) {
				if r == int64(1) {
					ones++
				}
			}
		}
	}
	return ones
}

func (s *shelf) info(j int) bloom.Info { return s.key(j, 0) }

// key is the state of the i-th key of filter j.
func (s *shelf) key(j, i int) bloom.Info {
	s.t.Helper()
	info, err := s.filters.Info(within(s.t), 0, s.keys.FilterKey(j, i))
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

func TestReserve(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		plan, err := bloom.NewPlan(10_000, 1e-3, 1)
		if err != nil {
			t.Fatal(err)
		}
		s := newShelf(t, shardtest.Start(t, shardtest.Config{Kind: kind}), plan)
		ctx, key := within(t), s.keys.Filter(0)
		info := s.info(0)
		if info.Capacity != 10_000 || info.Items != 0 || info.Layers != 1 || info.Expansion != 2 || math.Abs(float64(info.Bytes-plan.FilterBytes())) > 256 {
			t.Errorf("reserved %+v, %d bytes planned", info, plan.FilterBytes())
		}
		s.each("BF.MADD", 0, 75_000) // grows by two layers
		if info := s.info(0); info.Layers != 4 || info.Fill() <= 0 || info.Fill() > 1 {
			t.Errorf("grown to %+v", info)
		}
		if err := s.filters.Reserve(ctx, 0, key, plan); err != nil {
			t.Errorf("again by the same plan: %v", err)
		}
		if s.info(0).Items < 74_000 {
			t.Errorf("reserving again emptied it: %+v", s.info(0))
		}
		for name, change := range map[string]func(*bloom.Plan){
			"capacity":   func(p *bloom.Plan) { p.Capacity++ },
			"expansion":  func(p *bloom.Plan) { p.Expansion = 1 },
			"error rate": func(p *bloom.Plan) { p.ErrorRate /= 2 },
		} {
			other := plan
			change(&other)
			if err := s.filters.Reserve(ctx, 0, key, other); !errors.Is(err, bloom.ErrOther) || !strings.Contains(err.Error(), name) {
				t.Errorf("another %s: %v", name, err)
			}
		}
		if _, err := s.filters.Info(ctx, 0, "none"); !errors.Is(err, bloom.ErrMissing) {
			t.Errorf("info of a missing filter: %v", err)
		}
		if _, err := s.filters.Probe(ctx, 0, 10, "none"); !errors.Is(err, bloom.ErrMissing) {
			t.Errorf("probe of a missing filter: %v", err)
		}
	})
}

// A filter that gets far more than it was planned for forgets nothing and
// errs no more often than the crawl allows. SEINE_GROWTH is how many URLs it gets,
// 2 million if not set.
func TestGrowth(t *testing.T) {
	t.Parallel()
	const rate, probes = 1e-3, 500_000
	urls := 2_000_000
	if testing.Short() {
		urls = 200_000
	}
	if text := os.Getenv("SEINE_GROWTH"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal("SEINE_GROWTH:", err)
		}
		urls = n
	}
	plan, err := bloom.NewPlan(10_000, rate, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := newShelf(t, shardtest.One(t), plan)
	falsely := urls - s.each("BF.MADD", 0, urls)
	if found := s.each("BF.MEXISTS", 0, urls); found != urls {
		t.Errorf("%d of %d URLs are forgotten", urls-found, urls)
	}
	// The same URLs in each run: an honest filter exceeds by chance once in forty.
	truth := bloom.Probe{N: probes, Hits: int64(s.each("BF.MEXISTS", urls, urls+probes))}
	if truth.Exceeds(rate) || truth.Hits == 0 {
		t.Errorf("of URLs never added %v are taken for known, allowed %g", truth, rate)
	}
	p, err := s.filters.Probe(within(t), 0, probes, s.keys.Filter(0))
	if err != nil {
		t.Fatal(err)
	}
	if p.Exceeds(1.3*truth.Rate()) || truth.Exceeds(1.3*p.Rate()) || p.N != probes { // by chance once in 1e10
		t.Errorf("probing says %v, the truth is %v", p, truth)
	}
	if p := (bloom.Probe{N: int64(urls), Hits: int64(falsely)}); falsely == 0 || p.Exceeds(rate) {
		t.Errorf("of %d new URLs %d were taken for known", urls, falsely)
	}
	info := s.info(0)
	if info.Items != int64(urls-falsely) || info.Layers < 5 || info.BitsPerURL() < plan.IdealBits() {
		t.Errorf("%+v: %.2f bits a URL cannot be, or %d URLs are not %d", info, info.BitsPerURL(), info.Items, urls-falsely)
	}
	t.Logf("%d layers, %d URLs of %d, %.2f bits a URL beside log2(1/rate) = %.2f, false positives %v, by probing %v, %d lost on the way",
		info.Layers, info.Items, info.Capacity, info.BitsPerURL(), plan.IdealBits(), truth, p, falsely)
}

// Probing finds the rate that exact sets show: URLs never added, asked for one
// by one.
func TestProbeMeasuresTheTruth(t *testing.T) {
	t.Parallel()
	plan, err := bloom.NewPlan(20_000, 1e-2, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := newShelf(t, shardtest.One(t), plan)
	s.each("BF.MADD", 0, 20_000)
	truth := bloom.Probe{N: 100_000, Hits: int64(s.each("BF.MEXISTS", 1_000_000, 1_100_000))}
	p, err := s.filters.Probe(within(t), 0, 100_000, s.keys.Filter(0))
	if err != nil {
		t.Fatal(err)
	}
	if truth.Hits == 0 || p.Exceeds(truth.Rate()*1.2) || truth.Exceeds(p.Rate()*1.2) {
		t.Errorf("probe says %v, the truth is %v", p, truth)
	}
}

func TestDumpIntoAnotherCluster(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		plan := bloom.Plan{Shards: 2, Filters: 3, Capacity: 2000, ErrorRate: 1e-4, Expansion: 2}
		from := newShelf(t, shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 2}), plan)
		to := newShelf(t, shardtest.Start(t, shardtest.Config{Kind: kind}), plan)
		from.each("BF.MADD", 0, 20_000)
		var file bytes.Buffer
		if err := from.filters.Dump(within(t), set(0, from.keys, plan), &file); err != nil {
			t.Fatal(err)
		}
		dump := file.Bytes()
		load := func(force bool) error {
			return to.filters.Load(within(t), set(0, to.keys, plan), bytes.NewReader(dump), force, nil)
		}
		if err := load(false); err != nil {
			t.Fatal(err)
		}
		if found := to.each("BF.MEXISTS", 0, 20_000); found != 20_000 {
			t.Errorf("%d of 20000 arrived", found)
		}
		for j := range plan.Filters {
			if a, b := from.info(j), to.info(j); a != b {
				t.Errorf("filter %d: %+v, was %+v", j, b, a)
			}
		}
		to.each("BF.MADD", 20_000, 20_100)
		if err := load(false); err == nil || !strings.Contains(err.Error(), "force") {
			t.Errorf("over filters in use: %v", err)
		}
		if err := load(true); err != nil {
			t.Error(err)
		}
	})
}
