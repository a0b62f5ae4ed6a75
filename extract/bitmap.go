package extract

import "math/bits"

// tagBits have a bit for each byte of a block, the lowest for the first. A tag ends at
// the first '>', unless that is in a quoted value. It is in none when all quotes of the
// tag before it are double ones, and the last of them begins no value: only a '=' or
// white space precedes one that does. Three kinds of tags are in doubt. The end of some
// is not as plain as that. Others go on for a whole block; the rest is shorter than two,
// and so than any MaxTag. And the name of some is, or may be, that of an element that
// bears a link or changes how the rest is read.
type tagBits struct {
	begin  uint64 // each '<' of a tag
	inside uint64 // from each of these to the '>'
	doubt  uint64 // what makes a tag worth a look
	double uint64 // quotes
}

const (
	blockBytes = 64
	aheadBytes = 2 // that are looked at behind a block
	minBlocks  = 2 // that are mapped in one call at first: a tag that has no end in them is in doubt
	// maxBlocks are mapped in one call at most: so many that the call weighs nothing. A
	// tagMapper maps 64 at most.
	maxBlocks = 32
)

// tagMapper maps as many blocks of b as dst has; b is aheadBytes longer, and no tag is
// open where it begins. It returns which blocks have tags in doubt, the lowest bit for
// the first.
type tagMapper func(dst []tagBits, b []byte, with *patterns) (doubtful uint64)

// mapTags is the tagMapper of this processor, nil where there is none.
var mapTags = newTagMapper()

// patterns are the bytes that a tagMapper looks for, each in all bytes of a vector, and
// the sets that it looks up the first two bytes of an element's name in: which of eight
// sets have a byte with this low half, and which with this high half. Bytes are in a
// set, or may be, when both halves are.
type patterns struct {
	bytes [10][32]byte
	sets  [2]struct{ low, high [2][16]byte }
}

func newPatterns() (p patterns) {
	for i, c := range []byte{'<', '>', '"', '\'', '=', 0x20, 'a', 'z' - 'a', '/', 0x0f} {
		for j := range p.bytes[i] {
			p.bytes[i][j] = c
		}
	}
	return p
}

// addName adds the first two bytes of an element's name to a set.
func (p *patterns) addName(name string) {
	first, second := name[0], "\t\n\f\r />"
	if len(name) > 1 {
		second = name[1:2]
	}
	set := byte(1) << (first % 4) // a to o
	if first >= 'p' {
		set = 1 << (4 + (first-'p')%3)
	}
	p.addByte(0, first, set)
	for _, c := range []byte(second) {
		p.addByte(1, c, set)
	}
}

func (p *patterns) addByte(i int, c, set byte) {
	c |= 0x20 // as names are looked up
	for lane := range 2 {
		p.sets[i].low[lane][c&15] |= set
		p.sets[i].high[lane][c>>4] |= set
	}
}

// bitmap has the tags of a part of a chunk, from start to end.
type bitmap struct {
	start, end int
	blocks     int    // to map next, at most
	doubtful   uint64 // blocks
	tagBits    [maxBlocks]tagBits
}

// forget empties the bitmap: for another chunk, or where it is wrong.
func (x *bitmap) forget() { x.start, x.end, x.blocks = 0, 0, minBlocks }

// reach maps b from i on, unless it did; it returns false when that is less than
// minBlocks. It maps twice as much each time: what turns out to be a script or a comment
// is mapped in vain, and that must cost no more than what was read before it.
func (x *bitmap) reach(b []byte, i int, with *patterns) bool {
	if i < x.end {
		return true
	}
	n := min((len(b)-i-aheadBytes)/blockBytes, x.blocks)
	if n < minBlocks {
		return false
	}
	x.blocks = min(2*x.blocks, maxBlocks)
	x.start, x.end = i, i+n*blockBytes
	x.doubtful = mapTags(x.tagBits[:n], b[i:], with)
	if last := &x.tagBits[n-1]; last.inside>>63 != 0 && last.begin != 0 { // without a begin there is a doubt before
		x.end += bits.Len64(last.begin) - 1 - blockBytes // a tag that is open is mapped whole next
	}
	return true
}

// inside reports whether i is behind a '<' and not behind its '>', by the bitmap.
func (x *bitmap) inside(i int) bool {
	at := uint(i - 1 - x.start)
	return i > x.start && i <= x.end && x.tagBits[at/blockBytes%maxBlocks].inside>>(at%blockBytes)&1 != 0
}

// find returns the first '<' from i on, where no tag is open, that is of a tag in
// doubt; end and false when there is none.
func (x *bitmap) find(i int) (int, bool) {
	at := uint(i - x.start)
	w := at / blockBytes % maxBlocks
	doubt := x.tagBits[w].doubt >> (at % blockBytes) << (at % blockBytes)
	if doubt == 0 {
		later := x.doubtful >> (w + 1) << (w + 1)
		if later == 0 {
			return x.end, false
		}
		w = uint(bits.TrailingZeros64(later)) % maxBlocks
		doubt = x.tagBits[w].doubt
	}
	begin := x.tagBits[w].begin & (doubt ^ (doubt - 1))
	if begin == 0 { // in the block before
		w--
		begin = x.tagBits[w%maxBlocks].begin
	}
	return x.start + int(w)*blockBytes + bits.Len64(begin) - 1, true
}

// noBitmap is empty, for what is not mapped.
var noBitmap bitmap

// quote returns how far behind i the first '"' is, i itself included, -1 when it
// is not near or not mapped.
func (x *bitmap) quote(i int) int {
	at := uint(i - x.start)
	w := at / blockBytes
	if i+2*blockBytes > x.end {
		return -1
	}
	m := x.tagBits[w%maxBlocks].double>>(at%blockBytes) | x.tagBits[(w+1)%maxBlocks].double<<(blockBytes-at%blockBytes)
	if m == 0 {
		return -1
	}
	return bits.TrailingZeros64(m)
}
