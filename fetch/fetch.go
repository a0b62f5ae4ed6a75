// Package fetch turns one URL into one bounded response.
//
// A Client takes a Request (a URL in fetch form and the headers of its site),
// asks for it once and hands the answer to a Handler while it arrives: first
// the header, then the decoded body in chunks. It follows no redirect and
// judges no status; what to do next is the caller's business.
//
// One exchange walks through these hands:
//
//	target    splits the URL; the bytes of its path go on the wire as written
//	pool      has an idle connection to the same host, or none
//	egress    the address of this machine that a connection leaves from
//	dialer    connect-to rules, names, guard, TCP to IPv6 or IPv4 (race), proxy, TLS
//	conn      a connection with its deadlines: first byte, idle, total
//	exchange  writes the request, reads the answer
//	head      reads the header, leniently where it has to, and frames the body
//	body      counts, decodes and cuts what comes, and feeds the Handler
//
// Before that, Prepare resolves the name and says when its address may be asked,
// for a caller that has thousands of hosts to ask and fewer workers. What this machine
// lacks (descriptors, ports, resolvers) is never a site's fault: see Local and
// Client.Short.
//
// Nothing a server does can hold an exchange longer than its total time or
// make it hold more memory than its buffers and the windows of its decoders.
// The guard looks at the address that is really dialled, after DNS, so no
// name, redirect or connect-to rule leads to a private network unless
// Config.AllowNet names it. A request whose kept-alive connection turns out to
// be closed before a byte of the answer came is sent once more on a new one, whatever its method;
// every other fault ends the attempt with an Error that names its class.
//
// Pooled memory (buffers, decoders) never leaves the package: strings handed
// out are copies, and body bytes are the Handler's for the call only.
package fetch

import (
	"context"
	"net/netip"
	"time"
)

// Request asks for one URL. Its memory may be reused after Do returned.
type Request struct {
	Method    string        // default GET; not CONNECT
	Body      []byte        // sent with its length
	URL       string        // fetch form; userinfo becomes basic auth and is not sent in the target
	Header    [][2]string   // extra headers of this site; they replace the client's own of the same name
	Timeout   time.Duration // total, 0 = Config.FetchTimeout
	Wire      *Wire         // receives the exchange as it was on the wire, or nil
	MaxBody   int64         // bytes of the decoded body, 0 = Config.MaxBody
	Raw       bool          // the body comes as it was sent, its Content-Encoding not undone; see Decode
	TLSLegacy bool          // RSA key exchange is offered too, as old servers need
	Bind      string        // addresses and networks that it leaves from, with commas; "" = those of Config.Bind
	Sign      bool          // its site asked for signatures; only Config.SignAsked looks at it
	Unsigned  bool          // it gets no signature, whatever the Config says
	Addr      netip.Addr    // of the host, to be tried first, as Prepare chose it; zero for none
	Sent      func()        // called each time the request has been written, or nil
}

// Response describes what came back. Strings are its own; Header answers until
// the next Do into it. After an Error it holds what was known by then.
type Response struct {
	Status      int
	ContentType string // as sent, several joined by a comma, "" when missing
	Type        string // what to read the body as: ContentType where that is one type, the type that the MIME Sniffing standard makes of it, or Sniffed; with the charset declared
	Sniffed     string // media type guessed from the first bytes where ContentType names none
	Location    string // of a 3xx, as sent, bytes that are no UTF-8 escaped
	Header      Header
	Addr        netip.Addr    // that answered; zero behind a proxy
	Protocol    string        // of the answer: "http/1.1", "http/1.0"
	Bytes       int64         // decoded body handed to the Handler
	WireBytes   int64         // body on the wire, without chunk framing
	Truncated   bool          // the body was cut at a limit, or ended early or broken
	Cut         string        // why Truncated: one of the Class constants
	FirstByte   time.Duration // from Start
	Took        time.Duration // from Start to the end of the body
	Start       time.Time     // when the request went out (monotonic); zero if it never did
	WantsSign   bool          // it asks for signatures, and the request had none for want of Request.Sign
}

// Header looks up response headers, all values of a name in order. Names are
// matched whatever their case.
type Header interface {
	Get(name string) string
	Values(name string) []string
	// Each calls f for every header in order; the strings are copies.
	Each(f func(name, value string))
	// Field is the i-th header, in memory that stays until the next Do; past the last one
	// name is nil.
	Field(i int) (name, value []byte)
}

// Handler receives a response while it arrives.
type Handler interface {
	// Begin is called once when the header is there; false skips the body.
	// Without a Content-Type that names one it is called after the first bytes of the body
	// came, so that Response.Sniffed is known.
	Begin(*Response) bool
	// Write receives decoded body bytes; they are valid during the call only.
	// An error ends the body and is returned by Do as it is.
	Write([]byte) (int, error)
}

// Doer is what Client implements: one attempt, no redirects.
type Doer interface {
	Do(ctx context.Context, req *Request, resp *Response, h Handler) error
}
