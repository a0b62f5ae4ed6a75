// Package trust verifies certificates of servers and remembers the verdicts,
// so that a signature is not verified anew on each connection.
//
// A Verifier belongs to one client and one pool of roots. It has two memories:
//
//   - names: this name with exactly these certificates was verified. A hit needs
//     no signature.
//   - issuers: this certificate issued a leaf whose chain was verified in full, and
//     the server sent exactly these certificates beside the leaf. A hit needs the
//     leaf's signature alone: the issuer takes the place of a root.
//
// All else goes to crypto/x509 with all that the server sent, as crypto/tls itself
// does it. The invariant: what a memory accepts, full verification at that moment
// accepts too. It holds for issuers since the search of crypto/x509 sees of a leaf only
// its dates, names, usages and signature, which are checked each time, and three things
// more, which [issuerOf] keeps equal: the name of its issuer, how its own subject
// compares with those above it, and constraints.
//
// Entries hold no certificate, only a hash and the time in which they count: the
// dates of the whole chain, and for names at most a day. A refusal is never
// remembered; the clock may go back. Nothing is written to disk: a crash or a new
// start loses the memories, and each chain is verified in full once more.
package trust

import (
	"bytes"
	"crypto/fips140"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"runtime"
	"time"

	"golang.org/x/sync/singleflight"
)

// By says what a verdict rests on.
type By uint8

const (
	Full   By = iota // all signatures up to a root were verified
	Issuer           // the issuer was known: one signature
	Name             // name and chain were known: no signature
	bys
)

// All are the values of By.
func All() []By { return []By{Full, Issuer, Name} }

func (b By) String() string { return [bys]string{"full", "issuer", "name"}[b] }

// day is how long a name is known at most.
const day = 24 * time.Hour

// Verifier verifies chains of servers. It is safe for any number of goroutines.
type Verifier struct {
	roots          *x509.CertPool
	now            func() time.Time
	names, issuers *memory
	learning       singleflight.Group // issuers that are verified now
}

// New makes a verifier whose memories take at most size bytes. It returns nil where
// they cannot serve: where the system and not Go verifies, in FIPS mode, and for
// roots with callbacks. Then crypto/tls should verify by itself. roots must not
// change any more.
func New(roots *x509.CertPool, size int64, now func() time.Time) *Verifier {
	if platformVerifies || fips140.Enabled() || mayCallBack(roots) {
		return nil
	}
	return &Verifier{roots: roots, now: now, names: newMemory(size / 16 * 15), issuers: newMemory(size / 16)}
}

const platformVerifies = runtime.GOOS == "darwin" || runtime.GOOS == "ios" || runtime.GOOS == "windows"

// mayCallBack says whether a root of the pool may have a callback that judges chains
// (CertPool.AddCertWithConstraint, as of x509.SetFallbackRoots). A callback may judge
// by the leaf, so a known issuer says nothing there. No method of a pool says so;
// its fields are looked at, and a pool that has others than expected counts as one.
func mayCallBack(pool *x509.CertPool) bool {
	if pool == nil {
		return true
	}
	certs := reflect.ValueOf(pool).Elem().FieldByName("lazyCerts")
	if certs.Kind() != reflect.Slice || certs.Type().Elem().Kind() != reflect.Struct {
		return true
	}
	for i := range certs.Len() {
		if f := certs.Index(i).FieldByName("constraint"); f.Kind() != reflect.Func || !f.IsNil() {
			return true
		}
	}
	return false
}

var errNoName = errors.New("trust: a server without a name cannot be verified")

// Verify verifies certs, the chain as the server sent it, for a TLS server that is
// called name, a host or an address. Its error is a *tls.CertificateVerificationError
// with the cause that crypto/x509 gives. A full verification costs 0.1 to 1.5 ms of
// processor time, one by the issuer 0.08 to 0.7, one by the name some microseconds.
func (v *Verifier) Verify(name string, certs []*x509.Certificate) (Identity, By, error) {
	if name == "" || len(certs) == 0 { // crypto/x509 would take any name
		return Identity{}, Full, &tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: errNoName}
	}
	now := v.now()
	id := identify("name", name, certs)
	if _, known := v.names.recall(id, now); known {
		return id, Name, nil
	}
	w, by, err := v.chain(name, certs, now)
	if err != nil {
		return Identity{}, Full, &tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: err}
	}
	v.names.remember(id, w.and(window{0, now.Add(day).Unix()}), now)
	return id, by, nil
}

// Knows says whether name and chain of id count as verified now.
func (v *Verifier) Knows(id Identity) bool {
	_, known := v.names.recall(id, v.now())
	return known
}

// chain verifies signatures, and says how long the verdict stays true. Many first
// contacts with one issuer at once wait for the first of them, so that its signatures
// are verified once; where it teaches nothing, each verifies by itself.
func (v *Verifier) chain(name string, certs []*x509.Certificate, now time.Time) (window, By, error) {
	issuer := issuerOf(certs)
	if issuer == nil {
		w, err := v.verifyInFull(name, certs, nil, Identity{}, now)
		return w, Full, err
	}
	key := identify("issuer", string(issuer.Raw), certs[1:])
	if w, ok := v.byIssuer(name, certs[0], issuer, key, now); ok {
		return w, Issuer, nil
	}
	var w window
	var err error
	isFirst := false
	v.learning.Do(string(key[:]), func() (any, error) {
		if _, isKnown := v.issuers.recall(key, now); !isKnown {
			isFirst = true
			w, err = v.verifyInFull(name, certs, issuer, key, now)
		}
		return nil, nil
	})
	if isFirst {
		return w, Full, err
	}
	if w, ok := v.byIssuer(name, certs[0], issuer, key, now); ok {
		return w, Issuer, nil
	}
	w, err = v.verifyInFull(name, certs, issuer, key, now)
	return w, Full, err
}

// byIssuer verifies the leaf's signature alone, where its issuer is known.
func (v *Verifier) byIssuer(name string, leaf, issuer *x509.Certificate, key Identity, now time.Time) (window, bool) {
	w, known := v.issuers.recall(key, now)
	if !known {
		return window{}, false
	}
	only := x509.NewCertPool()
	only.AddCert(issuer)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: only, DNSName: name, CurrentTime: now}); err != nil {
		return window{}, false
	}
	return w.and(dates(leaf)), true
}

// verifyInFull verifies a chain up to a root, and remembers the issuer under key,
// unless it is nil.
func (v *Verifier) verifyInFull(name string, certs []*x509.Certificate, issuer *x509.Certificate, key Identity, now time.Time) (window, error) {
	leaf := certs[0]
	sent := x509.NewCertPool()
	for _, c := range certs[1:] {
		sent.AddCert(c)
	}
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: v.roots, Intermediates: sent, DNSName: name, CurrentTime: now})
	if err != nil {
		return window{}, err
	}
	var longest window
	for _, chain := range chains {
		w := steady(certs[1:], now)
		for _, c := range chain[1:] {
			w = w.and(dates(c))
		}
		// An issuer that is a root itself has nothing above it to be spared.
		if issuer != nil && len(chain) > 2 && !anyConstrained(chain[1:]) {
			v.issuers.remember(key, w, now)
		}
		if w = w.and(dates(leaf)); w.until > longest.until {
			longest = w
		}
	}
	return longest, nil
}

// issuerOf returns the certificate beside the leaf that may take the place of a root
// for it, nil where the search of crypto/x509 might go another way for this leaf
// than for others with the same certificates beside them.
func issuerOf(certs []*x509.Certificate) *x509.Certificate {
	leaf := certs[0]
	if constrained(leaf) { // judged together with the policies above it
		return nil
	}
	var issuer *x509.Certificate
	for _, c := range certs[1:] {
		// The search passes over a certificate with the subject and key of one below it,
		// so a leaf that is called like one above it may hide that one.
		if bytes.Equal(c.RawIssuer, leaf.RawSubject) {
			return nil
		}
		if bytes.Equal(c.RawSubject, leaf.RawIssuer) {
			// The search ends after 100 signatures. With two candidates the leaf's key
			// id says which comes first, so one leaf may get through where another does not.
			if issuer != nil {
				return nil
			}
			issuer = c
		}
	}
	return issuer
}

// anyConstrained says whether one of chain has constraints that a leaf may violate.
func anyConstrained(chain []*x509.Certificate) bool {
	for _, c := range chain {
		if constrained(c) {
			return true
		}
	}
	return false
}

// constrained says whether c has name or policy constraints (RFC 5280, 4.2.1.10 and
// 4.2.1.11).
func constrained(c *x509.Certificate) bool {
	for _, e := range c.Extensions {
		if e.Id.Equal([]int{2, 5, 29, 30}) || e.Id.Equal([]int{2, 5, 29, 36}) {
			return true
		}
	}
	return false
}

// window is a time from, including, to until, excluding, in Unix seconds.
type window struct{ from, until int64 }

// dates is when c is valid, less the last second, whose end differs between
// certificates and clocks.
func dates(c *x509.Certificate) window { return window{c.NotBefore.Unix(), c.NotAfter.Unix()} }

func (w window) and(o window) window { return window{max(w.from, o.from), min(w.until, o.until)} }

func (w window) contains(now time.Time) bool { return w.from <= now.Unix() && now.Unix() < w.until }

// steady is the time around now in which each of certs stays valid or stays invalid:
// one that becomes valid makes the search longer, and it ends after 100 signatures.
func steady(certs []*x509.Certificate, now time.Time) window {
	w := window{math.MinInt64, math.MaxInt64}
	for _, c := range certs {
		switch {
		case now.Before(c.NotBefore):
			w.until = min(w.until, c.NotBefore.Unix())
		case now.After(c.NotAfter):
			w.from = max(w.from, c.NotAfter.Unix()+1)
		default:
			w = w.and(dates(c))
		}
	}
	return w
}

// Identity is the SHA-256 of a name and a chain.
type Identity [sha256.Size]byte

// identify hashes each part behind its length, so that no two lists are equal by
// where one part ends.
func identify(what, name string, certs []*x509.Certificate) (id Identity) {
	h := sha256.New()
	var n [8]byte
	part := func(p []byte) {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	part([]byte(what))
	part([]byte(name))
	for _, c := range certs {
		part(c.Raw)
	}
	h.Sum(id[:0])
	return id
}
