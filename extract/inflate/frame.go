package inflate

import (
	"hash/adler32"
	"hash/crc32"
	"io"
	"math/bits"
)

// Flags of a gzip header (RFC 1952, section 2.3.1).
const (
	hasSum     = 1 << 1
	hasExtra   = 1 << 2
	hasName    = 1 << 3
	hasComment = 1 << 4
	reserved   = 7 << 5
)

const (
	gzipMagic = 0x1f | 0x8b<<8
	deflated  = 8   // the only method of gzip and zlib
	maxText   = 512 // bytes of a name or comment with the zero at its end
)

// frame reads what lies around the blocks.
func (d *Decoder) frame() error {
	switch d.state {
	case atStart:
		switch d.format {
		case Gzip:
			return d.gzipStart()
		case Deflate:
			return d.deflateStart()
		}
		d.member()
	case inGzipHead:
		if !d.need(48) {
			return errInput
		}
		d.head(6) // time, flags of the compressor, system
		d.state = inExtra
	case inExtra:
		d.left = 0
		if d.flags&hasExtra != 0 {
			if !d.need(16) {
				return errInput
			}
			d.left = int(d.head(2))
		}
		d.state = inExtraBytes
	case inExtraBytes:
		for ; d.left > 0; d.left-- {
			if !d.need(8) {
				return errInput
			}
			d.head(1)
		}
		d.state, d.left = inName, maxText
	case inName:
		return d.text(hasName, inComment)
	case inComment:
		return d.text(hasComment, inHeadSum)
	case inHeadSum:
		if d.flags&hasSum != 0 {
			if !d.need(16) {
				return errInput
			}
			if d.takeBits(16) != d.sum&0xffff {
				return ErrHeader
			}
		}
		d.member()
	case inDictionary:
		if !d.need(32) {
			return errInput
		}
		if bits.ReverseBytes32(d.takeBits(32)) != 1 { // that of a dictionary of no bytes
			return ErrHeader
		}
		d.member()
	case inSum:
		return d.checkSum()
	case inSize:
		if !d.need(32) {
			return errInput
		}
		if d.takeBits(32) != d.size {
			return ErrChecksum
		}
		d.state = inGap
	case inGap:
		if !d.need(16) {
			return errInput
		}
		if d.bits&0xffff != gzipMagic {
			return io.EOF
		}
		d.state = atStart
	}
	return nil
}

func (d *Decoder) gzipStart() error {
	if !d.need(32) {
		return errInput
	}
	d.sum = 0
	v := d.head(4)
	d.flags = byte(v >> 24)
	if v&0xffff != gzipMagic || v>>16&0xff != deflated || d.flags&reserved != 0 {
		return ErrHeader
	}
	d.state = inGzipHead
	return nil
}

// deflateStart distinguishes zlib from bare blocks by zlib's method and check bits
// (RFC 1950, section 2.2).
func (d *Decoder) deflateStart() error {
	if !d.need(16) {
		return errInput
	}
	method, flags := d.bits&0xff, d.bits>>8&0xff
	if method&0x0f != deflated || (method<<8|flags)%31 != 0 {
		d.format = Raw
		return nil
	}
	d.takeBits(16)
	if method>>4 > 7 { // a window of more than 32 KB
		return ErrHeader
	}
	if flags&0x20 != 0 {
		d.state = inDictionary
		return nil
	}
	d.member()
	return nil
}

// member begins with the blocks of a member. Its matches do not reach into the one
// before.
func (d *Decoder) member() {
	d.begin, d.size, d.sum = d.out, 0, 0
	if d.format == Deflate {
		if d.adler == nil {
			d.adler = adler32.New()
		}
		d.adler.Reset()
		d.sum = d.adler.Sum32()
	}
	d.state = inBlockHead
}

// blocksEnd goes to what follows the last block.
func (d *Decoder) blocksEnd() {
	if d.format == Raw {
		d.state = atEnd
		return
	}
	d.takeBits(d.nbits % 8)
	d.state = inSum
}

func (d *Decoder) checkSum() error {
	if !d.need(32) {
		return errInput
	}
	d.addToSum()
	sum := d.takeBits(32)
	d.state = inSize
	if d.format == Deflate {
		sum, d.state = bits.ReverseBytes32(sum), atEnd
	}
	if sum != d.sum {
		return ErrChecksum
	}
	return nil
}

// addToSum brings the checksum up to what is decoded.
func (d *Decoder) addToSum() {
	p := d.buf[d.todo:d.out]
	d.todo = d.out
	if len(p) == 0 {
		return
	}
	d.size += uint32(len(p))
	switch d.format {
	case Gzip:
		d.sum = crc32.Update(d.sum, crc32.IEEETable, p)
	case Deflate:
		d.adler.Write(p) //nolint:errcheck // it has none
		d.sum = d.adler.Sum32()
	}
}

// head takes up to six bytes of a gzip header and adds them to its checksum. It
// returns the last four or fewer.
func (d *Decoder) head(n uint) (v uint32) {
	for i := range n {
		d.field[i] = byte(d.takeBits(8))
		v |= uint32(d.field[i]) << (8 * i)
	}
	d.sum = crc32.Update(d.sum, crc32.IEEETable, d.field[:n])
	return v
}

// text skips a name or a comment, if the flags say there is one, up to its zero.
func (d *Decoder) text(flag byte, next state) error {
	if d.flags&flag != 0 {
		for more := true; more; d.left-- {
			if d.left == 0 {
				return ErrHeader
			}
			if !d.need(8) {
				return errInput
			}
			more = d.head(1) != 0
		}
	}
	d.state, d.left = next, maxText
	return nil
}
