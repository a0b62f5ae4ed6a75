package fetch

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

// header is the Header of a Response and the memory its answers are parsed
// into. It lives as long as the Response and is used again by the next Do.
type header struct {
	f    fasthttp.ResponseHeader
	sent string // Content-Type as it came last
	read string // and what ReadType made of it
}

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
func (h *header) clear() {
	h.f.Reset()
	h.f.SetNoDefaultContentType(true)
}

func (h *header) Get(name string) string { return string(h.f.Peek(name)) }

func (h *header) Values(name string) (values []string) {
	if strings.EqualFold(name, "Set-Cookie") { // which PeekAll has as one value
		for _, line := range h.f.Cookies() {
			values = append(values, string(line))
		}
		return values
	}
	all := h.f.PeekAll(name)
	if len(all) == 0 {
		return nil
	}
	values = make([]string, len(all))
	for i, v := range all {
		values[i] = string(v)
	}
	return values
}

func (h *header) Each(f func(name, value string)) {
	for k, v := range h.f.All() {
		f(string(k), string(v))
	}
}

// count is how many header lines were parsed.
func (h *header) count() int {
	n := 0
	for range h.f.All() {
		n++
	}
	return n
}

var errLocations = errors.New("two different Location headers")

// location is where a redirect leads. Servers that send other bytes than UTF-8
// mean those bytes (Latin-1, say): they are kept as escapes.
func location(h *fasthttp.ResponseHeader) (string, error) {
	var found []byte
	for _, v := range h.PeekAll("Location") {
		switch {
		case len(v) == 0:
		case found != nil && !bytes.Equal(v, found):
			return "", errLocations
		default:
			found = v
		}
	}
	if utf8.Valid(found) {
		return string(found), nil
	}
	var b strings.Builder
	for _, c := range found {
		if c < 0x80 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', upperHex[c>>4], upperHex[c&15]})
		}
	}
	return b.String(), nil
}
