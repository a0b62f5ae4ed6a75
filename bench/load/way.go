package load

import (
	"bytes"
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
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/molecule-man/go-brrr"
)

// Way is how a server serves its pages. The zero value is plain http.
type Way struct {
	Coding string // of bodies, whatever was asked for: gzip, br or zstd; "" is none
	Chain  *Chain // https
	Each   int    // requests that a connection serves; 0 is no limit
	Resume bool   // a TLS session may be resumed
}

// config is what a server needs of nginx's configuration for it.
func (w Way) config() string {
	text := "  keepalive_requests 1000000;\n"
	if w.Each == 1 {
		text = "  keepalive_timeout 0;\n"
	} else if w.Each > 1 {
		text = fmt.Sprintf("  keepalive_requests %d;\n", w.Each)
	}
	if w.Coding != "" {
		text += "  add_header Content-Encoding " + w.Coding + ";\n"
	}
	if w.Chain != nil && !w.Resume {
		text += "  ssl_session_tickets off;\n  ssl_session_cache off;\n"
	}
	return text
}

// secure ends nginx's listen directive: with the certificate of a host.
func (w Way) secure(host string) string {
	if w.Chain == nil {
		return ""
	}
	file := filepath.Join(w.Chain.dir, host+".pem")
	return fmt.Sprintf(" ssl; ssl_certificate %s; ssl_certificate_key %s", file, file)
}

// pack writes all files of a directory in the way's coding to another, and returns
// which of both is to be served.
func (w Way) pack(from, to string) (string, error) {
	if w.Coding == "" {
		return from, nil
	}
	return to, filepath.WalkDir(from, func(name string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inner, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, inner), 0o700)
		}
		text, err := os.ReadFile(name)
		if err == nil {
			text, err = Pack(w.Coding, text)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, inner), text, 0o600)
		}
		return err
	})
}

// Pack is a text in a coding, at the level that servers use by default: gzip 6, br 5,
// zstd 3.
func Pack(coding string, text []byte) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		w, err = gzip.NewWriterLevel(&out, 6)
	case "br":
		w, err = brrr.NewWriter(&out, 5)
	case "zstd":
		w, err = zstd.NewWriter(&out)
	default:
		err = fmt.Errorf("load: no coding %q", coding)
	}
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// Chain is a root, an issuer below it, and the certificates that this has signed.
type Chain struct {
	dir         string
	issuer      *x509.Certificate
	issuerText  []byte
	signer, key crypto.Signer // of the issuer, of all leaves
	serial      int64
}

// Chains are the kinds of chains that the web shows most, each by the keys of root,
// issuer and leaf. p384 is as Let's Encrypt's ECDSA chains are.
var Chains = []string{"p384", "p256", "rsa2048"}

func newKey(kind string) (crypto.Signer, error) {
	switch kind {
	case "p384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "p256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa4096":
		return rsa.GenerateKey(rand.Reader, 4096)
	}
	return rsa.GenerateKey(rand.Reader, 2048)
}

// NewChain makes a chain of a kind, with all its files in dir.
func NewChain(dir, kind string) (*Chain, error) {
	kinds := map[string][3]string{"p384": {"p384", "p384", "p256"}, "p256": {"p256", "p256", "p256"}, "rsa2048": {"rsa4096", "rsa2048", "rsa2048"}}[kind]
	c := &Chain{dir: dir}
	var keys [3]crypto.Signer
	for i, k := range kinds {
		var err error
		if keys[i], err = newKey(k); err != nil {
			return nil, fmt.Errorf("load: chain %q: %w", kind, err)
		}
	}
	root := c.template("root of " + kind)
	root.IsCA = true
	issuer := c.template("issuer of " + kind)
	issuer.IsCA = true
	rootText, root, err := sign(root, root, keys[0].Public(), keys[0])
	if err != nil {
		return nil, err
	}
	if c.issuerText, c.issuer, err = sign(issuer, root, keys[1].Public(), keys[0]); err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(keys[2])
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	c.issuerText = append(c.issuerText, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	c.signer, c.key = keys[1], keys[2]
	return c, os.WriteFile(c.Roots(), rootText, 0o600)
}

// Roots is the file of the root, for --ca.
func (c *Chain) Roots() string { return filepath.Join(c.dir, "roots.pem") }

// Add makes the certificate of a site.
func (c *Chain) Add(host string) error {
	leaf := c.template(host)
	leaf.IPAddresses = []net.IP{net.ParseIP(host)}
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	text, _, err := sign(leaf, c.issuer, c.key.Public(), c.signer)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, host+".pem"), append(text, c.issuerText...), 0o600)
}

// Certificate is what a server of a site shows.
func (c *Chain) Certificate(host string) (*tls.Certificate, error) {
	file := filepath.Join(c.dir, host+".pem")
	pair, err := tls.LoadX509KeyPair(file, file)
	return &pair, err
}

func (c *Chain) template(name string) *x509.Certificate {
	c.serial++
	return &x509.Certificate{SerialNumber: big.NewInt(c.serial), Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
}

func sign(t, by *x509.Certificate, key crypto.PublicKey, signer crypto.Signer) (text []byte, c *x509.Certificate, err error) {
	der, err := x509.CreateCertificate(rand.Reader, t, by, key, signer)
	if err == nil {
		c, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("load: certificate of %s: %w", t.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), c, nil
}
