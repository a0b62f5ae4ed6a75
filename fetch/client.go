package fetch

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Client fetches URLs. It is safe for any number of goroutines; each brings
// its own Response and Handler.
type Client struct {
	cfg       Config
	types     *Types
	m         *meters
	secure    *secure
	dialer    dialer
	addresses *addresses
	proxies   *proxies
	bound     *bound
	pool      *pool
	decoders  decoders
	own       [][2]string // headers of every request
	block     []byte      // the same as bytes

	exchanges sync.Pool
	readers   sync.Pool // of *bufio.Reader, readBuffer each
	wide      sync.Pool // of *bufio.Reader, wideBuffer each
	records   sync.Pool // of *[]byte, recordBuffer each
	closing   sync.Once
	stop      chan struct{}
	done      chan struct{}
}

var _ Doer = (*Client)(nil)

// New makes a client; Close ends it.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	c := &Client{cfg: cfg, m: newMeters(cfg.Metrics, len(cfg.Proxies), cfg.Bind), stop: make(chan struct{}), done: make(chan struct{})}
	var err error
	if c.types, err = NewTypes(cfg.AcceptTypes); err != nil {
		return nil, err
	}
	if c.secure, err = newSecure(&cfg); err != nil {
		return nil, err
	}
	if c.proxies, err = newProxies(&cfg); err != nil {
		return nil, err
	}
	nm, err := newNames(&cfg, c.m)
	if err != nil {
		return nil, err
	}
	if c.bound, err = newBound(&cfg); err != nil {
		return nil, err
	}
	c.addresses = newAddresses(cfg.PerAddress)
	c.pool = newPool(cfg.MaxConnsPerHost, cfg.MaxConns, cfg.MaxIdle, c.idleRoom)
	c.dialer = dialer{net: net.Dialer{KeepAlive: -1}, guard: guard{cfg.AllowNet}, names: nm, pool: c.pool, m: c.m}
	for _, raw := range cfg.ConnectTo {
		rule, err := parseConnectTo(raw)
		if err != nil {
			return nil, err
		}
		c.dialer.rules = append(c.dialer.rules, rule)
	}
	c.own = [][2]string{{"User-Agent", cfg.UserAgent}, {"Accept", cfg.Accept}, {"Accept-Encoding", acceptEncoding}}
	if cfg.From != "" {
		c.own = append(c.own, [2]string{"From", cfg.From})
	}
	for _, kv := range c.own {
		c.block = appendLine(c.block, kv[0], kv[1])
	}
	c.exchanges.New = func() any {
		x := &exchange{c: c}
		x.widen, x.wentOut = x.takeWideBuffer, x.isOut
		return x
	}
	c.readers.New = func() any { return bufio.NewReaderSize(nil, readBuffer) }
	c.records.New = func() any { b := make([]byte, recordBuffer); return &b }
	c.wide.New = func() any { return bufio.NewReaderSize(nil, wideBuffer) }
	cfg.Metrics.GetOrCreateGauge(`seine_fetch_idle_connections`, func() float64 { _, n := c.pool.counts(); return float64(n) })
	cfg.Metrics.GetOrCreateGauge(`seine_fetch_open_connections`, func() float64 { n, _ := c.pool.openOf(); return float64(n) })
	cfg.Metrics.GetOrCreateGauge(`seine_fetch_connections_limit`, func() float64 { _, n := c.pool.openOf(); return float64(n) })
	cfg.Metrics.GetOrCreateGauge(`seine_fetch_crowded_hosts`, func() float64 { n, _ := c.addresses.crowded(); return float64(n) })
	cfg.Metrics.GetOrCreateGauge(`seine_fetch_hosts`, func() float64 { n, _ := c.pool.counts(); return float64(n) })
	go c.janitor()
	return c, nil
}

// Close closes idle connections and ends what the client does on its own. Call
// it after the last Do returned. A second call does nothing.
func (c *Client) Close() error {
	c.closing.Do(func() {
		close(c.stop)
		<-c.done
		c.dialer.names.close()
		c.pool.close()
	})
	return nil
}

// idleRoom is how much memory idle connections may take now.
func (c *Client) idleRoom() int64 {
	room := idleShare(c.cfg.Memory)
	if c.secure.sessions == nil {
		return room - sessionShare(c.cfg.Memory)
	}
	return room - c.secure.sessions.Bytes()
}

// keepAlive is how long a connection may be idle after an answer.
func (c *Client) keepAlive(h *header) time.Duration {
	if h != nil {
		if timeout, ok := keepAliveTimeout(string(h.value("Keep-Alive"))); ok {
			return min(timeout, cmp.Or(c.cfg.KeepAlive, maxKeepAlive))
		}
	}
	return cmp.Or(c.cfg.KeepAlive, defaultKeepAlive)
}

// keepAliveTimeout is when a server says that it closes an idle connection, as in
// "timeout=5, max=100" (RFC 2068, section 19.7.1.1).
func keepAliveTimeout(v string) (time.Duration, bool) {
	for v != "" {
		var param string
		param, v, _ = strings.Cut(v, ",")
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if n, err := strconv.ParseUint(strings.Trim(value, ` "`), 10, 31); err == nil && strings.EqualFold(strings.TrimSpace(name), "timeout") {
			return time.Duration(n) * time.Second, true
		}
	}
	return 0, false
}

// janitor closes connections that are idle for too long, and lets more be open
// again after the system refused one.
func (c *Client) janitor() {
	defer close(c.done)
	tick := time.NewTicker(max(c.keepAlive(nil)/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case now := <-tick.C:
			c.pool.expire(now)
			c.pool.recover()
		}
	}
}

// Do fetches req once into resp and h. It returns nil when an answer came,
// whatever its status; a body cut at a limit or broken inside its encoding is
// in resp.Truncated and resp.Cut. Otherwise the error is an *Error, or
// what h.Write returned. If the transport fails inside the body, h has seen
// what came before and resp is filled in beside the error.
//
// When ctx ends Do returns at once and closes the connection. A Do under way
// holds no buffer until the answer begins (over TLS that of its connection), then
// 16 KiB (up to twice Config.MaxHeader where a header needs it), 64 KiB more while a
// body comes so fast that it fills them, over TLS 32 KiB, and, while one is decoded, its decoders:
// 112 KiB for gzip and deflate, up to 8 MiB for zstd and 16 MiB for br. In the usual case (a
// kept connection, a type already seen, the context of the request before) it
// allocates nothing.
func (c *Client) Do(ctx context.Context, req *Request, resp *Response, h Handler) error {
	*resp = Response{Header: resp.Header}
	headerOf(resp).clear()
	x := c.exchanges.Get().(*exchange)
	err := x.run(ctx, req, resp, h)
	x.release()
	c.exchanges.Put(x)
	c.m.bodyBytes.AddInt64(resp.Bytes)
	c.m.wireBytes.AddInt64(resp.WireBytes)
	if e, ok := errors.AsType[*Error](err); ok {
		c.m.failures[e.Class].Inc()
	}
	return err
}
