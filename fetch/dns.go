package fetch

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"seine/fetch/resolver"
)

// Resolver turns a name into addresses; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// lookupFunc looks one name up. Its errors are a resolver.Error, which has their kind, or
// those of a context.
type lookupFunc func(ctx context.Context, name string) (resolver.Answer, error)

// foreignTTL is how long an answer is believed whose resolver gives no TTL.
const foreignTTL = 5 * time.Minute

// lookupFuncOf makes one of a Resolver.
func lookupFuncOf(r Resolver) lookupFunc {
	return func(ctx context.Context, name string) (resolver.Answer, error) {
		addrs, err := r.LookupNetIP(ctx, "ip", name)
		if err == nil && len(addrs) > 0 {
			return resolver.Answer{Addrs: addrs, TTL: foreignTTL}, nil
		}
		e := &resolver.Error{Kind: resolver.Failed, Name: name, Err: err}
		not, ok := errors.AsType[*net.DNSError](err)
		switch {
		case err == nil:
			e.Kind, e.Err = resolver.NoName, errNoAddress
		case ok && not.IsNotFound:
			e.Kind = resolver.NoName
		case ok && not.IsTimeout, errors.Is(err, context.DeadlineExceeded):
			e.Kind = resolver.TimedOut
		}
		return resolver.Answer{}, e
	}
}

// names remembers answers for as long as their TTL says, within Config.DNSMinTTL
// and Config.DNSTTL, and failures for Config.DNSNegativeTTL. That no server answers
// at all is not remembered. Lookups of one name at the same time are one.
type names struct {
	ask      lookupFunc
	own      *resolver.Resolver // behind ask, nil for another's
	min, ttl time.Duration
	neg      time.Duration
	timeout  time.Duration
	max      int
	m        *meters

	flight singleflight.Group
	ctx    context.Context // ends the lookups under way
	cancel context.CancelFunc
	wg     sync.WaitGroup // lookups under way

	mu    sync.Mutex
	known map[string]*list.Element // of *nameEntry
	lru   list.List                // front: used last
}

type nameEntry struct {
	name  string
	addrs []netip.Addr
	err   error
	until time.Time
	at    time.Time // when it was stored

	partial bool // addresses of one family may be missing
}

var errNoAddress = errors.New("the name has no address")

func newNames(cfg *Config, m *meters) (*names, error) {
	n := &names{
		min: cfg.DNSMinTTL, ttl: cfg.DNSTTL, neg: cfg.DNSNegativeTTL,
		timeout: cfg.ConnectTimeout, max: cfg.DNSEntries, m: m, known: make(map[string]*list.Element),
	}
	switch {
	case cfg.Resolver != nil:
		n.ask = lookupFuncOf(cfg.Resolver)
	case len(cfg.DNS) == 0 && runtime.GOOS == "windows": // which has no resolv.conf
		n.ask = lookupFuncOf(net.DefaultResolver)
	default:
		var err error
		if n.own, err = resolver.New(resolver.Config{Servers: cfg.DNS}); err != nil {
			return nil, err
		}
		n.ask = n.own.Lookup
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n, nil
}

// close ends lookups under way and waits for them.
func (n *names) close() {
	n.cancel()
	n.wg.Wait()
	if n.own != nil {
		n.own.Close()
	}
}

// lookup answers from memory or asks. A caller whose ctx ends leaves; the
// lookup goes on for others. The slice is shared: read only.
func (n *names) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if e := n.cached(name); e != nil {
		n.m.dnsHits.Inc()
		return e.addrs, e.err
	}
	kept := strings.Clone(name) // it may be part of a URL
	n.wg.Add(1)
	ch := n.flight.DoChan(kept, func() (any, error) {
		e := n.resolve(kept)
		return e, nil
	})
	done := func(r singleflight.Result) ([]netip.Addr, error) {
		e := r.Val.(*nameEntry)
		return e.addrs, e.err
	}
	select {
	case r := <-ch:
		n.wg.Done()
		return done(r)
	case <-ctx.Done():
		go func() { <-ch; n.wg.Done() }()
		return nil, ctx.Err()
	}
}

// resolve asks and remembers.
func (n *names) resolve(name string) *nameEntry {
	ctx, cancel := context.WithTimeout(n.ctx, n.timeout)
	n.m.dnsLookups.Inc()
	answer, err := n.ask(ctx, name)
	if answer.Late == nil {
		cancel()
	} else {
		defer n.join(name, answer.Late, cancel)
	}
	e := &nameEntry{name: name, addrs: answer.Addrs, err: err, partial: answer.Partial}
	ttl := n.keeps(answer)
	if err != nil {
		kind := resolver.Failed
		if fault, ok := errors.AsType[*resolver.Error](err); ok {
			kind = fault.Kind
			ttl = n.neg
			if kind == resolver.NoName {
				ttl = max(n.neg, min(fault.TTL, n.ttl))
			}
		}
		n.m.dnsFailures[kind].Inc()
		if kind == resolver.Down {
			return e
		}
	}
	e.until = time.Now().Add(ttl)
	if n.ctx.Err() == nil {
		n.store(e)
	}
	return e
}

// keeps is how long an answer is remembered.
func (n *names) keeps(a resolver.Answer) time.Duration { return min(max(a.TTL, n.min), n.ttl) }

// join remembers addresses of the other family that come late, with those that came
// first. A caller of lookup waits for it with what it waits for anyway.
func (n *names) join(name string, late <-chan resolver.Answer, cancel context.CancelFunc) {
	n.wg.Add(1)
	go func() {
		defer n.wg.Done()
		defer cancel()
		if both, ok := <-late; ok && n.ctx.Err() == nil {
			n.store(&nameEntry{name: name, addrs: both.Addrs, partial: both.Partial, until: time.Now().Add(n.keeps(both))})
		}
	}()
}

// isPartial reports whether addresses of a name that is remembered may be missing.
func (n *names) isPartial(name string) bool {
	e := n.cached(name)
	return e != nil && e.partial
}

// forget has a name asked for again whose addresses, as known at that time, did not
// answer.
func (n *names) forget(name string, at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if el := n.known[name]; el != nil && !el.Value.(*nameEntry).at.After(at) {
		n.lru.Remove(el)
		delete(n.known, name)
	}
}

func (n *names) cached(name string) *nameEntry {
	n.mu.Lock()
	defer n.mu.Unlock()
	el := n.known[name]
	if el == nil {
		return nil
	}
	e := el.Value.(*nameEntry)
	if !time.Now().Before(e.until) {
		n.lru.Remove(el)
		delete(n.known, name)
		return nil
	}
	n.lru.MoveToFront(el)
	return e
}

func (n *names) store(e *nameEntry) {
	e.at = time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if el := n.known[e.name]; el != nil {
		n.lru.Remove(el)
	}
	n.known[e.name] = n.lru.PushFront(e)
	now := time.Now()
	for range 2 { // what is of no use any more goes faster than new names come
		el := n.lru.Back()
		if old := el.Value.(*nameEntry); n.lru.Len() > n.max || old != e && !now.Before(old.until) {
			delete(n.known, old.name)
			n.lru.Remove(el)
		}
	}
}
