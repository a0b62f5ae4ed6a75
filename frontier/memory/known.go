package memory

import (
	"math/rand/v2"

	"seine/frontier/canon"
)

// known is what a shard knows: a set that nobody can crowd from outside. Hashes
// of URLs have no secret, since a whole fleet must agree on them, so a page can
// list addresses whose hashes it chose. In the set they stand mixed with secrets
// of this process.
type known struct {
	set
	key, site uint64 // odd
}

func newKnown() known {
	return known{key: rand.Uint64() | 1, site: rand.Uint64() | 1}
}

// mix is a permutation of all fingerprints that leaves zero where it is.
func (k *known) mix(f canon.Fingerprint) canon.Fingerprint {
	x := (f.Key + f.Site*k.site) * k.key
	f.Key = (x ^ x>>32) * k.key
	return f
}

// has reports whether f is known.
func (k *known) has(f canon.Fingerprint) bool { return k.set.has(k.mix(f)) }

// add makes f known and reports whether it was new.
func (k *known) add(f canon.Fingerprint) bool { return k.set.add(k.mix(f)) }
