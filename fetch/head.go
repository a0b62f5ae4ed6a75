package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"strings"

	"github.com/valyala/fasthttp"
)

var (
	errForeign = errors.New("the server speaks another protocol")
	errInterim = errors.New("more interim answers than anyone sends")
	errHeadEnd = errors.New("the header does not end where its last line does")
)

// maxInterim is how many interim answers (1xx) one request may meet.
const maxInterim = 100

// readHead reads heads from in until one is no interim answer, at most limit
// bytes and what in holds, into h, and says how the body is framed. An error is
// an *Error where the bytes are at fault, else what in met.
func readHead(in *bufio.Reader, h *fasthttp.ResponseHeader, limit int) (framing, error) {
	read, did := 0, mending(0)
	for range maxInterim + 1 {
		end, plain, err := findHead(in)
		if err != nil {
			return framing{mended: did}, err
		}
		if read += end; read > limit {
			return framing{}, fail(ClassHeaderSize, errHeaderSize)
		}
		var f framing
		if plain {
			before := in.Buffered()
			if err = h.Read(in); err == nil {
				if before-in.Buffered() != end {
					return framing{}, fail(ClassProtocol, errHeadEnd)
				}
				f = framingOf(h)
			}
		}
		if !plain || err != nil {
			b, _ := in.Peek(end)
			if f, err = mendHead(h, b); err != nil {
				return framing{}, fail(ClassProtocol, err)
			}
			in.Discard(end) //nolint:errcheck // it is there
		}
		did |= f.mended
		if code := h.StatusCode(); code < 100 || code > 199 || code == fasthttp.StatusSwitchingProtocols {
			f.mended = did // in interim answers too
			return f, nil
		}
	}
	return framing{}, fail(ClassProtocol, errInterim)
}

// findHead waits for a whole head and says where it ends and whether fasthttp
// may be trusted to read it.
func findHead(in *bufio.Reader) (end int, plain bool, err error) {
	var s scan
	for n := 1; ; n = in.Buffered() + 1 {
		_, err := in.Peek(n)
		b, _ := in.Peek(in.Buffered())
		if foreign(b) {
			return 0, false, fail(ClassProtocol, errForeign)
		}
		if end := s.look(b); end > 0 {
			return end, s.plain(), nil
		}
		switch {
		case err == bufio.ErrBufferFull:
			return 0, false, fail(ClassHeaderSize, errHeaderSize)
		case err != nil:
			return 0, false, err
		}
	}
}

// foreign says whether b does not even start like HTTP.
func foreign(b []byte) bool {
	b = bytes.TrimLeft(b, "\r\n")
	n := min(len(b), len("HTTP/"))
	return !strings.EqualFold(string(b[:n]), "HTTP/"[:n])
}

// scan goes over a head line by line while it arrives.
type scan struct {
	at                                 int  // where the first line begins that is not whole
	started                            bool // the status line was seen
	odd                                bool // fasthttp would read it otherwise than we do
	lengths, codings, types, encodings int8
}

var (
	nameLength   = []byte("Content-Length")
	nameCoding   = []byte("Transfer-Encoding")
	nameType     = []byte("Content-Type")
	nameEncoding = []byte("Content-Encoding")
)

// look scans what is new in b and returns where the head ends, 0 if not there.
func (s *scan) look(b []byte) (end int) {
	for {
		n := bytes.IndexByte(b[s.at:], '\n')
		if n < 0 {
			return 0
		}
		line := b[s.at : s.at+n]
		s.at += n + 1
		if n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		} else {
			s.odd = true
		}
		switch {
		case len(line) == 0, line[0] == '\r' && len(bytes.Trim(line, "\r")) == 0:
			s.odd = s.odd || len(line) > 0
			if s.started {
				return s.at
			}
		case !s.started:
			s.started = true
			code, ok := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
			s.odd = s.odd || !ok || bytes.IndexByte(line, 0) >= 0 ||
				len(code) == 0 || code[0] < '1' || code[0] > '9' // fasthttp makes 200 of status 000
		default:
			s.field(line)
		}
	}
}

// field takes notice of the fields that decide how a body is read, of names with
// blanks, and of lines that continue others, which fasthttp joins where they stand.
func (s *scan) field(line []byte) {
	if i := bytes.IndexByte(line, ' '); i == 0 || i > 0 && line[i-1] != ':' && bytes.IndexByte(line[:i], ':') < 0 {
		s.odd = true
	}
	switch line[0] {
	case '\t':
		s.odd = true
	case 'c', 'C':
		s.lengths += is(line, nameLength)
		s.types += is(line, nameType)
		s.encodings += is(line, nameEncoding)
	case 't', 'T':
		s.codings += is(line, nameCoding)
	}
	if s.lengths+s.codings > 1 || s.types > 1 || s.encodings > 1 {
		s.odd = true
	}
}

// is says, as 0 or 1, whether line is a field of that name.
func is(line, name []byte) int8 {
	if n := len(name); len(line) <= n || line[n] != ':' || !bytes.EqualFold(line[:n], name) {
		return 0
	}
	return 1
}

func (s *scan) plain() bool { return !s.odd }
