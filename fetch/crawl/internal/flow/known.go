package flow

import (
	"math/rand/v2"
	"sync/atomic"

	"seine/frontier/canon"
)

// KnownURLs remembers URLs of all shards that admission called admitted or seen,
// so that most links of most pages never travel. It is a fixed table of 64-bit
// values in buckets of four; a forgotten URL costs one question to its shard, a
// false hit needs two of the crawl's URLs to agree in 64 bits under a seed that
// no page can know.
//
// A URL is remembered under the connection epoch in which its shard was asked: in
// another, when the shard may have lost what it acknowledged, it is not found, and
// its place is taken by others in time. So all of one shard is forgotten at once,
// and nothing of the others.
type KnownURLs struct {
	seed  [2]uint64
	mask  uint64
	slots []atomic.Uint64
}

const knownWays = 4

// NewKnownURLs returns a table of at least n values.
func NewKnownURLs(n int) *KnownURLs {
	size := uint64(knownWays)
	for size < uint64(n) {
		size *= 2
	}
	return &KnownURLs{
		seed:  [2]uint64{rand.Uint64() | 1, rand.Uint64()},
		mask:  size/knownWays - 1,
		slots: make([]atomic.Uint64, size),
	}
}

// value mixes both halves of a fingerprint, and the epoch, with the seed; never 0.
func (k *KnownURLs) value(f canon.Fingerprint, epoch uint64) uint64 {
	v := (f.Site^k.seed[1]^epoch*epochs)*k.seed[0] ^ f.Key
	v ^= v >> 32
	v *= k.seed[0]
	v ^= v >> 29
	return v | 1<<63
}

// epochs spreads epochs, which count from 0, over all bits.
const epochs = 0x9e3779b97f4a7c15

func (k *KnownURLs) bucket(v uint64) []atomic.Uint64 {
	at := (v & k.mask) * knownWays
	return k.slots[at : at+knownWays]
}

// Has reports whether f is remembered in an epoch of its shard.
func (k *KnownURLs) Has(f canon.Fingerprint, epoch uint64) bool {
	v := k.value(f, epoch)
	// Most are, and nobody can tell in which place: a processor that guesses it waits
	// for memory before it may go on to the next link.
	b := k.bucket(v)
	hit := uint64(0)
	for i := range knownWays {
		differs := b[i].Load() ^ v
		hit |= (differs - 1) &^ differs // the highest bit of this is 1 for 0 alone
	}
	return hit>>63 != 0
}

// Remember remembers f in place of the bucket's oldest guess.
func (k *KnownURLs) Remember(f canon.Fingerprint, epoch uint64) {
	v := k.value(f, epoch)
	b := k.bucket(v)
	for i := range b {
		switch b[i].Load() {
		case v:
			return
		case 0:
			b[i].Store(v)
			return
		}
	}
	b[v>>40%knownWays].Store(v)
}
