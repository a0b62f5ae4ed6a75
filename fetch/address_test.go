package fetch

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPerAddress: a thousand names on one address are asked no faster than the
// bound allows, in the order of their reservations; names elsewhere do not notice.
func TestPerAddress(t *testing.T) {
	const names, rate = 1000, 500
	s := answers(t, okAnswer, false)
	port := s.ln.Addr().String()[strings.LastIndexByte(s.ln.Addr().String(), ':'):]
	c := newClient(t, func(cfg *Config) {
		cfg.PerAddress = rate
		cfg.Resolver = resolverFunc(func(_ context.Context, name string) ([]addr, error) {
			if strings.HasPrefix(name, "alone") {
				return []addr{netip.MustParseAddr("127.0.0.2")}, nil
			}
			return []addr{netip.MustParseAddr("127.0.0.1")}, nil
		})
	})
	began := time.Now()
	var mu sync.Mutex
	var starts []time.Time
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() {
			url := fmt.Sprintf("http://n%d.example%s/", i, port)
			for {
				asked := time.Now()
				r, err := c.Prepare(t.Context(), url, "")
				if err != nil {
					t.Error(err)
					return
				}
				if !r.At.After(asked) { // a reservation for later is used up by another call, though its time may have come by now
					mu.Lock()
					starts = append(starts, time.Now())
					mu.Unlock()
					if err := c.Do(t.Context(), &Request{URL: url, Addr: r.Addr}, new(Response), &counter{}); err != nil {
						t.Error(err)
					}
					return
				}
				time.Sleep(time.Until(r.At))
			}
		})
	}
	if r, err := c.Prepare(t.Context(), "http://alone.example/", ""); err != nil || r.At.After(time.Now()) {
		t.Errorf("another address waits: %v %v", r, err)
	}
	wg.Wait()
	if took := time.Since(began); took < time.Second*(names-1)/rate {
		t.Errorf("%d requests in %s", names, took)
	}
	for i := range starts { // of any hundred requests, the last cannot be there too soon
		if j := i + 100; j < len(starts) && starts[j].Sub(began) < time.Second*time.Duration(j)/rate {
			t.Fatalf("request %d after %s", j, starts[j].Sub(began))
		}
	}
	if n, lately := c.addresses.crowded(); n != 0 || !lately || len(starts) != names {
		t.Errorf("%d hosts still wait, %d were asked", n, len(starts))
	}
}

func TestReservations(t *testing.T) {
	one, two := netip.MustParseAddrPort("192.0.2.1:80"), netip.MustParseAddrPort("192.0.2.2:80")
	a := newAddresses(10)
	now := time.Now()
	at := func(host string, after time.Duration, addrs ...netip.AddrPort) string {
		r := a.reserve(host, addrs, now.Add(after))
		return fmt.Sprint(r.At.Sub(now), " ", r.Addr)
	}
	same := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	same("free", at("a", 0, one), "0s 192.0.2.1")
	same("the second", at("b", 0, one), "100ms 192.0.2.1")
	same("the second again", at("b", 0, one), "100ms 192.0.2.1")
	same("the third", at("c", 0, one), "200ms 192.0.2.1")
	same("another address", at("d", 0, one, two), "0s 192.0.2.2")
	same("that which is free first", at("e", 0, one, two), "100ms 192.0.2.2")
	same("its time has come", at("b", 150*time.Millisecond, one), "100ms 192.0.2.1")
	same("used up", at("b", 150*time.Millisecond, one), "300ms 192.0.2.1")
	a.share(5, 0, false)
	same("a fleet", at("f", 0, one), "400ms 192.0.2.1")
	same("its share", at("g", 0, one), "900ms 192.0.2.1")
	same("lost", at("c", 2*time.Minute, one), "2m0s 192.0.2.1")
	for i := range 10 * leastSwept {
		ap := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 80)
		at("h", time.Hour+time.Duration(i)*time.Second, ap)
	}
	if n := len(a.next) + len(a.waiting); n > 3*leastSwept {
		t.Errorf("%d entries are kept", n)
	}
	if r := newAddresses(0).reserve("a", []netip.AddrPort{one}, now); r != (Reservation{}) {
		t.Error("no bound", r)
	}
}

// TestShares: fetchers that are crowded have what the others do not need, together
// never more than the bound, and more only once all have heard of it.
func TestShares(t *testing.T) {
	const rate = 60.0
	per := func(a *addresses) float64 { return 1 / a.every.Seconds() }
	near := func(what string, got, want float64) {
		t.Helper()
		if got < want*0.999 || got > want*1.001 {
			t.Errorf("%s: %.2f a second, want %.2f", what, got, want)
		}
	}
	one, others := newAddresses(rate), newAddresses(rate)
	near("alone", per(one), 60)
	one.share(3, 0, false)
	near("nobody is crowded", per(one), 20)
	for i := range raiseAfter {
		near(fmt.Sprint("before all have heard, ", i), per(one), 20)
		one.share(3, 1, true)
		others.share(3, 1, false)
	}
	near("the crowded one", per(one), 56)
	near("the others", per(others), 2)
	near("together", per(one)+2*per(others), rate)
	one.share(3, 2, true)
	near("two are crowded", per(one), 29)
	one.share(3, 3, true)
	near("all are", per(one), 20)
	for range 2 * raiseAfter {
		one.share(3, 2, true)
		one.share(3, 3, true) // in between
	}
	near("not in a row", per(one), 20)
}

// TestPrepareFails as Do would.
func TestPrepareFails(t *testing.T) {
	c := newClient(t, func(cfg *Config) {
		cfg.AllowNet = nil
		cfg.Resolver = resolverFunc(func(_ context.Context, name string) ([]addr, error) {
			if name == "none.example" {
				return nil, nil
			}
			return []addr{netip.MustParseAddr("127.0.0.1")}, nil
		})
	})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for url, want := range map[string]string{"ftp://a/": ClassURL, "http://none.example/": ClassNoName, "http://a.example/": ClassGuard, "http://127.0.0.1/": ClassGuard} {
		if _, err := c.Prepare(t.Context(), url, ""); class(err) != want {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
	if _, err := c.Prepare(canceled, "http://new.example/", ""); class(err) != ClassCanceled && class(err) != ClassGuard {
		t.Error(err)
	}
	proxied := newClient(t, func(cfg *Config) { cfg.Proxies = []string{"http://127.0.0.9:1"}; cfg.Resolver = noResolver{t} })
	if r, err := proxied.Prepare(t.Context(), "http://a.example/", ""); err != nil || r != (Reservation{}) {
		t.Error(r, err)
	}
}

// noResolver fails the test when it is asked.
type noResolver struct{ t *testing.T }

func (n noResolver) LookupNetIP(_ context.Context, _, name string) ([]addr, error) {
	n.t.Error("asked for", name)
	return nil, nil
}

// TestPrepareAllocates nothing for an address or a known name.
func TestPrepareAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := newClient(t, func(cfg *Config) {
		cfg.Resolver = resolverFunc(func(context.Context, string) ([]addr, error) { return []addr{netip.MustParseAddr("8.8.8.8")}, nil })
	})
	for _, url := range []string{"http://127.0.0.1/", "http://known.example/"} {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := c.Prepare(t.Context(), url, ""); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", url, n)
		}
	}
}
