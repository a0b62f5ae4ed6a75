package fetch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"seine/fetch/egress"
	"seine/fetch/sign"
)

// exchange is the working memory of one Do, pooled by the client: buffers and
// the decoders of its body. Nothing in it outlives the Do.
type exchange struct {
	c       *Client
	t       target
	px      *proxy
	out     []byte // the request
	head    int    // of out: what each attempt begins with
	payload []byte // Request.Body
	signed  bool   // each attempt has a signature of its own
	offers  bool   // it would have one if its site had asked
	cn      *conn
	in      *bufio.Reader        // over cn: small, wide, or larger than small where a header needs it
	small   *bufio.Reader        // of readBuffer; one of the client's, while an answer comes
	wide    *bufio.Reader        // of wideBuffer, likewise; nil until a body fills what it is read with
	widen   func() *bufio.Reader // takeWideBuffer, made once
	sniffed sniffed              // the body, where its start says of what type it is
	framed  framed
	wire    wire
	stages  []*stage
	max     int64       // bytes of a decoded body
	raw     bool        // Request.Raw
	legacy  bool        // Request.TLSLegacy, or Config's
	isHead  bool        // the answer has no body whatever its head says
	sent    func()      // Request.Sent
	start   *time.Time  // Response.Start
	wentOut func()      // isOut, made once
	addr    netip.Addr  // Request.Addr
	from    egress.Pair // where it leaves from
	byRule  bool        // by Request.Bind
	tap     *Wire       // Request.Wire
}

const (
	maxPoolOut = 8 << 10  // a larger request buffer is let go
	maxDrain   = 32 << 10 // an unwanted rest is read up to here to keep the connection
)

// release lets go of everything that belonged to one fetch.
func (x *exchange) release() {
	x.t, x.px, x.payload, x.framed, x.wire, x.sent, x.start, x.tap = target{}, nil, nil, framed{}, wire{}, nil, nil, nil
	x.letGoOfBuffers()
	if cap(x.out) > maxPoolOut {
		x.out = nil
	}
}

// takeBuffer readies a buffer for an answer on cn.
func (x *exchange) takeBuffer(cn *conn) {
	if x.small == nil {
		x.small = x.c.readers.Get().(*bufio.Reader)
	}
	x.cn, x.in = cn, x.small
	x.in.Reset(cn)
}

// takeWideBuffer has the rest of a body read in larger pieces. Nothing may be left
// in the buffer before.
func (x *exchange) takeWideBuffer() *bufio.Reader {
	x.wide = x.c.wide.Get().(*bufio.Reader)
	x.wide.Reset(x.cn)
	x.in = x.wide
	return x.in
}

func (x *exchange) letGoOfBuffers() {
	if x.small != nil {
		x.small.Reset(nil)
		x.c.readers.Put(x.small)
	}
	if x.wide != nil {
		x.wide.Reset(nil)
		x.c.wide.Put(x.wide)
	}
	x.cn, x.in, x.small, x.wide = nil, nil, nil, nil
}

// run is one Do: a connection, the exchange on it, and once more on a new one
// if a kept one proved closed.
func (x *exchange) run(ctx context.Context, req *Request, resp *Response, h Handler) error {
	c := x.c
	timeout := req.Timeout
	if timeout <= 0 {
		timeout = c.cfg.FetchTimeout
	}
	total := time.Now().Add(timeout)
	if ctx.Err() != nil {
		return ended(ctx, total)
	}
	if err := x.prepare(req); err != nil {
		return err
	}
	k := key{host: x.t.host, port: x.t.port, tls: x.t.tls, via: -1}
	if x.px != nil {
		k.via = x.px.index
	}
	host, cn, err := c.pool.getConn(ctx, k, &x.from, total)
	if err != nil {
		return err
	}
	x.t.host = host.key.host // caches below keep it; the URL is the caller's
	for retried := false; ; retried = true {
		if cn == nil {
			if cn, err = x.connect(ctx, total); err != nil {
				c.pool.putConn(host, nil)
				return err
			}
		} else {
			c.m.reused.Inc()
		}
		reuse, err := x.roundTrip(ctx, cn, total, resp, h)
		if err != nil && !retried && stale(cn) && ctx.Err() == nil {
			c.m.stale.Inc()
			cn.close()
			cn = nil
			x.letGoOfBuffers()
			continue
		}
		now := time.Now()
		resp.Took = now.Sub(resp.Start)
		if !reuse {
			cn.close()
			cn = nil
		} else {
			cn.used, cn.until = true, now.Add(c.keepAlive(headerOf(resp)))
		}
		c.pool.putConn(host, cn)
		return err
	}
}

// prepare takes the URL apart, picks the proxy and writes the request but for its end.
func (x *exchange) prepare(req *Request) error {
	x.sent, x.tap, x.raw, x.max, x.addr, x.isHead = req.Sent, req.Wire, req.Raw, x.c.cfg.MaxBody, req.Addr, req.Method == "HEAD"
	x.legacy = req.TLSLegacy || x.c.cfg.TLSLegacy
	if req.MaxBody > 0 {
		x.max = req.MaxBody
	}
	if err := x.t.parse(req.URL); err != nil {
		return fail(ClassURL, err)
	}
	var err error
	if x.px, err = x.c.proxies.pick(&x.t); err != nil {
		return err
	}
	var fault *Error
	if x.from, fault = x.c.leaveFrom(&x.t, req.Bind); fault != nil {
		return fault
	}
	x.byRule = req.Bind != ""
	if x.out, err = x.c.appendRequest(x.out[:0], &x.t, req, x.px); err != nil {
		return fail(ClassURL, err)
	}
	x.head, x.payload = len(x.out), req.Body
	maySign := x.c.cfg.Signer != nil && !req.Unsigned && !slices.ContainsFunc(req.Header, ownSignature)
	x.signed = maySign && (req.Sign || !x.c.cfg.SignAsked)
	x.offers = maySign && !x.signed
	return nil
}

// seal ends the request of one attempt: with a signature of its own, where it has one.
func (x *exchange) seal() {
	x.out = x.out[:x.head]
	if x.signed {
		x.out = x.c.cfg.Signer.AppendFields(x.out, x.t.auth, time.Now())
		x.c.m.signed.Inc()
	}
	x.out = append(append(x.out, "\r\n"...), x.payload...)
}

// connect makes a connection to the target.
func (x *exchange) connect(ctx context.Context, total time.Time) (*conn, error) {
	whole, cancelWhole := context.WithDeadline(ctx, total)
	defer cancelWhole()
	cn, err := x.open(whole)
	if err != nil {
		if e := ended(ctx, total); e != nil {
			e.Err = errors.Join(e.Err, err)
			return nil, e
		}
		return nil, err
	}
	return cn, nil
}

// open takes room for a connection and makes it; the room stays taken if it did.
func (x *exchange) open(ctx context.Context) (*conn, error) {
	c := x.c
	if err := c.pool.claim(ctx, c.cfg.ConnectTimeout); err != nil {
		return nil, err
	}
	short, cancel := context.WithTimeout(ctx, c.cfg.ConnectTimeout)
	defer cancel()
	var nc, raw net.Conn
	var rr *recordConn
	var err error
	for range 3 { // where a session is not known any more, and where more has to be offered
		nc, raw, err = x.dial(short)
		if err == nil && x.t.tls {
			nc, rr, err = c.handshake(ctx, nc, x.t.host, x.legacy)
		}
		if err != errOfferMore {
			break
		}
	}
	if err == errOfferMore {
		err = fail(ClassTLS, err)
	}
	if err != nil {
		c.pool.unclaim(false)
		return nil, err
	}
	cn := newConn(nc, raw, rr, c.pool)
	if x.from.IsBound() {
		cn.bound = x.countBound(raw)
	}
	return cn, nil
}

// roundTrip sends the request on cn and hands the answer to h. reuse says
// whether cn stands at the start of a next answer.
func (x *exchange) roundTrip(ctx context.Context, cn *conn, total time.Time, resp *Response, h Handler) (reuse bool, err error) {
	c := x.c
	cn.watch(ctx)
	defer func() { reuse = cn.rest() && reuse }() // aborted: closed, or about to be
	c.m.requests.Inc()
	if a, ok := cn.raw.RemoteAddr().(*net.TCPAddr); ok && x.px == nil {
		resp.Addr = a.AddrPort().Addr().Unmap()
	}
	x.seal()
	whole := false // the body was read to its end
	resp.Start = time.Now()
	x.start = &resp.Start
	err = cn.begin(resp.Start, total, c.cfg.FirstByteTimeout, c.cfg.ReadTimeout, maxIn(x.max, c.cfg.MaxHeader))
	if err == nil {
		if x.tap != nil {
			x.tap.begin(cn, x.out, x.px != nil)
			defer func() { x.tap.Chunked = x.framed.chunks; x.tap.end(cn, x.in, whole) }()
		}
		err = cn.ask(x.out, x.wentOut)
	}
	if err != nil {
		return false, readFailure(ctx, cn, err, false)
	}
	x.takeBuffer(cn)
	hd := headerOf(resp)
	fr, err := x.readHead(cn, hd)
	if cn.in > 0 {
		resp.FirstByte = cn.first.Sub(resp.Start)
	}
	if err != nil {
		if e, ok := err.(*Error); ok {
			return false, e
		}
		return false, readFailure(ctx, cn, err, false)
	}
	if err := x.acceptHead(hd, resp); err != nil {
		return false, err
	}
	if x.tap != nil {
		x.tap.head(x.in)
	}
	if x.isHead {
		fr.kind, fr.codings = noBody, ""
	}
	x.framed = framed{
		in: x.in, full: cn.in >= int64(x.in.Size()), widen: x.widen,
		kind: fr.kind, left: fr.left, room: c.cfg.MaxHeader, lenient: fr.lenient,
	}
	reuse, err = x.body(ctx, cn, hd, &fr, resp, h)
	if x.framed.lenient != 0 {
		c.m.countLenient(x.framed.lenient)
	}
	if err != nil {
		return false, err
	}
	whole = reuse
	return reuse && cn.err == nil && !fr.last && x.framed.lenient == 0 && x.in.Buffered() == 0 && cn.drained(), nil
}

// isOut is called when the request has been written.
func (x *exchange) isOut() {
	*x.start = time.Now() // a wait before it was out brings the next request no closer
	if x.sent != nil {
		x.sent()
	}
}

// readHead reads the header. Most fit the small buffer; one that does not gets
// twice as much, up to the size that is allowed.
func (x *exchange) readHead(cn *conn, h *header) (framing, error) {
	limit := x.c.cfg.MaxHeader
	before := lenient(0) // of interim answers
	for {
		fr, err := readHead(x.in, h, limit)
		fr.lenient |= before
		full := x.in.Buffered() == x.in.Size()
		if e, ok := err.(*Error); !ok || e.Class != ClassHeaderSize || !full || x.in.Size() >= limit {
			return fr, err
		}
		before = fr.lenient
		start, _ := x.in.Peek(x.in.Buffered())
		x.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(start), cn), min(2*x.in.Size(), limit))
		x.in.Peek(len(start)) //nolint:errcheck // from now on the buffer of before is not read
	}
}

// acceptHead takes what matters from the header and refuses what is no answer.
func (x *exchange) acceptHead(hd *header, resp *Response) error {
	resp.Status, resp.Protocol = hd.status, "http/1.1"
	if hd.old {
		resp.Protocol = "http/1.0"
	}
	switch {
	case resp.Status < 200:
		return fail(ClassProtocol, errSwitching)
	case len(hd.fields) > x.c.cfg.MaxHeaderCount:
		return fail(ClassHeaderCount, errHeaderCount)
	}
	if t := hd.value("Content-Type"); string(t) != hd.sent { // mostly the same as in the last answer
		hd.sent = string(t)
		hd.read = ReadType(hd.sent)
	}
	resp.ContentType, resp.Type = hd.sent, hd.read
	resp.WantsSign = x.offers && sign.Asks(hd.Values("Accept-Signature"))
	if resp.Status/100 == 3 {
		var err error
		if resp.Location, err = hd.location(); err != nil {
			return fail(ClassProtocol, err)
		}
	}
	if x.px == nil {
		return nil
	}
	if resp.Status == 407 && x.px.forwards(&x.t) {
		x.px.failed(x.c.m)
		return fail(ClassProxy, errProxyAuth)
	}
	x.px.answered(x.c.m)
	return nil
}

var (
	errHeaderSize  = errors.New("header larger than allowed")
	errHeaderCount = errors.New("more header lines than allowed")
	errProxyAuth   = errors.New("the proxy wants other credentials (status 407)")
)

// body offers the answer to h and, if wanted, streams the body to it.
func (x *exchange) body(ctx context.Context, cn *conn, hd *header, fr *framing, resp *Response, h Handler) (reuse bool, err error) {
	if fr.kind == noBody {
		h.Begin(resp)
		return true, nil
	}
	x.wire = wire{r: &x.framed, max: x.max}
	var src piecewise = &x.wire
	enc := fr.codings // transfer codings lie around those of the content
	if content := hd.value("Content-Encoding"); len(content) > 0 && !x.raw {
		enc = joined(string(content), enc)
	}
	if enc != "" {
		defer x.closeStages()
		x.stages, src, err = x.c.decoders.open(x.stages[:0], enc, src, maxWire(x.max))
		if err != nil {
			return false, fail(ClassProtocol, err)
		}
		if len(x.stages) > 0 {
			x.wire.max = maxWire(x.max)
		}
	}
	if resp.Type == "" {
		start := x.sniffed.look(src)
		defer x.sniffed.letGo()
		if src = &x.sniffed; len(start) > 0 {
			resp.Sniffed = Sniff(start)
			resp.Type = withCharset(resp.Sniffed, resp.ContentType)
		}
	}
	if !h.Begin(resp) {
		return (fr.kind == inChunks || fr.left <= maxDrain && fr.kind == byLength) && x.wire.drain(maxDrain), nil
	}
	resp.Bytes, err = deliver(h, src, x.max)
	resp.WireBytes = x.wire.n
	return x.finish(ctx, cn, fr, resp, err)
}

// finish judges how a body ended.
func (x *exchange) finish(ctx context.Context, cn *conn, fr *framing, resp *Response, err error) (reuse bool, _ error) {
	if err == nil {
		return x.wire.drain(maxDrain), nil
	}
	if theirs, ok := err.(*handlerError); ok {
		return false, theirs.error
	}
	resp.Truncated = true
	switch {
	case x.wire.err == errWireLimit:
		resp.Cut = ClassBodyWire
	case err == errBodyLimit, swollen(x.stages):
		resp.Cut = ClassBodySize
	case x.wire.err != nil && x.wire.err != io.EOF:
		e := readFailure(ctx, cn, x.wire.err, true)
		resp.Cut = e.Class
		return false, e
	case fr.codings != "" && x.stages[0].err != nil && x.stages[0].err != io.EOF:
		resp.Cut = ClassProtocol
		return false, fail(ClassProtocol, fmt.Errorf("Transfer-Encoding %q does not decode: %w", fr.codings, err))
	default:
		resp.Cut = ClassDecode
	}
	x.c.m.cuts[resp.Cut].Inc()
	return false, nil
}

func (x *exchange) closeStages() {
	for i, s := range x.stages {
		x.c.decoders.putStage(s)
		x.stages[i] = nil
	}
	x.stages = x.stages[:0]
}
