package fetch

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"seine/fetch/egress"
)

// inNetwork runs a test once more in a network of its own, set up by a script. It is true
// there.
func inNetwork(t *testing.T, script string) bool {
	t.Helper()
	const mark = "SEINE_IN_NETWORK"
	if os.Getenv(mark) != "" {
		return true
	}
	unshare := []string{"unshare", "--net", "--map-root-user", "sh", "-c"}
	if out, err := exec.Command(unshare[0], append(unshare[1:], script)...).CombinedOutput(); err != nil {
		t.Skipf("no network of its own can be had here: %v: %s", err, out)
	}
	cmd := exec.Command(unshare[0], append(unshare[1:], script+` && exec "$0" "$@"`, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")...)
	cmd.Env = append(os.Environ(), mark+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

// TestBindIPv6Network: with a local route each site has an address of its own in a network
// of IPv6, and keeps it; one address that only the route has is bound, too.
func TestBindIPv6Network(t *testing.T) {
	if !inNetwork(t, "ip link set lo up && ip -6 route add local 2001:db8:7::/64 dev lo") {
		return
	}
	port := peers(t)
	network := netip.MustParsePrefix("2001:db8:7::/64")
	for _, list := range []string{network.String(), "2001:db8:7::9", "2001:db8:7::/125"} {
		c := newClient(t, func(cfg *Config) { cfg.Bind, cfg.Resolver = []string{list}, hosts("::1", "127.0.0.1") })
		among, _ := egress.Parse(list)
		seen := map[string]bool{}
		for i := range 20 {
			url := fmt.Sprintf("http://site%d.example:%s/", i, port)
			got, err := from(t, c, url, "")
			if err != nil {
				t.Fatal(list, err)
			}
			other := newClient(t, func(cfg *Config) { cfg.Bind, cfg.Resolver = []string{list}, hosts("::1") })
			if again, err := from(t, other, url, ""); err != nil || again != got {
				t.Errorf("%s: from %s and from %s, %v", list, got, again, err)
			}
			if a, err := netip.ParseAddr(got); err != nil || !among.Contains(a) {
				t.Errorf("%s: from %s", list, got)
			}
			seen[got] = true
		}
		if list == network.String() && len(seen) != 20 {
			t.Errorf("20 sites have %d addresses", len(seen))
		}
	}
}
