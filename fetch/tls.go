package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// newTLSConfig makes what all TLS connections of a client share, the session
// cache above all.
func newTLSConfig(cfg *Config) (*tls.Config, error) {
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
	if cfg.CAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("fetch: CA file: %w", err)
	}
	if t.RootCAs, err = x509.SystemCertPool(); err != nil {
		t.RootCAs = x509.NewCertPool()
	}
	if !t.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("fetch: CA file %s holds no certificate in PEM form", cfg.CAFile)
	}
	return t, nil
}

// handshake speaks TLS over raw as host, which is the URL's whatever address
// or proxy raw leads to. On failure raw is closed.
func (c *Client) handshake(ctx context.Context, raw net.Conn, host string) (net.Conn, error) {
	cfg := c.tls.Clone()
	cfg.ServerName = host
	ctx, cancel := context.WithTimeout(ctx, c.cfg.TLSTimeout)
	defer cancel()
	tc := tls.Client(raw, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		raw.Close()
		if _, refused := errors.AsType[*tls.CertificateVerificationError](err); refused {
			return nil, fail(ClassCertificate, err)
		}
		return nil, fail(ClassTLS, err)
	}
	if tc.ConnectionState().DidResume {
		c.m.resumed.Inc()
	} else {
		c.m.handshakes.Inc()
	}
	if cfg.InsecureSkipVerify {
		c.m.unverified.Inc()
	}
	return tc, nil
}
