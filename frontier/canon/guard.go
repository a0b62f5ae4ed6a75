package canon

import "bytes"

// guard refuses URLs of endless webs.
func (p *Parser) guard(u *URL) error {
	if max := p.cfg.MaxLength; max > 0 && len(u.buf) > max {
		return ErrTooLong
	}
	if p.seenTo == 0 {
		p.seen, p.seenTo = sketch{}, u.path
	}
	p.seen.add(u.buf[p.seenTo:u.query])
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

// add adds the segments of path, which is empty or starts with a '/'.
func (s *sketch) add(path []byte) {
	for len(path) > 0 {
		n := bytes.IndexByte(path[1:], '/') + 1
		if n == 0 {
			n = len(path)
		}
		bin := uint64(1) << ((uint(path[n-1])*7 + uint(path[n/2])*5 + uint(n)) & 63)
		s.more |= s.twice & bin
		s.twice |= s.once & bin
		s.once |= bin
		s.segments++
		path = path[n:]
	}
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
