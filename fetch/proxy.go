package fetch

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/http/httpproxy"
	socks "golang.org/x/net/proxy"

	"seine/fetch/egress"
	"seine/frontier/canon"
)

// proxies spreads sites over the configured proxies: each site has its own
// order of them (rendezvous hashing) and stays with the first that does not
// rest.
type proxies struct {
	all    []*proxy
	direct func(*url.URL) (*url.URL, error) // answers nil for hosts of NoProxy
}

// proxy is one configured proxy and how it fares.
type proxy struct {
	index int16
	socks bool
	host  string
	port  uint16
	basic string      // value of Proxy-Authorization, "" without credentials
	auth  *socks.Auth // the same for SOCKS5 (RFC 1929)

	mu       sync.Mutex
	failures int
	until    time.Time // rests until
	worked   time.Time // when it last showed that it works
}

var (
	errAllRest   = errors.New("all proxies rest after failures")
	errProxySlow = errors.New("the proxy, which serves others, did not reach the host in time")
)

func newProxies(cfg *Config) (*proxies, error) {
	if len(cfg.Proxies) == 0 {
		return nil, nil
	}
	ps := &proxies{direct: (&httpproxy.Config{
		HTTPProxy: "http://proxy", HTTPSProxy: "http://proxy", NoProxy: cfg.NoProxy,
	}).ProxyFunc()}
	for i, raw := range cfg.Proxies {
		u, err := parseProxy(raw)
		if err != nil {
			return nil, fmt.Errorf("fetch: proxy %d: %w", i+1, err)
		}
		p := &proxy{index: int16(i), socks: u.Scheme != "http", host: u.Hostname(), port: 80}
		if p.socks {
			p.port = 1080
		}
		if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
			p.port = uint16(n)
		}
		if u.User != nil {
			pass, _ := u.User.Password()
			p.auth = &socks.Auth{User: u.User.Username(), Password: pass}
			p.basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(p.auth.User+":"+pass))
		}
		ps.all = append(ps.all, p)
	}
	return ps, nil
}

// pick names the proxy for a target, nil for none.
func (ps *proxies) pick(t *target) (*proxy, error) {
	if ps == nil {
		return nil, nil
	}
	u := url.URL{Scheme: "http", Host: t.auth}
	if via, err := ps.direct(&u); err == nil && via == nil {
		return nil, nil
	}
	site := xxhash.Sum64String(canon.ByDomain.SiteOf(t.host))
	now := time.Now()
	var best *proxy
	var weight uint64
	for _, p := range ps.all {
		w := mix(site + uint64(p.index)*0x9e3779b97f4a7c15)
		if (best == nil || w > weight) && !p.resting(now) {
			best, weight = p, w
		}
	}
	if best == nil {
		return nil, fail(ClassProxy, errAllRest)
	}
	return best, nil
}

// mix is the finisher of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// forwards says whether requests for t are sent to the proxy in absolute form
// rather than through a tunnel.
func (p *proxy) forwards(t *target) bool { return !p.socks && !t.tls }

func (p *proxy) resting(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Before(p.until)
}

// proxyRest is how long a proxy rests after its first failure.
const proxyRest = 30 * time.Second

// failed lets the proxy rest, twice as long each time up to 16 times.
func (p *proxy) failed(m *meters) {
	m.proxyDown[p.index].Inc()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(proxyRest << min(p.failures, 4))
	p.failures++
}

func (p *proxy) answered(m *meters) {
	m.proxyAnswered[p.index].Inc()
	p.mu.Lock()
	p.failures, p.until, p.worked = 0, time.Time{}, time.Now()
	p.mu.Unlock()
}

// verdict classes why a tunnel that was begun at began failed. A proxy is to
// blame unless the caller gave up, the proxy says that it is the target, or it
// served others while the target kept it waiting until the connect timeout.
func (p *proxy) verdict(ctx context.Context, m *meters, began time.Time, err error) *Error {
	if ctx.Err() == context.Canceled {
		return fail(ClassCanceled, ctx.Err())
	}
	if e := local(ClassProxy, err); Local(e.Class) {
		return e
	}
	_, theirs := err.(*targetError)
	p.mu.Lock()
	if theirs {
		p.worked = time.Now()
	}
	works := !p.worked.Before(began)
	p.mu.Unlock()
	if theirs {
		return fail(ClassConnect, err)
	}
	slow := ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) // SOCKS hands the deadline on
	if slow && works {
		return fail(ClassConnect, errProxySlow)
	}
	p.failed(m)
	return fail(ClassProxy, err)
}

// tunnel returns a connection through the proxy: to the proxy itself when it
// forwards, else to the target. The proxy's own address is exempt from the
// guard; names are resolved by the proxy, so only literal targets are judged.
func (p *proxy) tunnel(ctx context.Context, d *dialer, t *target) (nc, raw net.Conn, err error) {
	host, port := d.route(t.host, t.port)
	if err := d.guardLiteral(host); err != nil {
		return nil, nil, fail(ClassGuard, err)
	}
	began := time.Now()
	raw, err = d.open(ctx, p.host, p.port)
	if err != nil {
		return nil, nil, p.verdict(ctx, d.m, began, err)
	}
	if p.forwards(t) {
		return raw, raw, nil
	}
	cut := raw // the result changes under a function that outlives us
	stop := context.AfterFunc(ctx, func() { cut.Close() })
	addr := net.JoinHostPort(host, strconv.Itoa(int(port)))
	if p.socks {
		nc, err = p.socksTo(ctx, raw, addr)
	} else {
		nc, err = raw, p.connectTo(raw, addr)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		return nc, raw, nil
	}
	raw.Close()
	return nil, nil, p.verdict(ctx, d.m, began, err)
}

// targetError is a proxy's word that it works but the target does not.
type targetError struct{ error }

// connectTo asks an HTTP proxy for a tunnel (RFC 9110, section 9.3.6).
func (p *proxy) connectTo(raw net.Conn, addr string) error {
	req := "CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n"
	if p.basic != "" {
		req += "Proxy-Authorization: " + p.basic + "\r\n"
	}
	if _, err := raw.Write([]byte(req + "\r\n")); err != nil {
		return err
	}
	br := bufio.NewReader(raw)
	var h header
	if _, err := readHead(br, &h, br.Size()); err != nil {
		return errors.New("proxy's answer to CONNECT: " + printable(err.Error()))
	}
	switch code := h.status; {
	case code/100 == 2 && br.Buffered() == 0:
		return nil
	case code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout:
		return &targetError{fmt.Errorf("proxy cannot reach the host, status %d", code)}
	default:
		return fmt.Errorf("proxy refused CONNECT with status %d", code)
	}
}

// socksTo asks a SOCKS5 proxy for a connection (RFC 1928), names unresolved.
func (p *proxy) socksTo(ctx context.Context, raw net.Conn, addr string) (net.Conn, error) {
	sd, err := socks.SOCKS5("tcp", "proxy", p.auth, already{raw})
	if err != nil {
		return nil, err
	}
	nc, err := sd.(socks.ContextDialer).DialContext(ctx, "tcp", addr)
	if err != nil && strings.Contains(err.Error(), "unknown error") { // the library's words for a reply code
		return nil, &targetError{err}
	}
	return nc, err
}

// already is a dialer that has dialled.
type already struct{ net.Conn }

func (a already) Dial(string, string) (net.Conn, error) { return a.Conn, nil }
func (a already) DialContext(context.Context, string, string) (net.Conn, error) {
	return a.Conn, nil
}

// guardLiteral judges what can be judged of a host that a proxy will resolve.
func (d *dialer) guardLiteral(host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		return d.guard.check(a)
	}
	if isLocalhost(host) {
		return d.guard.check(netip.IPv6Loopback())
	}
	return nil
}

// open connects without the guard, for proxies only.
func (d *dialer) open(ctx context.Context, host string, port uint16) (net.Conn, error) {
	addrs, fault := d.resolve(ctx, host, nil)
	if fault != nil {
		return nil, fault
	}
	all := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		all[i] = netip.AddrPortFrom(a.Unmap(), port)
	}
	d.families.putBetterFirst(all, time.Now())
	return d.race(ctx, all, &egress.Pair{})
}
