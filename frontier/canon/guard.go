package canon

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// guard refuses URLs of endless webs.
func (p *Parser) guard(u *URL) error {
	if max := p.cfg.MaxLength; max > 0 && len(u.buf) > max {
		return ErrTooLong
	}
	if p.seenTo == 0 {
		p.seen, p.seenTo = sketch{}, u.path
	}
	p.seen.add(u.buf, p.seenTo, u.query)
	if max := p.cfg.MaxSegments; max > 0 && p.seen.segments > max {
		return ErrTooDeep
	}
	if max := p.cfg.MaxRepeats; max > 0 && p.seen.mayRepeat(max) && repeats(u.buf[u.path:u.query], max) {
		return ErrRepeats
	}
	if max := p.cfg.MaxArgs; max > 0 && len(u.buf)-u.query > max && bytes.Count(u.buf[u.query:], ampersands) >= max {
		return ErrTooManyArgs
	}
	return nil
}

// guardText refuses texts that cannot become a URL within the guards, and those
// made to cost: the library's work grows with the square of a host, of the
// signs "@" before it, and of the segments. Of a text within these bounds it
// makes two milliseconds for each 8 KB at the very most.
func (p *Parser) guardText(text []byte) error {
	if max := p.cfg.MaxLength; max > 0 {
		scheme := schemeOf(text)
		head := bytes.TrimLeft(text[len(scheme):], `:/\`)
		if end := bytes.IndexAny(head, `/\?#`); end >= 0 {
			head = head[:end]
		}
		if scheme == nil && len(bytes.TrimLeft(text[:min(2, len(text))], `/\`)) > 0 {
			head = nil // a path: no host is named
		}
		if len(text) > 2*max || len(head) > 512 || bytes.Count(head, []byte{'@'}) > 16 {
			return ErrTooLong
		}
	}
	if max := p.cfg.MaxSegments; max > 0 && bytes.Count(text, slashes)+bytes.Count(text, []byte{'\\'}) > 8*max {
		return ErrTooDeep
	}
	return nil
}

var (
	slashes    = []byte{'/'}
	ampersands = []byte{'&'}
)

// sketch tells, most often at once, that no segment of a path repeats: segments
// fall into 64 bins by length and two bytes, and where no bin holds more than
// two there is nothing to compare. A page's links share most of their path, so
// the sketch of its directory is kept with its URL.
type sketch struct {
	segments          int
	once, twice, more uint64 // bins of at least one, two, three segments
}

// add adds the segments of buf[from:to], which is empty or starts with a '/'.
// What stands before it in buf is at least a scheme and a host. Slashes are
// sought in words of eight bytes: segments are short.
func (s *sketch) add(buf []byte, from, to int) {
	if from == to {
		return
	}
	start := from // of the segment, its '/'
	for at := from + 1; at < to; at += 8 {
		for m := slashesAt(buf, at, to); m != 0; m &= m - 1 {
			end := at + bits.TrailingZeros64(m)/8
			s.addSegment(buf[start:end])
			start = end
		}
	}
	s.addSegment(buf[start:to])
}

// addSegment adds one segment, which starts with its '/'.
func (s *sketch) addSegment(segment []byte) {
	n := len(segment)
	bin := uint64(1) << ((uint(segment[n-1])*7 + uint(segment[n/2])*5 + uint(n)) & 63)
	s.more |= s.twice & bin
	s.twice |= s.once & bin
	s.once |= bin
	s.segments++
}

// slashesAt marks the slashes among the eight bytes of buf from at on, those
// before to, in the highest bit of each byte, the first byte lowest.
func slashesAt(buf []byte, at, to int) uint64 {
	const low7 = 0x7f7f7f7f7f7f7f7f
	var w uint64
	if to-at >= 8 {
		w = binary.LittleEndian.Uint64(buf[at:])
	} else {
		w = binary.LittleEndian.Uint64(buf[to-8:]) >> (8 * uint(8-(to-at)))
	}
	w ^= 0x2f2f2f2f2f2f2f2f
	return ^((w&low7 + low7) | w | low7)
}

// mayRepeat says whether a segment may be there more than max times.
func (s *sketch) mayRepeat(max int) bool {
	return s.segments > max && s.twice != 0 && (max < 2 || s.more != 0)
}

// repeats says whether a segment of path stands there more than max times.
// Empty segments and numbers do not count. Paths of more segments than sane are
// refused before, so the square is small; it is bounded all the same.
func repeats(path []byte, max int) bool {
	segments := bytes.SplitN(path, slashes, 512)
	for i, s := range segments {
		if isNumber(s) {
			continue
		}
		n := 1
		for _, t := range segments[i+1:] {
			if bytes.Equal(s, t) {
				n++
			}
		}
		if n > max {
			return true
		}
	}
	return false
}

// isNumber says that s is of digits alone, or empty.
func isNumber(s []byte) bool {
	for _, c := range s {
		if !isDigit(c) {
			return false
		}
	}
	return true
}
