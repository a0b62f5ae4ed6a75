package flow

import (
	"math/rand/v2"
	"testing"

	"seine/frontier/canon"
)

func TestKnown(t *testing.T) {
	k := NewKnownURLs(1000)
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]canon.Fingerprint, 1000)
	for i := range all {
		all[i] = canon.Fingerprint{Site: uint64(i % 7), Key: r.Uint64()}
	}
	at := func(i uint64) canon.Fingerprint { return all[i] }
	for i := range uint64(1000) {
		if k.Has(at(i), i%3) {
			t.Fatalf("%d is known before", i)
		}
		if k.Remember(at(i), i%3); !k.Has(at(i), i%3) {
			t.Fatalf("%d is not known after", i)
		}
	}
	kept := 0
	for i := range uint64(1000) {
		if k.Has(at(i), i%3) {
			kept++
		}
	}
	// Of 256 buckets of four, each chosen by chance, 814 is the mean, and fewer
	// than 740 are kept once in 6e12 tables: the seed is another in each run.
	if kept < 740 {
		t.Errorf("%d of 1000 are remembered in 1024 places", kept)
	}
	for i := range uint64(1000) {
		if k.Has(at(i), i%3+1) {
			t.Fatalf("%d is known in the next epoch", i)
		}
	}
	if n := testing.AllocsPerRun(100, func() { k.Remember(at(3), 1); k.Has(at(4), 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A look for a known URL in a table that caches do not hold, and work of some 100 ns
// behind it, which need not wait for the look.
func BenchmarkKnown(b *testing.B) {
	k := NewKnownURLs(1 << 20)
	known := make([]canon.Fingerprint, 1<<19)
	for i := range known {
		known[i] = canon.Fingerprint{Site: rand.Uint64(), Key: rand.Uint64()}
		k.Remember(known[i], 0)
	}
	i, found, work := 0, 0, uint64(1)
	for b.Loop() {
		if k.Has(known[i], 0) {
			found++
		}
		if i++; i == len(known) {
			i = 0
		}
		for range 100 {
			work = work*6364136223846793005 + 1442695040888963407
		}
	}
	if work == 0 {
		b.Log(work)
	}
	if found < b.N*9/10 {
		b.Errorf("%d of %d are known", found, b.N)
	}
}
