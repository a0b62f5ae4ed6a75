// Package frame makes and finds frames: gzip members and zstd frames that are
// complete in themselves, or lines. A file of frames is appended to by whole
// frames, so that a crash leaves at most one torn frame at its end, which Intact
// finds.
package frame

import (
	"encoding/binary"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Kind is how the frames of a file are compressed.
type Kind uint8

const (
	Plain Kind = iota // lines of JSON
	Gzip
	Zstd
)

func (k Kind) String() string { return [...]string{"JSON lines", "gzip", "zstd"}[k] }

// KindOf reads the kind off a file's name.
func KindOf(path string) Kind {
	switch {
	case strings.HasSuffix(path, ".gz"):
		return Gzip
	case strings.HasSuffix(path, ".zst"):
		return Zstd
	}
	return Plain
}

// Codec makes frames. One goroutine uses it at a time.
type Codec interface {
	// Append appends src to dst as one frame.
	Append(dst, src []byte) []byte
}

// NewCodec makes the codec of a kind, nil for Plain.
func NewCodec(k Kind) Codec {
	switch k {
	case Gzip:
		return new(gzipCodec)
	case Zstd:
		return new(zstdCodec)
	}
	return nil
}

// window is the largest distance at which a zstd frame repeats itself.
const window = 1 << 20

type zstdCodec struct{ enc *zstd.Encoder }

func (c *zstdCodec) Append(dst, src []byte) []byte {
	if c.enc == nil {
		// Fails only on bad options, and these are constants.
		c.enc, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	}
	return c.enc.EncodeAll(src, dst)
}

// The gzip header of our members carries their length in an extra field (RFC
// 1952, 2.3.1.1), so that the end of a file is found without inflating it.
const (
	gzipFixed   = 10 // bytes before the extra field
	gzipSizeAt  = gzipFixed + 2 + 4
	gzipHeader  = gzipSizeAt + 4
	gzipTrailer = 8
)

// gzipExtra: subfield SL of 4 bytes, the length little endian.
var gzipExtra = [8]byte{'S', 'L', 4, 0}

type gzipCodec struct {
	w     *gzip.Writer
	dst   []byte
	extra [8]byte
}

// Write collects what the gzip writer puts out.
func (c *gzipCodec) Write(p []byte) (int, error) {
	c.dst = append(c.dst, p...)
	return len(p), nil
}

func (c *gzipCodec) Append(dst, src []byte) []byte {
	if c.w == nil {
		c.w = gzip.NewWriter(c)
	}
	start := len(dst)
	c.dst = dst
	c.w.Reset(c)
	c.extra = gzipExtra
	c.w.Extra = c.extra[:]
	_, _ = c.w.Write(src) // writes to memory, cannot fail
	_ = c.w.Close()
	dst, c.dst = c.dst, nil
	binary.LittleEndian.PutUint32(dst[start+gzipSizeAt:], uint32(len(dst)-start))
	return dst
}
