package memory

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"seine/frontier"
	"seine/frontier/canon"
)

// hash is what a journal knows a lent URL by.
func hash(url string) uint32 { return uint32(xxhash.Sum64String(url)) }

// reader takes fields off a payload. After the first that does not fit, bad is
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

func (r *reader) hash() uint32 {
	v := r.take(4)
	if v == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(v)
}

// full reads what appendFull wrote.
func (r *reader) full() frontier.Entry {
	class := r.byte()
	rec := r.bytes()
	if class > 3 || !validEntry(rec) {
		r.bad = true
		return frontier.Entry{}
	}
	return decodeEntry(rec, "", int(class))
}

// settlement reads what noteSettled wrote after the token.
func (r *reader) settlement(token string) *frontier.Settlement {
	st := &frontier.Settlement{Lease: frontier.Lease{Token: token}}
	for !r.bad {
		kind := r.byte()
		if kind == 0 {
			break
		}
		o := frontier.Outcome{Kind: frontier.Kind(kind - 1), Index: int(r.uint())}
		switch o.Kind {
		case frontier.Retry:
			o.NotBefore = time.Duration(r.int())
		case frontier.Dead:
			o.Cause, o.Text = r.text(), r.text()
		}
		st.Outcomes = append(st.Outcomes, o)
	}
	if r.bool() {
		st.Free = &frontier.Release{Remain: time.Duration(r.int()), Delay: time.Duration(r.int()), Why: r.text(), Failures: int(r.int())}
	}
	return st
}

// change reads what noteAlter wrote after the site.
func (r *reader) change() frontier.SiteChange {
	var c frontier.SiteChange
	flag := func() *bool {
		if !r.bool() {
			return nil
		}
		v := r.bool()
		return &v
	}
	c.Paused, c.Blocked = flag(), flag()
	if r.bool() {
		v := r.int()
		c.Cap = &v
	}
	if r.bool() {
		v := strings.Clone(r.text())
		c.Override = &v
	}
	return c
}
