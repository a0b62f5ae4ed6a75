package inflate

// lensOrder is how the code lengths of the code of code lengths come (RFC 1951,
// section 3.2.7).
var lensOrder = [maxLens]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// codes are the code lengths of a dynamic block's two codes.
type codes struct {
	nlit, ndist, nlens int
	have               int // of them, or of the lengths in their code
	lens               [maxLits + maxDists]uint8
}

// blockHead reads what precedes a block's symbols or bytes.
func (d *Decoder) blockHead() error {
	switch d.state {
	case inBlockHead:
		if !d.need(3) {
			return errInput
		}
		d.final = d.takeBits(1) == 1
		switch d.takeBits(2) {
		case 0:
			d.takeBits(d.nbits % 8)
			d.state = inStoredHead
		case 1:
			d.fixed = true
			d.state = inSymbols
		case 2:
			d.fixed = false
			d.state = inTableHead
		default:
			return ErrCorrupt
		}
	case inStoredHead:
		if !d.need(32) {
			return errInput
		}
		v := d.takeBits(32)
		if v>>16 != ^v&0xffff {
			return ErrCorrupt
		}
		d.left = int(v & 0xffff)
		d.state = inStored
	case inTableHead:
		if !d.need(14) {
			return errInput
		}
		d.nlit = 257 + int(d.takeBits(5))
		d.ndist = 1 + int(d.takeBits(5))
		d.nlens = 4 + int(d.takeBits(4))
		d.have = 0
		if d.nlit > 286 || d.ndist > 30 {
			return ErrCorrupt
		}
		clear(d.lens[:maxLens])
		d.state = inCodeLens
	case inCodeLens:
		for ; d.have < d.nlens; d.have++ {
			if !d.need(3) {
				return errInput
			}
			d.lens[lensOrder[d.have]] = uint8(d.takeBits(3))
		}
		d.have = 0
		if !lensAlphabet.build(d.own.dist[:], lensRoot, d.lens[:maxLens]) {
			return ErrCorrupt
		}
		d.state = inLens
	case inLens:
		return d.readLens()
	}
	return nil
}

// readLens reads the code lengths, and builds the tables of the block.
func (d *Decoder) readLens() error {
	all := d.nlit + d.ndist
	for d.have < all {
		d.need(14) // a code and its extra bits
		e := d.own.dist[d.bits&(1<<lensRoot-1)]
		n, sym := e.bits(), uint8(e>>16)
		if n > d.nbits {
			return errInput
		}
		if e&isSpecial != 0 || sym == 16 && d.have == 0 {
			return ErrCorrupt
		}
		if sym < 16 {
			d.takeBits(n)
			d.lens[d.have] = sym
			d.have++
			continue
		}
		bits, least, repeated := uint(2), 3, uint8(0)
		switch sym {
		case 16:
			repeated = d.lens[d.have-1]
		case 17:
			bits = 3
		case 18:
			bits, least = 7, 11
		}
		if n+bits > d.nbits {
			return errInput
		}
		d.takeBits(n)
		end := d.have + least + int(d.takeBits(bits))
		if end > all {
			return ErrCorrupt
		}
		for ; d.have < end; d.have++ {
			d.lens[d.have] = repeated
		}
	}
	if !litAlphabet.build(d.own.lit[:], litRoot, d.lens[:d.nlit]) ||
		!distAlphabet.build(d.own.dist[:], distRoot, d.lens[d.nlit:all]) {
		return ErrCorrupt
	}
	d.state = inSymbols
	return nil
}

// tables are those of the block.
func (d *Decoder) tables() *tables {
	if d.fixed {
		return fixedTables()
	}
	return &d.own
}

// blockEnd goes to what follows a block.
func (d *Decoder) blockEnd() {
	if d.final {
		d.blocksEnd()
	} else {
		d.state = inBlockHead
	}
}

// stored copies the bytes of a stored block.
func (d *Decoder) stored() error {
	for ; d.left > 0 && d.nbits > 0; d.left-- { // first those that the bit buffer has
		if d.out == len(d.buf) {
			return ErrRoom
		}
		d.buf[d.out] = byte(d.takeBits(8))
		d.out++
	}
	n := copy(d.buf[d.out:], d.src[d.at:min(d.at+d.left, len(d.src))])
	d.out += n
	d.at += n
	d.left -= n
	if d.left == 0 {
		d.blockEnd()
		return nil
	}
	if d.out == len(d.buf) {
		return ErrRoom
	}
	return errInput
}

// symbols decodes up to the end of the block.
func (d *Decoder) symbols() error {
	for {
		d.fast()
		if err := d.symbol(); err != nil {
			return err
		}
		if d.state != inSymbols {
			return nil
		}
	}
}

// symbol decodes one symbol, whole or not at all.
func (d *Decoder) symbol() error {
	d.need(48) // what the longest takes; it may be there without
	b := d.bits
	t := d.tables()
	e := t.lit[b&(1<<litRoot-1)]
	if e&isSubtable != 0 {
		e = e.sub(t.lit[:], litRoot, b)
	}
	n := e.bits()
	switch {
	case n > d.nbits:
		return errInput
	case e&isLiteral != 0:
		if d.out == len(d.buf) {
			return ErrRoom
		}
		d.buf[d.out] = byte(e >> 16)
		d.out++
		d.takeBits(n)
		return nil
	case e&isEnd != 0:
		d.takeBits(n)
		d.blockEnd()
		return nil
	case e&isSpecial != 0:
		return ErrCorrupt
	}
	length := e.value(b)
	b >>= n
	e = t.dist[b&(1<<distRoot-1)]
	if e&isSubtable != 0 {
		e = e.sub(t.dist[:], distRoot, b)
	}
	if n += e.bits(); n > d.nbits {
		return errInput
	}
	if e&isSpecial != 0 {
		return ErrCorrupt
	}
	dist := e.value(b)
	if dist > d.out-d.begin {
		return ErrCorrupt
	}
	if length > len(d.buf)-d.out {
		return ErrRoom
	}
	for range length {
		d.buf[d.out] = d.buf[d.out-dist]
		d.out++
	}
	d.takeBits(n)
	return nil
}
