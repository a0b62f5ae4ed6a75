package bloom_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"seine/bloom"
	"seine/shard/shardtest"
)

// What a filter takes of the server for each URL: full as planned, and grown to
// four times that.
func BenchmarkFilterBits(b *testing.B) {
	for _, rate := range []float64{1e-4, 1e-6, 1e-8} {
		for _, times := range []int{1, 4} {
			b.Run(fmt.Sprintf("%g/%d_times_the_plan", rate, times), func(b *testing.B) {
				const planned = 20_000
				s := newShelf(b, shardtest.One(b), bloom.Plan{Shards: 1, Filters: 1, Capacity: planned, ErrorRate: rate, Expansion: 2})
				key := s.keys.Filter(0)
				for b.Loop() {
					if _, err := s.client.Do(within(b), 0, key, "DEL", key); err != nil {
						b.Fatal(err)
					}
					if err := s.filters.Reserve(within(b), 0, key, s.plan); err != nil {
						b.Fatal(err)
					}
					s.each("BF.MADD", 0, times*planned)
				}
				b.ReportMetric(float64(s.info(0).Bytes)*8/float64(times*planned), "bits/URL")
			})
		}
	}
}

// What probing costs the server: CPU and memory of 1,000 random fingerprints, the
// most that a shard is asked for in a second, at the default rate.
func BenchmarkProbe(b *testing.B) {
	for _, layers := range []int{1, 4} {
		b.Run(strconv.Itoa(layers)+"-layers", func(b *testing.B) {
			plan := bloom.Plan{Shards: 1, Filters: 1, Capacity: 20_000, ErrorRate: 1e-6, Expansion: 2}
			s := newShelf(b, shardtest.One(b), plan)
			s.each("BF.MADD", 0, 20_000*(1<<layers-1))
			if have := s.info(0).Layers; have != layers {
				b.Fatal(have, " layers")
			}
			before := s.usec()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.filters.Probe(within(b), 0, 1000, s.keys.Filter(0)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.usec()-before)/float64(b.N), "redis-us/op")
		})
	}
}

// usec is the time that the server spent on BF.MEXISTS and BF.INFO so far.
func (s *shelf) usec() (sum int64) {
	s.t.Helper()
	reply, err := s.client.Do(within(s.t), 0, "x", "INFO", "commandstats")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(reply.(string)) {
		name, rest, _ := strings.Cut(line, ":")
		if name = strings.ToLower(name); name != "cmdstat_bf.mexists" && name != "cmdstat_bf.info" {
			continue
		}
		for field := range strings.SplitSeq(rest, ",") {
			if text, ok := strings.CutPrefix(field, "usec="); ok {
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					s.t.Fatal(err)
				}
				sum += n
			}
		}
	}
	if sum == 0 {
		s.t.Fatal("the server does not count BF commands")
	}
	return sum
}
