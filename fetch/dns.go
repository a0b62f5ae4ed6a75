package fetch

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Resolver turns a name into addresses; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// systemResolver asks for names with a dot as absolute, so that a search list
// of the machine neither adds questions nor leads elsewhere. A name of one
// label stays as it is: the hosts file knows it only so.
type systemResolver struct{ net.Resolver }

func (r *systemResolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if strings.Contains(host, ".") && !strings.HasSuffix(host, ".") {
		host += "."
	}
	return r.Resolver.LookupNetIP(ctx, network, host)
}

// dnsCache remembers answers for fixed times, because the resolver tells no
// TTL: Config.DNSTTL for addresses, Config.DNSNegativeTTL for failures. Lookups
// of one name at the same time are one. It is asked only when a connection is
// made.
type dnsCache struct {
	resolver Resolver
	ttl, neg time.Duration
	timeout  time.Duration
	max      int
	m        *meters

	flight singleflight.Group
	ctx    context.Context // ends the lookups under way
	cancel context.CancelFunc
	wg     sync.WaitGroup // lookups under way

	mu    sync.Mutex
	names map[string]*list.Element // of *dnsEntry
	lru   list.List                // front: used last
}

type dnsEntry struct {
	name  string
	addrs []netip.Addr
	err   error
	until time.Time
}

var errNoAddress = errors.New("the name has no address")

func newDNSCache(cfg *Config, m *meters) *dnsCache {
	d := &dnsCache{
		resolver: cfg.Resolver, ttl: cfg.DNSTTL, neg: cfg.DNSNegativeTTL,
		timeout: cfg.ConnectTimeout, max: cfg.DNSEntries, m: m, names: make(map[string]*list.Element),
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// close ends lookups under way and waits for them.
func (d *dnsCache) close() {
	d.cancel()
	d.wg.Wait()
}

// lookup answers from memory or asks. A caller whose ctx ends leaves; the
// lookup goes on for others. The slice is shared: read only.
func (d *dnsCache) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if e := d.cached(name); e != nil {
		d.m.dnsHits.Inc()
		return e.addrs, e.err
	}
	d.wg.Add(1)
	ch := d.flight.DoChan(name, func() (any, error) {
		e := d.ask(name)
		return e, nil
	})
	done := func(r singleflight.Result) ([]netip.Addr, error) {
		e := r.Val.(*dnsEntry)
		return e.addrs, e.err
	}
	select {
	case r := <-ch:
		d.wg.Done()
		return done(r)
	case <-ctx.Done():
		go func() { <-ch; d.wg.Done() }()
		return nil, ctx.Err()
	}
}

// ask resolves and remembers.
func (d *dnsCache) ask(name string) *dnsEntry {
	ctx, cancel := context.WithTimeout(d.ctx, d.timeout)
	defer cancel()
	d.m.dnsLookups.Inc()
	e := &dnsEntry{name: name}
	e.addrs, e.err = d.resolver.LookupNetIP(ctx, "ip", name)
	if e.err == nil && len(e.addrs) == 0 {
		e.err = errNoAddress
	}
	ttl := d.ttl
	if e.err != nil {
		d.m.dnsFailures.Inc()
		ttl = d.neg
	}
	e.until = time.Now().Add(ttl)
	if d.ctx.Err() == nil {
		d.store(e)
	}
	return e
}

func (d *dnsCache) cached(name string) *dnsEntry {
	d.mu.Lock()
	defer d.mu.Unlock()
	el := d.names[name]
	if el == nil {
		return nil
	}
	e := el.Value.(*dnsEntry)
	if !time.Now().Before(e.until) {
		d.lru.Remove(el)
		delete(d.names, name)
		return nil
	}
	d.lru.MoveToFront(el)
	return e
}

func (d *dnsCache) store(e *dnsEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if el := d.names[e.name]; el != nil {
		d.lru.Remove(el)
	}
	d.names[e.name] = d.lru.PushFront(e)
	for d.lru.Len() > d.max {
		el := d.lru.Back()
		delete(d.names, el.Value.(*dnsEntry).name)
		d.lru.Remove(el)
	}
}
