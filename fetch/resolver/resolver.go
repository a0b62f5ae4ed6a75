// Package resolver turns names into addresses: many a second, over few sockets.
//
// A Resolver asks DNS servers, those of resolv.conf or others. Each server has a
// handful of UDP sockets that all questions to it share; a socket is replaced
// after some thousand questions or a minute, so that its port is no long target.
// An answer counts if it comes from the server asked, on the socket of the
// question, with its id and the question itself; all else is dropped. What does
// not fit a datagram is asked for again over TCP.
//
//	Resolver  hosts file, search list, A and AAAA side by side
//	ask       one question: tries, servers in turn, late answers count
//	server    how one server fares, and its sockets
//	socket    questions under way, by id
//
// Nothing is remembered but how servers fare: the caller keeps answers, for as
// long as their TTL says.
package resolver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// Config of a Resolver; zero fields are the documented defaults.
type Config struct {
	Servers []string      // IP or IP:PORT, asked in turn; default those of ResolvConf, asked in order
	Timeout time.Duration // of one try, default 3 s
	Tries   int           // of one question, default 3

	ResolvConf string // default /etc/resolv.conf; read again when it changes; its search list and ndots count where Servers is empty
	Hosts      string // default /etc/hosts; read again when it changes
}

const (
	defaultTimeout = 3 * time.Second
	defaultTries   = 3
	fileAge        = 5 * time.Second // how long a file is believed without a look
	// familyDelay is how long the addresses of one family wait for those of the
	// other (RFC 8305, section 3, says 50 ms to users who wait).
	familyDelay = 250 * time.Millisecond
	hostsTTL    = fileAge
	maxChain    = 16 // aliases from a name to its addresses
	maxAddrs    = 4  // of one family that are taken
)

// Kind is why a name has no addresses.
type Kind uint8

// The kinds of Error.
const (
	NoName   Kind = iota // there is no such name, or it has no address: final
	Failed               // a server answered that it failed
	TimedOut             // no answer in time, while servers answer others
	Down                 // no server answers, or would
)

func (k Kind) String() string {
	return [...]string{"no_name", "failed", "timeout", "down"}[k]
}

// Error is why a lookup failed.
type Error struct {
	Kind Kind
	Name string
	Err  error
	TTL  time.Duration // of NoName: how long it may be believed, 0 = unsaid
}

func (e *Error) Error() string { return fmt.Sprintf("resolver: %s: %v", e.Name, e.Err) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

var (
	errNoName    = errors.New("no such name")
	errNoAddress = errors.New("the name has no address")
	errNotName   = errors.New("not a name that DNS can hold")
	errKnowsNone = errors.New("the DNS servers call every name unknown so far, even com; check how they are configured")
	errTimeout   = errors.New("no answer in time")
	errLame      = errors.New("the server does not resolve for others")
	errDown      = errors.New("no DNS server answered a moment ago")
	errClosed    = errors.New("resolver is closed")
)

// Answer is what a name resolves to.
type Answer struct {
	Addrs []netip.Addr // the family that this machine reaches better first
	TTL   time.Duration

	// Partial says that nothing is known of the addresses of one family: it was not
	// resolved, or not yet.
	Partial bool

	// Late is there where the addresses of one family came and those of the other are
	// still asked for: it brings what is known of both then, or is closed without. The
	// question ends with the context of the lookup.
	Late <-chan Answer
}

// Resolver looks names up. It is safe for any number of goroutines.
type Resolver struct {
	cfg        Config
	conf       *watched[upstream]
	hosts      *watched[map[string][]netip.Addr]
	nextServer atomic.Uint32
	prober     prober
	known      known
	v6         source

	mu     sync.Mutex
	all    map[netip.AddrPort]*server
	closed bool
	wg     sync.WaitGroup // readers of sockets
}

// upstream is whom to ask, and how names are completed.
type upstream struct {
	servers []*server
	search  []string // with a dot behind
	ndots   int
	inTurn  bool
}

// New makes a resolver. It opens no socket yet. Close ends it.
func New(cfg Config) (*Resolver, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Tries == 0 {
		cfg.Tries = defaultTries
	}
	if cfg.ResolvConf == "" {
		cfg.ResolvConf = "/etc/resolv.conf"
	}
	if cfg.Hosts == "" {
		cfg.Hosts = "/etc/hosts"
	}
	r := &Resolver{cfg: cfg, all: make(map[netip.AddrPort]*server)}
	r.hosts = &watched[map[string][]netip.Addr]{path: cfg.Hosts, read: readHosts}
	if len(cfg.Servers) == 0 {
		r.conf = &watched[upstream]{path: cfg.ResolvConf, read: r.readConf}
		return r, nil
	}
	up := &upstream{inTurn: true}
	for _, text := range cfg.Servers {
		addr, err := ParseServer(text)
		if err != nil {
			return nil, err
		}
		up.servers = append(up.servers, r.server(addr))
	}
	r.conf = &watched[upstream]{value: up}
	return r, nil
}

// ParseServer reads IP or IP:PORT; an IPv6 address with a port stands in brackets.
func ParseServer(text string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return netip.AddrPortFrom(a, 53), nil
	}
	ap, err := netip.ParseAddrPort(text)
	if err != nil || ap.Port() == 0 {
		return ap, fmt.Errorf("resolver: DNS server %q is not an IP address, or one with a port", text)
	}
	return ap, nil
}

// server returns the one with that address; how it fares outlives a change of
// resolv.conf.
func (r *Resolver) server(addr netip.AddrPort) *server {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.all[addr]
	if s == nil {
		s = newServer(r, addr)
		s.closed = r.closed
		r.all[addr] = s
	}
	return s
}

// Close closes all sockets and waits for their readers. Lookups under way fail.
func (r *Resolver) Close() {
	r.mu.Lock()
	r.closed = true
	all := slices.Collect(maps.Values(r.all))
	r.mu.Unlock()
	for _, s := range all {
		s.close()
	}
	r.wg.Wait()
}

// Lookup asks for the addresses of a name, in lower case ASCII. Its errors are of
// type *Error, or those of ctx. It holds a few hundred bytes and two goroutines.
func (r *Resolver) Lookup(ctx context.Context, name string) (Answer, error) {
	rooted := strings.HasSuffix(name, ".")
	bare := strings.TrimSuffix(name, ".")
	if addrs := (*r.hosts.get())[bare]; addrs != nil {
		return Answer{Addrs: addrs, TTL: hostsTTL}, nil
	}
	if r.prober.down() {
		return Answer{}, &Error{Kind: Down, Name: bare, Err: errDown}
	}
	up := r.conf.get()
	var first, soft error
	for _, full := range up.names(bare, rooted) {
		answer, err := r.both(ctx, up, full)
		if err == nil || ctx.Err() != nil {
			return answer, err
		}
		e, _ := errors.AsType[*Error](err)
		e.Name = bare
		if first == nil {
			first = err
		}
		if e.Kind != NoName && soft == nil {
			soft = err
		}
	}
	if soft != nil {
		return Answer{}, soft // one that is not known to be missing may be there
	}
	return Answer{}, first
}

// names completes a name by the search list, as resolv.conf(5) has it.
func (up *upstream) names(bare string, rooted bool) []string {
	full := bare + "."
	if rooted || len(up.search) == 0 {
		return []string{full}
	}
	var all []string
	dotted := strings.Count(bare, ".") >= up.ndots
	if dotted {
		all = append(all, full)
	}
	for _, suffix := range up.search {
		all = append(all, full+suffix)
	}
	if !dotted {
		all = append(all, full)
	}
	return all
}

// found is what one question brought.
type found struct {
	addrs []netip.Addr
	ttl   time.Duration
	err   error
}

// isKnown reports whether the question was answered: by addresses, or by that there are
// none.
func (f *found) isKnown() bool {
	e, ok := errors.AsType[*Error](f.err)
	return len(f.addrs) > 0 || ok && e.Kind == NoName
}

// both asks for A and AAAA side by side.
func (r *Resolver) both(ctx context.Context, up *upstream, full string) (Answer, error) {
	if _, ok := dns.IsDomainName(full); !ok {
		return Answer{}, &Error{Kind: NoName, Name: full, Err: errNotName}
	}
	ctx, cancel := context.WithCancel(ctx)
	var got [2]found
	var done [2]chan struct{}
	for i, qtype := range [...]uint16{dns.TypeA, dns.TypeAAAA} {
		done[i] = make(chan struct{})
		go func() {
			got[i] = r.find(ctx, up, full, qtype)
			close(done[i])
		}()
	}
	first := 0
	select {
	case <-done[0]:
	case <-done[1]:
		first = 1
	}
	other := done[1-first]
	// IPv6 addresses alone are of no use to a machine without IPv6.
	if len(got[first].addrs) > 0 && (first == 0 || r.v6.reachable()) {
		wait := time.NewTimer(familyDelay)
		defer wait.Stop()
		select {
		case <-other:
		case <-wait.C:
			return r.early(ctx, cancel, &got, first, other)
		}
	}
	<-other
	cancel()
	return r.joined(ctx, &got[0], &got[1])
}

// early is the answer of one family; that of the other joins it later (RFC 8305,
// section 3).
func (r *Resolver) early(ctx context.Context, cancel context.CancelFunc, got *[2]found, first int, other <-chan struct{}) (Answer, error) {
	var one [2]found
	one[first] = got[first]
	answer, err := r.joined(ctx, &one[0], &one[1])
	late := make(chan Answer, 1)
	answer.Late = late
	go func() {
		defer cancel()
		defer close(late)
		<-other
		if got[1-first].isKnown() {
			both, _ := r.joined(ctx, &got[0], &got[1]) // there are addresses
			late <- both
		}
	}()
	return answer, err
}

// joined makes one answer of both.
func (r *Resolver) joined(ctx context.Context, v4, v6 *found) (Answer, error) {
	a, b := v4, v6
	if r.v6.reachable() {
		a, b = v6, v4
	}
	if len(a.addrs)+len(b.addrs) > 0 {
		answer := Answer{Addrs: slices.Concat(a.addrs, b.addrs)}
		for _, f := range [...]*found{a, b} {
			if len(f.addrs) > 0 && (answer.TTL == 0 || f.ttl < answer.TTL) {
				answer.TTL = f.ttl
			}
			answer.Partial = answer.Partial || !f.isKnown()
		}
		return answer, nil
	}
	for _, f := range [...]*found{v4, v6} { // a family that is not known to be missing may be there
		if !f.isKnown() {
			return Answer{}, f.err
		}
	}
	return Answer{}, v4.err
}

// find asks one question and reads the answer.
func (r *Resolver) find(ctx context.Context, up *upstream, full string, qtype uint16) found {
	m, err := r.ask(ctx, up, full, qtype)
	if err != nil {
		return found{err: err}
	}
	f := read(m, full, qtype)
	if len(f.addrs) > 0 {
		r.known.some.Store(true)
		return f
	}
	fault := errNoAddress
	switch {
	case m.Rcode == dns.RcodeNameError && !r.known.any(ctx, r, up):
		return found{err: &Error{Kind: Failed, Name: full, Err: errKnowsNone}}
	case m.Rcode == dns.RcodeNameError:
		fault = errNoName
	case len(m.Answer) == 0 && !m.Authoritative && !m.RecursionAvailable:
		return found{err: &Error{Kind: Failed, Name: full, Err: errLame}}
	}
	return found{err: &Error{Kind: NoName, Name: full, Err: fault, TTL: negativeTTL(m)}}
}

// read follows the aliases of an answer to its addresses.
func read(m *dns.Msg, full string, qtype uint16) (f found) {
	ttl := uint32(1<<31 - 1)
	name := full
	for range maxChain {
		next := ""
		for _, rr := range m.Answer {
			h := rr.Header()
			if !strings.EqualFold(h.Name, name) || h.Class != dns.ClassINET {
				continue
			}
			var ip net.IP
			switch rr := rr.(type) {
			case *dns.A:
				ip = rr.A
			case *dns.AAAA:
				ip = rr.AAAA
			case *dns.CNAME:
				next = rr.Target
				ttl = min(ttl, h.Ttl)
			}
			if a, ok := netip.AddrFromSlice(ip); ok && h.Rrtype == qtype && len(f.addrs) < maxAddrs {
				if qtype == dns.TypeA {
					a = a.Unmap()
				}
				f.addrs = append(f.addrs, a)
				ttl = min(ttl, h.Ttl)
			}
		}
		if len(f.addrs) > 0 || next == "" {
			break
		}
		name = next
	}
	f.ttl = time.Duration(ttl) * time.Second
	return f
}

// negativeTTL is how long the lack of a name may be believed (RFC 2308, section 5).
func negativeTTL(m *dns.Msg) time.Duration {
	for _, rr := range m.Ns {
		if soa, ok := rr.(*dns.SOA); ok {
			return time.Duration(min(soa.Hdr.Ttl, soa.Minttl)) * time.Second
		}
	}
	return 0
}
