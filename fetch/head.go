package fetch

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A head is a status line and its fields (RFC 9112, sections 2.1, 4 and 5). One reader
// reads all: those that are written as they should be, and those with what the RFC lets a
// recipient overlook. It names each oddity that it met. A connection with one is not
// used again: the server may mean another reading. What leaves two readings is refused.

// lenient names the oddities of a head or a body that was read all the same.
type lenient uint16

const (
	lenientEnd    lenient = 1 << iota // lines that end in LF alone, or in several CR
	lenientLine                       // lines without colon or name, or with a name that is none: left out; or in which a length or type is folded
	lenientName                       // blanks between a name and its colon
	lenientValue                      // control bytes in a value
	lenientStatus                     // a status line that is not quite one
	lenientLength                     // Content-Length empty, signed, no number, repeated, or beside a coding
	lenientCoding                     // Transfer-Encoding empty, identity, none, repeated, or in HTTP/1.0
	lenientChunk                      // line feeds alone or odd bytes in lines between chunks
	lenientCount  = iota
)

// lenientNames are the labels of the counter, in the order of the bits.
var lenientNames = [lenientCount]string{"line_end", "line", "name", "value", "status", "length", "coding", "chunk"}

var (
	errForeign    = errors.New("the server speaks another protocol")
	errInterim    = errors.New("more interim answers than anyone sends")
	errNUL        = errors.New("a NUL byte in the header")
	errStatusLine = errors.New("status line without a status code")
	errLengths    = errors.New("two different Content-Length")
	errLocations  = errors.New("two different Location headers")
)

// maxInterim is how many interim answers (1xx) one request may meet.
const maxInterim = 100

// header is the Header of a Response and the memory that its answers are read
// into. It lives as long as the Response and is used again by the next Do.
type header struct {
	status int
	old    bool   // HTTP/1.0
	text   []byte // names in their usual case, and values
	fields []field
	sent   string // Content-Type as it came last
	read   string // and what ReadType made of it
}

// field is one name and value, as places in the text.
type field struct{ name, nameEnd, value, valueEnd int32 }

// Fields that decide how an answer is read. Several of one of the first four are one list.
var deciding = [...]string{"Content-Length", "Transfer-Encoding", "Content-Type", "Content-Encoding", "Connection", "Location"}

const (
	lengthField = iota
	codingField
	typeField
	encodingField
	connectionField
	locationField
)

// headerOf gives resp its header memory.
func headerOf(resp *Response) *header {
	h, ok := resp.Header.(*header)
	if !ok {
		h = &header{}
		resp.Header = h
	}
	return h
}

// clear forgets the answer before.
func (h *header) clear() { h.status, h.text, h.fields = 0, h.text[:0], h.fields[:0] }

func (h *header) nameOf(f *field) []byte  { return h.text[f.name:f.nameEnd] }
func (h *header) valueOf(f *field) []byte { return h.text[f.value:f.valueEnd] }

func (h *header) isNamed(f *field, name string) bool {
	return int(f.nameEnd-f.name) == len(name) && strings.EqualFold(string(h.nameOf(f)), name)
}

// value is the first value of a name.
func (h *header) value(name string) []byte {
	for i := range h.fields {
		if f := &h.fields[i]; h.isNamed(f, name) {
			return h.valueOf(f)
		}
	}
	return nil
}

func (h *header) Get(name string) string { return string(h.value(name)) }

func (h *header) Values(name string) (values []string) {
	for i := range h.fields {
		if f := &h.fields[i]; h.isNamed(f, name) {
			values = append(values, string(h.valueOf(f)))
		}
	}
	return values
}

func (h *header) Each(f func(name, value string)) {
	for i := range h.fields {
		f(string(h.nameOf(&h.fields[i])), string(h.valueOf(&h.fields[i])))
	}
}

func (h *header) Field(i int) (name, value []byte) {
	if i >= len(h.fields) {
		return nil, nil
	}
	f := &h.fields[i]
	return h.nameOf(f), h.valueOf(f)
}

// location is where a redirect leads. Servers that send other bytes than UTF-8
// mean those bytes (Latin-1, say): they are kept as escapes.
func (h *header) location() (found string, err error) {
	for _, v := range h.Values("Location") {
		if v != "" && found != "" && v != found {
			return "", errLocations
		}
		found = cmp.Or(v, found)
	}
	if utf8.ValidString(found) {
		return found, nil
	}
	var b strings.Builder
	for _, c := range []byte(found) {
		if c < 0x80 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', upperHex[c>>4], upperHex[c&15]})
		}
	}
	return b.String(), nil
}

const upperHex = "0123456789ABCDEF"

// readHead reads heads from in until one is no interim answer, at most limit
// bytes and what fits in, into h, and says how the body is framed. An error is
// an *Error where the bytes are at fault, else what in met.
func readHead(in *bufio.Reader, h *header, limit int) (framing, error) {
	read, odd := 0, lenient(0)
	for range maxInterim + 1 {
		end, err := findHead(in)
		if err != nil {
			return framing{lenient: odd}, err
		}
		if read += end; read > limit {
			return framing{}, fail(ClassHeaderSize, errHeaderSize)
		}
		b, _ := in.Peek(end)
		h.clear()
		r := headReader{h: h}
		f, err := r.head(b)
		if err != nil {
			return framing{}, fail(ClassProtocol, err)
		}
		in.Discard(end) //nolint:errcheck // it is there
		odd |= r.odd
		if h.status > 199 || h.status == http.StatusSwitchingProtocols {
			f.lenient = odd // in interim answers too
			return f, nil
		}
	}
	return framing{}, fail(ClassProtocol, errInterim)
}

// findHead waits for a whole head and says where it ends.
func findHead(in *bufio.Reader) (end int, err error) {
	at, started := 0, false // where the first line begins that is not whole; the status line was seen
	for n := 1; ; n = in.Buffered() + 1 {
		_, err := in.Peek(n)
		b, _ := in.Peek(in.Buffered())
		if foreign(b) {
			return 0, fail(ClassProtocol, errForeign)
		}
		for {
			n := bytes.IndexByte(b[at:], '\n')
			if n < 0 {
				break
			}
			line := b[at : at+n]
			at += n + 1
			if len(bytes.TrimLeft(line, "\r")) > 0 {
				started = true
			} else if started {
				return at, nil
			}
		}
		switch {
		case err == bufio.ErrBufferFull:
			return 0, fail(ClassHeaderSize, errHeaderSize)
		case err != nil:
			return 0, err
		}
	}
}

// foreign says whether b does not even start like HTTP.
func foreign(b []byte) bool {
	b = bytes.TrimLeft(b, "\r\n")
	n := min(len(b), len("HTTP/"))
	return !strings.EqualFold(string(b[:n]), "HTTP/"[:n])
}

// headReader reads one head.
type headReader struct {
	h    *header
	seen [len(deciding)]int
	odd  lenient
}

// head reads the head b into the header.
func (r *headReader) head(b []byte) (framing, error) {
	if bytes.IndexByte(b, 0) >= 0 {
		return framing{}, errNUL
	}
	h := r.h
	h.text = append(h.text[:0], b...)
	at := len(b) - len(bytes.TrimLeft(b, "\r\n"))
	from := at
	end, at := r.line(b, at)
	if err := r.status(b[from:end]); err != nil {
		return framing{}, err
	}
	for at < len(b) {
		from = at
		end, at = r.line(b, at)
		if at == len(b) || b[at] != ' ' && b[at] != '\t' {
			r.field(from, end, false)
			continue
		}
		whole := bytes.Clone(b[from:end])
		for at < len(b) && (b[at] == ' ' || b[at] == '\t') {
			from = at
			end, at = r.line(b, at)
			whole = append(append(whole, ' '), bytes.Trim(b[from:end], " \t")...)
		}
		from = len(h.text)
		h.text = append(h.text, whole...)
		r.field(from, len(h.text), true)
	}
	for i := range encodingField + 1 {
		if r.seen[i] > 1 {
			r.join(deciding[i])
		}
	}
	return r.framing()
}

// line says where the line at ends, and where the next begins.
func (r *headReader) line(b []byte, at int) (end, next int) {
	next = at + bytes.IndexByte(b[at:], '\n') + 1
	for end = next - 1; end > at && b[end-1] == '\r'; end-- {
	}
	if end != next-2 {
		r.odd |= lenientEnd
	}
	return end, next
}

// status reads the status line.
func (r *headReader) status(line []byte) error {
	version, rest, _ := bytes.Cut(line, []byte(" "))
	code := bytes.TrimLeft(rest, " \t")
	n := 0
	for n < len(code) && code[n] >= '0' && code[n] <= '9' {
		n++
	}
	if n != 3 {
		return fmt.Errorf("%w: %q", errStatusLine, line[:min(len(line), 60)])
	}
	if r.h.status = int(code[0]-'0')*100 + int(code[1]-'0')*10 + int(code[2]-'0'); r.h.status < 100 {
		return errStatus
	}
	r.h.old = false
	switch {
	case string(version) == "HTTP/1.0":
		r.h.old = true
	case string(version) != "HTTP/1.1", len(rest) != len(code), len(code) > n && code[n] != ' ':
		r.odd |= lenientStatus
		r.h.old = bytes.EqualFold(version, []byte("HTTP/1.0"))
	}
	if anyControl(code[n:]) {
		r.odd |= lenientValue
	}
	return nil
}

// tokenBytes is what each byte of a name becomes at the beginning of a word and
// inside one, 0 if no name has it (RFC 9110, section 5.6.2).
var tokenBytes = func() (t [2][256]byte) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
		t[0][c], t[1][c] = c, c
		if c >= 'a' && c <= 'z' {
			up := c - 'a' + 'A'
			t[0][c], t[0][up], t[1][up] = up, up, c
		}
	}
	return t
}()

// field reads the field that lies in the text, its continuations joined.
func (r *headReader) field(from, end int, folded bool) {
	if from == end {
		return
	}
	h := r.h
	colon := from + bytes.IndexByte(h.text[from:end], ':')
	nameEnd := colon
	for nameEnd > from && (h.text[nameEnd-1] == ' ' || h.text[nameEnd-1] == '\t') {
		nameEnd--
	}
	if nameEnd <= from {
		r.odd |= lenientLine
		return
	}
	inside := 0
	for i, c := range h.text[from:nameEnd] {
		usual := tokenBytes[inside][c]
		if usual == 0 {
			r.odd |= lenientLine
			return
		}
		h.text[from+i] = usual
		if inside = 1; c == '-' {
			inside = 0
		}
	}
	if nameEnd != colon {
		r.odd |= lenientName
	}
	which := slices.Index(deciding[:], string(h.text[from:nameEnd]))
	if which >= 0 {
		r.seen[which]++
		if folded && which <= encodingField {
			r.odd |= lenientLine
		}
	}
	value, end := r.value(colon+1, end, which)
	h.fields = append(h.fields, field{int32(from), int32(nameEnd), int32(value), int32(end)})
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// value trims a field's value. Control bytes become blanks (RFC 9110, section 5.5), in a
// URL what a URL makes of them, and in a length or coding what leaves it none.
func (r *headReader) value(from, end, which int) (int, int) {
	h := r.h
	for trimmed := false; ; trimmed = true {
		for from < end && isBlank(h.text[from]) {
			from++
		}
		for from < end && isBlank(h.text[end-1]) {
			end--
		}
		if trimmed || !anyControl(h.text[from:end]) {
			return from, end
		}
		r.odd |= lenientValue
		old := h.text[from:end]
		from = len(h.text)
		for _, c := range old {
			switch {
			case !isControl(c):
				h.text = append(h.text, c)
			case which == lengthField, which == codingField:
				h.text = append(h.text, '?')
			case which != locationField:
				h.text = append(h.text, ' ')
			case c != '\r':
				h.text = append(h.text, '%', upperHex[c>>4], upperHex[c&15])
			}
		}
		end = len(h.text)
	}
}

func isControl(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f }

// anyControl says whether v has a control byte. It looks at eight bytes at once.
func anyControl(v []byte) bool {
	const each = 0x0101010101010101
	for len(v) >= 8 {
		x := binary.LittleEndian.Uint64(v)
		del := x ^ 0x7f*each
		if low := (x - ' '*each) &^ x; (low|(del-each)&^del)&(0x80*each) != 0 { // or a tab
			break
		}
		v = v[8:]
	}
	return slices.ContainsFunc(v, isControl)
}

// join makes the fields of a name one list.
func (r *headReader) join(name string) {
	h := r.h
	list := strings.Join(h.Values(name), ", ")
	first := slices.IndexFunc(h.fields, func(f field) bool { return h.isNamed(&f, name) })
	f := &h.fields[first]
	f.value, f.valueEnd = int32(len(h.text)), int32(len(h.text)+len(list))
	h.text = append(h.text, list...)
	rest := slices.DeleteFunc(h.fields[first+1:], func(f field) bool { return h.isNamed(&f, name) })
	h.fields = h.fields[:first+1+len(rest)]
}

// framing judges Transfer-Encoding, Content-Length and Connection (RFC 9112,
// sections 6.3 and 9.3).
func (r *headReader) framing() (framing, error) {
	f := framing{kind: untilClose}
	chunked, codings, err := r.transfer()
	if err != nil {
		return f, err
	}
	length, err := r.length()
	switch {
	case chunked: // it wins over any length
		if r.seen[lengthField] > 0 {
			r.odd |= lenientLength
		}
		if f.kind = inChunks; r.h.old {
			f.kind = maybeChunks
		}
	case err != nil:
		return f, err
	case codings != "":
	case length >= 0:
		f.kind, f.left = byLength, length
	}
	f.codings = codings
	if bodiless(r.h.status) {
		f = framing{}
	}
	f.last = r.last()
	return f, nil
}

// bodiless names the answers that have no body whatever their head says.
func bodiless(status int) bool {
	return status < 200 || status == http.StatusNoContent || status == http.StatusNotModified
}

// last says whether the server closes the connection.
func (r *headReader) last() bool {
	closes, keeps := false, false
	if r.seen[connectionField] > 0 {
		for _, v := range r.h.Values("Connection") {
			for option := range strings.SplitSeq(v, ",") {
				option = strings.Trim(option, " \t")
				closes = closes || strings.EqualFold(option, "close")
				keeps = keeps || strings.EqualFold(option, "keep-alive")
			}
		}
	}
	return closes || r.h.old && !keeps
}

// transfer says whether the body comes in chunks and under which other codings.
func (r *headReader) transfer() (chunked bool, codings string, err error) {
	if r.seen[codingField] == 0 {
		return false, "", nil
	}
	if r.h.old { // HTTP/1.0 knows none: its framing is faulty (RFC 9112, section 6.1)
		r.odd |= lenientCoding
	}
	list := r.h.value("Transfer-Encoding")
	if bytes.EqualFold(list, []byte("chunked")) {
		return true, "", nil
	}
	for name := range strings.SplitSeq(strings.ToLower(string(list)), ",") {
		name, _, _ = strings.Cut(name, ";")
		switch name = strings.Trim(name, " \t\r"); {
		case name == "chunked":
			if chunked {
				r.odd |= lenientCoding
			}
			chunked = true
		case name == "", name == "identity", name == "none":
			r.odd |= lenientCoding
		case chunked:
			return false, "", fmt.Errorf("Transfer-Encoding %q: chunked is not the last", list)
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
	if r.seen[codingField] > 1 || codings != "" {
		r.odd |= lenientCoding
	}
	return chunked, codings, nil
}

// length is what Content-Length says, -1 if nothing. What is no length counts
// as absent, as browsers have it; two that differ are refused.
func (r *headReader) length() (length int64, err error) {
	length = -1
	if r.seen[lengthField] == 0 {
		return length, nil
	}
	list := r.h.value("Content-Length")
	for v := range bytes.SplitSeq(list, []byte(",")) {
		n, err := strconv.ParseUint(string(bytes.Trim(v, " \t\r")), 10, 63)
		if err != nil || len(v) < len(list) {
			r.odd |= lenientLength
		}
		switch {
		case err != nil:
		case length >= 0 && int64(n) != length:
			return 0, errLengths
		default:
			length = int64(n)
		}
	}
	return length, nil
}
