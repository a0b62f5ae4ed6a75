package canon

import "bytes"

// URL is one canonical http or https URL. The zero value is empty; parsing
// into it reuses its memory, and slices that its methods return are valid until
// then and must not be changed. A URL belongs to one goroutine: some methods
// compute on first use.
type URL struct {
	buf []byte // fetch form

	// Offsets into buf: scheme://user:password@host:port/path?query
	//                            ^auth         ^host    ^path ^query
	auth    int // start of the authority
	host    int // start of the host, auth unless there are credentials
	hostEnd int
	path    int // start of the path, end of the authority
	query   int // the '?', len(buf) when there is none
	dir     int // end of the path's directory, after its last '/'; 0 = not computed

	dirs sketch // of the path up to dir-1, computed with it

	flags flag
	keyed bool   // key holds the key
	key   []byte // key form where it differs from buf
	aside []byte // origin and such where credentials stand in their way
}

// flag holds what a parser found or was given.
type flag uint8

const (
	hasPercent flag = 1 << iota // an escape may stand in path or query
	stripParams
	sortQuery
)

// Fetch is the fetch form: the WHATWG href without fragment. It holds the
// credentials that the link held; records and logs take AppendRedacted.
func (u *URL) Fetch() []byte { return u.buf }

// Key is the key form: URLs with equal keys are the same URL. It never holds
// credentials. The first call computes it, which is free unless the URL holds
// an escape, credentials or a query that key rules apply to.
func (u *URL) Key() []byte {
	if u.keyed {
		return u.key
	}
	if u.plainKey() {
		return u.buf
	}
	u.key = u.appendKey(u.key[:0])
	u.keyed = true
	return u.key
}

// Scheme is "http" or "https", "" of an empty URL.
func (u *URL) Scheme() string {
	switch u.auth {
	case len("http://"):
		return "http"
	case len("https://"):
		return "https"
	}
	return ""
}

// Host is the host without port, in ASCII and lower case, an IPv6 literal in
// brackets.
func (u *URL) Host() []byte { return u.buf[u.host:u.hostEnd:u.hostEnd] }

// HostPort is the host with the port where that is not the scheme's own: what
// a Host header holds.
func (u *URL) HostPort() []byte { return u.buf[u.host:u.path:u.path] }

// Port is the port to connect to: the URL's or else the scheme's own.
func (u *URL) Port() uint16 {
	if u.hostEnd == u.path {
		switch u.Scheme() {
		case "http":
			return 80
		case "https":
			return 443
		}
		return 0
	}
	n := uint16(0)
	for _, c := range u.buf[u.hostEnd+1 : u.path] {
		n = n*10 + uint16(c-'0')
	}
	return n
}

// Origin is scheme, host and port without credentials, as in
// "https://example.com:8443": the unit that has one robots.txt.
func (u *URL) Origin() []byte {
	if !u.HasUserinfo() {
		return u.buf[:u.path:u.path]
	}
	u.aside = append(append(u.aside[:0], u.buf[:u.auth]...), u.HostPort()...)
	return u.aside
}

// Path is the path, which starts with '/'.
func (u *URL) Path() []byte { return u.buf[u.path:u.query:u.query] }

// Query is the query without its '?'; HasQuery tells an empty one from none.
func (u *URL) Query() []byte {
	if u.query == len(u.buf) {
		return nil
	}
	return u.buf[u.query+1:]
}

// HasQuery says whether there is a '?'.
func (u *URL) HasQuery() bool { return u.query < len(u.buf) }

// Target is path and query: what a request line asks for.
func (u *URL) Target() []byte { return u.buf[u.path:] }

// HasUserinfo says whether the URL holds a user name or password.
func (u *URL) HasUserinfo() bool { return u.host != u.auth }

// Userinfo is user name and password as escaped in the URL, without '@'.
func (u *URL) Userinfo() []byte {
	if !u.HasUserinfo() {
		return nil
	}
	return u.buf[u.auth : u.host-1 : u.host-1]
}

// AppendRedacted appends the fetch form without credentials: what records and
// logs hold.
func (u *URL) AppendRedacted(dst []byte) []byte {
	return append(append(dst, u.buf[:u.auth]...), u.buf[u.host:]...)
}

// String is the fetch form without credentials, so that a URL may be printed.
func (u *URL) String() string { return string(u.AppendRedacted(nil)) }

// reset empties u and keeps its memory.
func (u *URL) reset() {
	*u = URL{buf: u.buf[:0], key: u.key, aside: u.aside}
}

// index finds the parts of the canonical URL in buf.
func (u *URL) index() {
	b := u.buf
	u.auth = bytes.IndexByte(b, ':') + len("://")
	u.path = u.auth + bytes.IndexByte(b[u.auth:], '/')
	u.host = u.auth + 1 + bytes.LastIndexByte(b[u.auth:u.path], '@')
	u.hostEnd = u.path
	if c := bytes.LastIndexByte(b[u.host:u.path], ':'); c >= 0 && b[u.path-1] != ']' {
		u.hostEnd = u.host + c
	}
	u.query = len(b)
	if q := bytes.IndexByte(b[u.path:], '?'); q >= 0 {
		u.query = u.path + q
	}
	u.dir = 0
	u.keyed = false
}

// dirEnd is the end of the directory that relative links start from.
func (u *URL) dirEnd() int {
	if u.dir == 0 && len(u.buf) > 0 {
		u.dir = u.path + 1 + bytes.LastIndexByte(u.buf[u.path:u.query], '/')
		u.dirs = sketch{}
		u.dirs.add(u.buf, u.path, u.dir-1)
	}
	return u.dir
}
