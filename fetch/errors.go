package fetch

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

// The classes of an Error, and of Response.Cut. The list is closed; retryable
// says which are worth another attempt.
const (
	ClassURL         = "url"          // not a URL or header that can be sent
	ClassNoName      = "no_name"      // there is no such name, or it has no address
	ClassDNS         = "dns"          // the name was not resolved: a server failed or did not answer
	ClassFamily      = "family"       // the host has no address of the families that requests leave from
	ClassGuard       = "guard"        // the address is not public and not in Config.AllowNet
	ClassConnect     = "connect"      // no TCP connection in time
	ClassProxy       = "proxy"        // the proxy failed or refused, or all proxies rest
	ClassTLS         = "tls"          // the handshake failed or took too long
	ClassCertificate = "certificate"  // the server's certificate was refused
	ClassFirstByte   = "first_byte"   // no byte of an answer in time
	ClassIdle        = "idle"         // too long nothing between two reads
	ClassTimeout     = "timeout"      // the total time ran out
	ClassReset       = "reset"        // connection lost before the header was complete, or reset later
	ClassShort       = "short"        // connection closed before the end of the body
	ClassProtocol    = "protocol"     // the answer is not HTTP: header, chunk or trailer malformed
	ClassHeaderSize  = "header_size"  // header larger than Config.MaxHeader
	ClassHeaderCount = "header_count" // more headers than Config.MaxHeaderCount
	ClassBodyWire    = "body_wire"    // Cut only: body on the wire larger than allowed
	ClassBodySize    = "body_size"    // Cut only: body after inflating larger than Config.MaxBody
	ClassDecode      = "decode"       // Cut only: compressed body broken or cut short
	ClassCanceled    = "canceled"     // the caller's context ended; nothing is known about the URL
	ClassFiles       = "files"        // this process has no descriptor left for a connection
	ClassPorts       = "ports"        // this machine has no port left for a connection to that address
	ClassBind        = "bind"         // this machine lacks the addresses that the request is to leave from
	ClassResolver    = "resolver"     // no resolver answers; nothing is known about the name
)

// classes says of each class whether another attempt may succeed, and whether it
// says nothing about the site.
var classes = [...]struct {
	name  string
	retry bool
	local bool
}{
	{ClassURL, false, false}, {ClassNoName, false, false}, {ClassDNS, true, false}, {ClassFamily, false, false}, {ClassGuard, false, false}, {ClassConnect, true, false},
	{ClassProxy, true, false}, {ClassTLS, true, false}, {ClassCertificate, false, false},
	{ClassFirstByte, true, false}, {ClassIdle, true, false}, {ClassTimeout, true, false},
	{ClassReset, true, false}, {ClassShort, true, false}, {ClassProtocol, false, false},
	{ClassHeaderSize, false, false}, {ClassHeaderCount, false, false}, {ClassBodyWire, false, false},
	{ClassBodySize, false, false}, {ClassDecode, false, false}, {ClassCanceled, true, true},
	{ClassFiles, true, true}, {ClassPorts, true, true}, {ClassBind, true, true}, {ClassResolver, true, true},
}

// Classes lists all classes.
func Classes() []string {
	all := make([]string, len(classes))
	for i := range classes {
		all[i] = classes[i].name
	}
	return all
}

// Retryable says whether a failure of a class is worth another attempt. It is
// what Error.Retry of that class says.
func Retryable(class string) bool {
	for i := range classes {
		if classes[i].name == class {
			return classes[i].retry
		}
	}
	return false
}

// Local says whether a failure of a class lies on this side and says nothing about
// the site: the URL is to be tried again as if it never had been.
func Local(class string) bool {
	for i := range classes {
		if classes[i].name == class {
			return classes[i].local
		}
	}
	return false
}

// Error is why a fetch failed.
type Error struct {
	Class string // one of the Class constants
	Retry bool   // worth another attempt later
	Err   error
}

// Error is one line without control bytes, whatever the server sent.
func (e *Error) Error() string { return "fetch: " + e.Class + ": " + printable(e.Err.Error()) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail makes an Error of a class.
func fail(class string, err error) *Error {
	return &Error{Class: class, Retry: Retryable(class), Err: err}
}

// local makes an Error of a class, unless err says that the fault lies here.
func local(class string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok && Local(e.Class) {
		return fail(e.Class, err)
	}
	return fail(class, err)
}

// maxErrorText bounds the text of an error; servers choose part of it.
const maxErrorText = 300

// printable escapes what a terminal or a log should not see raw and bounds it.
func printable(s string) string {
	if len(s) > maxErrorText {
		s = s[:maxErrorText] + "..."
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			q := strconv.QuoteToASCII(s)
			return q[1 : len(q)-1]
		}
	}
	return s
}

var (
	errClosed    = errors.New("fetch: client is closed")
	errNoAnswer  = errors.New("connection closed before the first byte of an answer")
	errEarly     = errors.New("connection closed inside the header")
	errShort     = errors.New("connection closed before the end of the body")
	errFirstByte = errors.New("no byte of an answer within the first-byte timeout")
	errIdle      = errors.New("nothing came within the read timeout")
	errTotal     = errors.New("the fetch timeout ran out")
	errSwitching = errors.New("unasked switch of protocols")
	errStatus    = errors.New("status code outside 100 to 999")
)

// ended says whether the caller's context or the total time is the real reason
// of a failure, nil if neither.
func ended(ctx context.Context, total time.Time) *Error {
	if err := context.Cause(ctx); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fail(ClassTimeout, err)
		}
		return fail(ClassCanceled, err)
	}
	if !time.Now().Before(total) {
		return fail(ClassTimeout, errTotal)
	}
	return nil
}

// readFailure classes err, met while the answer was read from cn.
func readFailure(ctx context.Context, cn *conn, err error, inBody bool) *Error {
	lost := cn.err // what the connection itself met; nil: the bytes were there but wrong
	if lost == nil {
		return fail(ClassProtocol, err)
	}
	if e := ended(ctx, cn.total); e != nil {
		return e
	}
	switch {
	case errors.Is(lost, os.ErrDeadlineExceeded):
		if cn.in == 0 {
			return fail(ClassFirstByte, errFirstByte)
		}
		return fail(ClassIdle, errIdle)
	case isRenegotiation(lost):
		return &Error{Class: ClassTLS, Err: errRenegotiation} // the next try would meet the same
	case lost == errFlood:
		return fail(ClassProtocol, lost)
	case !errors.Is(lost, io.EOF) && !errors.Is(lost, io.ErrUnexpectedEOF):
		return fail(ClassReset, lost)
	case inBody:
		return fail(ClassShort, errShort)
	case cn.in == 0:
		return fail(ClassReset, errNoAnswer)
	}
	return fail(ClassReset, errEarly)
}

// stale says whether a failed exchange on a used connection may be repeated on
// a new one: not one byte came, and the connection ended rather than timed out.
func stale(cn *conn) bool {
	if !cn.used || cn.in > 0 || cn.err == nil {
		return false
	}
	return errors.Is(cn.err, io.EOF) || errors.Is(cn.err, io.ErrUnexpectedEOF) ||
		errors.Is(cn.err, syscall.ECONNRESET) || errors.Is(cn.err, syscall.EPIPE)
}
