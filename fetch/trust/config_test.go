package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// site is a TLS server on loopback that sends one byte on each connection.
func site(tb testing.TB, version uint16, now func() time.Time, leaf *holder, tail ...*holder) (address string) {
	cert := tls.Certificate{PrivateKey: leaf.key}
	for _, c := range chainOf(append([]*holder{leaf}, tail...)...) {
		cert.Certificate = append(cert.Certificate, c.Raw)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: version, MaxVersion: version, Time: now})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { ln.Close() })
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				nc.Write([]byte{1})
				io.Copy(io.Discard, nc)
			}()
		}
	}()
	return ln.Addr().String()
}

// connect makes a connection and reads the byte, and with it the ticket.
func connect(address string, cfg *tls.Config) (resumed bool, err error) {
	raw, err := net.Dial("tcp", address)
	if err != nil {
		return false, err
	}
	defer raw.Close()
	tc := tls.Client(raw, cfg)
	if _, err := tc.Read(make([]byte, 1)); err != nil {
		return false, err
	}
	return tc.ConnectionState().DidResume, nil
}

// visit is a connection as v verifies it, and what the verdict rested on.
func visit(address, name string, v *Verifier, cache *Sessions) (resumed bool, by []By, err error) {
	cfg := &tls.Config{}
	v.Configure(cfg, name, cache, func(b By) { by = append(by, b) })
	resumed, err = connect(address, cfg)
	return resumed, by, err
}

// TestConnections: connections are verified as crypto/tls would, resumed ones too.
func TestConnections(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		ends := epoch.Add(30 * time.Hour)
		l := newLine(map[string]func(*x509.Certificate){"upper": func(c *x509.Certificate) { c.NotAfter = ends }})
		j := newJudge(l.root)
		now := func() time.Time { return j.now }
		address := site(t, version, now, server(l.issuer, nil, host), l.issuer, l.upper)
		cache := NewSessions(10_000)
		expect := func(v *Verifier, name string, wantResumed, wantAccepted bool, want ...By) {
			t.Helper()
			resumed, by, err := visit(address, name, v, cache)
			_, refused := errors.AsType[*tls.CertificateVerificationError](err)
			if resumed != wantResumed || (err == nil) != wantAccepted || refused == wantAccepted || len(by) != len(want) || len(by) == 1 && by[0] != want[0] {
				t.Fatalf("TLS %x: resumed %v, by %v, %v", version, resumed, by, err)
			}
		}
		expect(j.Verifier, "other.example", false, false)
		expect(j.Verifier, "other.example", false, false)
		expect(j.Verifier, host, false, true, Full)
		expect(j.Verifier, host, true, true)
		expect(j.Verifier, host, true, true)

		// A verifier that does not know the name makes a full handshake: one with other
		// roots refuses, and one with these verifies.
		expect(newJudge(server(nil, nil, host)).Verifier, host, false, false)
		same := New(j.roots, 1<<20, now)
		expect(same, host, false, true, Full)
		expect(same, host, true, true)
		cache = NewSessions(10_000)
		expect(j.Verifier, host, false, true, Name)
		expect(j.Verifier, host, true, true)

		j.now = epoch.Add(day) // the name is forgotten, the ticket is not
		expect(j.Verifier, host, false, true, Issuer)
		expect(j.Verifier, host, true, true)
		j.now = ends.Add(time.Second)
		expect(j.Verifier, host, false, false)

		// The chain ends between the choice of a session and the server's answer.
		j.now, cache = epoch.Add(day), NewSessions(10_000)
		expect(j.Verifier, host, false, true, Name)
		cfg := &tls.Config{}
		j.Configure(cfg, host, cache, nil)
		verify, asked := cfg.VerifyConnection, false
		cfg.VerifyConnection = func(s tls.ConnectionState) error {
			j.now, asked = ends.Add(time.Second), s.DidResume
			return verify(s)
		}
		if _, err := connect(address, cfg); !Forgotten(err) || !asked {
			t.Fatalf("TLS %x: resumed %v, %v", version, asked, err)
		}
		if cache.Bytes() != 0 {
			t.Fatalf("TLS %x: the session is still there", version)
		}
		expect(j.Verifier, host, false, false)
	}
}

// TestForeignSession: a session that no verifier kept, as an unverified
// connection leaves it, is not resumed.
func TestForeignSession(t *testing.T) {
	l := newLine(nil)
	j := newJudge(l.root)
	cache := NewSessions(10_000)
	address := site(t, tls.VersionTLS13, func() time.Time { return j.now }, server(l.issuer, nil, host), l.issuer, l.upper)
	for _, want := range []bool{false, true} {
		insecure := &tls.Config{Time: func() time.Time { return j.now }}
		(*Verifier)(nil).Configure(insecure, host, cache, nil)
		if resumed, err := connect(address, insecure); err != nil || resumed != want {
			t.Fatal(resumed, err)
		}
	}
	if resumed, by, err := visit(address, host, j.Verifier, cache); err != nil || resumed || len(by) != 1 || by[0] != Full {
		t.Fatal(resumed, by, err)
	}
}
