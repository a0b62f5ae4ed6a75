package jsonl

import (
	"encoding/binary"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// kind is how the frames of a file are compressed.
type kind uint8

const (
	plain kind = iota
	gzipped
	zstandard
)

func (k kind) String() string { return [...]string{"JSON lines", "gzip", "zstd"}[k] }

// kindOf reads the kind off a file's name.
func kindOf(path string) kind {
	switch {
	case strings.HasSuffix(path, ".gz"):
		return gzipped
	case strings.HasSuffix(path, ".zst"):
		return zstandard
	}
	return plain
}

// codec appends src to dst as one frame.
type codec interface {
	append(dst, src []byte) []byte
}

func codecOf(path string) codec {
	switch kindOf(path) {
	case gzipped:
		return new(gzipCodec)
	case zstandard:
		return new(zstdCodec)
	}
	return nil
}

type zstdCodec struct{ enc *zstd.Encoder }

func (c *zstdCodec) append(dst, src []byte) []byte {
	if c.enc == nil {
		// Fails only on bad options, and these are constants.
		c.enc, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxFrame))
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

func (c *gzipCodec) append(dst, src []byte) []byte {
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
