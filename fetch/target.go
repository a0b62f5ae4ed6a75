package fetch

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"seine/frontier/headers"
)

// target is a URL taken apart. Its strings are parts of the URL it was parsed
// from and must not outlive the exchange.
type target struct {
	tls  bool
	user string // userinfo as written, "" if none
	host string // without port and brackets
	port uint16
	auth string // host as in the Host header: brackets kept, port only when written
	path string // path and query as written, without the fragment; may be empty
}

var (
	errScheme = errors.New("scheme is not http or https")
	errHost   = errors.New("host is missing or has bytes that no host may have")
	errPort   = errors.New("port is not a number from 1 to 65535")
)

// parse splits a URL in fetch form. It costs no allocation.
func (t *target) parse(u string) error {
	*t = target{port: 80}
	switch {
	case strings.HasPrefix(u, "http://"):
		u = u[len("http://"):]
	case strings.HasPrefix(u, "https://"):
		u, t.tls, t.port = u[len("https://"):], true, 443
	default:
		return errScheme
	}
	end := strings.IndexAny(u, "/?#")
	if end < 0 {
		end = len(u)
	}
	t.auth, t.path = u[:end], u[end:]
	if i := strings.IndexByte(t.path, '#'); i >= 0 {
		t.path = t.path[:i]
	}
	if i := strings.LastIndexByte(t.auth, '@'); i >= 0 {
		t.user, t.auth = t.auth[:i], t.auth[i+1:]
	}
	return t.splitHost()
}

func (t *target) splitHost() error {
	t.host = t.auth
	rest := ""
	if strings.HasPrefix(t.auth, "[") {
		i := strings.IndexByte(t.auth, ']')
		if i < 0 {
			return errHost
		}
		t.host, rest = t.auth[1:i], t.auth[i+1:]
	} else if i := strings.IndexByte(t.auth, ':'); i >= 0 {
		t.host, rest = t.auth[:i], t.auth[i:]
	}
	if t.host == "" || !validHost(t.host) {
		return errHost
	}
	if rest == "" {
		return nil
	}
	if rest[0] != ':' {
		return errHost
	}
	n, err := strconv.ParseUint(rest[1:], 10, 16)
	if err != nil || n == 0 {
		return errPort
	}
	if uint16(n) == t.port { // a default port is left out
		t.auth = t.auth[:len(t.auth)-len(rest)]
	}
	t.port = uint16(n)
	return nil
}

// validHost keeps out what could end a line or mean something in a URL.
func validHost(h string) bool {
	for i := range len(h) {
		switch c := h[i]; {
		case c <= ' ', c >= 0x7f, c >= 'A' && c <= 'Z':
			return false
		case strings.IndexByte("\"#%/<>?@[\\]^`{|}", c) >= 0:
			return false
		}
	}
	return true
}

// appendPath appends path and query. Bytes stay as the page wrote them; only
// what may not stand in a request line (controls, blanks, non-ASCII) is escaped.
func (t *target) appendPath(dst []byte) []byte {
	const hex = "0123456789ABCDEF"
	if t.path == "" || t.path[0] != '/' {
		dst = append(dst, '/')
	}
	for i := range len(t.path) {
		if c := t.path[i]; c <= ' ' || c >= 0x7f {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// appendRequest appends the request up to the end of its header, which seal adds. Through a
// plain proxy the target is in absolute form and proxyAuth, if any, is added.
func (c *Client) appendRequest(dst []byte, t *target, req *Request, px *proxy) ([]byte, error) {
	method, header := req.Method, req.Header
	if method == "" {
		method = "GET"
	} else if !httpguts.ValidHeaderFieldName(method) || method == "CONNECT" {
		return dst, fmt.Errorf("method %q cannot be sent", method)
	}
	dst = append(append(dst, method...), ' ')
	forward := px != nil && px.forwards(t)
	if forward {
		dst = append(dst, "http://"...)
		dst = append(dst, t.auth...)
	}
	dst = t.appendPath(dst)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	dst = append(dst, t.auth...)
	dst = append(dst, "\r\n"...)
	authorized := false
	if len(header) == 0 {
		dst = append(dst, c.block...)
	} else {
		var err error
		if dst, authorized, err = c.appendHeaders(dst, header); err != nil {
			return dst, err
		}
	}
	if t.user != "" && !authorized {
		dst = append(dst, "Authorization: Basic "...)
		dst = appendBasic(dst, t.user)
		dst = append(dst, "\r\n"...)
	}
	if forward && px.basic != "" {
		dst = append(dst, "Proxy-Authorization: "...)
		dst = append(dst, px.basic...)
		dst = append(dst, "\r\n"...)
	}
	if len(req.Body) > 0 || method == "POST" || method == "PUT" || method == "PATCH" { // RFC 9110, section 8.6
		dst = strconv.AppendInt(append(dst, "Content-Length: "...), int64(len(req.Body)), 10)
		dst = append(dst, "\r\n"...)
	}
	return dst, nil
}

// ownSignature reports whether a header is one of those that a signature is made of.
func ownSignature(h [2]string) bool {
	return strings.EqualFold(h[0], "Signature") || strings.EqualFold(h[0], "Signature-Input") || strings.EqualFold(h[0], "Signature-Agent")
}

// appendHeaders appends the client's own headers, those replaced left out, and
// then the extra ones.
func (c *Client) appendHeaders(dst []byte, extra [][2]string) (_ []byte, authorized bool, _ error) {
	for _, own := range c.own {
		replaced := false
		for _, kv := range extra {
			replaced = replaced || strings.EqualFold(own[0], kv[0])
		}
		if !replaced {
			dst = appendLine(dst, own[0], own[1])
		}
	}
	for _, kv := range extra {
		if err := headers.Check(kv[0], kv[1]); err != nil {
			return dst, false, err
		}
		authorized = authorized || strings.EqualFold(kv[0], "Authorization")
		dst = appendLine(dst, kv[0], kv[1])
	}
	return dst, authorized, nil
}

func appendLine(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// appendBasic appends userinfo (RFC 7617), percent-escapes decoded.
func appendBasic(dst []byte, user string) []byte {
	name, pass, _ := strings.Cut(user, ":")
	return base64.StdEncoding.AppendEncode(dst, []byte(unescape(name)+":"+unescape(pass)))
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}
