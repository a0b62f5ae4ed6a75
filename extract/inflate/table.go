package inflate

import (
	"math/bits"
	"sync"
)

// An entry is what the next bits of the input stand for.
//
//	bits 31     it is a literal
//	bits 16-30  the literal, the least length or distance, or where a subtable begins
//	bits 13-15  flags of what is none of these
//	bits 8-11   bits of the code, or that the subtable is looked up by
//	bits 0-7    bits of the code and of the extra bits behind it
//
// The lowest byte alone is what a symbol takes, so that a loop needs no mask for it.
type entry uint32

const (
	isLiteral  entry = 1 << 31
	isSpecial  entry = 1 << 15 // it is one of the next two, or no code
	isSubtable entry = 1 << 14
	isEnd      entry = 1 << 13 // of the block
)

// bits is how many the symbol takes, with its extra bits.
func (e entry) bits() uint { return uint(e & 0xff) }

// codeBits is how many of them are the code.
func (e entry) codeBits() uint { return uint(e >> 8 & 15) }

// value is the length or distance, whose code is in front of b.
func (e entry) value(b uint64) int {
	return int(e>>16&0x7fff) + int(b&(1<<(e.bits()&63)-1)>>e.codeBits())
}

// sub finds the entry in the subtable that e names.
func (e entry) sub(table []entry, root uint, b uint64) entry {
	return table[uint64(e>>16)+b>>root&(1<<e.codeBits()-1)]
}

// Codes of up to root bits are looked up at once, longer ones in a subtable too.
const (
	litRoot  = 11
	distRoot = 9
	lensRoot = 7

	maxLits  = 288 // with two that only fixed blocks have, and may not use
	maxDists = 32  // likewise
	maxLens  = 19
	maxBits  = 15
	endBlock = 256
)

// A subtable of 1<<k entries has at least k+1 codes, as a tree of that depth has
// leaves. So all subtables have at most symbols * (1<<k) / (k+1) entries with the
// largest k.
type (
	litTable  [1<<litRoot + maxLits*(1<<(maxBits-litRoot))/(maxBits-litRoot+1)]entry
	distTable [1<<distRoot + maxDists*(1<<(maxBits-distRoot))/(maxBits-distRoot+1)]entry
)

// tables are those of a block.
type tables struct {
	lit  litTable  // literals and lengths
	dist distTable // distances, or code lengths while a block begins
}

// fixedTables are those of all fixed blocks (RFC 1951, section 3.2.6). They hold no
// state of a stream.
var fixedTables = sync.OnceValue(func() *tables {
	var l [maxLits]uint8
	for i := range l {
		switch {
		case i < 144:
			l[i] = 8
		case i < 256:
			l[i] = 9
		case i < 280:
			l[i] = 7
		default:
			l[i] = 8
		}
	}
	t := new(tables)
	litAlphabet.build(t.lit[:], litRoot, l[:])
	for i := range l[:maxDists] {
		l[i] = 5
	}
	distAlphabet.build(t.dist[:], distRoot, l[:maxDists])
	return t
})

// alphabet is what the symbols of a code mean.
type alphabet uint8

const (
	lensAlphabet alphabet = iota
	litAlphabet
	distAlphabet
)

// entry is a symbol whose code has n bits.
func (a alphabet) entry(sym int, n uint) entry {
	code := entry(n)<<8 | entry(n)
	switch {
	case a == lensAlphabet:
		return entry(sym)<<16 | code
	case a == distAlphabet && sym < 30:
		base, extra := span(sym, 1)
		return (base+1)<<16 | code + extra
	case a == litAlphabet && sym < endBlock:
		return isLiteral | entry(sym)<<16 | code
	case a == litAlphabet && sym == endBlock:
		return isSpecial | isEnd | code
	case a == litAlphabet && sym < 285:
		base, extra := span(sym-endBlock-1, 2)
		return (base+3)<<16 | code + extra
	case a == litAlphabet && sym == 285:
		return MaxMatch<<16 | code
	}
	return isSpecial | code
}

// span is the k-th range of lengths or distances, counted from 0: after the first
// ones, 1<<g ranges of one size come before those of twice that size (RFC 1951,
// section 3.2.5).
func span(k int, g uint) (base, extra entry) {
	if k < 2<<g {
		return entry(k), 0
	}
	extra = entry(k>>g - 1)
	return entry(1<<g+k&(1<<g-1)) << extra, extra
}

// build fills a table for the code whose symbols have codes of so many bits, 0 for
// none (RFC 1951, section 3.2.2). false means that these are no code: some bits
// stand for two symbols, or for none. A code of no symbol, or of one of one bit, is
// allowed, as in other decoders; what it leaves out is a fault where it occurs.
func (a alphabet) build(table []entry, root uint, lens []uint8) bool {
	var count, next [maxBits + 1]int
	for _, n := range lens {
		count[n]++
	}
	unused := 1 // codes of so many bits that are given to no symbol
	most := uint(0)
	for n := uint(1); n <= maxBits; n++ {
		unused = unused<<1 - count[n]
		if unused < 0 {
			return false
		}
		if count[n] > 0 {
			most = n
		}
		if n < maxBits {
			next[n+1] = next[n] + count[n]
		}
	}
	var sorted [maxLits]uint16 // symbols by the bits of their codes
	for sym, n := range lens {
		if n > 0 {
			sorted[next[n]] = uint16(sym)
			next[n]++
		}
	}
	if unused > 0 {
		return a.buildSmall(table[:1<<root], most, int(sorted[0]))
	}

	// Codes arrive with their first bit lowest, so they are reversed here. The first
	// 1<<n entries are those of codes of up to n bits; doubled, they serve one more.
	code, size, k := 0, 1, 0
	for n := uint(1); n <= root; n++ {
		copy(table[size:2*size], table[:size])
		size *= 2
		code <<= 1
		for range count[n] {
			table[reverse(code, n)] = a.entry(int(sorted[k]), n)
			code++
			k++
		}
	}
	a.buildSubtables(table, root, most, code, count[:], sorted[k:])
	return true
}

// buildSubtables goes on with codes of more than root bits, the first of which
// follows code.
func (a alphabet) buildSubtables(table []entry, root, most uint, code int, count []int, sorted []uint16) {
	start, size, prefix := 0, 1<<root, -1 // the subtable being filled
	for n := root + 1; n <= most; n++ {
		code <<= 1
		for left := count[n]; left > 0; left-- {
			c := reverse(code, n)
			if p := c & (1<<root - 1); p != prefix {
				// It is as large as the codes of this prefix are long.
				sub, used := n-root, left
				for used < 1<<sub {
					sub++
					used = used<<1 + count[root+sub]
				}
				prefix, start = p, start+size
				size = 1 << sub
				table[p] = isSpecial | isSubtable | entry(start)<<16 | entry(sub)<<8
			}
			e := a.entry(int(sorted[0]), n)
			for i := c >> root; i < size; i += 1 << (n - root) {
				table[start+i] = e
			}
			sorted = sorted[1:]
			code++
		}
	}
}

// buildSmall is build for a code of one symbol or none.
func (a alphabet) buildSmall(table []entry, bits uint, sym int) bool {
	if bits > 1 {
		return false
	}
	none := isSpecial | entry(bits)<<8 | entry(bits)
	table[0], table[1] = none, none
	if bits == 1 {
		table[0] = a.entry(sym, 1)
	}
	for size := 2; size < len(table); size *= 2 {
		copy(table[size:], table[:size])
	}
	return true
}

// reverse turns the n bits of a code around.
func reverse(code int, n uint) int {
	return int(bits.Reverse16(uint16(code) << (16 - n)))
}
