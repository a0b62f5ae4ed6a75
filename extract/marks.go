package extract

import "math/bits"

// tags have a bit for each byte of a block, the lowest for the first. A tag ends at
// the first '>', unless that is in a quoted value. It is in none when all quotes of the
// tag before it are double ones, and the last of them begins no value, for a '=' and
// white space alone may precede one that does. Other tags are in doubt; so are those
// that go on for a whole block, so that one without doubts is shorter than two, less
// than any MaxTag; and so are those whose name is, or may be, of an element that bears
// a link or changes how the rest is read.
type tags struct {
	begin  uint64 // each '<' of a tag
	inside uint64 // from each of these to the '>'
	doubt  uint64 // what makes a tag worth a look
	double uint64 // quotes
}

const (
	blockBytes = 64
	aheadBytes = 2 // that are looked at behind a block
	minBlocks  = 2 // are marked in one go at first: a tag that has no end in them is in doubt
	// maxBlocks are marked in one go: enough that the call weighs nothing. A marker tells
	// of 64 at most which have doubts.
	maxBlocks = 32
)

// marker marks as many blocks of b as dst has; b is aheadBytes longer, and no tag is
// open where it begins. It returns which blocks have doubts, the lowest bit for the
// first.
type marker func(dst []tags, b []byte, with *needles) (doubtful uint64)

// mark is the marker of this processor, nil where there is none.
var mark = newMarker()

// needles are what marks tell, each in all bytes of a vector, and the sets that
// the first two bytes of an element's name are looked up in: which of eight sets
// have a byte with this low half, and which with this high half. Bytes are in a
// set, or it looks so, when both halves are.
type needles struct {
	bytes [10][32]byte
	sets  [2]struct{ low, high [2][16]byte }
}

func newNeedles() (n needles) {
	for i, c := range []byte{'<', '>', '"', '\'', '=', 0x20, 'a', 'z' - 'a', '/', 0x0f} {
		for j := range n.bytes[i] {
			n.bytes[i][j] = c
		}
	}
	return n
}

// add puts the first two bytes of an element's name into a set.
func (n *needles) add(name string) {
	first, second := name[0], "\t\n\f\r />"
	if len(name) > 1 {
		second = name[1:2]
	}
	set := byte(1) << (first % 4) // a to o
	if first >= 'p' {
		set = 1 << (4 + (first-'p')%3)
	}
	n.put(0, first, set)
	for _, c := range []byte(second) {
		n.put(1, c, set)
	}
}

func (n *needles) put(i int, c, set byte) {
	c |= 0x20 // as names are looked up
	for lane := range 2 {
		n.sets[i].low[lane][c&15] |= set
		n.sets[i].high[lane][c>>4] |= set
	}
}

// index is the marks of a part of a chunk, from start to end.
type index struct {
	start, end int
	blocks     int    // to mark next, at most
	doubtful   uint64 // blocks
	tags       [maxBlocks]tags
}

// forget is for another chunk, or where no marks are right.
func (x *index) forget() { x.start, x.end, x.blocks = 0, 0, minBlocks }

// reach marks what of b stands at i; false when less than minBlocks do. It marks twice
// as much each time: what turns out to be a script or a comment is marked in vain, and
// that must cost no more than what was read before it.
func (x *index) reach(b []byte, i int, with *needles) bool {
	if i < x.end {
		return true
	}
	n := min((len(b)-i-aheadBytes)/blockBytes, x.blocks)
	if n < minBlocks {
		return false
	}
	x.blocks = min(2*x.blocks, maxBlocks)
	x.start, x.end = i, i+n*blockBytes
	x.doubtful = mark(x.tags[:n], b[i:], with)
	if last := &x.tags[n-1]; last.inside>>63 != 0 && last.begin != 0 { // without a begin there is a doubt before
		x.end += bits.Len64(last.begin) - 1 - blockBytes // a tag that is open is marked whole next
	}
	return true
}

// inside tells whether i is behind a '<' and not behind its '>', by the marks.
func (x *index) inside(i int) bool {
	at := uint(i - 1 - x.start)
	return i > x.start && i <= x.end && x.tags[at/blockBytes%maxBlocks].inside>>(at%blockBytes)&1 != 0
}

// find returns the first '<' from i on, where no tag is open, that is of a tag in
// doubt; end and false when there is none.
func (x *index) find(i int) (int, bool) {
	at := uint(i - x.start)
	w := at / blockBytes % maxBlocks
	doubt := x.tags[w].doubt >> (at % blockBytes) << (at % blockBytes)
	if doubt == 0 {
		later := x.doubtful >> (w + 1) << (w + 1)
		if later == 0 {
			return x.end, false
		}
		w = uint(bits.TrailingZeros64(later)) % maxBlocks
		doubt = x.tags[w].doubt
	}
	begin := x.tags[w].begin & (doubt ^ (doubt - 1))
	if begin == 0 { // in the block before
		w--
		begin = x.tags[w%maxBlocks].begin
	}
	return x.start + int(w)*blockBytes + bits.Len64(begin) - 1, true
}

// unmarked is the index of what has no marks.
var unmarked index

// quote returns how far behind i the first '"' is, i itself included, -1 when it
// is not near or there are no marks.
func (x *index) quote(i int) int {
	at := uint(i - x.start)
	w := at / blockBytes
	if i+2*blockBytes > x.end {
		return -1
	}
	m := x.tags[w%maxBlocks].double>>(at%blockBytes) | x.tags[(w+1)%maxBlocks].double<<(blockBytes-at%blockBytes)
	if m == 0 {
		return -1
	}
	return bits.TrailingZeros64(m)
}
