package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"seine/fetch/trust"
)

// secure is what all TLS connections of a client share.
type secure struct {
	cfg      *tls.Config
	trust    *trust.Verifier // nil where crypto/tls verifies, or nobody does
	sessions *trust.Sessions // nil where crypto/tls verifies, for which it wants whole chains, or where none are kept

	mu     sync.Mutex
	x25519 map[string]bool // hosts that refused what the others are offered
}

// fewCurves are offered first: P-256, of which servers of TLS 1.3 have to know (RFC 8446,
// section 9.1), takes two thirds of the time of X25519. Who refuses them is offered all.
// The post-quantum exchange is not among them: what a crawler reads is public, and the
// hello fits one packet, as some old servers need.
var (
	fewCurves = []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521}
	allCurves = append([]tls.CurveID{tls.X25519}, fewCurves...)
)

// maxX25519 is how many hosts are remembered to refuse fewCurves.
const maxX25519 = 10_000

func (s *secure) needsX25519(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.x25519[host]
}

func (s *secure) rememberX25519(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.x25519) >= maxX25519 {
		clear(s.x25519)
	}
	s.x25519[host] = true
}

// newSecure makes it; its sessions take at most so many bytes.
func newSecure(cfg *Config) (*secure, error) {
	t := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		CurvePreferences:   fewCurves,
		NextProtos:         []string{"http/1.1"},
		InsecureSkipVerify: cfg.InsecureSkipVerify,
	}
	s := &secure{cfg: t, x25519: make(map[string]bool)}
	roots, err := x509.SystemCertPool()
	if cfg.CAFile != "" {
		pem, readErr := os.ReadFile(cfg.CAFile)
		if readErr != nil {
			return nil, fmt.Errorf("fetch: CA file: %w", readErr)
		}
		if err != nil {
			roots, err = x509.NewCertPool(), nil
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("fetch: CA file %s has no certificate in PEM form", cfg.CAFile)
		}
		t.RootCAs = roots
	}
	if !cfg.InsecureSkipVerify && err == nil {
		s.trust = trust.New(roots, cfg.Memory/8, time.Now)
	}
	switch {
	case cfg.NoSessionCache:
	case s.trust != nil || cfg.InsecureSkipVerify:
		s.sessions = trust.NewSessions(sessionShare(cfg.Memory))
	default:
		t.ClientSessionCache = tls.NewLRUClientSessionCache(max(1, int(sessionShare(cfg.Memory)/wholeSessionBytes)))
	}
	return s, nil
}

// legacySuites are the usual suites and those of RSA key exchange, which keep no
// secret from who learns the server's key later.
var legacySuites = func() (ids []uint16) {
	for _, s := range tls.CipherSuites() {
		ids = append(ids, s.ID)
	}
	return append(ids, tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA)
}()

var errMaybeLegacy = errors.New("a server that knows RSA key exchange only is read with --tls-legacy")

// refusedAll says whether err is how a server refuses all that it was offered.
func refusedAll(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" { // an alert, whose type is the library's own
		return strings.Contains(op.Err.Error(), "handshake failure") || strings.Contains(op.Err.Error(), "insufficient security")
	}
	return false
}

// maybeLegacy says whether err may be so.
func maybeLegacy(err error) bool {
	return refusedAll(err) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// errRenegotiation is of servers that ask for a client's certificate once they know
// the path, as old ones do (RFC 5246, 7.4.1.1).
var errRenegotiation = errors.New("the server asks for a renegotiation; one is granted with --tls-legacy")

// isRenegotiation says whether err is how the library refuses a renegotiation.
func isRenegotiation(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "local error" && strings.Contains(op.Err.Error(), "no renegotiation")
}

// errOfferMore is of a handshake that is to be made again: with more curves, or in full
// since what was known of the server stopped to count meanwhile.
var errOfferMore = errors.New("the handshake has to be made again")

// handshake speaks TLS over raw as host, which is the URL's whatever address
// or proxy raw leads to. On failure raw is closed. After errOfferMore another try offers
// more.
func (c *Client) handshake(ctx context.Context, raw net.Conn, host string, legacy bool) (nc net.Conn, rr *recordConn, err error) {
	cfg := c.secure.cfg.Clone()
	cfg.ServerName = host
	wide := c.secure.needsX25519(host)
	if wide {
		cfg.CurvePreferences = allCurves
	}
	if legacy {
		cfg.CipherSuites = legacySuites
		cfg.Renegotiation = tls.RenegotiateOnceAsClient
	}
	if c.secure.trust != nil || c.cfg.InsecureSkipVerify {
		c.secure.trust.Configure(cfg, host, c.secure.sessions, func(by trust.By) { c.m.verified[by].Inc() })
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.TLSTimeout)
	defer cancel()
	rr = &recordConn{Conn: raw, buffers: &c.records, shaking: true}
	tc := tls.Client(rr, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		raw.SetWriteDeadline(time.Now().Add(time.Second)) //nolint:errcheck // then the alert is not sent
		rr.flush()                                        //nolint:errcheck
		raw.Close()
		rr.letGo()
		if trust.Forgotten(err) {
			return nil, nil, errOfferMore
		}
		if _, refused := errors.AsType[*tls.CertificateVerificationError](err); refused {
			return nil, nil, fail(ClassCertificate, err)
		}
		if !wide && refusedAll(err) {
			c.secure.rememberX25519(host)
			return nil, nil, errOfferMore
		}
		if !legacy && maybeLegacy(err) {
			err = fmt.Errorf("%w; %w", err, errMaybeLegacy)
		}
		return nil, nil, fail(ClassTLS, err)
	}
	rr.shaking = false
	state := tc.ConnectionState()
	if state.DidResume {
		c.m.resumed.Inc()
	} else {
		c.m.handshakes.Inc()
		for i, cert := range state.PeerCertificates {
			rr.chain += 3 * len(cert.Raw)
			if i == 0 { // the others are most often those of other connections too
				rr.chain += 8 * len(cert.Raw)
			}
		}
	}
	if c.cfg.InsecureSkipVerify {
		c.m.unverified.Inc()
	}
	return tc, rr, nil
}
