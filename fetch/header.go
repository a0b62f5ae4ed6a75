package fetch

import "github.com/valyala/fasthttp"

// header is the Header of a Response and the memory its answers are parsed
// into. It lives as long as the Response and is used again by the next Do.
type header struct{ f fasthttp.Response }

// headerOf gives resp its header memory.
func headerOf(resp *Response) *header {
	h, ok := resp.Header.(*header)
	if !ok {
		h = &header{}
		h.f.KeepBodyBuffer = true // it stays empty: bodies are streamed
		h.f.StreamBody = true
		resp.Header = h
	}
	return h
}

// clear forgets the answer before.
func (h *header) clear() {
	h.f.Header.Reset()
	h.f.Header.SetNoDefaultContentType(true)
}

func (h *header) Get(name string) string { return string(h.f.Header.Peek(name)) }

func (h *header) Values(name string) []string {
	all := h.f.Header.PeekAll(name)
	if len(all) == 0 {
		return nil
	}
	values := make([]string, len(all))
	for i, v := range all {
		values[i] = string(v)
	}
	return values
}

func (h *header) Each(f func(name, value string)) {
	for k, v := range h.f.Header.All() {
		f(string(k), string(v))
	}
}

// count is how many header lines were parsed.
func (h *header) count() int {
	n := 0
	for range h.f.Header.All() {
		n++
	}
	return n
}
