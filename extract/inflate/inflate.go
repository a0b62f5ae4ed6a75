// Package inflate decodes DEFLATE (RFC 1951), bare and inside of gzip
// (RFC 1952) and zlib (RFC 1950). Inflating is what a compressed page costs
// most.
//
// A [Decoder] is the state of one stream. Decode takes a piece of the stream
// and appends to a slice what that piece decodes to. It stops where the input or
// the room of the slice ends, and the next call goes on there. So one method
// serves who pulls, who pushes, and who has the whole stream. The slice is also
// the window: matches reach back to the last 32 KB in it. A [Stream] keeps such a
// slice for who wants only what is new.
//
// Two loops decode symbols. The fast one (fast.go) runs while input and room are
// ample, so that it need not check for their end within a symbol. The careful one
// (block.go) does the rest. Both decode a symbol whole or not at all. A symbol has
// at most 48 bits and the bit buffer 64, so what is left of the input at the end
// of a call fits into the bit buffer. The fast loop reports no fault: it stops
// before what it cannot decode, and the careful one judges it.
//
// Any input ends in a stream, in a fault, or in a wish for more. What was decoded
// before a fault is kept. Nothing of an earlier stream or block is read later:
// each dynamic block has its tables built whole, and fixed ones never change.
package inflate

import (
	"errors"
	"hash"
	"io"
)

// Format is what lies around the blocks.
type Format uint8

const (
	// Gzip is one or more members (RFC 1952), each with its checksum.
	Gzip Format = iota
	// Deflate is the content coding of that name (RFC 9110, section 8.4.1.2): zlib,
	// or the bare blocks that some servers send. Two bytes show which.
	Deflate
	// Raw is bare blocks.
	Raw
)

var (
	// ErrHeader means that the input does not begin as its format says.
	ErrHeader = errors.New("inflate: no valid header of gzip or zlib")
	// ErrCorrupt means that a block does not decode.
	ErrCorrupt = errors.New("inflate: corrupt compressed data")
	// ErrChecksum means that the bytes decoded are not those that were compressed.
	ErrChecksum = errors.New("inflate: checksum or size differs from what was decoded")
	// ErrRoom means that the slice has no room for the next symbol, which decodes
	// to at most MaxMatch bytes. It is no fault of the stream.
	ErrRoom = errors.New("inflate: no room for the next symbol")
)

const (
	// Window is how many bytes a match may reach back.
	Window = 32 << 10
	// MaxMatch is how many bytes one symbol may decode to.
	MaxMatch = 258
)

// errInput ends a call that took all of its input and wants more.
var errInput = errors.New("more input")

// state is what the next bits are.
type state uint8

const (
	atStart      state = iota // of the stream
	inGzipHead                // behind its first four bytes
	inExtra                   // the length of the extra field
	inExtraBytes              // the field
	inName                    // a name, if there is one
	inComment                 // a comment, if there is one
	inHeadSum                 // the header's checksum, if there is one
	inDictionary              // the checksum of zlib's preset dictionary
	inBlockHead               // three bits
	inStoredHead              // the length of a stored block
	inStored                  // its bytes
	inTableHead               // the sizes of a dynamic block's codes
	inCodeLens                // the code of its code lengths
	inLens                    // its code lengths
	inSymbols                 // its symbols, or those of a fixed block
	inSum                     // the checksum behind the blocks
	inSize                    // gzip's size behind it
	inGap                     // behind a member: another, the end, or what is no member
	atEnd
)

// Decoder is the state of one stream. The zero value is ready for [Gzip]. It takes
// 16 KB.
type Decoder struct {
	format Format
	state  state
	err    error // ends all further calls

	bits  uint64  // input taken and not decoded, the next bit lowest; above them 0
	nbits uint    // their number
	final bool    // this block is the last
	flags byte    // of the gzip header
	field [6]byte // of it, that goes into its checksum
	left  int     // bytes that a stored block or a field of the header still has

	made  int         // bytes of this member, at most Window
	sum   uint32      // their checksum, or the header's
	size  uint32      // their number
	adler hash.Hash32 // of zlib; nil until one came

	codes        // of a dynamic block, while they are read
	own   tables // of a dynamic block
	fixed bool   // this block is a fixed one

	// The rest is of the call of Decode that runs.
	src   []byte
	at    int    // src is taken up to here
	buf   []byte // dst with its capacity
	out   int    // buf is filled up to here
	begin int    // where the member begins in buf, or its last Window bytes
	todo  int    // the checksum lacks what lies from here on
}

// Reset makes d ready for another stream.
func (d *Decoder) Reset(f Format) {
	d.format, d.state, d.err, d.bits, d.nbits, d.made = f, atStart, nil, 0, 0, 0
}

// Decode takes a piece of the stream and appends to dst what it decodes to, within
// dst's capacity. dst must end with the last [Window] bytes that were decoded
// before, or with all if they are fewer. n is how much of src was taken. The error
// is
//   - nil if all of src was taken and more is wanted;
//   - ErrRoom if more room is wanted: call again with src[n:], even if that is empty;
//   - io.EOF if the stream ended and src[n:] lies behind it. After a member of gzip
//     another may follow, so io.EOF comes only once something else does;
//   - else a fault of the stream. dst has what precedes it.
//
// Decode keeps neither slice, and may write anything into dst's unused capacity.
func (d *Decoder) Decode(dst, src []byte) (_ []byte, n int, err error) {
	if d.err != nil {
		return dst, 0, d.err
	}
	d.src, d.at = src, 0
	d.buf, d.out, d.todo = dst[:cap(dst)], len(dst), len(dst)
	d.begin = len(dst) - min(d.made, len(dst))
	for err == nil {
		err = d.step()
	}
	d.addToSum()
	d.made = min(d.out-d.begin, Window)
	if err == errInput {
		err = nil
	} else {
		d.giveBack()
		if err != ErrRoom {
			d.err = err
		}
	}
	dst, n = d.buf[:d.out], d.at
	d.src, d.buf = nil, nil
	return dst, n, err
}

// End says whether the stream may end where Decode took it: it is nil, the fault
// found before, or io.ErrUnexpectedEOF.
func (d *Decoder) End() error {
	switch {
	case d.err == io.EOF || d.err == nil && d.state == inGap:
		return nil
	case d.err != nil:
		return d.err
	}
	return io.ErrUnexpectedEOF
}

// step does what the state says. errInput leaves the state as it is.
func (d *Decoder) step() error {
	switch d.state {
	case inSymbols:
		return d.symbols()
	case inStored:
		return d.stored()
	case inBlockHead, inStoredHead, inTableHead, inCodeLens, inLens:
		return d.blockHead()
	case atEnd:
		return io.EOF
	}
	return d.frame()
}

// need sees to it that the bit buffer has n bits, at most 56. If it cannot, all of
// src is taken.
func (d *Decoder) need(n uint) bool {
	for d.nbits < n {
		if d.at == len(d.src) {
			return false
		}
		d.bits |= uint64(d.src[d.at]) << d.nbits
		d.at++
		d.nbits += 8
	}
	return true
}

// takeBits removes n bits that the bit buffer has.
func (d *Decoder) takeBits(n uint) uint32 {
	v := d.bits & (1<<n - 1)
	d.bits >>= n
	d.nbits -= n
	return uint32(v)
}

// giveBack returns whole bytes of the bit buffer to src. Those of earlier calls
// stay: they belong to a symbol that is not decoded yet.
func (d *Decoder) giveBack() {
	n := min(int(d.nbits/8), d.at)
	d.at -= n
	d.nbits -= 8 * uint(n)
	d.bits &= 1<<d.nbits - 1
}
