package shard

import (
	"fmt"
	"math/bits"

	"seine/frontier/canon"
)

// Slots is the number of hash slots of Redis Cluster.
const Slots = 16384

// Map says which of n shards owns a fingerprint, and gives each shard a hash
// tag whose slot lies in the k-th of n equal slot ranges.
type Map struct {
	tags []string
}

// NewMap returns the map of n shards.
func NewMap(n int) Map {
	m := Map{tags: make([]string, n)}
	for k := range m.tags {
		lo, hi := k*Slots/n, (k+1)*Slots/n
		quarter := (hi - lo) / 4
		for i := 0; ; i++ {
			tag := fmt.Sprintf("%d.%d", k, i)
			if s := Slot(tag); s >= lo+quarter && s < hi-quarter {
				m.tags[k] = tag
				break
			}
		}
	}
	return m
}

// Len is the number of shards.
func (m Map) Len() int { return len(m.tags) }

// Of returns the shard of a fingerprint: multiply-shift on its first half, so
// that each of n shards splits into m of n*m.
func (m Map) Of(f canon.Fingerprint) int {
	hi, _ := bits.Mul64(f.Site, uint64(len(m.tags)))
	return int(hi)
}

// FilterOf returns which of the n filters of its shard a fingerprint is in:
// multiply-shift on its second half.
func FilterOf(f canon.Fingerprint, n int) int {
	hi, _ := bits.Mul64(f.Key, uint64(n))
	return int(hi)
}

// Tag is the hash tag of shard k.
func (m Map) Tag(k int) string { return m.tags[k] }

// Slot is the Redis Cluster hash slot of a tag (CRC16/XMODEM mod 16384).
func Slot(tag string) int {
	var crc uint16
	for i := 0; i < len(tag); i++ {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % Slots)
}
