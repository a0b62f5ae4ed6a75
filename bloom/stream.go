package bloom

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A dump is the magic, whose last byte is the version, and then frames:
//
//	number   uint32, 0, 1, 2, ... of the frame
//	key      uint32, which key of the shard's filters, as Set.All has them; ^0 in the
//	         first and the last frame
//	iter     int64, RedisBloom's iterator of the chunk
//	length   uint32 of the data
//	data     the first frame's is the header as JSON, the last one's is empty
//	checksum uint32, CRC-32C of all the above
//
// all little endian. Whatever is altered, left out or cut off is noticed.
const (
	magic       = "seine-bloom"
	dumpVersion = 1
)

// noKey marks the first and the last frame of a dump.
const noKey = ^uint32(0)

// maxChunk is a bound for chunks, over the 16 MB that RedisBloom makes.
const maxChunk = 64 << 20

// Header says what a dump holds.
type Header struct {
	Shard   int    `json:"shard"`
	Plan    Plan   `json:"plan"`
	Each    int    `json:"each"`    // keys of each filter
	Filters []Info `json:"filters"` // their keys, as they were when the dump began
}

// frame is one frame in memory.
type frame struct {
	key  uint32
	iter int64
	data []byte
}

const frameHead = 4 + 4 + 8 + 4

// frameWriter writes a dump.
type frameWriter struct {
	w      *bufio.Writer
	number uint32
}

func newFrameWriter(w io.Writer, h Header) (*frameWriter, error) {
	out := &frameWriter{w: bufio.NewWriterSize(w, 1<<16)}
	data, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("bloom: header of a dump: %w", err)
	}
	if _, err := out.w.WriteString(magic + string(rune(dumpVersion))); err != nil {
		return nil, fmt.Errorf("bloom: writing a dump: %w", err)
	}
	return out, out.write(frame{key: noKey, data: data})
}

func (w *frameWriter) write(f frame) error {
	var head [frameHead]byte
	binary.LittleEndian.PutUint32(head[0:], w.number)
	binary.LittleEndian.PutUint32(head[4:], f.key)
	binary.LittleEndian.PutUint64(head[8:], uint64(f.iter))
	binary.LittleEndian.PutUint32(head[16:], uint32(len(f.data)))
	var sum [4]byte
	binary.LittleEndian.PutUint32(sum[:], checksum(head[:], f.data))
	w.number++
	for _, b := range [][]byte{head[:], f.data, sum[:]} {
		if _, err := w.w.Write(b); err != nil {
			return fmt.Errorf("bloom: writing a dump: %w", err)
		}
	}
	return nil
}

// end writes the last frame and all that is buffered.
func (w *frameWriter) end() error {
	if err := w.write(frame{key: noKey}); err != nil {
		return err
	}
	if err := w.w.Flush(); err != nil {
		return fmt.Errorf("bloom: writing a dump: %w", err)
	}
	return nil
}

// frameReader reads a dump.
type frameReader struct {
	r      *bufio.Reader
	number uint32
	offset int64 // of the next frame
	data   []byte
}

func newFrameReader(r io.Reader) (*frameReader, Header, error) {
	in := &frameReader{r: bufio.NewReaderSize(r, 1<<16), offset: int64(len(magic) + 1)}
	var h Header
	start := make([]byte, len(magic)+1)
	if _, err := io.ReadFull(in.r, start); err != nil || string(start[:len(magic)]) != magic {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, h, fmt.Errorf("bloom: reading a dump: %w", err)
		}
		return nil, h, fmt.Errorf("%w: it does not begin as a dump of filters does", ErrDamaged)
	}
	if version := start[len(magic)]; version != dumpVersion {
		return nil, h, fmt.Errorf("bloom: dump of format version %d, this program reads version %d", version, dumpVersion)
	}
	f, err := in.next()
	if err != nil {
		return nil, h, err
	}
	if f.key != noKey || json.Unmarshal(f.data, &h) != nil || h.Each < 1 || len(h.Filters) != h.Each*h.Plan.Filters {
		return nil, h, fmt.Errorf("%w: its header makes no sense", ErrDamaged)
	}
	return in, h, nil
}

// next reads a frame. Its data is valid until the next call.
func (r *frameReader) next() (frame, error) {
	var head [frameHead]byte
	if err := r.fill(head[:]); err != nil {
		return frame{}, err
	}
	f := frame{key: binary.LittleEndian.Uint32(head[4:]), iter: int64(binary.LittleEndian.Uint64(head[8:]))}
	length := binary.LittleEndian.Uint32(head[16:])
	if length > maxChunk || binary.LittleEndian.Uint32(head[0:]) != r.number {
		return frame{}, fmt.Errorf("%w: frame %d at offset %d makes no sense", ErrDamaged, r.number, r.offset)
	}
	if uint32(cap(r.data)) < length {
		r.data = make([]byte, length)
	}
	f.data = r.data[:length]
	var sum [4]byte
	if err := r.fill(f.data); err != nil {
		return frame{}, err
	}
	if err := r.fill(sum[:]); err != nil {
		return frame{}, err
	}
	if checksum(head[:], f.data) != binary.LittleEndian.Uint32(sum[:]) {
		return frame{}, fmt.Errorf("%w: frame %d at offset %d does not match its checksum", ErrDamaged, r.number, r.offset)
	}
	r.number++
	r.offset += int64(frameHead + len(f.data) + len(sum))
	return f, nil
}

// fill reads all of b, which must be there.
func (r *frameReader) fill(b []byte) error {
	_, err := io.ReadFull(r.r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: cut off in frame %d at offset %d", ErrDamaged, r.number, r.offset)
	}
	if err != nil {
		return fmt.Errorf("bloom: reading a dump: %w", err)
	}
	return nil
}

// atEnd checks that nothing follows the last frame.
func (r *frameReader) atEnd() error {
	if _, err := r.r.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more follows its end at offset %d", ErrDamaged, r.offset)
	}
	return nil
}

func checksum(head, data []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(0, table, head), table, data)
}
