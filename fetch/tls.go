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
	"syscall"
	"time"

	"seine/fetch/trust"
)

// newTLSConfig makes what all TLS connections of a client share, the session cache
// above all, and what verifies chains in place of crypto/tls: nil where nothing does
// so, or nobody verifies.
func newTLSConfig(cfg *Config) (*tls.Config, *trust.Verifier, error) {
	t := &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Without the post-quantum exchange: what a crawler reads is public,
		// a fresh connection costs a third less CPU (BenchmarkFreshTLS), and
		// the hello fits one packet, as some old servers need.
		CurvePreferences:   []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521},
		NextProtos:         []string{"http/1.1"},
		InsecureSkipVerify: cfg.InsecureSkipVerify,
	}
	if !cfg.NoSessionCache {
		t.ClientSessionCache = tls.NewLRUClientSessionCache(cfg.SessionCache)
	}
	roots, err := x509.SystemCertPool()
	if cfg.CAFile != "" {
		pem, readErr := os.ReadFile(cfg.CAFile)
		if readErr != nil {
			return nil, nil, fmt.Errorf("fetch: CA file: %w", readErr)
		}
		if err != nil {
			roots, err = x509.NewCertPool(), nil
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, nil, fmt.Errorf("fetch: CA file %s holds no certificate in PEM form", cfg.CAFile)
		}
		t.RootCAs = roots
	}
	if cfg.InsecureSkipVerify || err != nil {
		return t, nil, nil
	}
	return t, trust.New(roots, cfg.Memory/16, time.Now), nil
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

// maybeLegacy says whether err is how a server refuses all that it was offered.
func maybeLegacy(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" { // an alert, whose type is the library's own
		return strings.Contains(op.Err.Error(), "handshake failure") || strings.Contains(op.Err.Error(), "insufficient security")
	}
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// errRenegotiation is of servers that ask for a client's certificate once they know
// the path, as old ones do (RFC 5246, 7.4.1.1).
var errRenegotiation = errors.New("the server asks for a renegotiation; one is granted with --tls-legacy")

// isRenegotiation says whether err is how the library refuses a renegotiation.
func isRenegotiation(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "local error" && strings.Contains(op.Err.Error(), "no renegotiation")
}

// handshake speaks TLS over raw as host, which is the URL's whatever address
// or proxy raw leads to. On failure raw is closed.
func (c *Client) handshake(ctx context.Context, raw net.Conn, host string, legacy bool) (net.Conn, error) {
	cfg := c.tls.Clone()
	cfg.ServerName = host
	if c.trust != nil {
		c.trust.Configure(cfg, host, func(by trust.By) { c.m.verified[by].Inc() })
	}
	if legacy {
		cfg.CipherSuites = legacySuites
		cfg.Renegotiation = tls.RenegotiateOnceAsClient
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.TLSTimeout)
	defer cancel()
	tc := tls.Client(raw, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		raw.Close()
		if _, refused := errors.AsType[*tls.CertificateVerificationError](err); refused {
			return nil, fail(ClassCertificate, err)
		}
		if !legacy && maybeLegacy(err) {
			err = fmt.Errorf("%w; %w", err, errMaybeLegacy)
		}
		return nil, fail(ClassTLS, err)
	}
	if tc.ConnectionState().DidResume {
		c.m.resumed.Inc()
	} else {
		c.m.handshakes.Inc()
	}
	if c.cfg.InsecureSkipVerify {
		c.m.unverified.Inc()
	}
	return tc, nil
}
