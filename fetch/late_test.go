package fetch

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"seine/fetch/resolver"
)

// TestLateAddresses: an address that comes after the others is dialled from then on,
// and a name whose addresses did not answer is asked for again before its TTL is over.
func TestLateAddresses(t *testing.T) {
	good, bad := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2") // where nobody listens
	for name, joins := range map[string]bool{"joins": true, "asked again": false} {
		t.Run(name, func(t *testing.T) {
			s := answers(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", true)
			c := newClient(t, nil)
			late, asks := make(chan resolver.Answer, 1), 0
			n := c.dialer.names
			n.ask = func(context.Context, string) (resolver.Answer, error) {
				asks++
				a := resolver.Answer{Addrs: []netip.Addr{bad}, TTL: time.Hour}
				if joins {
					a.Late = late
				} else if asks > 1 {
					a.Addrs[0] = good
				}
				return a, nil
			}
			url := strings.Replace(s.url, "127.0.0.1", "late.example", 1)
			if _, _, err := get(c, url); class(err) != ClassConnect {
				t.Fatalf("at first: %v", err)
			}
			want := 2
			if joins {
				want = 1
				late <- resolver.Answer{Addrs: []netip.Addr{bad, good}, TTL: time.Hour}
				for end := time.Now().Add(10 * time.Second); n.cached("late.example") == nil; time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatal("what came late is not known")
					}
				}
			}
			close(late)
			if _, h, err := get(c, url); err != nil || string(h.body) != "ok" || asks != want {
				t.Errorf("then: %v, asked %d times", err, asks)
			}
		})
	}
}
