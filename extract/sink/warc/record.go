package warc

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"seine/extract/sink"
	"seine/extract/sink/frame"
)

// writer builds and compresses the records of one page at a time.
type writer struct {
	cfg      *Config
	codec    frame.Codec
	payloads *payloads
	block    []byte // of the record being built
	payload  []byte // without transfer coding, where there was one
	record   []byte // header and block
	out      []byte // all records of the page, compressed
	digest   digest // of the payload, as it is stored
}

const keepBuffer = 2 << 20 // capacity of what is kept for the next page

// release drops the memory of a large page.
func (w *writer) release() {
	for _, b := range []*[]byte{&w.block, &w.payload, &w.record, &w.out} {
		if cap(*b) > keepBuffer {
			*b = nil
		}
	}
}

type digest [sha256.Size]byte

// source is where a payload was archived.
type source struct {
	id   id
	url  string
	date time.Time
}

// id is a UUID.
type id [16]byte

func newID() (u id) {
	rand.Read(u[:])         // never fails
	u[6] = u[6]&0x0f | 0x40 // version 4
	u[8] = u[8]&0x3f | 0x80 // variant of RFC 9562
	return u
}

func (u id) append(dst []byte) []byte {
	dst = append(dst, "<urn:uuid:"...)
	for i, part := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return append(dst, '>')
}

// page builds the records of r into w.out. It returns where the payload will be
// found when it is one to remember, under w.digest.
func (w *writer) page(r *sink.Record) (seen *source) {
	w.out = w.out[:0]
	main, date := newID(), r.FetchedAt.UTC()
	e := r.Exchange
	answered := e != nil && e.Body > 0
	if answered {
		seen = w.response(r, main, date)
	}
	if e != nil && len(e.Request) > 0 {
		w.header("request", newID(), date, r.URL)
		w.addr(e)
		if answered {
			w.field("WARC-Concurrent-To", main.append)
		}
		w.block = appendRedacted(w.block[:0], e.Request, e.Secrets, w.cfg.Fields)
		w.end("application/http;msgtype=request")
	}
	w.header("metadata", newID(), date, r.URL)
	if answered {
		w.field("WARC-Concurrent-To", main.append)
	}
	w.metadata(r)
	w.end("application/warc-fields")
	return seen
}

// response builds a response, or a revisit for a payload that is known, or that the
// server reports unchanged.
func (w *writer) response(r *sink.Record, main id, date time.Time) (seen *source) {
	e := r.Exchange
	head, body := e.Response[:e.Body], e.Response[e.Body:]
	payload, ok := w.unchunk(e)
	whole := e.Cut == "" && ok
	var known source
	repeated := false
	if len(payload) > 0 && whole {
		w.digest = storedAs(sumOf(payload), head, e.Chunked)
		known, repeated = w.payloads.find(w.digest)
	}
	same := r.Unchanged && r.Status == 304 // by the server, what was archived before is what is there
	kind := "response"
	if repeated || same {
		kind = "revisit"
	}
	w.header(kind, main, date, r.URL)
	w.addr(e)
	if e.Cut != "" {
		w.text("WARC-Truncated", e.Cut)
	}
	if same {
		// Without WARC-Refers-To-Date, which must be the WARC-Date of the record that is
		// meant: with a URL stands when its last fetch ended, in seconds, and that may
		// have been a revisit itself.
		w.text("WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/server-not-modified")
		w.text("WARC-Refers-To-Target-URI", r.URL)
	} else if whole {
		w.field("WARC-Payload-Digest", sumOf(payload).append)
	}
	if repeated {
		w.text("WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest")
		w.field("WARC-Refers-To", known.id.append)
		w.text("WARC-Refers-To-Target-URI", known.url)
		w.field("WARC-Refers-To-Date", func(dst []byte) []byte { return appendDate(dst, known.date) })
	}
	w.block = appendRedacted(w.block[:0], head, nil, w.cfg.Fields)
	if !repeated {
		w.block = append(w.block, body...)
	}
	w.end("application/http;msgtype=response")
	if repeated || !whole || len(payload) == 0 {
		return nil
	}
	return &source{id: main, url: r.URL, date: date}
}

// info is the warcinfo record of a file.
func (w *writer) info(name string) []byte {
	w.out = w.out[:0]
	w.header("warcinfo", newID(), time.Now().UTC(), "")
	w.text("WARC-Filename", name)
	w.block = append(w.block[:0], "software: "+w.cfg.Software+"\r\nformat: WARC File Format 1.1\r\nconformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n"...)
	w.end("application/warc-fields")
	return w.out
}

// metadata builds the block that says what else is known of a page: the record as
// every other output has it, and what tools look for by name.
func (w *writer) metadata(r *sink.Record) {
	b := w.block[:0]
	b = strconv.AppendUint(append(b, "hopsFromSeed: "...), uint64(r.Depth), 10)
	b = strconv.AppendInt(append(b, "\r\nfetchTimeMs: "...), int64(min(r.Seconds*1000, 1e15)), 10)
	b = append(b, "\r\n"...)
	if w.cfg.Fields.Has(sink.FieldLinksOut) {
		for _, l := range r.LinksOut {
			b = appendPlain(append(b, "outlink: "...), l)
			b = append(b, "\r\n"...)
		}
	}
	fields := w.cfg.Fields
	if r.Withheld == "" {
		fields &^= sink.FieldBody | sink.FieldHeaders | sink.FieldLinksOut // other records hold these
	}
	b = r.AppendJSON(append(b, "record: "...), fields)
	w.block = append(b, "\r\n"...)
}

// header begins a record.
func (w *writer) header(kind string, u id, date time.Time, url string) {
	w.record = append(w.record[:0], "WARC/1.1\r\nWARC-Type: "+kind+"\r\n"...)
	w.field("WARC-Record-ID", u.append)
	w.field("WARC-Date", func(dst []byte) []byte { return appendDate(dst, date) })
	if url != "" {
		w.text("WARC-Target-URI", url)
	}
}

func (w *writer) addr(e *sink.Exchange) {
	if e.Addr != "" {
		w.text("WARC-IP-Address", e.Addr)
	}
}

func (w *writer) field(name string, value func(dst []byte) []byte) {
	w.record = value(append(w.record, name+": "...))
	w.record = append(w.record, "\r\n"...)
}

func (w *writer) text(name, value string) {
	w.field(name, func(dst []byte) []byte { return appendPlain(dst, value) })
}

// end completes the record with the block and compresses it.
func (w *writer) end(contentType string) {
	w.text("Content-Type", contentType)
	w.field("WARC-Block-Digest", sumOf(w.block).append)
	w.field("Content-Length", func(dst []byte) []byte { return strconv.AppendInt(dst, int64(len(w.block)), 10) })
	w.record = append(append(append(w.record, "\r\n"...), w.block...), "\r\n\r\n"...)
	w.out = w.codec.Append(w.out, w.record)
}

func sumOf(b []byte) digest { return sha256.Sum256(b) }

func (d digest) append(dst []byte) []byte {
	return hex.AppendEncode(append(dst, "sha256:"...), d[:])
}

// appendDate appends a time as WARC 1.1 has it; the years are those it can hold.
func appendDate(dst []byte, t time.Time) []byte {
	return t.AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
}

// appendPlain appends a text that keeps to its line.
func appendPlain(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f {
			dst = append(dst, ' ')
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// appendRedacted appends an HTTP header block without the values of credentials and of
// the headers that secrets names, folded lines included; what follows the block stays.
func appendRedacted(dst, head []byte, secrets []string, fields sink.Fields) []byte {
	if fields.Has(sink.KeepSecrets) {
		return append(dst, head...)
	}
	begun, secret := false, false
	for len(head) > 0 {
		line := head
		if i := bytes.IndexByte(head, '\n'); i >= 0 {
			line = head[:i+1]
		}
		head = head[len(line):]
		blank := len(bytes.TrimRight(line, "\r\n")) == 0
		if blank && begun {
			return append(append(dst, line...), head...)
		}
		begun = begun || !blank
		if line[0] == ' ' || line[0] == '\t' { // belongs to the line before
			if !secret {
				dst = append(dst, line...)
			}
			continue
		}
		name, _, isField := bytes.Cut(line, []byte(":"))
		if secret = isField && isSecret(string(bytes.TrimSpace(name)), secrets); secret {
			dst = append(append(dst, name...), ": \r\n"...)
		} else {
			dst = append(dst, line...)
		}
	}
	return dst
}

func isSecret(name string, more []string) bool {
	return sink.IsSecret(name) || slices.ContainsFunc(more, func(s string) bool { return strings.EqualFold(s, name) })
}

// payloads remembers where payloads were archived: the latest n, at least half
// of them.
type payloads struct {
	n        int
	mu       sync.Mutex
	now, old map[digest]source
}

func newPayloads(n int) *payloads {
	return &payloads{n: n, now: map[digest]source{}, old: map[digest]source{}}
}

func (p *payloads) find(d digest) (source, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.now[d]
	if !ok {
		if s, ok = p.old[d]; ok {
			p.store(d, s)
		}
	}
	return s, ok
}

func (p *payloads) remember(d digest, s source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.store(d, s)
}

// store remembers a payload. The caller has locked mu.
func (p *payloads) store(d digest, s source) {
	if p.n == 0 {
		return
	}
	if len(p.now) >= (p.n+1)/2 {
		p.now, p.old = map[digest]source{}, p.now
	}
	p.now[d] = s
}
