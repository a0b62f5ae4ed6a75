package memory

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"seine/frontier/canon"
)

// TestSetAgainstMap holds a set equal to a map while hashes crowd together.
func TestSetAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.SampledFrom([]uint64{1 << 8, 1 << 20, 1 << 40, 1 << 56}).Draw(t, "spread")
		near := rapid.Custom(func(t *rapid.T) canon.Fingerprint {
			return canon.Fingerprint{Site: rapid.Uint64Range(0, 2).Draw(t, "site"), Key: rapid.Uint64Range(0, 4000).Draw(t, "key") * spread}
		})
		var s set
		model := map[canon.Fingerprint]bool{}
		for _, f := range rapid.SliceOfN(near, 0, 2000).Draw(t, "fingerprints") {
			if s.has(f) != model[f] {
				t.Fatalf("has(%v) = %v", f, s.has(f))
			}
			if s.add(f) == model[f] {
				t.Fatalf("add(%v) = %v", f, model[f])
			}
			model[f] = true
		}
		if s.n != len(model) {
			t.Fatalf("%d fingerprints, want %d", s.n, len(model))
		}
		for f := range model {
			if !s.has(f) {
				t.Fatalf("%v was forgotten", f)
			}
		}
	})
}

// TestSetGrows holds a large set equal to what was put in.
func TestSetGrows(t *testing.T) {
	var s set
	const n = 300_000
	for i := range uint64(n) {
		if !s.add(spread(i)) {
			t.Fatalf("%d was there", i)
		}
	}
	for i := range uint64(n) {
		if s.add(spread(i)) || !s.has(spread(i)) || s.has(spread(i+n)) {
			t.Fatalf("%d is wrong", i)
		}
	}
}

// TestSetAgainstFlood puts in what a page that means harm can make: addresses
// whose hashes are chosen. Neither place nor time may run away.
func TestSetAgainstFlood(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		name string
		make func(i uint64) canon.Fingerprint
	}{
		{"the last keys", func(i uint64) canon.Fingerprint { return canon.Fingerprint{Site: 1, Key: ^uint64(0) - i<<8} }},
		{"one key", func(i uint64) canon.Fingerprint { return canon.Fingerprint{Site: i, Key: ^uint64(0)} }},
		{"one key of far sites", func(i uint64) canon.Fingerprint { return canon.Fingerprint{Site: i << 40, Key: 7} }},
	} {
		s := newKnown()
		for i := range uint64(n) {
			if !s.add(c.make(i)) {
				t.Fatalf("%s: %d was there", c.name, i)
			}
		}
		places, far := 0, 0
		for k := range s.tables {
			tab := &s.tables[k]
			places += len(tab.slots)
			for _, f := range tab.slots {
				if f != (canon.Fingerprint{}) {
					home, _ := bits.Mul64(f.Key, tab.home)
					far = max(far, tab.find(f)-int(home))
				}
			}
		}
		if places > 3*n+tables*(16+overrun) || far > 1000 {
			t.Errorf("%s: %d places for %d, one stands %d behind its home", c.name, places, n, far)
		}
		for i := range uint64(n) {
			if !s.has(c.make(i)) {
				t.Fatalf("%s: %d was forgotten", c.name, i)
			}
		}
	}
}

// spread makes a fingerprint like that of the i-th URL of a crawl.
func spread(i uint64) canon.Fingerprint {
	mix := func(x uint64) uint64 {
		x += 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	return canon.Fingerprint{Site: mix(i / 100), Key: mix(i + 1<<60)}
}

func BenchmarkSet(b *testing.B) {
	b.Run("add", func(b *testing.B) {
		b.ReportAllocs()
		var s set
		i := uint64(0)
		for b.Loop() {
			s.add(spread(i))
			i++
		}
		places := 0
		for k := range s.tables {
			places += len(s.tables[k].slots)
		}
		b.ReportMetric(16*float64(places)/float64(s.n), "bytes/URL")
	})
	b.Run("has", func(b *testing.B) {
		b.ReportAllocs()
		var s set
		const n = 4_000_000
		for i := range uint64(n) {
			s.add(spread(i))
		}
		i := uint64(0)
		for b.Loop() {
			if !s.has(spread(i % n * 7919 % n)) {
				b.Fatal("forgotten")
			}
			i++
		}
	})
}
