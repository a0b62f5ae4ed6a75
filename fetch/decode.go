package fetch

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/molecule-man/go-brrr"

	"seine/extract/inflate"
)

const (
	maxStages  = 5       // encodings of one body, one in the other
	zstdWindow = 8 << 20 // the most that RFC 9659 lets a server use
	stageSize  = 4 << 10 // what is read at once for br and zstd
)

// acceptEncoding says what decodes here, for servers that follow weights or order
// (RFC 9110, section 12.5.3): zstd takes the least time, br the fewest bytes, and
// deflate has nothing over gzip. gzip bears no weight, for servers that compare words.
// Apache httpd 2.4 and nginx with its brotli module ignore weights but 0, and prefer
// br. BenchmarkCodings has time and bytes.
const acceptEncoding = "zstd, br, gzip, deflate;q=0.5"

// coding is a content coding (RFC 9110, section 8.4.1).
type coding uint8

const (
	codingGzip coding = iota
	codingDeflate
	codingBrotli
	codingZstd
	codings
)

// stage is one decoder of a body. Stages are pooled by coding and hold memory of
// their window; getStage drops everything of an earlier body.
type stage struct {
	coding coding
	src    piecewise
	begun  bool  // a byte of src came
	left   int64 // bytes it may still yield
	err    error

	flat *inflate.Stream // gzip and deflate
	in   []byte          // what it has not taken of a piece of src
	end  error           // what came with that piece

	pull io.Reader     // br and zstd, over from; nil until the first byte of src came
	from *bufio.Reader // over read
	read reading       // over src
	out  []byte        // a piece of pull
	br   *brrr.Reader
	zstd *zstd.Decoder
}

var errStages = errors.New("too many content encodings")

// decoders pools stages.
type decoders struct{ pools [codings]sync.Pool }

func (d *decoders) getStage(c coding, src piecewise, max int64) *stage {
	s, ok := d.pools[c].Get().(*stage)
	if !ok {
		s = newStage(c)
	}
	s.src, s.left = src, max
	switch c {
	case codingGzip:
		s.flat.Reset(inflate.Gzip)
	case codingDeflate:
		s.flat.Reset(inflate.Deflate)
	default:
		s.read = reading{src: src}
		s.from.Reset(&s.read)
	}
	return s
}

func newStage(c coding) *stage {
	s := &stage{coding: c}
	if c == codingGzip || c == codingDeflate {
		s.flat = new(inflate.Stream)
		return s
	}
	s.from, s.out = bufio.NewReaderSize(nil, stageSize), make([]byte, chunkSize)
	return s
}

// putStage lets go of the body.
func (d *decoders) putStage(s *stage) {
	s.src, s.begun, s.err, s.in, s.end, s.pull = nil, false, nil, nil, nil, nil
	if s.from != nil {
		s.from.Reset(nil)
		s.read = reading{}
	}
	if s.br != nil {
		s.br.Reset(nil)
	}
	if s.zstd != nil {
		s.zstd.Reset(nil) //nolint:errcheck // nothing is read
	}
	d.pools[s.coding].Put(s)
}

// open stacks decoders for a Content-Encoding onto src, the last coding
// outermost, and appends them to stages. Unknown codings are none, as in
// browsers: the value is often a charset. Each stage yields at most max bytes:
// under another, a few bytes on the wire could become any number that never
// reach the Handler.
func (d *decoders) open(stages []*stage, encoding string, src piecewise, max int64) ([]*stage, piecewise, error) {
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
		s := d.getStage(c, src, max)
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

// piece decodes. An empty input is an empty body; bytes after the end of a gzip or
// zlib stream are ignored.
func (s *stage) piece() (b []byte, err error) {
	if s.err != nil {
		return nil, s.err
	}
	if s.flat != nil {
		b, s.err = s.inflated()
	} else {
		b, s.err = s.pulled()
	}
	if s.left -= int64(len(b)); s.left < 0 {
		b, s.err = b[:int64(len(b))+s.left], errBodyLimit
	}
	return b, s.err
}

// inflated is the next piece of gzip or deflate.
func (s *stage) inflated() ([]byte, error) {
	for {
		b, n, err := s.flat.Next(s.in)
		s.in = s.in[n:]
		switch {
		case len(b) > 0 || err != nil:
			return b, err
		case s.end == nil:
			s.in, s.end = s.src.piece()
			s.begun = s.begun || len(s.in) > 0
		case !s.begun:
			return nil, s.end
		case s.flat.End() == nil:
			return nil, io.EOF
		default:
			return nil, cutShort(s.end)
		}
	}
}

// pulled is the next piece of br or zstd.
func (s *stage) pulled() ([]byte, error) {
	if s.pull == nil {
		if head, err := s.from.Peek(1); len(head) == 0 {
			return nil, err
		}
		if err := s.start(); err != nil {
			return nil, cutShort(err)
		}
	}
	n, err := s.pull.Read(s.out)
	return s.out[:n], err
}

func (s *stage) start() (err error) {
	if s.coding == codingBrotli {
		if s.br == nil {
			s.br = brrr.NewReader(s.from)
		} else {
			s.br.Reset(s.from)
		}
		s.pull = s.br
		return nil
	}
	if s.zstd == nil {
		s.zstd, err = zstd.NewReader(s.from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderMaxMemory(zstdWindow))
	} else {
		err = s.zstd.Reset(s.from)
	}
	s.pull = s.zstd
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
	_, src, err := d.open(nil, encoding, &given{body}, maxWire(max))
	if err != nil {
		return nil, false, err
	}
	for {
		b, err := src.piece()
		if decoded = append(decoded, b...); int64(len(decoded)) > max {
			return decoded[:max], true, nil
		}
		if err == io.EOF {
			return decoded, false, nil
		}
		if err != nil {
			return decoded, false, err
		}
	}
}

// given is a body that is there.
type given struct{ b []byte }

func (g *given) piece() ([]byte, error) { return g.b, io.EOF }
