package shard

import (
	"math/bits"
	"strconv"
	"strings"

	"seine/frontier/canon"
)

// Slots is the number of hash slots of Redis Cluster.
const Slots = 16384

// MaxShards is the highest number of shards of a crawl: each needs some slots
// to choose its own from.
const MaxShards = Slots / 4

// Map says which of n shards owns a fingerprint, and gives each shard a hash
// tag whose slot lies in the k-th of n equal slot ranges. The same n always
// gives the same tags; they are part of a crawl's layout.
type Map struct {
	tags []string
}

// NewMap returns the map of n shards, 1 .. MaxShards. Finding the tags takes
// about n*n/25 microseconds: 3 ms for 256.
func NewMap(n int) Map {
	m := Map{tags: make([]string, n)}
	for k := range m.tags {
		m.tags[k] = tag(k, n)
	}
	return m
}

// tag finds the first text "k.i" whose slot lies in the middle half of the
// k-th of n ranges: a master's range that is off by a few slots still holds it.
func tag(k, n int) string {
	lo, hi := k*Slots/n, (k+1)*Slots/n
	quarter := (hi - lo) / 4
	var room [24]byte
	text := append(strconv.AppendInt(room[:0], int64(k), 10), '.')
	prefix := crc16(0, text)
	for i := int64(0); ; i++ {
		full := strconv.AppendInt(text, i, 10)
		if s := int(crc16(prefix, full[len(text):]) % Slots); s >= lo+quarter && s < hi-quarter {
			return string(full)
		}
	}
}

// Len is the number of shards.
func (m Map) Len() int { return len(m.tags) }

// Of returns the shard of a fingerprint.
func (m Map) Of(f canon.Fingerprint) int { return f.Shard(len(m.tags)) }

// FilterOf returns which of the n filters of its shard a fingerprint is in:
// multiply-shift on its second half.
func FilterOf(f canon.Fingerprint, n int) int {
	hi, _ := bits.Mul64(f.Key, uint64(n))
	return int(hi)
}

// Tag is the hash tag of shard k.
func (m Map) Tag(k int) string { return m.tags[k] }

// Slot is the Redis Cluster hash slot of a tag.
func Slot(tag string) int { return int(crc16(0, tag) % Slots) }

// slotOf is the slot of a key: that of its tag, or of all of it without one.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return Slot(tag)
		}
	}
	return Slot(key)
}

// crc16 continues a CRC16/XMODEM, the hash of Redis Cluster's slots (Redis
// Cluster specification, appendix A).
func crc16[T string | []byte](crc uint16, s T) uint16 {
	for i := range len(s) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^s[i]]
	}
	return crc
}

// crcTable holds the CRC16/XMODEM of every byte, polynomial x^16+x^12+x^5+1.
var crcTable = func() (table [256]uint16) {
	for b := range table {
		crc := uint16(b) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
		table[b] = crc
	}
	return table
}()
