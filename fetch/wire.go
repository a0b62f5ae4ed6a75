package fetch

import (
	"bufio"
	"bytes"
	"net"
)

// Wire receives an exchange as it was on the wire, for archives. Its memory is
// used again by the next Do with the same Wire, and grows with the answer: up to
// about twice Config.MaxBody.
type Wire struct {
	Request  []byte // request line and header, secrets too
	Response []byte // status line, header and body, transfer and content codings as sent, without interim answers; empty when no whole header came
	Body     int    // where in Response the body begins
	Whole    bool   // the body is there up to its end
	Chunked  bool   // the body is in chunks, whatever the header says
	Addr     string // IP address of the server, "" behind a proxy
}

// begin empties v for a request on cn.
func (v *Wire) begin(cn *conn, request []byte, proxied bool) {
	*v = Wire{Request: append(v.Request[:0], request...), Response: v.Response[:0]}
	if host, _, err := net.SplitHostPort(cn.raw.RemoteAddr().String()); err == nil && !proxied {
		v.Addr = host
	}
	cn.tap = v
}

// head says that the header ended where in stands now.
func (v *Wire) head(in *bufio.Reader) { v.Body = len(v.Response) - in.Buffered() }

// end leaves nothing but the answer in v: not what was read behind it, nor what came
// before it.
func (v *Wire) end(cn *conn, in *bufio.Reader, whole bool) {
	cn.tap = nil
	if v.Body == 0 {
		v.Response = v.Response[:0]
		return
	}
	v.Response = v.Response[:len(v.Response)-in.Buffered()]
	v.Whole = whole
	skip := 0
	for {
		rest := v.Response[skip:v.Body]
		skip += len(rest) - len(bytes.TrimLeft(rest, "\r\n"))
		n := interim(v.Response[skip:v.Body])
		if n == 0 {
			break
		}
		skip += n
	}
	v.Response = v.Response[:copy(v.Response, v.Response[skip:])]
	v.Body -= skip
}

// interim is the length of the interim answer (1xx) that head begins with, 0 if
// it begins with none.
func interim(head []byte) int {
	_, status, ok := bytes.Cut(head[:min(len(head), len("HTTP/1.1 1"))], []byte(" "))
	if !ok || len(status) == 0 || status[0] != '1' {
		return 0
	}
	for at := 0; ; {
		i := bytes.IndexByte(head[at:], '\n')
		if i < 0 {
			return 0
		}
		at += i + 1
		if line := head[at:]; bytes.HasPrefix(line, []byte("\n")) {
			return at + 1
		} else if bytes.HasPrefix(line, []byte("\r\n")) {
			return at + 2
		}
	}
}
