package fetch

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// chained makes an authority's file and servers' certificates under an intermediate of it.
func chained(tb testing.TB, names ...string) (file string, servers []tls.Certificate) {
	tb.Helper()
	type holder struct {
		cert *x509.Certificate
		key  *ecdsa.PrivateKey
	}
	made := func(of int64, parent *holder, change func(*x509.Certificate)) *holder {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			tb.Fatal(err)
		}
		t := &x509.Certificate{SerialNumber: big.NewInt(of), Subject: pkix.Name{CommonName: fmt.Sprint("test ", of)},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
		change(t)
		if parent == nil {
			parent = &holder{t, key}
		}
		der, err := x509.CreateCertificate(rand.Reader, t, parent.cert, &key.PublicKey, parent.key)
		if err != nil {
			tb.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			tb.Fatal(err)
		}
		return &holder{cert, key}
	}
	authority := func(t *x509.Certificate) { t.IsCA, t.BasicConstraintsValid = true, true }
	root := made(1, nil, authority)
	issuer := made(2, root, authority)
	for i, name := range names {
		leaf := made(int64(3+i), issuer, func(t *x509.Certificate) { t.DNSNames = []string{name} })
		servers = append(servers, tls.Certificate{Certificate: [][]byte{leaf.cert.Raw, issuer.cert.Raw}, PrivateKey: leaf.key})
	}
	file = filepath.Join(tb.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.cert.Raw}), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file, servers
}

// TestVerified: a client verifies the first server of an issuer in full, others by the
// issuer, one seen before by its name, and counts each; one that does not verify
// remembers nothing.
func TestVerified(t *testing.T) {
	file, certs := chained(t, "a.example", "b.example")
	var to []string
	for i, name := range []string{"a.example", "b.example"} {
		s := serveTLS(t, tlsServer(certs[i]), nil)
		to = append(to, name+"::"+strings.TrimPrefix(s.url, "https://"))
	}
	to = append(to, "wrong.example"+strings.TrimPrefix(to[1], "b.example"))
	for _, insecure := range []bool{false, true} {
		c := newClient(t, func(cfg *Config) {
			cfg.CAFile, cfg.ConnectTo, cfg.NoSessionCache, cfg.InsecureSkipVerify = file, to, true, insecure
		})
		for _, name := range []string{"a.example", "b.example", "b.example", "b.example"} {
			if _, _, err := get(c, "https://"+name); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, _, err := get(c, "https://wrong.example"); !insecure && class(err) != ClassCertificate || insecure && err != nil {
				t.Fatal(err)
			}
		}
		var by [3]uint64
		for i := range by {
			by[i] = c.m.verified[i].Get()
		}
		if want := [3]uint64{1, 1, 2}; !insecure && by != want || insecure && (by != [3]uint64{} || c.secure.trust != nil) {
			t.Errorf("insecure %v: %v by full, issuer, name", insecure, by)
		}
		if n := c.Stats().Unverified; insecure != (n == 6) {
			t.Errorf("insecure %v: %d unverified", insecure, n)
		}
	}
	c := newClient(t, func(cfg *Config) { cfg.CAFile, cfg.ConnectTo = file, to })
	for range 4 {
		if _, _, err := get(c, "https://a.example"); err != nil {
			t.Fatal(err)
		}
	}
	if st := c.Stats(); st.Resumed != 3 || c.m.verified[0].Get() != 1 || c.m.verified[2].Get() != 0 {
		t.Errorf("%+v", st)
	}
}
