package resolver

import (
	"bufio"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// watched is what a file holds; it is read again when it changed.
type watched[T any] struct {
	path string // "" = value stays
	read func(*os.File) *T

	mu     sync.Mutex
	value  *T
	looked time.Time
	mtime  time.Time
	size   int64
}

// get returns what the file held within the last moments; what is not there is
// empty.
func (w *watched[T]) get() *T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.path == "" || w.value != nil && time.Since(w.looked) < fileAge {
		return w.value
	}
	w.looked = time.Now()
	f, err := os.Open(w.path)
	if err != nil {
		if w.value == nil {
			w.value = w.read(nil)
		}
		return w.value
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && w.value != nil && st.ModTime().Equal(w.mtime) && st.Size() == w.size {
		return w.value
	} else if err == nil {
		w.mtime, w.size = st.ModTime(), st.Size()
	}
	w.value = w.read(f)
	return w.value
}

// readHosts reads hosts(5); nil is an empty file.
func readHosts(f *os.File) *map[string][]netip.Addr {
	hosts := make(map[string][]netip.Addr)
	if f == nil {
		return &hosts
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		a, err := netip.ParseAddr(fields[0])
		if err != nil {
			continue
		}
		for _, name := range fields[1:] {
			name = strings.TrimSuffix(strings.ToLower(name), ".")
			hosts[name] = append(hosts[name], a.Unmap())
		}
	}
	return &hosts
}

// readConf reads resolv.conf(5). One that names no server means that of this
// machine.
func (r *Resolver) readConf(f *os.File) *upstream {
	up := &upstream{ndots: 1}
	if f != nil {
		if conf, err := dns.ClientConfigFromReader(f); err == nil {
			up.ndots = conf.Ndots
			for _, name := range conf.Search {
				if name = strings.Trim(strings.ToLower(name), "."); name != "" {
					up.search = append(up.search, name+".")
				}
			}
			for _, text := range conf.Servers {
				if a, err := netip.ParseAddr(text); err == nil {
					up.servers = append(up.servers, r.server(netip.AddrPortFrom(a, 53)))
				}
			}
		}
	}
	if len(up.servers) == 0 {
		up.servers = append(up.servers, r.server(netip.MustParseAddrPort("127.0.0.1:53")))
	}
	return up
}

// source says whether this machine has an address to speak IPv6 from.
type source struct {
	mu   sync.Mutex
	at   time.Time
	have bool
}

// sourceAge is how long that is believed.
const sourceAge = time.Minute

func (s *source) reachable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < sourceAge {
		return s.have
	}
	s.at = time.Now()
	nc, err := net.Dial("udp6", "[2001:500:2::c]:53") // a root server; nothing is sent
	if s.have = err == nil; s.have {
		nc.Close()
	}
	return s.have
}
