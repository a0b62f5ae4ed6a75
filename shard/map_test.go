package shard_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"seine/frontier/canon"
	"seine/shard"
	"seine/shard/shardtest"
)

func TestShardsNest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 64).Draw(t, "n")
		times := rapid.IntRange(1, 8).Draw(t, "times")
		f := canon.Fingerprint{Site: rapid.Uint64().Draw(t, "site")}
		coarse, fine := shard.NewMap(n).Of(f), shard.NewMap(n*times).Of(f)
		if fine/times != coarse {
			t.Fatalf("shard %d of %d, but %d of %d", coarse, n, fine, n*times)
		}
	})
}

func TestShardsAreEven(t *testing.T) {
	t.Parallel()
	m := shard.NewMap(6)
	for _, c := range []struct {
		site uint64
		want int
	}{{0, 0}, {math.MaxUint64, 5}, {math.MaxUint64 / 2, 2}, {math.MaxUint64/2 + 1, 3}} {
		if got := m.Of(canon.Fingerprint{Site: c.site, Key: ^c.site}); got != c.want {
			t.Errorf("site hash %d: shard %d, want %d", c.site, got, c.want)
		}
	}
	const sites = 60000
	var have [6]int
	for i := range sites {
		have[m.Of(canon.FingerprintOf(fmt.Appendf(nil, "site%d.example", i), nil))]++
	}
	for k, n := range have {
		if n < sites/6*95/100 || n > sites/6*105/100 {
			t.Errorf("shard %d has %d of %d sites", k, n, sites)
		}
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 5, 6, 7, 24, 1000, shard.MaxShards} {
		m := shard.NewMap(n)
		if m.Len() != n {
			t.Fatalf("%d shards: Len %d", n, m.Len())
		}
		seen := make(map[string]bool)
		for k := range n {
			tag := m.Tag(k)
			if slot := shard.Slot(tag); slot < k*shard.Slots/n || slot >= (k+1)*shard.Slots/n {
				t.Fatalf("shard %d of %d: slot %d of tag %s lies outside its range", k, n, slot, tag)
			}
			if seen[tag] {
				t.Fatalf("%d shards: tag %s twice", n, tag)
			}
			seen[tag] = true
		}
	}
}

// The tags are in the key names of crawls that exist; they must never change.
func TestTagsStay(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]string{
		1: {"0.0"},
		2: {"0.0", "1.1"},
		6: {"0.1", "1.3", "2.2", "3.43", "4.20", "5.8"},
	} {
		var have []string
		for k := range n {
			have = append(have, shard.NewMap(n).Tag(k))
		}
		if !slices.Equal(have, want) {
			t.Errorf("%d shards: %q", n, have)
		}
	}
}

// Known answers of the cluster specification and of CLUSTER KEYSLOT.
func TestSlot(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]int{"123456789": 0x31c3, "": 0, "a": 15495, "foo": 12182} {
		if got := shard.Slot(tag); got != want {
			t.Errorf("%q: %d, want %d", tag, got, want)
		}
	}
}

func TestSixShardsOnSixMasters(t *testing.T) {
	t.Parallel()
	s := shardtest.Masters(t, 6)
	c := open(t, s)
	m := shard.NewMap(6)
	for k := range 6 {
		owner, err := c.Owner(t.Context(), shard.KeysOf("c", m.Tag(k)).Meta())
		if err != nil || owner != s.Addrs[k] {
			t.Errorf("shard %d: %s, want %s (%v)", k, owner, s.Addrs[k], err)
		}
		if slot := s.Nodes[0].Do(t, "cluster", "keyslot", m.Tag(k)); slot != int64(shard.Slot(m.Tag(k))) {
			t.Errorf("tag %s: slot %d, the server says %v", m.Tag(k), shard.Slot(m.Tag(k)), slot)
		}
	}
}

func TestKeysShareASlot(t *testing.T) {
	t.Parallel()
	s := shardtest.Masters(t, 1)
	m := shard.NewMap(24)
	for k := range m.Len() {
		keys := shard.KeysOf("news", m.Tag(k))
		names := []string{keys.Meta(), keys.Stats(), keys.Filter(0), keys.Filter(12), keys.FilterKey(12, 1), keys.FilterKey(1, 21), keys.PausedReady(), keys.Leases(), keys.Ready(0), keys.Ready(3),
			keys.Site("example.com"), keys.Site("{x}"), keys.Queue("example.com", 2), keys.Wait("[::1]"), keys.Visit("token"),
			keys.Dead("http"), keys.Rules("example.com")}
		seen := make(map[string]bool)
		for _, name := range names {
			if slot := s.Nodes[0].Do(t, "cluster", "keyslot", name); slot != int64(shard.Slot(m.Tag(k))) {
				t.Errorf("%s: slot %v, want %d", name, slot, shard.Slot(m.Tag(k)))
			}
			if seen[name] {
				t.Errorf("%s twice", name)
			}
			seen[name] = true
		}
	}
}

func TestPattern(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	ours, other := shard.KeysOf("a*[b]?\\", "0.2"), shard.KeysOf("a*[c]?\\", "0.2")
	for _, key := range []string{ours.Meta(), ours.Site("x"), other.Meta(), "a" + ours.Meta()} {
		s.Nodes[0].Do(t, "set", key, "1")
	}
	found, _, err := s.Nodes[0].Client().Scan(t.Context(), 0, ours.Pattern(), 100).Result()
	slices.Sort(found)
	if err != nil || !slices.Equal(found, []string{ours.Meta(), ours.Site("x")}) {
		t.Errorf("%q, %v", found, err)
	}
}

func BenchmarkNewMap(b *testing.B) {
	for _, n := range []int{6, 256, shard.MaxShards} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				shard.NewMap(n)
			}
		})
	}
}

func BenchmarkOf(b *testing.B) {
	m, f := shard.NewMap(24), canon.Fingerprint{Site: 0x9e3779b97f4a7c15}
	b.ReportAllocs()
	for b.Loop() {
		f.Site += uint64(m.Of(f))
	}
}

// The keys of a site are parts of one text, and each as it is named alone.
func TestAppendSite(t *testing.T) {
	k := shard.KeysOf("crawl", "1.3")
	for _, site := range []string{"", "a.example", "[::1]", strings.Repeat("long", 100)} {
		want := []string{"before", k.Site(site), k.Queue(site, 0), k.Queue(site, 1), k.Queue(site, 2), k.Queue(site, 3), k.Wait(site), k.Recrawls(site), k.RecrawlEntries(site)}
		if got := k.AppendSite([]string{"before"}, site); !slices.Equal(got, want) {
			t.Errorf("keys %q of site %q, want %q", got, site, want)
		}
	}
	keys := make([]string, 0, 8)
	if n := testing.AllocsPerRun(100, func() { keys = k.AppendSite(keys[:0], "a.example") }); n > 1 {
		t.Errorf("%v allocations for the keys of a site, want one", n)
	}
}
