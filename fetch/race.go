package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"seine/fetch/egress"
)

const (
	attemptDelay = 250 * time.Millisecond // from one attempt to the next beside it (RFC 8305, section 8)
	maxTried     = 4                      // addresses of one family
	maxUnderWay  = 4                      // attempts of one race at once
)

// race connects to the first of a host's addresses that answers. Attempts follow each other
// after attemptDelay, or as soon as one fails, the families in turn (RFC 8305, sections 4
// and 5), and addrs[0] is first. Losers are closed and waited for.
func (d *dialer) race(ctx context.Context, addrs []netip.AddrPort, from *egress.Pair) (net.Conn, error) {
	if len(addrs) == 1 {
		return d.connect(ctx, addrs[0], from)
	}
	addrs = inTurn(addrs)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		nc   net.Conn
		err  error
		addr netip.Addr
	}
	results := make(chan result, len(addrs))
	started, underWay := 0, 0
	start := func() {
		a, left := addrs[started], len(addrs)-started
		started, underWay = started+1, underWay+1
		go func() {
			ctx, cancel := withPart(ctx, (left+maxUnderWay-1)/maxUnderWay)
			defer cancel()
			nc, err := d.connect(ctx, a, from)
			results <- result{nc, err, a.Addr()}
		}()
	}
	start()
	wait := time.NewTimer(attemptDelay)
	defer wait.Stop()
	var won result
	var failed [2]error // the first of each family
	for underWay > 0 {
		more := won.nc == nil && started < len(addrs) && ctx.Err() == nil
		var next <-chan time.Time
		if more && underWay < maxUnderWay {
			next = wait.C
		}
		select {
		case r := <-results:
			underWay--
			if r.nc == nil {
				if family := familyOf(r.addr); failed[family] == nil {
					failed[family] = r.err
				}
				if !more {
					continue
				}
			} else if won.nc == nil {
				won = r
				cancel()
				continue
			} else {
				r.nc.Close()
				continue
			}
		case <-next:
		}
		start()
		wait.Reset(attemptDelay)
	}
	if won.nc == nil {
		return nil, errors.Join(failed[familyOf(addrs[0].Addr())], failed[1-familyOf(addrs[0].Addr())])
	}
	d.families.learn(addrs[0].Addr(), won.addr, time.Now())
	return won.nc, nil
}

// withPart leaves one of so many parts of the time until the end of ctx, a second at least.
func withPart(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok || parts <= 1 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, max(time.Until(end)/time.Duration(parts), time.Second))
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

const (
	familyKept   = 10 * time.Minute
	mostNetworks = 4096 // that families remembers
)

// families remembers the networks whose family lost a race against the other, so that
// hosts there are asked by the other first (RFC 8305, section 4).
type families struct {
	mu   sync.Mutex
	lost map[netip.Prefix]time.Time // until when that counts
}

// networkOf is what shares one experience: a /24, or a /48 of IPv6.
func networkOf(a netip.Addr) netip.Prefix {
	bits := 48
	if a.Is4() {
		bits = 24
	}
	network, _ := a.Prefix(bits)
	return network
}

// putBetterFirst exchanges addrs[0], whose family lost in its network lately, for an address
// of the other family, unless that lost too.
func (f *families) putBetterFirst(addrs []netip.AddrPort, now time.Time) {
	for i := range addrs {
		if addrs[i].Addr().Is4() != addrs[0].Addr().Is4() {
			if f.hasLost(addrs[0].Addr(), now) && !f.hasLost(addrs[i].Addr(), now) {
				addrs[0], addrs[i] = addrs[i], addrs[0]
			}
			return
		}
	}
}

// inTurn returns up to maxTried addresses of each family in turn, that of addrs[0] first.
func inTurn(addrs []netip.AddrPort) []netip.AddrPort {
	var of [2][]netip.AddrPort // the family of addrs[0], and the other
	for _, a := range addrs {
		i := 0
		if a.Addr().Is4() != addrs[0].Addr().Is4() {
			i = 1
		}
		if len(of[i]) < maxTried {
			of[i] = append(of[i], a)
		}
	}
	if len(of[1]) == 0 {
		return of[0]
	}
	ordered := make([]netip.AddrPort, 0, len(of[0])+len(of[1]))
	for i := range maxTried {
		for _, list := range of {
			if i < len(list) {
				ordered = append(ordered, list[i])
			}
		}
	}
	return ordered
}

func (f *families) hasLost(a netip.Addr, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return now.Before(f.lost[networkOf(a)])
}

// learn takes in that a race which began at first was won at another address.
func (f *families) learn(first, won netip.Addr, now time.Time) {
	if first.Is4() == won.Is4() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost == nil {
		f.lost = make(map[netip.Prefix]time.Time)
	}
	if len(f.lost) >= mostNetworks {
		for network := range f.lost { // some: its next host waits 250 ms
			delete(f.lost, network)
			break
		}
	}
	delete(f.lost, networkOf(won))
	f.lost[networkOf(first)] = now.Add(familyKept)
}
