package fetch

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serveTLS answers over TLS and closes after each answer.
func serveTLS(tb testing.TB, cfg *tls.Config, sni *atomic.Value) *rawServer {
	s := serveRaw(tb, func(s *rawServer, _ int, nc net.Conn) {
		tc := tls.Server(nc, cfg)
		if tc.Handshake() != nil {
			return
		}
		if sni != nil {
			sni.Store(tc.ConnectionState().ServerName)
		}
		br := bufio.NewReader(tc)
		if _, ok := s.request(br); ok {
			io.WriteString(tc, okAnswer)
			tc.Close()
		}
	})
	s.url = strings.Replace(s.url, "http", "https", 1)
	return s
}

func TestTLS(t *testing.T) {
	cert := selfSigned("127.0.0.1", "good.example")
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pemOf(cert), 0o600); err != nil {
		t.Fatal(err)
	}
	var sni atomic.Value
	s := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}}, &sni)
	old := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, nil)
	plain := serveRaw(t, func(_ *rawServer, _ int, nc net.Conn) { io.WriteString(nc, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	silent := serveRaw(t, func(_ *rawServer, _ int, nc net.Conn) { io.Copy(io.Discard, nc) })
	secure := func(s *rawServer) string { return strings.Replace(s.url, "http:", "https:", 1) }
	at := strings.TrimPrefix(s.url, "https://")

	for _, tc := range []struct {
		name, url string
		cfg       Config
		class     string
	}{
		{"unknown authority", s.url, Config{}, ClassCertificate},
		{"own authority", s.url, Config{CAFile: file}, ""},
		{"name of the certificate", "https://good.example", Config{CAFile: file}, ""},
		{"another name", "https://bad.example", Config{CAFile: file}, ClassCertificate},
		{"not verified", "https://bad.example", Config{InsecureSkipVerify: true}, ""},
		{"TLS 1.1", old.url, Config{CAFile: file}, ClassTLS},
		{"no TLS", secure(plain), Config{CAFile: file}, ClassTLS},
		{"silent", secure(silent), Config{CAFile: file, TLSTimeout: 50 * time.Millisecond}, ClassTLS},
		{"silent, total", secure(silent), Config{CAFile: file, FetchTimeout: 50 * time.Millisecond}, ClassTimeout},
	} {
		c := newClient(t, func(cfg *Config) {
			tc.cfg.AllowNet, tc.cfg.ConnectTo = cfg.AllowNet, []string{"*.example::" + at}
			*cfg = tc.cfg
		})
		_, _, err := get(c, tc.url)
		if class(err) != tc.class {
			t.Errorf("%s: %v", tc.name, err)
		}
		if err != nil && err.(*Error).Retry != (tc.class != ClassCertificate) {
			t.Errorf("%s: retry %v", tc.name, err.(*Error).Retry)
		}
		if n := c.Stats().Unverified; (n == 1) != tc.cfg.InsecureSkipVerify {
			t.Errorf("%s: %d counted as not verified", tc.name, n)
		}
		if strings.HasSuffix(tc.url, ".example") && err == nil && sni.Load() != strings.TrimPrefix(tc.url, "https://") {
			t.Errorf("%s: SNI %v", tc.name, sni.Load())
		}
	}
}

func TestSessionCache(t *testing.T) {
	cert := selfSigned("127.0.0.1")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, off := range []bool{false, true} {
			s := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}, MaxVersion: version}, nil)
			c := newClient(t, func(cfg *Config) { cfg.InsecureSkipVerify, cfg.NoSessionCache = true, off })
			for range 4 {
				if _, _, err := get(c, s.url); err != nil {
					t.Fatal(err)
				}
			}
			want := uint64(3)
			if off {
				want = 0
			}
			if st := c.Stats(); st.Resumed != want || st.Handshakes != 4-want {
				t.Errorf("TLS %x, cache off %v: %+v", version, off, st)
			}
		}
	}
}

// TestCurves: a server that knows X25519 alone is asked twice the first time, and once
// from then on. Others never see a hello with it.
func TestCurves(t *testing.T) {
	cert := selfSigned("127.0.0.1")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for curve, first := range map[tls.CurveID]int{tls.X25519: 2, tls.CurveP256: 1, tls.CurveP384: 1, tls.CurveP521: 1} {
			s := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}, MaxVersion: version, CurvePreferences: []tls.CurveID{curve}}, nil)
			c := newClient(t, func(cfg *Config) { cfg.InsecureSkipVerify = true })
			for n := range 3 {
				if _, h, err := get(c, s.url); err != nil || string(h.body) != "hello" || s.connections() != first+n {
					t.Fatalf("%v, TLS %x, visit %d: %v, %d connections", curve, version, n, err, s.connections())
				}
			}
			if st := c.Stats(); st.Resumed != 2 || st.Handshakes != 1 {
				t.Errorf("%v, TLS %x: %+v", curve, version, st)
			}
		}
	}
	refuses := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}}, nil)
	c := newClient(t, func(cfg *Config) { cfg.InsecureSkipVerify = true })
	for n := range 3 {
		if _, _, err := get(c, refuses.url); class(err) != ClassTLS || refuses.connections() != 2+n {
			t.Fatalf("visit %d: %v, %d connections", n, err, refuses.connections())
		}
	}
	for n := range 3 * maxX25519 / 2 {
		c.secure.rememberX25519(fmt.Sprint(n))
	}
	if len(c.secure.x25519) > maxX25519 {
		t.Errorf("%d hosts are remembered", len(c.secure.x25519))
	}
}

func TestTLSKeepAlive(t *testing.T) {
	cert := selfSigned("127.0.0.1")
	s := serveRaw(t, func(s *rawServer, _ int, nc net.Conn) {
		tc := tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{cert}})
		br := bufio.NewReader(tc)
		for {
			if _, ok := s.request(br); !ok {
				return
			}
			io.WriteString(tc, okAnswer)
		}
	})
	c := newClient(t, func(cfg *Config) { cfg.InsecureSkipVerify = true })
	for range 5 {
		if _, _, err := get(c, strings.Replace(s.url, "http", "https", 1)); err != nil {
			t.Fatal(err)
		}
	}
	if st := c.Stats(); st.Connections != 1 || st.Reused != 4 {
		t.Errorf("%+v", st)
	}
}

// TestStart: a request counts from when it went out, however long its connection took
// before: delays of sites are counted from then.
func TestStart(t *testing.T) {
	var shaken atomic.Pointer[time.Time]
	s := serveTLS(t, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := time.Now()
		shaken.Store(&now)
		return &tls.Config{Certificates: []tls.Certificate{selfSigned("127.0.0.1")}}, nil
	}}, nil)
	c := newClient(t, func(cfg *Config) { cfg.InsecureSkipVerify = true })
	resp, _, err := get(c, s.url)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Start.Before(*shaken.Load()) {
		t.Errorf("counts from %v before the connection stood", shaken.Load().Sub(resp.Start))
	}
}

func TestBadCAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	os.WriteFile(file, []byte("nothing"), 0o600)
	for _, f := range []string{file, file + ".not"} {
		if _, err := New(Config{CAFile: f}); err == nil || !strings.Contains(err.Error(), f) {
			t.Error(err)
		}
	}
}

// TestTLSLegacy: a server that knows RSA key exchange only is read where that is
// allowed, for one request or for all; the error of the others names the flag.
func TestTLSLegacy(t *testing.T) {
	for _, suite := range []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA} {
		old := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{rsaSigned(t, "127.0.0.1")}, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}}, nil)
		for _, all := range []bool{false, true} {
			c := newClient(t, func(cfg *Config) { cfg.InsecureSkipVerify, cfg.TLSLegacy = true, all })
			for _, one := range []bool{false, true, false} {
				if all == one {
					continue
				}
				var resp Response
				h := &collector{}
				err := c.Do(t.Context(), &Request{URL: old.url, TLSLegacy: one}, &resp, h)
				if err != nil || string(h.body) != "hello" {
					t.Errorf("%s, all %v, one %v: %v", tls.CipherSuiteName(suite), all, one, err)
				}
				c.pool.expire(time.Now().Add(time.Hour))
			}
			if all {
				continue
			}
			if _, _, err := get(c, old.url); class(err) != ClassTLS || !strings.Contains(err.Error(), "--tls-legacy") {
				t.Errorf("%s: %v", tls.CipherSuiteName(suite), err)
			}
		}
	}
	modern := serveTLS(t, tlsServer(selfSigned("127.0.0.1")), nil)
	for _, legacy := range []bool{false, true} {
		c := newClient(t, func(cfg *Config) { cfg.InsecureSkipVerify, cfg.TLSLegacy = true, legacy })
		if _, h, err := get(c, modern.url); err != nil || string(h.body) != "hello" {
			t.Errorf("a server of today, legacy %v: %v", legacy, err)
		}
	}
	other := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{selfSigned("127.0.0.1")}, MaxVersion: tls.VersionTLS11}, nil)
	if _, _, err := get(newClient(t, nil), other.url); class(err) != ClassTLS || strings.Contains(err.Error(), "--tls-legacy") {
		t.Errorf("a fault that the flag does not mend: %v", err)
	}
}
