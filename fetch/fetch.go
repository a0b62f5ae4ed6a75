// Package fetch turns one URL into one bounded response.
package fetch

import (
	"context"
	"time"
)

// Request asks for one URL. Its memory may be reused after Do returned.
type Request struct {
	URL     string        // fetch form; userinfo becomes basic auth and is not sent in the target
	Header  [][2]string   // extra headers of this site
	Timeout time.Duration // total, 0 = Config.FetchTimeout
}

// Response describes what came back. Strings are its own; Header answers until
// the next Do into it.
type Response struct {
	Status      int
	ContentType string // as sent, "" when missing
	Location    string // as sent, of a 3xx
	Header      Header
	Bytes       int64         // decoded body
	WireBytes   int64         // body on the wire
	Truncated   bool          // the body was cut at a limit, or ended early or broken
	FirstByte   time.Duration // from start
	Seconds     time.Duration // from start to end of body
	Start       time.Time     // when the request went out (monotonic)
}

// Header looks up response headers, all values of a name in order.
type Header interface {
	Get(name string) string
	Values(name string) []string
	// Each calls f for every header in order; the strings are copies.
	Each(f func(name, value string))
}

// Handler receives a response while it arrives.
type Handler interface {
	// Begin is called once when the header is there; false skips the body.
	Begin(*Response) bool
	// Write receives decoded body bytes; they are valid during the call only.
	// An error ends the body and is returned by Do.
	Write([]byte) (int, error)
}

// Doer is what Client implements: one attempt, no redirects.
type Doer interface {
	Do(ctx context.Context, req *Request, resp *Response, h Handler) error
}

// Error is why a fetch failed.
type Error struct {
	Class string // the cause, one of the README's table: dns, connect, tls, timeout, reset, header, body, guard, ...
	Retry bool   // worth another attempt later
	Err   error
}

func (e *Error) Error() string { return "fetch: " + e.Class + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }
