package trust

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWorlds: in random worlds of authorities, with constraints, usages, dates, path
// lengths, cross-signing, wrong signatures and a clock that moves both ways, the
// verdict and its words are always those of full verification.
func TestWorlds(t *testing.T) {
	var by [bys]atomic.Int64
	var refused atomic.Int64
	keys := []crypto.Signer{p256(), p256(), p256(), p256()}
	subjects := []string{"A", "B", "C", "server"}
	names := []string{"a.example", "b.example", "c.b.example"}
	policy := must(x509.OIDFromInts([]uint64{1, 2, 3}))
	rapid.Check(t, func(t *rapid.T) {
		flip := func(of int, what string) bool { return rapid.IntRange(1, of).Draw(t, what) == of } // the library prefers small numbers
		// In some worlds what refuses a chain is rare, so that enough are accepted.
		rare := rapid.SampledFrom([]int{4, 1, 30}).Draw(t, "rare")
		random := func(c *x509.Certificate) {
			if flip(8*rare, "starts") {
				c.NotBefore = epoch.Add(time.Duration(rapid.IntRange(-4, 4).Draw(t, "from")) * time.Hour)
			}
			if flip(8*rare, "ends") {
				c.NotAfter = epoch.Add(time.Duration(rapid.IntRange(-4, 30).Draw(t, "until")) * time.Hour)
			}
			if c.NotAfter.Before(c.NotBefore) {
				c.NotAfter = c.NotBefore
			}
			if flip(12*rare, "permits") {
				c.PermittedDNSDomains = []string{rapid.SampledFrom(names).Draw(t, "permitted")}
			}
			if flip(12*rare, "excludes") {
				c.ExcludedDNSDomains = []string{rapid.SampledFrom(names).Draw(t, "excluded")}
			}
			if flip(12*rare, "demands policies") {
				policyConstraints(c)
			}
			if flip(3, "policies") {
				c.Policies = []x509.OID{policy}
			}
			if flip(6*rare, "usages") {
				c.ExtKeyUsage = []x509.ExtKeyUsage{rapid.SampledFrom([]x509.ExtKeyUsage{
					x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageAny}).Draw(t, "usage")}
			}
			if flip(6, "key id") {
				c.SubjectKeyId = []byte{byte(rapid.IntRange(1, 3).Draw(t, "id"))}
			}
			if flip(8, "names") {
				c.DNSNames = []string{rapid.SampledFrom(names).Draw(t, "name")}
			}
		}
		key := func() crypto.Signer { return rapid.SampledFrom(keys).Draw(t, "key") }
		subject := func() string {
			if flip(rare, "same names") {
				return rapid.SampledFrom(subjects).Draw(t, "subject")
			}
			return fmt.Sprint("N", rapid.IntRange(1, 1000).Draw(t, "own name"))
		}
		var all []*holder
		j := newJudge()
		for range rapid.IntRange(1, 2).Draw(t, "roots") {
			r := authority(subject(), key(), nil, random)
			j.roots.AddCert(r.Certificate)
			all = append(all, r)
		}
		parent := func() *holder {
			p := all[len(all)-1]
			if flip(3, "cross") {
				p = all[len(all)-1-rapid.IntRange(0, min(2, len(all)-1)).Draw(t, "parent")]
			}
			if flip(10*rare, "wrong signature") {
				return impostor(p)
			}
			return p
		}
		for range rapid.IntRange(1, 4).Draw(t, "intermediates") {
			all = append(all, authority(subject(), key(), parent(), func(c *x509.Certificate) {
				random(c)
				if flip(6*rare, "path length") {
					c.MaxPathLen = rapid.IntRange(0, 2).Draw(t, "length")
					c.MaxPathLenZero = true
				}
				if flip(12*rare, "no authority") {
					c.IsCA, c.MaxPathLen, c.MaxPathLenZero = false, -1, false
				}
			}))
		}
		var leaves []*holder
		for range 4 {
			leaves = append(leaves, issued(subject(), key(), parent(), func(c *x509.Certificate) {
				random(c)
				c.DNSNames = names[:2]
			}))
		}
		j.Verifier = New(j.roots, int64(rapid.SampledFrom([]int{1000, 1 << 20}).Draw(t, "memory")), func() time.Time { return j.now })
		var tails [][]*holder
		for range 2 {
			var tail []*holder
			for _, at := range rapid.Permutation(all).Draw(t, "order") {
				if !flip(16, "kept back") {
					tail = append(tail, at)
				}
			}
			tails = append(tails, tail)
		}
		for range 25 {
			if flip(3, "time passes") {
				j.now = epoch.Add(time.Duration(rapid.IntRange(-5*3600, 40*3600).Draw(t, "clock")) * time.Second)
			}
			leaf := rapid.SampledFrom(append(leaves, all[len(all)-1])).Draw(t, "leaf")
			certs := chainOf(append([]*holder{leaf}, rapid.SampledFrom(tails).Draw(t, "tail")...)...)
			why, ok := j.agrees(t, rapid.SampledFrom(names).Draw(t, "asked"), certs)
			if ok {
				by[why].Add(1)
			} else {
				refused.Add(1)
			}
		}
	})
	said := fmt.Sprintf("accepted %d in full, %d by the issuer, %d by the name; refused %d", by[Full].Load(), by[Issuer].Load(), by[Name].Load(), refused.Load())
	t.Log(said)
	for _, n := range []*atomic.Int64{&by[Full], &by[Issuer], &by[Name], &refused} {
		if n.Load() < 20 {
			t.Fatal("too few of a kind: " + said)
		}
	}
}
