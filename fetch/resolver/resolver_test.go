package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
)

// nameServer is a DNS server of the test's own. answer fills in a reply and says
// whether to send it.
type nameServer struct {
	addr  string
	asked atomic.Int64
	ports sync.Map // that questions came from
	udp   *dns.Server
}

func serve(tb testing.TB, answer func(m *dns.Msg, q dns.Question, tcp bool) bool) *nameServer {
	tb.Helper()
	pc, ln := listen(tb)
	pc.(*net.UDPConn).SetReadBuffer(4 << 20)
	s := &nameServer{addr: pc.LocalAddr().String()}
	handler := func(tcp bool) dns.HandlerFunc {
		return func(w dns.ResponseWriter, req *dns.Msg) {
			s.asked.Add(1)
			s.ports.Store(w.RemoteAddr().String(), true)
			m := new(dns.Msg)
			m.SetReply(req)
			m.RecursionAvailable = true
			if answer(m, req.Question[0], tcp) {
				w.WriteMsg(m)
			}
		}
	}
	s.udp = &dns.Server{PacketConn: pc, Handler: handler(false)}
	tcp := &dns.Server{Listener: ln, Handler: handler(true)}
	var wg sync.WaitGroup
	wg.Go(func() { s.udp.ActivateAndServe() })
	wg.Go(func() { tcp.ActivateAndServe() })
	tb.Cleanup(func() { pc.Close(); ln.Close(); wg.Wait() })
	return s
}

// listen takes a port for UDP and TCP.
func listen(tb testing.TB) (net.PacketConn, net.Listener) {
	for {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		if pc, err := net.ListenPacket("udp", ln.Addr().String()); err == nil {
			return pc, ln
		}
		ln.Close() // somebody has that port for UDP
	}
}

// record adds what rr says, in the form of a zone file.
func record(m *dns.Msg, format string, args ...any) bool {
	rr, err := dns.NewRR(fmt.Sprintf(format, args...))
	if err != nil {
		panic(err)
	}
	m.Answer = append(m.Answer, rr)
	return true
}

func soa(m *dns.Msg) bool {
	rr, _ := dns.NewRR("example. 900 IN SOA ns.example. root.example. 1 2 3 4 60")
	m.Ns = append(m.Ns, rr)
	return true
}

// newResolver asks servers, with no hosts file.
func newResolver(tb testing.TB, change func(*Config), servers ...string) *Resolver {
	tb.Helper()
	cfg := Config{Servers: servers, Timeout: 200 * time.Millisecond, Hosts: filepath.Join(tb.TempDir(), "none")}
	if change != nil {
		change(&cfg)
	}
	r, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	r.v6.at, r.v6.have = time.Now().Add(time.Hour), false
	tb.Cleanup(r.Close)
	return r
}

func kindOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind.String()
	}
	return fmt.Sprint(err)
}

// usual answers names by what they begin with.
func usual(m *dns.Msg, q dns.Question, tcp bool) bool {
	kind, _, _ := strings.Cut(q.Name, ".")
	a, aaaa := q.Qtype == dns.TypeA, q.Qtype == dns.TypeAAAA
	switch {
	case kind == "both" && a, kind == "four" && a:
		return record(m, "%s 60 IN A 192.0.2.1", q.Name)
	case kind == "both" && aaaa, kind == "six" && aaaa:
		return record(m, "%s 30 IN AAAA 2001:db8::1", q.Name)
	case kind == "alias" && a:
		record(m, "%s 7 IN CNAME Target.Example.", q.Name)
		record(m, "other.example. 5 IN A 192.0.2.66")
		return record(m, "target.example. 90 IN A 192.0.2.2")
	case kind == "loop" && a:
		return record(m, "%s 7 IN CNAME %s", q.Name, q.Name)
	case kind == "large" && !tcp:
		m.Truncated = true
		return true
	case kind == "large" && a:
		for i := range 200 {
			record(m, "%s 60 IN A 192.0.2.%d", q.Name, i+1)
		}
		return true
	case kind == "nodata":
		return soa(m)
	case kind == "fails":
		m.Rcode = dns.RcodeServerFailure
		return true
	case kind == "refused":
		m.Rcode = dns.RcodeRefused
		return true
	case kind == "silent":
		return false
	case kind == "onlyfour": // the server knows no AAAA and keeps quiet
		return a && record(m, "%s 60 IN A 192.0.2.1", q.Name)
	case kind == "lame":
		m.RecursionAvailable = false
		return true
	case kind == "oddsix" && a:
		return record(m, "%s 60 IN A 192.0.2.1", q.Name)
	case q.Name == "com.":
		return record(m, "com. 900 IN NS a.gtld-servers.net.")
	case q.Name == ".":
		return record(m, ". 900 IN NS a.root-servers.net.")
	case kind == "four", kind == "six", kind == "alias", kind == "loop", kind == "large":
		return soa(m)
	}
	m.Rcode = dns.RcodeNameError
	return soa(m)
}

func TestLookup(t *testing.T) {
	s := serve(t, usual)
	for _, tc := range []struct {
		name, addrs string
		ttl         time.Duration
		kind        string
	}{
		{"both.example", "192.0.2.1 2001:db8::1", 30 * time.Second, ""},
		{"four.example", "192.0.2.1", time.Minute, ""},
		{"four.example.", "192.0.2.1", time.Minute, ""},
		{"six.example", "2001:db8::1", 30 * time.Second, ""},
		{"alias.example", "192.0.2.2", 7 * time.Second, ""},
		{"large.example", "192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4", time.Minute, ""},
		{"onlyfour.example", "192.0.2.1", time.Minute, ""},
		{"oddsix.example", "192.0.2.1", time.Minute, ""},
		{"loop.example", "", 0, "no_name"},
		{"nodata.example", "", time.Minute, "no_name"},
		{"missing.example", "", time.Minute, "no_name"},
		{strings.Repeat("x", 64) + ".example", "", 0, "no_name"},
		{"fails.example", "", 0, "failed"},
		{"lame.example", "", 0, "failed"},
		{"silent.example", "", 0, "timeout"},
		{"refused.example", "", 0, "failed"}, // for it refuses this name only
	} {
		r := newResolver(t, nil, s.addr)
		answer, err := r.Lookup(t.Context(), tc.name)
		got := strings.Trim(fmt.Sprint(answer.Addrs), "[]")
		kind, ttl := "", answer.TTL
		if e, ok := errors.AsType[*Error](err); ok {
			kind, ttl = e.Kind.String(), e.TTL
		} else if err != nil {
			t.Error(err)
		}
		if got != tc.addrs || ttl != tc.ttl || kind != tc.kind {
			t.Errorf("%s: %s for %s, %s; want %s for %s, %s (%v)", tc.name, got, ttl, kind, tc.addrs, tc.ttl, tc.kind, err)
		}
	}
}

// TestForged: what answers another question, or under another id, is no answer.
func TestForged(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var req dns.Msg
			if req.Unpack(buf[:n]) != nil || req.Question[0].Qtype != dns.TypeA {
				continue
			}
			send := func(change func(m *dns.Msg), ip string) {
				m := new(dns.Msg)
				m.SetReply(&req)
				m.RecursionAvailable = true
				record(m, "%s 60 IN A %s", req.Question[0].Name, ip)
				change(m)
				text, _ := m.Pack()
				pc.WriteTo(text, from)
			}
			send(func(m *dns.Msg) { m.Id++ }, "192.0.2.66")
			send(func(m *dns.Msg) { m.Question[0].Name = "evil.example." }, "192.0.2.66")
			send(func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA }, "192.0.2.66")
			send(func(m *dns.Msg) { m.Question = nil }, "192.0.2.66")
			send(func(m *dns.Msg) { m.Response = false }, "192.0.2.66")
			pc.WriteTo([]byte("short"), from)
			send(func(m *dns.Msg) {}, "192.0.2.1")
		}
	})
	t.Cleanup(func() { pc.Close(); wg.Wait() })
	r := newResolver(t, nil, pc.LocalAddr().String())
	if a, err := r.Lookup(t.Context(), "x.example"); err != nil || fmt.Sprint(a.Addrs) != "[192.0.2.1]" {
		t.Errorf("%v %v", a, err)
	}
}

// TestServers: a server that is silent rests, and others answer in its place.
func TestServers(t *testing.T) {
	dead, err := net.ListenPacket("udp", "127.0.0.1:0") // takes questions, answers none
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	s := serve(t, usual)
	broken := serve(t, func(m *dns.Msg, _ dns.Question, _ bool) bool { m.Rcode = dns.RcodeServerFailure; return true })
	r := newResolver(t, nil, dead.LocalAddr().String(), broken.addr, s.addr)
	for i := range 30 {
		if _, err := r.Lookup(t.Context(), "four.example"); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if d := r.conf.get().servers[0]; d.failures == 0 || d.failures > 3 || !d.resting(time.Now()) {
		t.Errorf("the silent server: %d failures", d.failures)
	}
}

// TestDown: servers that answer nothing, and nobody, are distinguished from names that are
// not resolved, and recovery is seen.
func TestDown(t *testing.T) {
	var up, deny atomic.Bool
	s := serve(t, func(m *dns.Msg, q dns.Question, tcp bool) bool {
		if deny.Load() {
			m.Rcode = dns.RcodeRefused
			return true
		}
		return up.Load() && usual(m, q, tcp)
	})
	r := newResolver(t, func(cfg *Config) { cfg.Timeout, cfg.Tries = 50*time.Millisecond, 2 }, s.addr)
	again := func() { r.prober.since.Store(0); r.prober.at = time.Time{} }
	look := func(name string) string { _, err := r.Lookup(t.Context(), name); return kindOf(err) }
	if got := look("four.example"); got != "down" {
		t.Errorf("silent: %s", got)
	}
	asked := s.asked.Load()
	if got := look("six.example"); got != "down" || s.asked.Load() != asked {
		t.Errorf("a moment later: %s, %d questions", got, s.asked.Load()-asked)
	}
	again()
	deny.Store(true)
	if got := look("four.example"); got != "down" {
		t.Errorf("refuses all: %s", got)
	}
	again()
	deny.Store(false)
	up.Store(true)
	if got := look("four.example"); got != "<nil>" {
		t.Errorf("up again: %s", got)
	}
	if got := look("silent.example"); got != "timeout" {
		t.Errorf("one silent name: %s", got)
	}
	s.udp.PacketConn.Close()
	again()
	if got := look("four.example"); got != "down" {
		t.Errorf("nobody listens: %s", got)
	}
}

// TestFiles: resolv.conf with its search list and ndots, and the hosts file, both
// read again when they change.
func TestFiles(t *testing.T) {
	var mu sync.Mutex
	var names []string
	s := serve(t, func(m *dns.Msg, q dns.Question, tcp bool) bool {
		if q.Qtype == dns.TypeA {
			mu.Lock()
			names = append(names, q.Name)
			mu.Unlock()
		}
		return usual(m, q, tcp)
	})
	dir := t.TempDir()
	conf, hosts := filepath.Join(dir, "resolv.conf"), filepath.Join(dir, "hosts")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(hosts, "# none\n192.0.2.9 Box.Local box\n2001:db8::9 box # six\nodd\n")
	write(conf, "nameserver 127.0.0.1\nsearch corp.example. lab.example\noptions ndots:2 timeout:1\n")
	r := newResolver(t, func(cfg *Config) { cfg.ResolvConf, cfg.Hosts = conf, hosts })
	up := r.conf.get()
	if len(up.servers) != 1 || up.servers[0].addr != netip.MustParseAddrPort("127.0.0.1:53") || up.inTurn {
		t.Fatalf("%+v", up)
	}
	up.servers = []*server{r.server(netip.MustParseAddrPort(s.addr))} // resolv.conf knows no ports
	for _, tc := range []struct{ name, asked, kind string }{
		{"box", "", "<nil>"},
		{"box.local", "", "<nil>"},
		{"four", "four.corp.example.", "<nil>"},
		{"a.b", "a.b.corp.example. a.b.lab.example. a.b.", "no_name"},
		{"a.b.c", "a.b.c. a.b.c.corp.example. a.b.c.lab.example.", "no_name"},
		{"a.b.", "a.b.", "no_name"},
	} {
		mu.Lock()
		names = nil
		mu.Unlock()
		_, err := r.Lookup(t.Context(), tc.name)
		mu.Lock()
		got := strings.Join(names, " ")
		mu.Unlock()
		if got != tc.asked || kindOf(err) != tc.kind {
			t.Errorf("%s: asked %s, %v", tc.name, got, err)
		}
	}
	if a, _ := r.Lookup(t.Context(), "box"); len(a.Addrs) != 2 {
		t.Error(a)
	}
	write(hosts, "192.0.2.10 box\n")
	write(conf, "nameserver 127.0.0.2\nnameserver ::1\n")
	r.hosts.looked, r.conf.looked = time.Time{}, time.Time{}
	if a, _ := r.Lookup(t.Context(), "box"); fmt.Sprint(a.Addrs) != "[192.0.2.10]" {
		t.Error("the hosts file of before", a)
	}
	if up := r.conf.get(); len(up.servers) != 2 || len(up.search) != 0 || up.ndots != 1 {
		t.Errorf("resolv.conf of before: %+v", up)
	}
	if up := r.readConf(nil); len(up.servers) != 1 || up.servers[0].addr.Addr().String() != "127.0.0.1" {
		t.Errorf("without a file: %+v", up)
	}
}

func TestParseServer(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1:53", "192.0.2.1:5353": "192.0.2.1:5353", "2001:db8::1": "[2001:db8::1]:53",
		"[2001:db8::1]": "[2001:db8::1]:53", "[2001:db8::1]:5353": "[2001:db8::1]:5353",
		"": "", "dns.example": "", "192.0.2.1:": "", "192.0.2.1:0": "", "192.0.2.1:99999": "",
	} {
		got, err := ParseServer(text)
		if err == nil && got.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

// TestManyQuestions: thousands of questions at once share a handful of sockets,
// whose ports change, and nothing is left behind.
func TestManyQuestions(t *testing.T) {
	s := serve(t, usual)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	r := newResolver(t, func(cfg *Config) { cfg.Timeout = 2 * time.Second }, s.addr)
	const names, workers = 20_000, 1000
	var next, bad atomic.Int64
	var most atomic.Int64
	var wg sync.WaitGroup
	sv := r.conf.get().servers[0]
	for range workers {
		wg.Go(func() {
			for i := next.Add(1); i <= names; i = next.Add(1) {
				if _, err := r.Lookup(t.Context(), fmt.Sprintf("four.n%d.example", i)); err != nil {
					bad.Add(1)
				}
				sv.mu.Lock()
				most.Store(max(most.Load(), int64(len(sv.socks))))
				sv.mu.Unlock()
			}
		})
	}
	wg.Wait()
	ports := 0
	s.ports.Range(func(any, any) bool { ports++; return true })
	if bad.Load() > 0 || most.Load() > maxSockets || ports <= int(most.Load()) {
		t.Errorf("%d failed, %d sockets at once, %d ports", bad.Load(), most.Load(), ports)
	}
	sv.mu.Lock()
	for _, k := range sv.socks {
		if len(k.asked) > 0 {
			t.Errorf("%d questions are left", len(k.asked))
		}
	}
	sv.mu.Unlock()
	if n := len(sv.room); n > 0 {
		t.Errorf("%d questions are still counted", n)
	}
	r.Close()
	if _, err := r.Lookup(t.Context(), "four.example"); kindOf(err) != "down" {
		t.Errorf("after Close: %v", err)
	}
}

func TestCanceled(t *testing.T) {
	s := serve(t, usual)
	r := newResolver(t, func(cfg *Config) { cfg.Timeout = time.Minute }, s.addr)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := r.Lookup(ctx, "silent.example"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r.Lookup(t.Context(), "four.example")
	r.cfg.Timeout = 100 * time.Millisecond // of the probe
	if _, err := r.Lookup(ctx, "silent.example"); kindOf(err) != "timeout" {
		t.Error(err)
	}
	if !slices.Contains([]string{"no_name", "failed", "timeout", "down"}, Down.String()) {
		t.Error("kinds")
	}
}

// TestLateFamily: addresses of one family that come late join those of the other,
// which are there at once; where the machine has no use for the first, it waits.
func TestLateFamily(t *testing.T) {
	const v4, v6 = "192.0.2.1", "2001:db8::1"
	for _, c := range []struct {
		late        uint16 // what is answered late
		v6          bool   // the machine has IPv6
		first, both string
	}{
		{dns.TypeA, true, v6, v6 + " " + v4},
		{dns.TypeA, false, v4 + " " + v6, ""},
		{dns.TypeAAAA, true, v4, v6 + " " + v4},
		{dns.TypeAAAA, false, v4, v4 + " " + v6},
	} {
		held := make(chan struct{})
		var once atomic.Int64
		s := serve(t, func(m *dns.Msg, q dns.Question, tcp bool) bool {
			if q.Qtype == c.late {
				if once.Add(1) == 1 {
					return false // lost once
				}
				if c.late != dns.TypeA || c.v6 {
					<-held
				}
			}
			return usual(m, q, tcp)
		})
		r := newResolver(t, func(cfg *Config) { cfg.Timeout = 2 * familyDelay }, s.addr)
		r.v6.have = c.v6
		text := func(a Answer) string { return strings.Trim(fmt.Sprint(a.Addrs), "[]") }
		answer, err := r.Lookup(t.Context(), "both.example")
		if err != nil || text(answer) != c.first || (answer.Late != nil) != (c.both != "") {
			t.Errorf("%+v: %+v %v", c, answer, err)
		}
		close(held)
		if c.both == "" {
			continue
		}
		late := <-answer.Late
		if _, more := <-answer.Late; text(late) != c.both || late.TTL != 30*time.Second || more {
			t.Errorf("%+v: late %+v", c, late)
		}
	}
}

// TestNoNameAtAll: a server that calls every name unknown is not believed, until it
// knows one; one that knows com is.
func TestNoNameAtAll(t *testing.T) {
	var works atomic.Bool
	s := serve(t, func(m *dns.Msg, q dns.Question, tcp bool) bool {
		if works.Load() && strings.HasPrefix(q.Name, "both.") {
			return usual(m, q, tcp)
		}
		m.Rcode = dns.RcodeNameError
		return soa(m)
	})
	r := newResolver(t, nil, s.addr)
	for i := range 7 {
		_, err := r.Lookup(t.Context(), fmt.Sprintf("s%d.example", i))
		if kindOf(err) != "failed" || !strings.Contains(err.Error(), "even com") {
			t.Errorf("name %d: %v", i, err)
		}
	}
	works.Store(true)
	if _, err := r.Lookup(t.Context(), "both.example"); err != nil {
		t.Error(err)
	}
	if _, err := r.Lookup(t.Context(), "s1.example"); kindOf(err) != "no_name" {
		t.Errorf("once a name was found: %v", err)
	}
	r = newResolver(t, nil, serve(t, usual).addr)
	if _, err := r.Lookup(t.Context(), "missing.example"); kindOf(err) != "no_name" {
		t.Errorf("of a server that knows com: %v", err)
	}
}
