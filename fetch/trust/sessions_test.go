package trust

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"
	"time"
)

// keptSession is a session as crypto/tls hands it to a cache, of a full handshake.
type keptSession struct{ cs *tls.ClientSessionState }

func (k *keptSession) Get(string) (*tls.ClientSessionState, bool) { return nil, false }
func (k *keptSession) Put(_ string, cs *tls.ClientSessionState)   { k.cs = cs }

func realSession(tb testing.TB, version uint16) *tls.ClientSessionState {
	tb.Helper()
	l := newLine(nil)
	now := func() time.Time { return epoch }
	var kept keptSession
	cfg := &tls.Config{ServerName: host, InsecureSkipVerify: true, ClientSessionCache: &kept, Time: now}
	if _, err := connect(site(tb, version, now, server(l.issuer, nil, host), l.issuer, l.upper), cfg); err != nil || kept.cs == nil {
		tb.Fatal(err, kept.cs)
	}
	return kept.cs
}

func anyServer(*Identity, uint16) bool { return true }

// TestSessionForm: what is kept of a session is all of it but the chain, for which the
// placeholder stands.
func TestSessionForm(t *testing.T) {
	stand, err := x509.ParseCertificate(placeholder[6 : len(placeholder)-5])
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cs := realSession(t, version)
		ticket, state, err := cs.ResumptionState()
		if err != nil {
			t.Fatal(err)
		}
		whole, err := state.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		s := NewSessions(10_000)
		id := identify("name", host, nil)
		s.putSession(host, &id, cs)
		back, gotID := s.getSession(host, anyServer)
		if back == nil || gotID != id {
			t.Fatalf("TLS %x: not kept", version)
		}
		gotTicket, gotState, err := back.ResumptionState()
		if err != nil || !bytes.Equal(gotTicket, ticket) {
			t.Fatalf("TLS %x: %v, another ticket", version, err)
		}
		got, err := gotState.Bytes()
		if err != nil || !bytes.Contains(got, stand.Raw) || len(got) > 200 {
			t.Fatalf("TLS %x: %v, %d bytes", version, err, len(got))
		}
		at := bytes.Index(got, placeholder)
		if !bytes.HasPrefix(whole, got[:at]) || !bytes.HasSuffix(whole, got[at+len(placeholder):]) {
			t.Errorf("TLS %x: %x of %x", version, got, whole)
		}
		if n := s.Bytes(); n > 450 {
			t.Errorf("TLS %x: %d bytes", version, n)
		}
	}
}

// TestPlaceholder: the certificate that stands for a chain is nobody's: no verifier
// takes it, no memory has it, and a resumed connection adds nothing to them.
func TestPlaceholder(t *testing.T) {
	stand, err := x509.ParseCertificate(placeholder[6 : len(placeholder)-5])
	if err != nil {
		t.Fatal(err)
	}
	l := newLine(nil)
	j := newJudge(l.root)
	now := func() time.Time { return epoch }
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		address := site(t, version, now, server(l.issuer, nil, host), l.issuer, l.upper)
		sessions := NewSessions(10_000)
		for _, want := range []bool{false, true, true} {
			used := j.names.used
			if resumed, _, err := visit(address, host, j.Verifier, sessions); err != nil || resumed != want || resumed && j.names.used != used {
				t.Fatalf("TLS %x: resumed %v, %v, %d names", version, resumed, err, j.names.used-used)
			}
		}
		j.refuses(t, host, []*x509.Certificate{stand})
		if j.Knows(identify("name", host, []*x509.Certificate{stand})) {
			t.Errorf("TLS %x: taken for the server's", version)
		}
	}
}

// TestSessionsBound: sessions take as many bytes of the heap as the books say, and no
// more than they may. The one asked for longest ago gives way.
func TestSessionsBound(t *testing.T) {
	const size, most = 8 << 20, 30_000
	cs := realSession(t, tls.VersionTLS13)
	var id Identity
	before := heapBytes()
	s := NewSessions(size)
	name := func(n int) string { return fmt.Sprintf("www.site-%d.example", n) }
	for n := range most {
		s.putSession(name(n), &id, cs)
		if cs, _ := s.getSession(name(0), anyServer); cs == nil {
			t.Fatalf("the one in use was forgotten after %d", n)
		}
	}
	got := heapBytes() - before
	t.Logf("%d sessions: %d bytes each, the books say %d", len(s.all), got/int64(len(s.all)), s.Bytes()/int64(len(s.all)))
	if s.Bytes() > size || s.Bytes() < size*9/10 || got > s.Bytes()*105/100 || got < s.Bytes()*7/10 {
		t.Errorf("%d bytes of the heap, %d in the books, of %d", got, s.Bytes(), int64(size))
	}
	if cs, _ := s.getSession(name(1), anyServer); cs != nil {
		t.Error("nothing is forgotten")
	}
	if cs, _ := s.getSession(name(most-1), anyServer); cs == nil {
		t.Error("the last one is not there")
	}
	for n := range most {
		s.dropSession(name(n))
	}
	if s.Bytes() != 0 || len(s.all) != 0 || s.ring.next != &s.ring {
		t.Errorf("%d bytes of none", s.Bytes())
	}
	tiny := NewSessions(1)
	tiny.putSession(host, &id, cs)
	if len(tiny.all) != 0 || tiny.Bytes() != 0 {
		t.Error("a memory without room grows")
	}
}
