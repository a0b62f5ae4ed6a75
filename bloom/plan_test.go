package bloom_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"seine/bloom"
	"seine/frontier/canon"
)

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		urls   int64
		rate   float64
		shards int
		want   bloom.Plan
	}{
		{10_000_000, 1e-6, 6, bloom.Plan{Shards: 6, Filters: 1, Capacity: 1_666_667, ErrorRate: 1e-6, Expansion: 2}},
		{1, 1e-6, 6, bloom.Plan{Shards: 6, Filters: 1, Capacity: 1000, ErrorRate: 1e-6, Expansion: 2}},
		{64_000_000, 1e-6, 1, bloom.Plan{Shards: 1, Filters: 1, Capacity: 64_000_000, ErrorRate: 1e-6, Expansion: 1}},
		{64_000_001, 1e-6, 1, bloom.Plan{Shards: 1, Filters: 2, Capacity: 32_000_001, ErrorRate: 1e-6, Expansion: 1}},
		{10_000_000_000, 1e-6, 24, bloom.Plan{Shards: 24, Filters: 7, Capacity: 59_523_810, ErrorRate: 1e-6, Expansion: 1}},
		{64_000_000, 1e-3, 1, bloom.Plan{Shards: 1, Filters: 1, Capacity: 64_000_000, ErrorRate: 1e-3, Expansion: 1}},
		{16_000_000, 1e-6, 1, bloom.Plan{Shards: 1, Filters: 1, Capacity: 16_000_000, ErrorRate: 1e-6, Expansion: 2}},
		{64_000_000, 1e-9, 1, bloom.Plan{Shards: 1, Filters: 2, Capacity: 32_000_000, ErrorRate: 1e-9, Expansion: 1}},
	} {
		got, err := bloom.NewPlan(c.urls, c.rate, c.shards)
		if err != nil || got != c.want {
			t.Errorf("%d URLs at %g in %d shards: %+v, want %+v (%v)", c.urls, c.rate, c.shards, got, c.want, err)
		}
	}
	for _, c := range []struct {
		urls   int64
		rate   float64
		shards int
	}{{0, 1e-6, 1}, {1, 0, 1}, {1, 0.2, 1}, {1, math.NaN(), 1}, {1, 1e-6, 0}, {math.MaxInt64, 1e-6, 1}} {
		if p, err := bloom.NewPlan(c.urls, c.rate, c.shards); err == nil {
			t.Errorf("%+v: %+v", c, p)
		}
	}
}

func TestPlanHoldsItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		urls := rapid.Int64Range(1, 1<<40).Draw(t, "urls")
		rate := math.Pow(10, rapid.Float64Range(-12, -1).Draw(t, "exponent"))
		shards := rapid.IntRange(1, 4096).Draw(t, "shards")
		p, err := bloom.NewPlan(urls, rate, shards)
		if err != nil {
			t.Fatal(err)
		}
		if p.Capacity*int64(p.Filters)*int64(shards) < urls {
			t.Errorf("%+v holds less than %d URLs", p, urls)
		}
		if p.FilterBytes() > 256_000_000 || p.Capacity > 64_000_000 {
			t.Errorf("%+v: %d bytes", p, p.FilterBytes())
		}
		if large := p.FilterBytes() >= 64_000_000; (p.Expansion == 1) != large {
			t.Errorf("%+v: %d bytes", p, p.FilterBytes())
		}
		f := canon.Fingerprint{Site: rapid.Uint64().Draw(t, "site"), Key: rapid.Uint64().Draw(t, "key")}
		if j := p.Filter(f); j < 0 || j >= p.Filters {
			t.Errorf("filter %d of %d", j, p.Filters)
		}
	})
}

// The choice of filter must not follow the choice of shard, or some filters
// of a shard would stay empty.
func TestFilterUsesTheSecondHalf(t *testing.T) {
	p := bloom.Plan{Filters: 4}
	var have [4]int
	for i := range uint64(1000) {
		have[p.Filter(canon.Fingerprint{Site: 42, Key: i * 0x9e3779b97f4a7c15})]++
	}
	for j, n := range have {
		if n < 200 || n > 300 {
			t.Errorf("filter %d gets %d of 1000", j, n)
		}
	}
}

// Reference values of the exact interval, summed with exact binomials, and the
// closed forms for no and for all hits.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		p         bloom.Probe
		low, high float64
	}{
		{bloom.Probe{}, 0, 1},
		{bloom.Probe{N: 1000}, 0, 0.00299125},
		{bloom.Probe{N: 1_000_000}, 0, 2.995728e-6},
		{bloom.Probe{N: 10, Hits: 10}, 0.6915029, 1},
		{bloom.Probe{N: 10, Hits: 1}, 0.002528579, 0.4450161},
		{bloom.Probe{N: 100, Hits: 50}, 0.3983211, 0.6016789},
		{bloom.Probe{N: 1000, Hits: 5}, 0.00162542, 0.01162947},
		{bloom.Probe{N: 10408, Hits: 1040}, 0.09422608, 0.1058451}, // on the way to it terms are hardly above 0
	} {
		low, high := c.p.Interval()
		if math.Abs(low-c.low) > 2e-6*c.low || math.Abs(high-c.high) > 2e-6*c.high {
			t.Errorf("%+v: %.7g .. %.7g, want %.7g .. %.7g", c.p, low, high, c.low, c.high)
		}
	}
	if p := (bloom.Probe{N: 100_000, Hits: 1}); p.Exceeds(1e-6) {
		t.Error("one unlucky hit is no proof")
	}
	if p := (bloom.Probe{N: 100_000, Hits: 200}); !p.Exceeds(1e-3) || p.Exceeds(2e-3) {
		t.Error("200 hits in 100,000 exceed 1e-3 and not 2e-3")
	}
	for p, want := range map[bloom.Probe]string{
		{}:                 "not measured",
		{N: 1_000_000}:     "below 3e-06",
		{N: 1000, Hits: 5}: "0.005 (95%: 0.0016 .. 0.012)",
	} {
		if p.String() != want {
			t.Errorf("%q, want %q", p, want)
		}
	}
}

// For any count the interval encloses the measured rate and narrows as tries
// are added.
func TestIntervalIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1<<32).Draw(t, "n")
		hits := rapid.Int64Range(0, min(n, 100_000)).Draw(t, "hits")
		p := bloom.Probe{N: n, Hits: hits}
		low, high := p.Interval()
		if !(0 <= low && low <= p.Rate() && p.Rate() <= high && high <= 1) {
			t.Fatalf("%+v: %g .. %g", p, low, high)
		}
		if hits > 0 && hits < n {
			q := bloom.Probe{N: n * 4, Hits: hits * 4}
			if l, h := q.Interval(); h-l >= high-low {
				t.Fatalf("four times the tries: %g .. %g, before %g .. %g", l, h, low, high)
			}
		}
	})
}

// The flags that are named for a plan make it again.
func TestPlanOfItsURLs(t *testing.T) {
	for _, urls := range []int64{1, 999, 7001, 10_000_000, 1_234_567_891, 1 << 40} {
		for _, shards := range []int{1, 3, 6, 128} {
			p, err := bloom.NewPlan(urls, 1e-6, shards)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := bloom.NewPlan(p.URLs(), 1e-6, shards); again != p || err != nil {
				t.Errorf("%d URLs in %d shards: %+v, again %+v %v", urls, shards, p, again, err)
			}
		}
	}
}

// Further keys of a filter stay as small as they must be, and all keys together err
// as seldom as promised.
func TestFurtherKeys(t *testing.T) {
	for _, c := range []struct {
		urls int64
		rate float64
		most int64
	}{{10_000_000, 1e-6, bloom.MaxKeyBytes}, {64_000_000, 1e-6, bloom.MaxKeyBytes}, {1000, 1e-3, 20_000}, {1 << 40, 1e-12, bloom.MaxKeyBytes}} {
		p, err := bloom.NewPlan(c.urls, c.rate, 1)
		if err != nil {
			t.Fatal(err)
		}
		room, layers, sum := p.Room(c.most), 0, 0.0
		if room < p.Capacity {
			t.Errorf("%+v: room for %d URLs in the first key", p, room)
		}
		for held, layer := int64(0), p.Capacity; held < room; layer *= int64(p.Expansion) {
			held += layer
			layers++
			sum += c.rate * math.Pow(0.5, float64(layers))
		}
		for i := 1; i < 20; i++ {
			next := p.Further(layers, i, c.most)
			if b := next.FilterBytes(); b > c.most || b < c.most/8 && next.Capacity < room {
				t.Errorf("%+v: key %d has %d bytes", p, i, b)
			}
			sum += next.ErrorRate
		}
		if sum > c.rate {
			t.Errorf("%+v: all keys together err %g of the time", p, sum)
		}
	}
}
