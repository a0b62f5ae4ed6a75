package canon

import "bytes"

// guard refuses URLs of endless webs.
func (p *Parser) guard(u *URL) error {
	if max := p.cfg.MaxLength; max > 0 && len(u.buf) > max {
		return ErrTooLong
	}
	path := u.buf[u.path:u.query]
	segments := bytes.Count(path, slashes)
	if max := p.cfg.MaxSegments; max > 0 && segments > max {
		return ErrTooDeep
	}
	if max := p.cfg.MaxRepeats; max > 0 && segments > max && repeats(path, max) {
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

// repeats says whether a segment of path stands there more than max times.
// Empty segments and numbers do not count.
func repeats(path []byte, max int) bool {
	// A sketch first: segments fall into 64 bins by their ends and length, and
	// without a bin of more than two there is nothing to compare.
	var once, twice, more uint64
	for rest := path; len(rest) > 0; {
		n := bytes.IndexByte(rest[1:], '/') + 1
		if n == 0 {
			n = len(rest)
		}
		bin := uint64(1) << ((uint(rest[n-1])*7 + uint(rest[n/2])*5 + uint(n)) & 63)
		more |= twice & bin
		twice |= once & bin
		once |= bin
		rest = rest[n:]
	}
	if twice == 0 || max >= 2 && more == 0 {
		return false
	}
	return repeatsExactly(path, max)
}

// repeatsExactly counts each segment in all others. Paths of more segments than
// sane are refused before, so the square is small; it is bounded all the same.
func repeatsExactly(path []byte, max int) bool {
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
