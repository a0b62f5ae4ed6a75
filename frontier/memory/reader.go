package memory

import (
	"encoding/binary"

	"seine/frontier"
	"seine/frontier/canon"
)

// reader takes fields off a value. After the first that does not fit, bad is
// set and all others are zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) bool() bool { return r.byte() != 0 }

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.take(uint64(n))
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.take(uint64(n))
	return v
}

func (r *reader) bytes() []byte { return r.take(r.uint()) }
func (r *reader) text() string  { return string(r.bytes()) }

func (r *reader) fingerprint() canon.Fingerprint {
	v := r.take(16)
	if v == nil {
		return canon.Fingerprint{}
	}
	return canon.Fingerprint{Site: binary.BigEndian.Uint64(v), Key: binary.BigEndian.Uint64(v[8:])}
}

// entry reads the stored form of an entry, which ends a value.
func (r *reader) entry(site string) frontier.Entry {
	e, err := frontier.DecodeEntry(string(r.take(uint64(len(r.b)))), site)
	r.bad = r.bad || err != nil
	return e
}
