package warc

import (
	"bytes"
	"crypto/sha256"
	"strconv"
	"strings"

	"seine/extract/sink"
)

// unchunk returns the payload of an answer: the body without the chunked transfer
// coding, content coding and all; false when it is not whole. The result is w's.
// It takes what the fetcher took: any bytes behind the size of a chunk, and lines
// that end in LF.
func (w *writer) unchunk(e *sink.Exchange) ([]byte, bool) {
	body := e.Response[e.Body:]
	if !e.Chunked {
		return body, true
	}
	w.payload = w.payload[:0]
	for {
		line, rest, ok := bytes.Cut(body, []byte("\n"))
		line = bytes.TrimLeft(line, " \t")
		digits := 0
		for digits < len(line) && strings.IndexByte("0123456789abcdefABCDEF", line[digits]) >= 0 {
			digits++
		}
		size, err := strconv.ParseUint(string(line[:digits]), 16, 31)
		if !ok || err != nil || int(size) > len(rest) {
			return w.payload, false
		}
		if size == 0 {
			return w.payload, true
		}
		w.payload = append(w.payload, rest[:size]...)
		body = bytes.TrimPrefix(bytes.TrimPrefix(rest[size:], []byte("\r")), []byte("\n"))
	}
}

// storedAs is what a payload is known by: its digest, and how it lies in its record.
// Readers serve a revisit with its own header and the body of the record that it refers
// to, so both have to be coded alike.
func storedAs(payload digest, head []byte, chunked bool) digest {
	key := append([]byte(nil), payload[:]...)
	key = strconv.AppendBool(key, chunked)
	coded := false
	for line := range bytes.Lines(head) {
		if line[0] != ' ' && line[0] != '\t' { // else it belongs to the line before
			name, _, _ := bytes.Cut(line, []byte(":"))
			name = bytes.TrimSpace(name)
			coded = bytes.EqualFold(name, []byte("Transfer-Encoding")) || bytes.EqualFold(name, []byte("Content-Encoding"))
		}
		if coded {
			key = append(key, bytes.ToLower(bytes.TrimSpace(line))...)
		}
	}
	return sha256.Sum256(key)
}
