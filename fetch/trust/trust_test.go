package trust

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// line is a root, two intermediates and what signs leaves.
type line struct{ root, upper, issuer *holder }

// newLine makes a line; each change is made to the certificate of that name.
func newLine(change map[string]func(*x509.Certificate)) line {
	var l line
	l.root = authority("root", p256(), nil, change["root"])
	l.upper = authority("upper", p256(), l.root, change["upper"])
	l.issuer = authority("issuer", p256(), l.upper, change["issuer"])
	return l
}

func (l line) chain(leaf *holder) []*x509.Certificate { return chainOf(leaf, l.issuer, l.upper) }

// TestMemories: a first chain is verified in full, another leaf of its issuer by that,
// a name seen before by the name.
func TestMemories(t *testing.T) {
	l := newLine(nil)
	j := newJudge(l.root)
	first, second := l.chain(server(l.issuer, nil, "a.example", "*.b.example")), l.chain(server(l.issuer, nil, host))
	j.accepts(t, Full, "a.example", first)
	j.accepts(t, Name, "a.example", first)
	j.accepts(t, Issuer, "x.b.example", first)
	j.accepts(t, Name, "x.b.example", first)
	j.accepts(t, Issuer, host, second)
	j.accepts(t, Name, host, second)
	j.refuses(t, "other.example", second)
	j.refuses(t, "other.example", second)

	// Both memories are one verifier's.
	newJudge(l.root).accepts(t, Full, host, second)
	newJudge(server(nil, nil, "z.example")).refuses(t, host, second)
}

// TestManyAtOnce: of many first contacts with one issuer one verifies in full; where
// the issuer cannot be known, each does.
func TestManyAtOnce(t *testing.T) {
	permitted := func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"example"} }
	for _, c := range []struct {
		change map[string]func(*x509.Certificate)
		full   int64
	}{{nil, 1}, {map[string]func(*x509.Certificate){"upper": permitted}, 32}} {
		l := newLine(c.change)
		j := newJudge(l.root)
		var full atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 32 {
			name := fmt.Sprintf("n%d.example", i)
			chain := l.chain(server(l.issuer, nil, name))
			wg.Go(func() {
				<-start
				_, by, err := j.Verify(name, chain)
				if err != nil {
					t.Error(err)
				}
				if by == Full {
					full.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
		if full.Load() != c.full {
			t.Errorf("%d chains were verified in full, want %d", full.Load(), c.full)
		}
	}
}

// TestRootIsIssuer: a leaf right under a root, and one that is a root, teach no issuer.
func TestRootIsIssuer(t *testing.T) {
	root := authority("root", p256(), nil, nil)
	own := server(nil, nil, host)
	j := newJudge(root, own)
	for _, leaf := range []*holder{server(root, nil, "a.example"), server(root, nil, "a.example")} {
		j.accepts(t, Full, "a.example", chainOf(leaf, root))
		j.accepts(t, Name, "a.example", chainOf(leaf, root))
	}
	j.accepts(t, Full, host, chainOf(own))
	j.accepts(t, Name, host, chainOf(own))
}

// TestRefusedIsForgotten: what is refused is verified anew each time, and teaches nothing.
func TestRefusedIsForgotten(t *testing.T) {
	l, strange := newLine(nil), newLine(nil)
	j := newJudge(l.root)
	for range 2 {
		j.refuses(t, host, strange.chain(server(strange.issuer, nil, host)))
	}
	late := l.chain(server(l.issuer, func(c *x509.Certificate) { c.NotBefore = epoch.Add(time.Hour) }, host))
	j.refuses(t, host, late)
	if n := j.names.used + j.issuers.used; n != 0 {
		t.Fatalf("%d entries", n)
	}
	j.now = epoch.Add(2 * time.Hour)
	j.accepts(t, Full, host, late)
}

// TestOtherBytes: a name is known with exactly these certificates in this order.
func TestOtherBytes(t *testing.T) {
	l := newLine(nil)
	j := newJudge(l.root)
	leaf := server(l.issuer, nil, host)
	j.accepts(t, Full, host, chainOf(leaf, l.issuer, l.upper))
	j.accepts(t, Full, host, chainOf(leaf, l.upper, l.issuer))
	j.accepts(t, Full, host, chainOf(leaf, l.issuer, l.upper, l.root))
	j.refuses(t, host, chainOf(leaf, l.issuer))
	j.refuses(t, host, chainOf(leaf))
	// The same keys and names, but the certificate between was made by a stranger.
	forged := authority("upper", l.upper.key, impostor(l.root), nil)
	j.refuses(t, host, chainOf(leaf, l.issuer, forged))
	// A leaf signed by another key under the issuer's name.
	other := server(impostor(l.issuer), nil, host)
	j.refuses(t, host, l.chain(other))
	// Another certificate of the issuer, which may not sign.
	bare := issued("issuer", l.issuer.key, l.upper, nil)
	j.refuses(t, host, chainOf(leaf, bare, l.upper))
	// Names and certificates cannot change places in the hash.
	if identify("name", "ab", nil) == identify("nam", "eab", nil) || identify("name", "a", nil) == identify("issuer", "a", nil) {
		t.Fatal("two questions have one hash")
	}
}

// TestIssuerOfAnother: a leaf of the upper one is not taken for the issuer's, though
// the certificates beside it are the same.
func TestIssuerOfAnother(t *testing.T) {
	l := newLine(map[string]func(*x509.Certificate){"root": func(c *x509.Certificate) { c.MaxPathLen = 2 }})
	j := newJudge(l.root)
	j.accepts(t, Full, host, l.chain(server(l.issuer, nil, host)))
	j.accepts(t, Full, host, l.chain(server(l.upper, nil, host)))
	j.accepts(t, Issuer, host, l.chain(server(l.upper, nil, host)))
	// The issuer's own certificate as that of a server: what its leaf taught is not of it.
	l.issuer = authority("issuer", p256(), l.upper, func(c *x509.Certificate) { c.DNSNames = []string{host} })
	j.accepts(t, Full, "a.example", l.chain(server(l.issuer, nil, "a.example")))
	j.accepts(t, Full, host, l.chain(l.issuer))
}

// TestDates: nothing counts outside the dates of any certificate of the chain, after a
// day for a name, or where the clock went back.
func TestDates(t *testing.T) {
	for _, which := range []string{"root", "upper", "issuer", "leaf"} {
		for _, ends := range []bool{true, false} {
			at := epoch.Add(2 * time.Hour)
			change := func(c *x509.Certificate) {
				if ends {
					c.NotAfter = at
				} else {
					c.NotBefore = at
				}
			}
			l := newLine(map[string]func(*x509.Certificate){which: change})
			j := newJudge(l.root)
			var ofLeaf func(*x509.Certificate)
			if which == "leaf" {
				ofLeaf = change
			}
			one, two := l.chain(server(l.issuer, ofLeaf, host)), l.chain(server(l.issuer, ofLeaf, host))
			inside, outside := time.Hour, 2*time.Hour+time.Second
			if !ends {
				inside, outside = 3*time.Hour, time.Hour
			}
			j.now = epoch.Add(inside)
			j.accepts(t, Full, host, one)
			j.accepts(t, Name, host, one)
			j.now = epoch.Add(outside)
			j.refuses(t, host, one)
			j.refuses(t, host, two)
			j.now = epoch.Add(inside)
			j.accepts(t, Issuer, host, two)
			j.now = epoch.Add(outside)
			j.refuses(t, host, two)
			j.now = at
			if ends {
				j.now = at.Add(time.Nanosecond) // crypto/x509 compares fractions
				j.refuses(t, host, two)
			}
		}
	}
	l := newLine(nil)
	j := newJudge(l.root)
	certs := l.chain(server(l.issuer, nil, host))
	j.accepts(t, Full, host, certs)
	j.now = epoch.Add(day - time.Second)
	j.accepts(t, Name, host, certs)
	j.now = epoch.Add(day)
	j.accepts(t, Issuer, host, certs)
	j.accepts(t, Name, host, certs)
}

// TestConstraints: constraints above the leaf bind each leaf anew.
func TestConstraints(t *testing.T) {
	for _, which := range []string{"root", "upper", "issuer"} {
		permit := func(c *x509.Certificate) {
			c.PermittedDNSDomains, c.PermittedDNSDomainsCritical = []string{"good.example"}, true
		}
		l := newLine(map[string]func(*x509.Certificate){which: permit})
		j := newJudge(l.root)
		j.accepts(t, Full, "good.example", l.chain(server(l.issuer, nil, "good.example")))
		j.accepts(t, Full, "good.example", l.chain(server(l.issuer, nil, "good.example")))
		j.refuses(t, host, l.chain(server(l.issuer, nil, host)))
	}
	for _, which := range []string{"upper", "issuer"} {
		policy := must(x509.OIDFromInts([]uint64{1, 2, 3}))
		with := func(c *x509.Certificate) { c.Policies = []x509.OID{policy} }
		l := newLine(map[string]func(*x509.Certificate){"upper": with, "issuer": with})
		if which == "upper" {
			l.upper = authority("upper", l.upper.key, l.root, func(c *x509.Certificate) { with(c); policyConstraints(c) })
		} else {
			l.issuer = authority("issuer", l.issuer.key, l.upper, func(c *x509.Certificate) { with(c); policyConstraints(c) })
		}
		j := newJudge(l.root)
		j.accepts(t, Full, host, l.chain(server(l.issuer, with, host)))
		j.accepts(t, Full, host, l.chain(server(l.issuer, with, host)))
		j.refuses(t, host, l.chain(server(l.issuer, nil, host)))
	}
	// A leaf that asks for policies, under issuers that have none.
	l := newLine(nil)
	j := newJudge(l.root)
	j.accepts(t, Full, "a.example", l.chain(server(l.issuer, nil, "a.example")))
	j.refuses(t, host, l.chain(server(l.issuer, func(c *x509.Certificate) {
		c.Policies = []x509.OID{must(x509.OIDFromInts([]uint64{1, 2, 3}))}
		policyConstraints(c)
	}, host)))
	// A leaf with constraints teaches nothing.
	j = newJudge(l.root)
	j.accepts(t, Full, "a.example", l.chain(server(l.issuer, func(c *x509.Certificate) {
		c.PermittedDNSDomains, c.PermittedDNSDomainsCritical = []string{"good.example"}, true
	}, "a.example")))
	j.accepts(t, Full, host, l.chain(server(l.issuer, nil, host)))
}

// TestUsages: a chain for something else than servers teaches nothing.
func TestUsages(t *testing.T) {
	client := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }
	for _, which := range []string{"upper", "issuer"} {
		l := newLine(map[string]func(*x509.Certificate){which: client})
		j := newJudge(l.root)
		for range 2 {
			j.refuses(t, host, l.chain(server(l.issuer, nil, host)))
		}
	}
	l := newLine(nil)
	j := newJudge(l.root)
	j.accepts(t, Full, host, l.chain(server(l.issuer, nil, host)))
	j.refuses(t, host, l.chain(server(l.issuer, client, host)))
}

// TestNamedAsAbove: a leaf with subject, key and names of a certificate above it hides
// that one from crypto/x509.
func TestNamedAsAbove(t *testing.T) {
	named := func(c *x509.Certificate) { c.DNSNames = []string{host} }
	for _, which := range []string{"root", "upper", "issuer"} {
		l := newLine(map[string]func(*x509.Certificate){which: named})
		j := newJudge(l.root)
		j.accepts(t, Full, "a.example", l.chain(server(l.issuer, nil, "a.example")))
		above := map[string]*holder{"root": l.root, "upper": l.upper, "issuer": l.issuer}[which]
		j.refuses(t, host, l.chain(issued(which, above.key, l.issuer, named)))
	}
}

// TestSearchLimit: crypto/x509 gives up after 100 signatures, and what comes first
// depends on the leaf's key id and on the clock.
func TestSearchLimit(t *testing.T) {
	// A maze is many certificates for one key, each of which many others may have signed.
	maze := func(subject string, key crypto.Signer, change func(*x509.Certificate)) (all []*holder) {
		dead := p256()
		for range 12 {
			above := authority("maze", dead, &holder{authority("nobody", dead, nil, nil).Certificate, dead}, nil)
			all = append(all, above, authority(subject, key, above, change))
		}
		return all
	}
	root := authority("root", p256(), nil, nil)
	key := p256()

	issuer := authority("issuer", key, root, func(c *x509.Certificate) { c.SubjectKeyId = []byte("first") })
	tail := append([]*holder{issuer}, maze("issuer", key, func(c *x509.Certificate) { c.SubjectKeyId = []byte("maze") })...)
	leaf := func(id string) []*x509.Certificate {
		parent := *issuer.Certificate
		parent.SubjectKeyId = []byte(id)
		return chainOf(append([]*holder{server(&holder{&parent, key}, nil, host)}, tail...)...)
	}
	j := newJudge(root)
	j.accepts(t, Full, host, leaf("first"))
	j.refuses(t, host, leaf("maze"))

	late := func(c *x509.Certificate) { c.NotBefore = epoch.Add(time.Hour) }
	upper := authority("upper", key, root, nil)
	issuer = authority("issuer", p256(), upper, nil)
	tail = append(append([]*holder{issuer}, maze("upper", key, late)...), upper)
	one := chainOf(append([]*holder{server(issuer, nil, host)}, tail...)...)
	two := chainOf(append([]*holder{server(issuer, nil, host)}, tail...)...)
	j = newJudge(root)
	j.accepts(t, Full, host, one)
	j.accepts(t, Issuer, host, two)
	j.now = epoch.Add(time.Hour)
	j.refuses(t, host, one)
	j.refuses(t, host, two)

	// The other way round: once they have expired, the search gets through.
	early := func(c *x509.Certificate) { c.NotAfter = epoch.Add(-time.Hour) }
	tail = append(append([]*holder{issuer}, maze("upper", key, early)...), upper)
	one = chainOf(append([]*holder{server(issuer, nil, host)}, tail...)...)
	two = chainOf(append([]*holder{server(issuer, nil, host)}, tail...)...)
	j = newJudge(root)
	j.accepts(t, Full, host, one)
	j.accepts(t, Issuer, host, two)
	j.now = epoch.Add(-2 * time.Hour)
	j.refuses(t, host, one)
	j.refuses(t, host, two)
}

// TestNoName: without a name crypto/x509 would accept each.
func TestNoName(t *testing.T) {
	l := newLine(nil)
	j := newJudge(l.root)
	certs := l.chain(server(l.issuer, nil, host))
	if _, _, err := j.Verify("", certs); err == nil || j.full("", certs) != nil {
		t.Fatal("accepted without a name")
	}
	if _, _, err := j.Verify(host, nil); err == nil {
		t.Fatal("accepted without a certificate")
	}
}

// TestCallbacks: pools whose roots have callbacks are left to crypto/tls, and so is a
// pool that cannot be looked into. Those of the system and of files can.
func TestCallbacks(t *testing.T) {
	root := authority("root", p256(), nil, nil)
	pool := x509.NewCertPool()
	pool.AddCert(server(nil, nil, host).Certificate)
	if New(pool, 1<<20, time.Now) == nil {
		t.Fatal("a pool without callbacks is not served: has x509.CertPool other fields now?")
	}
	pool.AddCertWithConstraint(root.Certificate, func([]*x509.Certificate) error { return nil })
	if New(pool, 1<<20, time.Now) != nil || New(nil, 1<<20, time.Now) != nil {
		t.Fatal("such a pool is served")
	}
	system, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	if New(system, 1<<20, time.Now) == nil {
		t.Fatal("the system's pool is not served")
	}
}

// TestFIPS: in FIPS mode crypto/tls judges chains by more than crypto/x509 does.
func TestFIPS(t *testing.T) {
	const env = "SEINE_TRUST_TEST_FIPS"
	if os.Getenv(env) != "" {
		fmt.Println("none:", New(x509.NewCertPool(), 1<<20, time.Now) == nil)
		return
	}
	for mode, want := range map[string]string{"off": "none: false", "on": "none: true"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFIPS$", "-test.v")
		cmd.Env = append(os.Environ(), env+"=1", "GODEBUG=fips140="+mode)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("fips140=%s: %v\n%s", mode, err, out)
		}
	}
}

// heapBytes is what the heap holds once its garbage is collected.
func heapBytes() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// TestMemoryBound: the memories take no more bytes than they may, whatever comes, and
// what is asked for stays.
func TestMemoryBound(t *testing.T) {
	const size = 8 << 20
	before := heapBytes()
	m := newMemory(size)
	id := func(n int) Identity { return identify("name", fmt.Sprint(n), nil) }
	w := window{epoch.Unix(), epoch.Unix() + 10}
	most := int64(0)
	for n := range 3 * size / entryBytes {
		m.remember(id(n), w, epoch)
		if _, known := m.recall(id(0), epoch); !known {
			t.Fatalf("the one in use was forgotten after %d", n)
		}
		if n%20000 == 0 {
			most = max(most, heapBytes()-before)
		}
	}
	if most > size {
		t.Errorf("%d bytes of %d", most, int64(size))
	}
	if most < size/3 {
		t.Errorf("only %d bytes of %d are used", most, int64(size))
	}
	if _, known := m.recall(id(1), epoch); known {
		t.Error("nothing is forgotten")
	}
	runtime.KeepAlive(m)
	for _, tiny := range []int64{0, 1} {
		m := newMemory(tiny)
		for n := range 10 {
			m.remember(id(n), w, epoch)
		}
		if m.used > ways {
			t.Error("a memory without room grows")
		}
	}
}

// TestSpan: dates before 1970 and after 2106 are cut, never turned round.
func TestSpan(t *testing.T) {
	for _, tc := range []struct {
		w    window
		now  int64
		want bool
	}{
		{window{-1 << 40, 1 << 40}, 5, true}, {window{-1 << 40, 1 << 40}, 1 << 32, false},
		{window{1<<32 + 5, 1 << 40}, 6, false}, {window{5, 3}, 4, false},
	} {
		m := newMemory(1000)
		m.remember(Identity{}, tc.w, time.Unix(tc.now, 0))
		if _, known := m.recall(Identity{}, time.Unix(tc.now, 0)); known != tc.want {
			t.Errorf("%v at %d: %v", tc.w, tc.now, known)
		}
	}
}
