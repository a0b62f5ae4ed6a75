package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

const (
	maxStages  = 5       // encodings of one body, one in the other
	zstdWindow = 8 << 20 // the most that RFC 9659 lets a server use
	stageSize  = 4 << 10 // buffer in front of a decoder
)

// coding is a content coding (RFC 9110, section 8.4.1).
type coding uint8

const (
	codingGzip coding = iota
	codingDeflate
	codingBrotli
	codingZstd
	codings
)

// stage is one decoder with its input buffer. Stages are pooled by coding and
// hold memory of their window; reset drops everything of an earlier body.
type stage struct {
	coding coding
	in     *bufio.Reader
	out    io.Reader // nil until the first read chose it
	left   int64     // bytes it may still yield
	err    error

	gzip *gzip.Reader
	zlib io.ReadCloser
	raw  io.ReadCloser
	br   *brotli.Reader
	zstd *zstd.Decoder
}

var errStages = errors.New("too many content encodings")

// decoders pools stages.
type decoders struct{ pools [codings]sync.Pool }

func (d *decoders) get(c coding, src io.Reader, max int64) *stage {
	s, ok := d.pools[c].Get().(*stage)
	if !ok {
		s = &stage{coding: c, in: bufio.NewReaderSize(nil, stageSize)}
	}
	s.in.Reset(src)
	s.out, s.left, s.err = nil, max, nil
	return s
}

func (d *decoders) put(s *stage) {
	s.in.Reset(nil)
	if s.zstd != nil {
		s.zstd.Reset(nil) // lets go of the body
	}
	d.pools[s.coding].Put(s)
}

// open stacks decoders for a Content-Encoding onto src, the last coding
// outermost, and appends them to stages. Unknown codings are none, as in
// browsers: the value is often a charset. Each stage yields at most max bytes:
// under another, a few bytes on the wire could become any number that never
// reach the Handler.
func (d *decoders) open(stages []*stage, encoding string, src io.Reader, max int64) ([]*stage, io.Reader, error) {
	for encoding != "" {
		name := encoding
		if i := strings.LastIndexByte(encoding, ','); i >= 0 {
			encoding, name = encoding[:i], encoding[i+1:]
		} else {
			encoding = ""
		}
		c, ok := codingOf(strings.TrimSpace(name))
		if !ok {
			continue
		}
		if len(stages) == maxStages {
			return stages, src, errStages
		}
		s := d.get(c, src, max)
		stages, src = append(stages, s), s
	}
	return stages, src, nil
}

// swollen says whether one of stages yielded more than it may.
func swollen(stages []*stage) bool {
	for _, s := range stages {
		if s.err == errBodyLimit {
			return true
		}
	}
	return false
}

func codingOf(name string) (coding, bool) {
	switch {
	case strings.EqualFold(name, "gzip"), strings.EqualFold(name, "x-gzip"):
		return codingGzip, true
	case strings.EqualFold(name, "deflate"):
		return codingDeflate, true
	case strings.EqualFold(name, "br"):
		return codingBrotli, true
	case strings.EqualFold(name, "zstd"):
		return codingZstd, true
	}
	return 0, false
}

// Read decodes. An empty input is an empty body; bytes after the end of a gzip
// or zlib stream are ignored.
func (s *stage) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.out == nil {
		if s.err = s.start(); s.err != nil {
			return 0, s.err
		}
	}
	for {
		n, err := s.out.Read(p)
		if s.left -= int64(n); s.left < 0 {
			s.err = errBodyLimit
			return 0, s.err
		}
		if err == io.EOF && s.coding == codingGzip && s.member() {
			if err = s.gzip.Reset(s.in); err == nil {
				s.gzip.Multistream(false)
				if n == 0 {
					continue
				}
			}
		}
		s.err = err
		return n, err
	}
}

// member says whether another gzip member follows.
func (s *stage) member() bool {
	b, _ := s.in.Peek(2)
	return len(b) == 2 && b[0] == 0x1f && b[1] == 0x8b
}

func (s *stage) start() error {
	head, err := s.in.Peek(1)
	if len(head) == 0 {
		return err
	}
	switch s.coding {
	case codingGzip:
		err = s.startGzip()
	case codingDeflate:
		err = s.startDeflate()
	case codingBrotli:
		if s.br == nil {
			s.br = brotli.NewReader(s.in)
		} else {
			err = s.br.Reset(s.in)
		}
		s.out = s.br
	case codingZstd:
		if s.zstd == nil {
			s.zstd, err = zstd.NewReader(s.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderMaxMemory(zstdWindow))
		} else {
			err = s.zstd.Reset(s.in)
		}
		s.out = s.zstd
	}
	return unexpected(err)
}

func (s *stage) startGzip() (err error) {
	if s.gzip == nil {
		s.gzip = new(gzip.Reader)
	}
	if err = s.gzip.Reset(s.in); err == nil {
		s.gzip.Multistream(false)
	}
	s.out = s.gzip
	return err
}

// startDeflate tells zlib (RFC 1950), which the name means, from raw deflate
// (RFC 1951), which some servers send, by the zlib header's checksum.
func (s *stage) startDeflate() (err error) {
	b, _ := s.in.Peek(2)
	if len(b) == 2 && b[0]&0x0f == 8 && (uint(b[0])<<8|uint(b[1]))%31 == 0 {
		if s.zlib == nil {
			s.zlib, err = zlib.NewReader(s.in)
		} else {
			err = s.zlib.(zlib.Resetter).Reset(s.in, nil)
		}
		s.out = s.zlib
		return err
	}
	if s.raw == nil {
		s.raw = flate.NewReader(s.in)
	} else {
		err = s.raw.(flate.Resetter).Reset(s.in, nil)
	}
	s.out = s.raw
	return err
}

// unexpected turns the end of input inside a stream's head into a fault.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// joined is a list of codings with others behind it.
func joined(codings, more string) string {
	if more == "" {
		return codings
	}
	return codings + "," + more
}

// Decode undoes the codings that a Content-Encoding names on a whole body, as a
// Request with Raw set brings it, and returns at most max bytes, cut where there
// are more. It makes its decoders anew and is not meant for every page. Errors
// say that the body does not decode.
func Decode(encoding string, body []byte, max int64) (decoded []byte, cut bool, err error) {
	var d decoders
	_, src, err := d.open(nil, encoding, bytes.NewReader(body), maxWire(max))
	if err != nil {
		return nil, false, err
	}
	decoded, err = io.ReadAll(io.LimitReader(src, max+1))
	if int64(len(decoded)) > max {
		return decoded[:max], true, nil
	}
	return decoded, false, err
}
