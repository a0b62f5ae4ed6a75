//go:build unix

package fetch

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"seine/fetch/trust"
)

// chainKinds are the chains of BenchmarkChains: the keys of root, issuer and leaf.
var chainKinds = []struct {
	name               string
	root, issuer, leaf func() crypto.Signer
}{
	{"p384", p384Key, p384Key, p256Key}, // as Let's Encrypt's ECDSA chains are
	{"p256", p256Key, p256Key, p256Key},
	{"rsa2048", func() crypto.Signer { return rsaKey(4096) }, func() crypto.Signer { return rsaKey(2048) }, func() crypto.Signer { return rsaKey(2048) }},
}

func p256Key() crypto.Signer { return signer(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }
func p384Key() crypto.Signer { return signer(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) }
func rsaKey(bits int) crypto.Signer {
	return signer(rsa.GenerateKey(rand.Reader, bits))
}

func signer[K crypto.Signer](k K, err error) crypto.Signer {
	if err != nil {
		panic(err)
	}
	return k
}

// writeChains writes the certificate and key for each kind's server into dir, and the
// roots of all.
func writeChains(b testing.TB, dir string) (roots string) {
	b.Helper()
	var all []byte
	for _, k := range chainKinds {
		var above *x509.Certificate
		var by crypto.Signer
		var chain []byte
		for i, key := range []crypto.Signer{k.root(), k.issuer(), k.leaf()} {
			t := &x509.Certificate{SerialNumber: big.NewInt(int64(i)), Subject: pkix.Name{CommonName: fmt.Sprint(k.name, i)},
				NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: i < 2, BasicConstraintsValid: true}
			if i == 2 {
				t.DNSNames = []string{"*." + k.name + ".example"}
			} else if i == 0 {
				above, by = t, key
			}
			der, err := x509.CreateCertificate(rand.Reader, t, above, key.Public(), by)
			if err != nil {
				b.Fatal(err)
			}
			if above, err = x509.ParseCertificate(der); err != nil {
				b.Fatal(err)
			}
			by = key
			text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
			if i == 0 {
				all = append(all, text...)
			} else {
				chain = append(text, chain...)
			}
		}
		key, err := x509.MarshalPKCS8PrivateKey(by)
		if err != nil {
			b.Fatal(err)
		}
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
		if err := os.WriteFile(filepath.Join(dir, k.name+".pem"), chain, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	roots = filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, all, 0o600); err != nil {
		b.Fatal(err)
	}
	return roots
}

// readChains is what a server shows that serves what writeChains wrote.
func readChains(dir string) *tls.Config {
	t := &tls.Config{}
	for _, k := range chainKinds {
		file := filepath.Join(dir, k.name+".pem")
		cert, err := tls.LoadX509KeyPair(file, file)
		if err != nil {
			panic(err)
		}
		t.Certificates = append(t.Certificates, cert)
	}
	return t
}

// BenchmarkChains is a page of 1 KB on a connection of its own, with its chain verified:
// by crypto/tls alone, by a known issuer, by a known name, and resumed.
func BenchmarkChains(b *testing.B) {
	dir := b.TempDir()
	roots := writeChains(b, dir)
	addr := startBenchServer(b, "chains:"+dir)
	for _, kind := range chainKinds {
		for _, how := range []string{"as_is", "issuer_known", "name_known", "resumed"} {
			b.Run(kind.name+"/"+how, func(b *testing.B) {
				c := newClient(b, func(cfg *Config) {
					cfg.NoSessionCache, cfg.CAFile, cfg.ConnectTo = how != "resumed", roots, []string{"*.example::" + addr}
				})
				n := 0
				visit := func() {
					if how == "issuer_known" {
						n++
					}
					var resp Response
					var h counter
					if err := c.Do(context.Background(), &Request{URL: fmt.Sprintf("https://n%d.%s.example/1024", n, kind.name)}, &resp, &h); err != nil {
						b.Fatal(err)
					}
					c.pool.expire(time.Now().Add(time.Hour))
				}
				if how == "as_is" {
					c.secure.trust = nil
				}
				visit() // the first teaches the issuer and the name
				before := c.m.verified[trust.Full].Get()
				perPage(b, visit)
				if c.m.verified[trust.Full].Get() != before || how == "resumed" && c.Stats().Handshakes != 1 {
					b.Fatal("not what is measured")
				}
			})
		}
	}
}
