package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"
)

// A head is a status line and its fields. One that is written as it should be
// is left to fasthttp. Another is mended first: written anew without what RFC
// 9112 lets a recipient overlook (blank or odd lines, line feeds alone, lengths
// and codings that say nothing or the same twice). Where the reading is ours
// the connection is not used again: the server may mean another.

// mending is what a head or a body needed to be read.
type mending uint16

const (
	mendedEnd     mending = 1 << iota // lines that end in LF alone, or in several CR
	mendedLine                        // lines without colon or name, or with a name that is none: left out; or in which a length or type is folded
	mendedName                        // blanks between a name and its colon
	mendedValue                       // control bytes in a value
	mendedStatus                      // a status line that is not quite one
	mendedLength                      // Content-Length empty, signed, no number, repeated, or beside a coding
	mendedCoding                      // Transfer-Encoding empty, identity, none, repeated, or in HTTP/1.0
	mendedChunk                       // line feeds alone or odd bytes in lines between chunks
	mendingsCount = iota
)

// mendings names them in the order of their bits.
var mendings = [mendingsCount]string{"line_end", "line", "name", "value", "status", "length", "coding", "chunk"}

var (
	errNUL        = errors.New("a NUL byte in the header")
	errStatusLine = errors.New("status line without a status code")
	errLengths    = errors.New("two different Content-Length")
)

// mender writes a head anew.
type mender struct {
	out      []byte
	old      bool // HTTP/1.0
	lengths  []string
	codings  []string
	types    []string
	encoding []string
	coded    bool // there was a Transfer-Encoding
	did      mending
}

// mendHead reads the head b, which fasthttp does not, into h.
func mendHead(h *fasthttp.ResponseHeader, b []byte) (framing, error) {
	if bytes.IndexByte(b, 0) >= 0 {
		return framing{}, errNUL
	}
	m := mender{out: make([]byte, 0, len(b)+64)}
	rest := bytes.TrimLeft(b, "\r\n")
	line, rest := m.line(rest)
	status, err := m.status(line)
	if err != nil {
		return framing{}, err
	}
	var whole []byte // a field and the lines that continue it
	folded := false
	for len(rest) > 0 {
		if line, rest = m.line(rest); len(line) > 0 && (line[0] == ' ' || line[0] == '\t') && whole != nil {
			whole = append(append(whole, ' '), bytes.Trim(line, " \t")...)
			folded = true
			continue
		}
		m.field(whole, folded)
		whole, folded = bytes.Clone(line), false
	}
	m.field(whole, folded)
	f, err := m.framing(status)
	if err != nil {
		return framing{}, err
	}
	m.list("Content-Type", m.types)
	m.list("Content-Encoding", m.encoding)
	m.out = append(m.out, "\r\n"...)
	if err := h.Read(bufio.NewReaderSize(bytes.NewReader(m.out), len(m.out)+1)); err != nil {
		return framing{}, err
	}
	f.mended, f.last = m.did, h.ConnectionClose()
	return f, nil
}

// line cuts the first line off, without its end.
func (m *mender) line(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\n"))
	n := len(line)
	line = bytes.TrimRight(line, "\r")
	if n != len(line)+1 {
		m.did |= mendedEnd
	}
	return line, rest
}

// status takes the status line.
func (m *mender) status(line []byte) (int, error) {
	version, rest, _ := strings.Cut(string(line), " ")
	code := strings.TrimLeft(rest, " \t")
	n := 0
	for n < len(code) && code[n] >= '0' && code[n] <= '9' {
		n++
	}
	if n != 3 {
		return 0, fmt.Errorf("%w: %q", errStatusLine, clipped(line))
	}
	status, _ := strconv.Atoi(code[:n])
	if status < 100 {
		return 0, errStatus
	}
	reason := strings.TrimLeft(code[n:], " \t")
	switch {
	case version == "HTTP/1.0":
		m.old = true
	case version != "HTTP/1.1", rest != code, len(code) > n && code[n] != ' ':
		m.did |= mendedStatus
		if m.old = strings.EqualFold(version, "HTTP/1.0"); !m.old {
			version = "HTTP/1.1"
		} else {
			version = "HTTP/1.0"
		}
	}
	m.out = append(append(append(append(m.out, version...), ' '), code[:n]...), ' ')
	m.value([]byte(reason), false)
	m.out = append(m.out, "\r\n"...)
	return status, nil
}

// clipped is the beginning of a line for an error.
func clipped(line []byte) []byte { return line[:min(len(line), 60)] }

// field takes one field, its continuations joined.
func (m *mender) field(line []byte, folded bool) {
	if len(line) == 0 {
		return
	}
	name, value, ok := bytes.Cut(line, []byte(":"))
	bare := bytes.TrimRight(name, " \t")
	if !ok || !httpguts.ValidHeaderFieldName(string(bare)) {
		m.did |= mendedLine
		return
	}
	if len(bare) != len(name) {
		m.did |= mendedName
	}
	value = bytes.Trim(value, " \t\r")
	for _, own := range [...]struct {
		name []byte
		to   *[]string
	}{{nameLength, &m.lengths}, {nameCoding, &m.codings}, {nameType, &m.types}, {nameEncoding, &m.encoding}} {
		if bytes.EqualFold(bare, own.name) {
			*own.to = append(*own.to, string(value))
			if folded {
				m.did |= mendedLine
			}
			return
		}
	}
	if bytes.EqualFold(bare, []byte("Trailer")) { // it announces what is dropped, and fasthttp refuses some
		return
	}
	m.out = append(append(m.out, bare...), ": "...)
	m.value(value, bytes.EqualFold(bare, []byte("Location")))
	m.out = append(m.out, "\r\n"...)
}

// value appends a field's value; control bytes become blanks (RFC 9110, section
// 5.5), or in a URL what a URL makes of them.
func (m *mender) value(v []byte, url bool) {
	for _, c := range v {
		switch {
		case c >= ' ' && c != 0x7f || c == '\t':
			m.out = append(m.out, c)
			continue
		case !url:
			m.out = append(m.out, ' ')
		case c != '\r' && c != '\n':
			m.out = append(m.out, '%', upperHex[c>>4], upperHex[c&15])
		}
		m.did |= mendedValue
	}
}

const upperHex = "0123456789ABCDEF"

// list appends several fields of one name as one.
func (m *mender) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	m.out = append(append(m.out, name...), ": "...)
	m.value([]byte(strings.Join(values, ", ")), false)
	m.out = append(m.out, "\r\n"...)
}

// framing judges Transfer-Encoding and Content-Length (RFC 9112, section 6.3).
func (m *mender) framing(status int) (framing, error) {
	f := framing{kind: untilClose}
	chunked, codings, err := m.transfer()
	if err != nil {
		return f, err
	}
	length, err := m.length()
	switch {
	case chunked: // it wins over any length
		if len(m.lengths) > 0 {
			m.did |= mendedLength
		}
		if f.kind = inChunks; m.old {
			f.kind = maybeChunks
		}
		m.out = append(m.out, "Transfer-Encoding: chunked\r\n"...)
	case err != nil:
		return f, err
	case codings != "":
	case length >= 0:
		f.kind, f.left = byLength, length
		m.out = strconv.AppendInt(append(m.out, "Content-Length: "...), length, 10)
		m.out = append(m.out, "\r\n"...)
	}
	f.codings = codings
	if bodiless(status) {
		f = framing{}
	}
	return f, nil
}

// transfer says whether the body comes in chunks and under which other codings.
func (m *mender) transfer() (chunked bool, codings string, err error) {
	m.coded = len(m.codings) > 0
	if m.old && m.coded { // HTTP/1.0 knows none: its framing is faulty (RFC 9112, section 6.1)
		m.did |= mendedCoding
	}
	names := strings.Split(strings.ToLower(strings.Join(m.codings, ",")), ",")
	for _, name := range names {
		name, _, _ = strings.Cut(name, ";")
		switch name = strings.Trim(name, " \t\r"); {
		case name == "chunked":
			if chunked {
				m.did |= mendedCoding
			}
			chunked = true
		case name == "", name == "identity", name == "none":
			if m.coded {
				m.did |= mendedCoding
			}
		case chunked:
			return false, "", fmt.Errorf("Transfer-Encoding %q: chunked is not the last", strings.Join(m.codings, ", "))
		default:
			if _, known := codingOf(name); !known {
				return false, "", fmt.Errorf("unknown Transfer-Encoding %q", name)
			}
			if codings != "" {
				codings += ","
			}
			codings += name
		}
	}
	if len(m.codings) > 1 || codings != "" {
		m.did |= mendedCoding
	}
	return chunked, codings, nil
}

// length is what Content-Length says, -1 if nothing. What is no length counts
// as absent, as browsers have it; two that differ are refused.
func (m *mender) length() (int64, error) {
	length := int64(-1)
	if len(m.lengths) == 0 {
		return length, nil
	}
	values := strings.Split(strings.Join(m.lengths, ","), ",")
	for _, v := range values {
		n, err := strconv.ParseUint(strings.Trim(v, " \t\r"), 10, 63)
		switch {
		case err != nil:
			m.did |= mendedLength
		case length >= 0 && int64(n) != length:
			return 0, errLengths
		default:
			length = int64(n)
		}
	}
	if len(values) > 1 {
		m.did |= mendedLength
	}
	return length, nil
}
