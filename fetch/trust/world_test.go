package trust

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"testing"
	"time"
)

// epoch is when the worlds of these tests begin; their clock is the test's.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const host = "www.example.org"

func p256() crypto.Signer {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return must(k, err)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// holder is a certificate and its key.
type holder struct {
	*x509.Certificate
	key crypto.Signer
}

var serial int64

// issued makes a certificate for key, signed by parent, or by itself. change may
// set fields.
func issued(subject string, key crypto.Signer, parent *holder, change func(*x509.Certificate)) *holder {
	serial++
	t := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: subject},
		NotBefore: epoch.Add(-90 * day), NotAfter: epoch.Add(90 * day)}
	if change != nil {
		change(t)
	}
	if parent == nil {
		parent = &holder{t, key}
	}
	return &holder{must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, t, parent.Certificate, key.Public(), parent.key)))), key}
}

// authority makes a certificate that may sign others.
func authority(subject string, key crypto.Signer, parent *holder, change func(*x509.Certificate)) *holder {
	return issued(subject, key, parent, func(t *x509.Certificate) {
		t.IsCA, t.BasicConstraintsValid, t.KeyUsage = true, true, x509.KeyUsageCertSign
		if change != nil {
			change(t)
		}
	})
}

// server makes a certificate for names.
func server(parent *holder, change func(*x509.Certificate), names ...string) *holder {
	return issued("server", p256(), parent, func(t *x509.Certificate) {
		t.DNSNames, t.ExtKeyUsage = names, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if change != nil {
			change(t)
		}
	})
}

// impostor has the name and key id of h, and another key.
func impostor(h *holder) *holder {
	return authority(h.Subject.CommonName, p256(), nil, func(t *x509.Certificate) { t.SubjectKeyId = h.SubjectKeyId })
}

func chainOf(hs ...*holder) (certs []*x509.Certificate) {
	for _, h := range hs {
		certs = append(certs, h.Certificate)
	}
	return certs
}

// policyConstraints asks for a valid policy at once (RFC 5280, 4.2.1.11).
func policyConstraints(t *x509.Certificate) {
	value := must(asn1.Marshal(struct {
		Require int `asn1:"tag:0"`
	}{0}))
	t.ExtraExtensions = append(t.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 36}, Critical: true, Value: value})
}

// judge is a verifier beside what crypto/x509 says.
type judge struct {
	*Verifier
	roots *x509.CertPool
	now   time.Time
}

func newJudge(roots ...*holder) *judge {
	j := &judge{roots: x509.NewCertPool(), now: epoch}
	for _, r := range roots {
		j.roots.AddCert(r.Certificate)
	}
	j.Verifier = New(j.roots, 1<<20, func() time.Time { return j.now })
	return j
}

// full is the verdict of crypto/tls: it does exactly this.
func (j *judge) full(name string, certs []*x509.Certificate) error {
	opts := x509.VerifyOptions{Roots: j.roots, CurrentTime: j.now, DNSName: name, Intermediates: x509.NewCertPool()}
	for _, c := range certs[1:] {
		opts.Intermediates.AddCert(c)
	}
	_, err := certs[0].Verify(opts)
	return err
}

// agrees holds Verify to the verdict of full verification, to its very words.
func (j *judge) agrees(tb failer, name string, certs []*x509.Certificate) (By, bool) {
	tb.Helper()
	_, by, err := j.Verify(name, certs)
	want := j.full(name, certs)
	if err == nil && want == nil {
		return by, true
	}
	refused, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if want == nil || !ok || refused.Err.Error() != want.Error() || len(refused.UnverifiedCertificates) != len(certs) {
		tb.Fatalf("by %v: %v, where crypto/x509 says: %v", by, err, want)
	}
	return by, false
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// accepts holds that certs are accepted for that reason.
func (j *judge) accepts(t *testing.T, want By, name string, certs []*x509.Certificate) {
	t.Helper()
	if by, ok := j.agrees(t, name, certs); !ok || by != want {
		t.Fatalf("accepted %v by %v, want by %v", ok, by, want)
	}
}

// refuses holds that certs are refused.
func (j *judge) refuses(t *testing.T, name string, certs []*x509.Certificate) {
	t.Helper()
	if by, ok := j.agrees(t, name, certs); ok {
		t.Fatalf("accepted by %v", by)
	}
}
