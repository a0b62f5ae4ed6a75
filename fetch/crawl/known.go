package crawl

import (
	"math/rand/v2"
	"sync/atomic"

	"seine/frontier/canon"
)

// knownURLs remembers URLs of one shard that admission called admitted or seen,
// so that most links of most pages never travel. It is a fixed table of 64-bit
// values in buckets of four; a forgotten URL costs one question to the shard, a
// false hit needs two of the crawl's URLs to agree in 64 bits under a seed that
// no page can know.
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

// value mixes both halves of a fingerprint with the seed; never 0.
func (k *knownURLs) value(f canon.Fingerprint) uint64 {
	v := (f.Site^k.seed[1])*k.seed[0] ^ f.Key
	v ^= v >> 32
	v *= k.seed[0]
	v ^= v >> 29
	return v | 1<<63
}

func (k *knownURLs) bucket(v uint64) []atomic.Uint64 {
	at := (v & k.mask) * knownWays
	return k.slots[at : at+knownWays]
}

// has reports whether f is remembered.
func (k *knownURLs) has(f canon.Fingerprint) bool {
	v := k.value(f)
	b := k.bucket(v)
	for i := range b {
		if b[i].Load() == v {
			return true
		}
	}
	return false
}

// add remembers f in place of the bucket's oldest guess.
func (k *knownURLs) add(f canon.Fingerprint) {
	v := k.value(f)
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

// clear forgets everything.
func (k *knownURLs) clear() {
	for i := range k.slots {
		k.slots[i].Store(0)
	}
}

// checkEpoch empties the cache of known URLs when the shard may have lost what it
// acknowledged: its connection broke or its master changed. Each tick does, for
// links that are all known reach nobody who would notice. It returns the
// connection epoch.
func (l *shardLoop) checkEpoch() uint64 {
	if l.crawler.cfg.Epoch == nil {
		return 0
	}
	l.knownMu.Lock()
	defer l.knownMu.Unlock()
	return l.syncEpoch()
}

// syncEpoch is checkEpoch for those who hold knownMu.
func (l *shardLoop) syncEpoch() uint64 {
	if e := l.crawler.cfg.Epoch(l.shard); e != l.epoch {
		l.epoch = e
		l.known.clear()
		l.overflow.forget()
	}
	return l.epoch
}

// remember fills the cache with what was answered in an epoch, if it lasts.
func (l *shardLoop) remember(epoch uint64, fill func()) {
	l.knownMu.Lock()
	defer l.knownMu.Unlock()
	if l.crawler.cfg.Epoch == nil || l.syncEpoch() == epoch {
		fill()
	}
}
