package crawl

import (
	"math/rand/v2"
	"sync/atomic"

	"seine/frontier/canon"
)

// knownURLs remembers URLs of all shards that admission called admitted or seen,
// so that most links of most pages never travel. It is a fixed table of 64-bit
// values in buckets of four; a forgotten URL costs one question to its shard, a
// false hit needs two of the crawl's URLs to agree in 64 bits under a seed that
// no page can know.
//
// A URL is remembered under the connection epoch in which its shard was asked: in
// another, when the shard may have lost what it acknowledged, it is not found, and
// its place is taken by others in time. So all of one shard is forgotten at once,
// and nothing of the others.
type knownURLs struct {
	seed  [2]uint64
	mask  uint64
	slots []atomic.Uint64
}

const knownWays = 4

// newKnownURLs returns a table of at least n values.
func newKnownURLs(n int) *knownURLs {
	size := uint64(knownWays)
	for size < uint64(n) {
		size *= 2
	}
	return &knownURLs{
		seed:  [2]uint64{rand.Uint64() | 1, rand.Uint64()},
		mask:  size/knownWays - 1,
		slots: make([]atomic.Uint64, size),
	}
}

// value mixes both halves of a fingerprint, and the epoch, with the seed; never 0.
func (k *knownURLs) value(f canon.Fingerprint, epoch uint64) uint64 {
	v := (f.Site^k.seed[1]^epoch*epochs)*k.seed[0] ^ f.Key
	v ^= v >> 32
	v *= k.seed[0]
	v ^= v >> 29
	return v | 1<<63
}

// epochs spreads epochs, which count from 0, over all bits.
const epochs = 0x9e3779b97f4a7c15

func (k *knownURLs) bucket(v uint64) []atomic.Uint64 {
	at := (v & k.mask) * knownWays
	return k.slots[at : at+knownWays]
}

// has reports whether f is remembered in an epoch of its shard.
func (k *knownURLs) has(f canon.Fingerprint, epoch uint64) bool {
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

// add remembers f in place of the bucket's oldest guess.
func (k *knownURLs) add(f canon.Fingerprint, epoch uint64) {
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

// checkEpoch looks at the connection epoch of the shard, which rises when the shard
// may have lost what it acknowledged: its connection broke or its master changed.
// Each tick does, for links that are all known reach nobody who would notice. It
// returns the epoch.
func (l *shardLoop) checkEpoch() uint64 {
	if l.crawler.cfg.Epoch == nil {
		return 0
	}
	e := l.crawler.cfg.Epoch(l.shard)
	for { // epochs only rise, whoever is late
		last := l.epoch.Load()
		if e <= last || l.epoch.CompareAndSwap(last, e) {
			return max(e, last)
		}
	}
}

// knows reports whether the shard is known to have f.
func (l *shardLoop) knows(f canon.Fingerprint) bool { return l.crawler.known.has(f, l.epoch.Load()) }

// knows is shardLoop.knows of the shard of f.
func (c *Crawler) knows(f canon.Fingerprint) bool { return c.loopOf(f).knows(f) }
