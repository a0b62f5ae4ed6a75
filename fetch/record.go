package fetch

import (
	"net"
	"os"
	"sync"
)

// recordBuffer is read at once from a connection that speaks TLS.
const recordBuffer = 32 << 10

// recordConn gives crypto/tls the bytes of a connection record by record, each as its
// header and its body. crypto/tls keeps the buffer that it reads into for as long as the
// connection lives, and makes it larger each time that it is given parts of the next
// record: up to 54 KB, where one record needs 18. The bytes that lie ahead are in a buffer
// of the client's, which the connection has while an answer comes.
type recordConn struct {
	net.Conn
	buffers *sync.Pool // of *[]byte, recordBuffer each
	buf     *[]byte    // nil while nothing lies ahead
	ahead   []byte     // of buf
	header  [5]byte
	have    int  // bytes of header that were read
	left    int  // bytes of the record that were not
	most    int  // bytes of the largest record
	chain   int  // bytes that crypto/tls keeps of the server's certificates, unless it resumed: messages, copies, fields
	dry     bool // Read returns what lies ahead, and does not wait for more
	shaking bool // the handshake goes on: what it writes waits in out for the next read, or for the request
	out     []byte
	failed  error // of flush
}

func (r *recordConn) Read(p []byte) (n int, err error) {
	switch {
	case len(r.ahead) > 0:
	case r.dry:
		return 0, os.ErrDeadlineExceeded // which crypto/tls gets over
	case r.flush() != nil:
		return 0, r.failed
	case r.buf == nil && r.have == 0 && r.left == 0: // it may take long to come
		n, err = r.Conn.Read(p[:min(len(p), len(r.header))])
		r.count(p[:n])
		return n, err
	default:
		if r.buf == nil {
			r.buf = r.buffers.Get().(*[]byte)
		}
		n, err = r.Conn.Read(*r.buf)
		r.ahead = (*r.buf)[:n]
		if n == 0 {
			return 0, err
		}
	}
	part := len(r.header) - r.have
	if r.left > 0 {
		part = r.left
	}
	n = copy(p[:min(len(p), part)], r.ahead)
	r.ahead = r.ahead[n:]
	r.count(p[:n])
	return n, nil
}

// Write sends the end of a handshake together with the request: one packet, not three.
func (r *recordConn) Write(p []byte) (int, error) {
	if !r.shaking && len(r.out) == 0 {
		return r.Conn.Write(p)
	}
	r.out = append(r.out, p...)
	if r.shaking {
		return len(p), nil
	}
	return len(p), r.flush()
}

// flush sends what waits.
func (r *recordConn) flush() error {
	if len(r.out) > 0 {
		_, r.failed = r.Conn.Write(r.out)
		r.out = nil
	}
	return r.failed
}

// count follows where records begin and end (RFC 8446, section 5.1).
func (r *recordConn) count(part []byte) {
	if r.left > 0 {
		r.left -= len(part)
		return
	}
	if r.have += copy(r.header[r.have:], part); r.have == len(r.header) {
		r.left = int(r.header[3])<<8 | int(r.header[4])
		r.have, r.most = 0, max(r.most, r.left)
	}
}

// between says whether the last record was read to its end, and nothing lies ahead.
func (r *recordConn) between() bool { return r.have+r.left+len(r.ahead) == 0 }

// letGo gives the buffer back.
func (r *recordConn) letGo() {
	if r.buf != nil {
		r.buffers.Put(r.buf)
	}
	r.buf, r.ahead = nil, nil
}
