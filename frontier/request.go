package frontier

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/http/httpguts"

	"seine/frontier/canon"
	"seine/frontier/headers"
)

// Request is how a URL is fetched where that is no plain GET: its method, headers and
// body. "" is a plain GET. NewRequest makes the others, whose text is a JSON object, as
// queues and feeds have it. Headers are secrets, so a Request prints as its method alone.
type Request string

// MaxRequest is how many bytes method, headers and body of a Request have together.
const MaxRequest = 4096

// requestParts is the JSON form of a Request.
type requestParts struct {
	Method   string      `json:"method,omitempty"`
	Header   [][2]string `json:"header,omitempty"`
	Body     string      `json:"body,omitempty"`
	Encoding string      `json:"body_encoding,omitempty"` // base64, of a body that is no UTF-8
}

// NewRequest makes a Request. An empty method is GET. A body without a Content-Type is
// sent as that of an HTML form. It refuses CONNECT and TRACE, headers that Seine sets
// itself, what HTTP does not allow, and more than MaxRequest bytes.
func NewRequest(method string, header [][2]string, body []byte) (Request, error) {
	if method == "GET" {
		method = ""
	}
	if method != "" && !httpguts.ValidHeaderFieldName(method) || strings.EqualFold(method, "CONNECT") || strings.EqualFold(method, "TRACE") {
		return "", fmt.Errorf("frontier: request: method %q is refused", method)
	}
	size, typed := len(method)+len(body), false
	for _, h := range header {
		err := headers.Check(h[0], strings.ToValidUTF8(h[1], "\x00")) // other bytes have no place in JSON
		if strings.EqualFold(h[0], "User-Agent") || strings.EqualFold(h[0], "Accept-Encoding") {
			err = fmt.Errorf("header %q is set by the crawler itself", h[0])
		}
		if err != nil {
			return "", fmt.Errorf("frontier: request: %w", err)
		}
		size += len(h[0]) + len(h[1])
		typed = typed || strings.EqualFold(h[0], "Content-Type")
	}
	if len(body) > 0 && !typed {
		h := [2]string{"Content-Type", "application/x-www-form-urlencoded"}
		header, size = append(header[:len(header):len(header)], h), size+len(h[0])+len(h[1])
	}
	if size > MaxRequest {
		return "", fmt.Errorf("frontier: request: method, headers and body have %d bytes, at most %d are allowed", size, MaxRequest)
	}
	p := requestParts{Method: method, Header: header, Body: string(body)}
	if !utf8.Valid(body) {
		p.Body, p.Encoding = base64.StdEncoding.EncodeToString(body), "base64"
	}
	return p.request(), nil
}

func (p *requestParts) request() Request {
	if p.Method == "" && len(p.Header) == 0 && p.Body == "" {
		return ""
	}
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(p); err != nil {
		panic("frontier: request: " + err.Error()) // texts alone: it cannot fail
	}
	return Request(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// readRequest makes a Request of its JSON form, or nothing.
func readRequest(text []byte) (Request, error) {
	if len(text) == 0 || string(text) == "null" {
		return "", nil
	}
	var p requestParts
	var pairs struct{ Header [][]string } // p.Header takes arrays of any length
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if in.Decode(&p) != nil || json.Unmarshal(text, &pairs) != nil ||
		slices.ContainsFunc(pairs.Header, func(h []string) bool { return len(h) != 2 }) {
		return "", errors.New("request must be a JSON object of method, header (pairs of name and value), body and body_encoding") // the error of json may show a secret
	}
	body, err := p.body()
	if err != nil {
		return "", err
	}
	return NewRequest(p.Method, p.Header, body)
}

func (p *requestParts) body() ([]byte, error) {
	switch p.Encoding {
	case "":
		return []byte(p.Body), nil
	case "base64":
		body, err := base64.StdEncoding.DecodeString(p.Body)
		if err != nil {
			return nil, errors.New("request: body is no base64")
		}
		return body, nil
	}
	return nil, fmt.Errorf("request: body_encoding is %q, must be base64", p.Encoding)
}

// parts reads what NewRequest made; what it did not make is a plain GET. It allocates
// nothing for "".
func (r Request) parts() requestParts {
	if r == "" {
		return requestParts{}
	}
	p := new(requestParts)
	if json.Unmarshal([]byte(r), p) != nil {
		return requestParts{}
	}
	return *p
}

// Parts are method, headers and body.
func (r Request) Parts() (method string, header [][2]string, body []byte) {
	p := r.parts()
	body, _ = p.body() // NewRequest encoded it
	if p.Method == "" {
		p.Method = "GET"
	}
	return p.Method, p.Header, body
}

// String is the method.
func (r Request) String() string {
	method, _, _ := r.Parts()
	return method
}

// IsGet reports whether the request is one for its URL like any other, but for headers:
// a GET without a body.
func (r Request) IsGet() bool {
	p := r.parts()
	return p.Method == "" && p.Body == ""
}

// IsSafe reports whether its method asks a server for no change (RFC 9110, section 9.2.1).
func (r Request) IsSafe() bool {
	switch r.parts().Method {
	case "", "HEAD", "OPTIONS":
		return true
	}
	return false
}

// WithoutSecrets is the request without its headers, but for Content-Type. It counts as
// the same request.
func (r Request) WithoutSecrets() Request {
	p := r.parts()
	p.Header = slices.DeleteFunc(p.Header, func(h [2]string) bool { return !strings.EqualFold(h[0], "Content-Type") })
	return p.request()
}

// Redirected is the request that follows an answer with a status of 3xx (RFC 9110, section
// 15.4). 307 and 308 keep it; after another status it is a GET without body, or stays a
// HEAD. Headers go to no other origin. ok is false where 307 or 308 would repeat a body,
// or a method that is not safe, at another origin.
func (r Request) Redirected(status int, sameOrigin bool) (to Request, ok bool) {
	p := r.parts()
	keeps := status == 307 || status == 308
	switch {
	case keeps && sameOrigin:
		return r, true
	case keeps && (p.Body != "" || !r.IsSafe()):
		return "", false
	case !sameOrigin:
		p.Header = nil
	}
	if !keeps && p.Method != "HEAD" {
		p.Method = ""
	}
	p.Header = slices.DeleteFunc(p.Header, func(h [2]string) bool { return strings.HasPrefix(strings.ToLower(h[0]), "content-") })
	p.Body, p.Encoding = "", ""
	return p.request(), true
}

// Fingerprint is that of the request, whose URL has the fingerprint url: method and body
// count, headers do not. A GET without a body has that of its URL.
func (r Request) Fingerprint(url canon.Fingerprint) canon.Fingerprint {
	if r.IsGet() {
		return url
	}
	method, _, body := r.Parts()
	text := append(url.Append(nil), 0)
	text = append(append(append(text, method...), 0), body...)
	return canon.Fingerprint{Site: url.Site, Key: xxhash.Sum64(text)}
}
