package robots

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	formatVersion = 1       // first byte of the compact form
	maxCount      = 1 << 30 // more than any file holds
)

// ErrFormat is returned by Load for bytes that are no compact form of this
// version; the caller fetches the file again.
var ErrFormat = errors.New("robots: not rules of this version")

const (
	flagAllow = 1 << iota
	flagAnchored
	flagQuery
	flagBits = iota
)

// Append appends the compact form of r:
//
//	version byte
//	group, n + n sitemaps      strings: length, bytes
//	delay                      milliseconds, rounded up
//	n + n rules                flags | line << 3, priority, bytes shared with the
//	                           pattern before, the rest as a string
//	n + n lines of usage       twice n, and one where the TDM file was read: label, a rule
//	                           as above, value as a string; nothing where that is zero
//
// Numbers are unsigned varints.
func (r *Rules) Append(dst []byte) []byte {
	dst = append(dst, formatVersion)
	dst = appendString(dst, r.group)
	dst = binary.AppendUvarint(dst, uint64(len(r.sitemaps)))
	for _, s := range r.sitemaps {
		dst = appendString(dst, s)
	}
	dst = binary.AppendUvarint(dst, uint64((r.delay+time.Millisecond-1)/time.Millisecond))
	dst = binary.AppendUvarint(dst, uint64(len(r.rules)))
	var before []byte
	for i := range r.rules {
		dst = appendRule(dst, &r.rules[i], before)
		before = r.rules[i].pattern
	}
	return r.appendUsage(dst)
}

// appendRule appends a rule that stands behind one with the pattern before.
func appendRule(dst []byte, m *rule, before []byte) []byte {
	var flags uint64
	for bit, set := range [flagBits]bool{m.allow, m.anchored, m.query} {
		if set {
			flags |= 1 << bit
		}
	}
	dst = binary.AppendUvarint(dst, flags|uint64(m.line)<<flagBits)
	dst = binary.AppendUvarint(dst, uint64(m.priority))
	n := 0
	for n < len(before) && n < len(m.pattern) && before[n] == m.pattern[n] {
		n++
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	return appendString(dst, m.pattern[n:])
}

func appendString[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// Load reads what Append wrote. It copies what it keeps.
func Load(b []byte) (*Rules, error) {
	if len(b) == 0 || b[0] != formatVersion {
		return nil, fmt.Errorf("%w: %d bytes", ErrFormat, len(b))
	}
	d := decoder{rest: b[1:]}
	r := &Rules{group: string(d.bytes(nil))}
	for n := d.count(1); n > 0; n-- {
		r.sitemaps = append(r.sitemaps, string(d.bytes(nil)))
	}
	r.delay = time.Duration(d.number(uint64(maxDelay/time.Millisecond))) * time.Millisecond
	n := d.count(4)
	if n > 0 {
		r.rules = make([]rule, 0, n)
	}
	var before []byte
	for ; n > 0 && !d.bad; n-- {
		m := d.rule(before)
		r.rules = append(r.rules, m)
		before = m.pattern
	}
	d.usage(r)
	if d.bad || len(d.rest) != 0 {
		return nil, fmt.Errorf("%w: damaged, %d bytes left of %d", ErrFormat, len(d.rest), len(b))
	}
	return r, nil
}

// AppendKept appends rules as a crawl keeps them for its fleet: the agent that they
// were read for, a blank, the time as Unix seconds and a line feed, then their
// compact form.
func (r *Rules) AppendKept(dst []byte, agent string, read time.Time) []byte {
	dst = append(append(dst, agent...), ' ')
	return r.Append(append(strconv.AppendInt(dst, read.Unix(), 10), '\n'))
}

// LoadKept reads what AppendKept wrote. The time is zero where an older version
// wrote none.
func LoadKept(b []byte) (r *Rules, agent string, read time.Time, err error) {
	head, rest, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return nil, "", read, fmt.Errorf("%w: no agent", ErrFormat)
	}
	agent, when, ok := strings.Cut(string(head), " ")
	if s, err := strconv.ParseInt(when, 10, 64); ok && err == nil {
		read = time.Unix(s, 0)
	}
	r, err = Load(rest)
	return r, agent, read, err
}

// decoder reads numbers and strings; after a fault all is zero.
type decoder struct {
	rest []byte
	bad  bool
}

// number reads a number of at most limit.
func (d *decoder) number(limit uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > limit || d.bad {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// rule reads a rule that stands behind one with the pattern before.
func (d *decoder) rule(before []byte) rule {
	flags := d.number(MaxBytes<<flagBits | (1<<flagBits - 1))
	m := rule{allow: flags&flagAllow != 0, anchored: flags&flagAnchored != 0, query: flags&flagQuery != 0}
	m.line = int32(flags >> flagBits)
	m.priority = int32(d.number(4 * maxLine))
	m.pattern = d.bytes(before[:d.number(uint64(len(before)))])
	m.index()
	return m
}

// count reads a number of things that take at least size bytes each.
func (d *decoder) count(size int) int {
	n := d.number(maxCount)
	if n*uint64(size) > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return 0
	}
	return int(n)
}

// bytes reads a string and puts prefix before it.
func (d *decoder) bytes(prefix []byte) []byte {
	n := d.count(1)
	s := make([]byte, 0, len(prefix)+n)
	s = append(append(s, prefix...), d.rest[:n]...)
	d.rest = d.rest[n:]
	return s
}
