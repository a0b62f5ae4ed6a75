package memory

import (
	"encoding/binary"
	"math/rand/v2"

	"seine/frontier/canon"
)

// known is what a shard knows: a set that nobody can crowd from outside. Hashes
// of URLs have no secret, since a whole fleet must agree on them, so a page can
// list addresses whose hashes it chose. In the set they stand mixed with secrets
// of this process, and leave it as they came.
type known struct {
	set
	key, back uint64 // odd, and what undoes multiplying with it
	site      uint64
}

func newKnown() known {
	k := known{key: rand.Uint64() | 1, site: rand.Uint64() | 1}
	k.back = k.key
	for range 5 { // Newton: each step doubles the bits that are right
		k.back *= 2 - k.key*k.back
	}
	return k
}

// mix is a permutation of all fingerprints that leaves zero where it is.
func (k *known) mix(f canon.Fingerprint) canon.Fingerprint {
	x := (f.Key + f.Site*k.site) * k.key
	f.Key = (x ^ x>>32) * k.key
	return f
}

// unmix undoes mix.
func (k *known) unmix(f canon.Fingerprint) canon.Fingerprint {
	x := f.Key * k.back
	f.Key = (x^x>>32)*k.back - f.Site*k.site
	return f
}

// has says whether f is known.
func (k *known) has(f canon.Fingerprint) bool { return k.set.has(k.mix(f)) }

// add makes f known and says whether it was new.
func (k *known) add(f canon.Fingerprint) bool { return k.set.add(k.mix(f)) }

// appendTo appends a record of the fingerprints of a table.
func (k *known) appendTo(rec []byte, table int) []byte {
	rec = append(rec, snapKnown, 0, 0, 0, 0)
	at := len(rec)
	for _, f := range k.tables[table].slots {
		if f != (canon.Fingerprint{}) {
			rec = k.unmix(f).Append(rec)
		}
	}
	if table == 0 && k.zero {
		rec = canon.Fingerprint{}.Append(rec)
	}
	binary.LittleEndian.PutUint32(rec[at-4:], uint32(len(rec)-at)/16)
	return rec
}
