package extract

import "math/bits"

// marks have a bit for each byte of a block, the lowest for the first.
type marks struct {
	open, close    uint64 // '<' and '>'
	double, single uint64 // quotes
	before         uint64 // what a quote that begins a value may come behind: '=', white space
	dull           uint64 // whether a tag that begins here bears no link and changes nothing; unsure is no
}

const (
	blockBytes = 64
	aheadBytes = 2 // that dull looks at behind a block
	// maxBlocks are marked in one go: enough that the call weighs nothing, and so
	// few that marks of what turns out to be a script weigh nothing either.
	maxBlocks = 16
)

// marker marks as many blocks of b as dst has; b is aheadBytes longer.
type marker func(dst []marks, b []byte, with *needles)

// mark is the quickest marker, nil where there is none.
var mark = quickest(markers())

func quickest(all []marker) marker {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

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
	blocks     [maxBlocks]marks
}

// forget is for another chunk.
func (x *index) forget() { x.start, x.end = 0, 0 }

// reach marks what of b stands at i, two blocks at least; false when b ends before.
func (x *index) reach(b []byte, i int, with *needles) bool {
	if i < x.end {
		return true
	}
	n := min((len(b)-i-aheadBytes)/blockBytes, maxBlocks)
	if n < 2 {
		return false
	}
	x.start, x.end = i, i+n*blockBytes
	mark(x.blocks[:n], b[i:], with)
	return true
}

// find returns the first '<' from i on, where no tag is open, that is of no dull
// tag or of one whose end is in doubt; false, and where to go on once more of the
// chunk is marked, when there is none.
//
// A tag ends at the first '>', unless that is in a quoted value. It is in none
// when all quotes of the tag before it are double ones, and the last of them
// begins no value, for a '=' and white space alone may precede one that does.
// Tags that go on for a whole block are in doubt, so a dull one is shorter than
// two, less than any MaxTag. Sums find ends: a bit that is added to a run of ones
// goes to where the run ends.
func (x *index) find(i int) (int, bool) {
	w := (i - x.start) / blockBytes
	valid := ^uint64(0) << ((i - x.start) % blockBytes)
	var inTag, begun, before uint64 // at the end of the last block
	for at := x.start + w*blockBytes; at < x.end; at += blockBytes {
		k := &x.blocks[(at-x.start)/blockBytes]
		open := k.open & valid
		ends, more := bits.Add64(open, ^k.close, inTag)
		tag := ^(k.close | ends) // from each '<' to its '>'
		double := k.double & tag
		begin := double & (k.before<<1 | before)
		last, run := bits.Add64(begin<<1, tag&^double, begun) // where what may be a value goes to
		doubt := open&(ends|^k.dull) | k.single&tag | k.close&ends&last
		if k.close == 0 {
			doubt |= inTag // a long one
		}
		if doubt != 0 {
			n := bits.TrailingZeros64(doubt)
			if own := open & (2<<n - 1) &^ (doubt & ends); own != 0 {
				return at + bits.Len64(own) - 1, true
			}
			return at - blockBytes + bits.Len64(x.blocks[(at-x.start)/blockBytes-1].open) - 1, true
		}
		inTag, begun, before, valid = more, run|begin>>63, k.before>>63, ^uint64(0)
	}
	if inTag != 0 {
		return x.end - blockBytes + bits.Len64(x.blocks[(x.end-x.start)/blockBytes-1].open) - 1, false
	}
	return x.end, false
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
	m := x.blocks[w%maxBlocks].double>>(at%blockBytes) | x.blocks[(w+1)%maxBlocks].double<<(blockBytes-at%blockBytes)
	if m == 0 {
		return -1
	}
	return bits.TrailingZeros64(m)
}
