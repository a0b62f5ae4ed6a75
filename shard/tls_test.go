package shard_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"seine/shard"
	"seine/shard/shardtest"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	files := certificates(t)
	for _, masters := range []int{0, 2} {
		s := shardtest.Start(t, shardtest.Config{Masters: masters, TLS: files, Password: "secret"})
		url := []string{"rediss://:secret@" + s.Addrs[0]}
		c, err := shard.Open(t.Context(), shard.Config{Addrs: url, TLS: shard.TLS{CAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m := shard.NewMap(4)
		for k := range m.Len() {
			if v := run(t, c, k, count, shard.KeysOf("c", m.Tag(k)).Stats(), 1); v != int64(1) {
				t.Fatal(v)
			}
		}
		for name, tls := range map[string]shard.TLS{
			"no client certificate": {CAFile: files.CA},
			"unknown authority":     {CertFile: files.Cert, KeyFile: files.Key},
			"other server name":     {CAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key, ServerName: "redis.example"},
		} {
			if _, err := shard.Open(within(t), shard.Config{Addrs: url, TLS: tls}); err == nil {
				t.Errorf("%s: opens", name)
			}
		}
	}
}

// certificates makes an authority and a certificate of 127.0.0.1 that serves
// both sides.
func certificates(t *testing.T) *shardtest.TLS {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	must := func(b []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	caKey, key := newKey(), newKey()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test server"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	return &shardtest.TLS{
		CA:   write("ca.pem", "CERTIFICATE", must(x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey))),
		Cert: write("cert.pem", "CERTIFICATE", must(x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey))),
		Key:  write("key.pem", "EC PRIVATE KEY", must(x509.MarshalECPrivateKey(key))),
	}
}
