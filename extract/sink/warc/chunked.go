package warc

import (
	"bytes"
	"net/http/httputil"
	"strings"
)

// unchunk returns the payload of an answer: the body without the chunked transfer
// coding, content coding and all; false when it is not whole. The result is w's.
func (w *writer) unchunk(head, body []byte) ([]byte, bool) {
	if !chunked(head) {
		return body, true
	}
	buf := bytes.NewBuffer(w.payload[:0])
	_, err := buf.ReadFrom(httputil.NewChunkedReader(bytes.NewReader(body)))
	w.payload = buf.Bytes()
	return w.payload, err == nil
}

// chunked reports whether the last transfer coding of an HTTP/1.1 answer is chunked.
func chunked(head []byte) bool {
	if bytes.HasPrefix(head, []byte("HTTP/1.0")) {
		return false
	}
	last := ""
	for line := range bytes.Lines(head) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if strings.EqualFold(string(bytes.TrimSpace(name)), "Transfer-Encoding") {
			last = string(value)
		}
	}
	last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
	return strings.EqualFold(last, "chunked")
}
