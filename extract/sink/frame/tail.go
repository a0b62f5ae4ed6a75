package frame

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// maxTorn bounds what is taken for a torn frame; more is damage that a person
// should look at.
const maxTorn = 64 << 20

// ErrForeign: the file does not start as its name says, or not whole.
var ErrForeign = errors.New("not what its name says")

// Intact returns how many bytes of the size bytes of f are complete frames.
// Lines cost a look at the end; gzip members of ours and zstd frames are
// walked by their headers, other gzip members are inflated.
func Intact(f io.ReaderAt, size int64, k Kind) (int64, error) {
	if k == Plain {
		return lastLine(f, size)
	}
	next := zstdEnd
	if k == Gzip {
		next = gzipEnd
	}
	var good int64
	for good < size {
		end, err := next(f, good, size)
		if errors.Is(err, ErrForeign) && good > 0 {
			break // torn frames may hold anything
		}
		if err != nil {
			return 0, err
		}
		if end == 0 {
			break
		}
		good = end
	}
	if size-good > maxTorn {
		return 0, fmt.Errorf("damaged at offset %d: %d bytes from there on are no %v; move the file away or cut it there", good, size-good, k)
	}
	return good, nil
}

// lastLine finds the end of the last complete line. A file that does not begin
// as a record does is not ours to cut.
func lastLine(f io.ReaderAt, size int64) (int64, error) {
	head, err := readAt(f, make([]byte, 2), 0)
	if err == nil {
		err = checkMagic(head, []byte(`{"`))
	}
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for end := size; end > 0 && size-end <= maxTorn; {
		n := min(end, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], end-n); err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	if size > maxTorn {
		return 0, fmt.Errorf("no line in its last %d bytes; move the file away", maxTorn)
	}
	return 0, nil
}

// readAt fills buf from off as far as f goes and returns what it got.
func readAt(f io.ReaderAt, buf []byte, off int64) ([]byte, error) {
	n, err := f.ReadAt(buf, off)
	if err == io.EOF {
		err = nil
	}
	return buf[:n], err
}

// checkMagic compares as much of magic as head holds.
func checkMagic(head, magic []byte) error {
	n := min(len(head), len(magic))
	if !bytes.Equal(head[:n], magic[:n]) {
		return ErrForeign
	}
	return nil
}

// gzipEnd returns where the member at off ends, 0 if it is torn.
func gzipEnd(f io.ReaderAt, off, size int64) (int64, error) {
	head, err := readAt(f, make([]byte, gzipHeader), off)
	if err != nil {
		return 0, err
	}
	if err := checkMagic(head, []byte{0x1f, 0x8b, 8}); err != nil {
		return 0, err
	}
	if len(head) < gzipHeader {
		return 0, nil
	}
	const onlyExtra = 4
	ours := head[3] == onlyExtra && head[gzipFixed] == byte(len(gzipExtra)) && head[gzipFixed+1] == 0 &&
		bytes.Equal(head[gzipFixed+2:gzipSizeAt], gzipExtra[:4])
	if !ours {
		end, err := foreignGzipEnd(f, off, size)
		if end == 0 && off == 0 && err == nil { // nothing here is ours to cut
			err = ErrForeign
		}
		return end, err
	}
	n := int64(binary.LittleEndian.Uint32(head[gzipSizeAt:]))
	if n < gzipHeader+gzipTrailer || off+n > size {
		return 0, nil
	}
	return off + n, nil
}

// foreignGzipEnd inflates a member that another program wrote.
func foreignGzipEnd(f io.ReaderAt, off, size int64) (int64, error) {
	section := io.NewSectionReader(f, off, size-off)
	buf := bufio.NewReaderSize(section, 64<<10)
	r, err := gzip.NewReader(buf)
	if err != nil {
		return 0, nil
	}
	r.Multistream(false)
	if _, err := io.Copy(io.Discard, r); err != nil {
		return 0, nil
	}
	pos, err := section.Seek(0, io.SeekCurrent)
	return off + pos - int64(buf.Buffered()), err
}

// zstdEnd returns where the frame at off ends, 0 if it is torn (RFC 8878, 3.1).
func zstdEnd(f io.ReaderAt, off, size int64) (int64, error) {
	var mem [8]byte
	head, err := readAt(f, mem[:], off)
	if err != nil {
		return 0, err
	}
	if len(head) >= 4 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18}) && head[0]>>4 == 5 { // skippable
		if end := off + 8 + int64(binary.LittleEndian.Uint32(mem[4:])); len(head) == 8 && end <= size {
			return end, nil
		}
		return 0, nil
	}
	if err := checkMagic(head, []byte{0x28, 0xb5, 0x2f, 0xfd}); err != nil {
		return 0, err
	}
	if len(head) < 5 {
		return 0, nil
	}
	desc := head[4]
	off += 5 + int64([...]int{0, 1, 2, 4}[desc&3]) + int64([...]int{0, 2, 4, 8}[desc>>6])
	if single := desc&0x20 != 0; !single || desc>>6 == 0 {
		off++ // window descriptor, or a content size of one byte
	}
	for last := false; !last; {
		block, err := readAt(f, mem[:3], off)
		if err != nil || len(block) < 3 {
			return 0, err
		}
		h := int64(block[0]) | int64(block[1])<<8 | int64(block[2])<<16
		last = h&1 != 0
		if off += 3 + h>>3; h>>1&3 == 1 { // run length: one byte stands for all
			off += 1 - h>>3
		}
	}
	if desc&4 != 0 {
		off += 4 // checksum
	}
	if off > size {
		return 0, nil
	}
	return off, nil
}
