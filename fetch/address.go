package fetch

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Thousands of names may stand on one address: to the machine behind it they are
// one crawler that asks thousands of times a second. Config.PerAddress spaces the
// requests to an address out. Who means to make a request asks Prepare first, holding
// nothing that is scarce, and calls it once more at the time that it returned.

// Reservation is when and where a host may be asked next.
type Reservation struct {
	At   time.Time  // zero or past: now
	Addr netip.Addr // for Request.Addr; zero where it does not matter
}

// Prepare resolves the name of a URL's host and reserves a request at one of its
// addresses, that which is free first; bind is Request.Bind. While At is ahead the
// reservation is kept for the host: sleep, or do something else, and call Prepare then.
// Once At has passed the reservation is used up by the call, and Do is to follow. One that
// is not fetched within a minute is lost.
//
// Errors are those that Do would end with. Behind a proxy, which resolves names
// itself, there is nothing to prepare.
func (c *Client) Prepare(ctx context.Context, url, bind string) (Reservation, error) {
	r, err := c.prepare(ctx, url, bind)
	if err != nil {
		c.m.failures[err.Class].Inc()
		return r, err
	}
	return r, nil
}

func (c *Client) prepare(ctx context.Context, url, bind string) (Reservation, *Error) {
	var t target
	if err := t.parse(url); err != nil {
		return Reservation{}, fail(ClassURL, err)
	}
	if px, err := c.proxies.pick(&t); px != nil || err != nil {
		return Reservation{}, nil // Do reports what a proxy lacks
	}
	from, err := c.leaveFrom(&t, bind)
	if err != nil {
		return Reservation{}, err
	}
	host, port := c.dialer.route(t.host, t.port)
	var room [8]netip.AddrPort
	addrs, err := c.dialer.permitted(ctx, host, port, &from, room[:0])
	if err != nil {
		if ctx.Err() != nil {
			return Reservation{}, ended(ctx, time.Now().Add(c.cfg.FetchTimeout))
		}
		return Reservation{}, err
	}
	now := time.Now()
	c.dialer.families.putBetterFirst(addrs, now)
	return c.addresses.reserve(t.host, addrs, now), nil
}

// SetFetchers says how many fetchers work on the crawl, and how many of them are
// crowded, with this one or without it, so that each keeps its share of
// Config.PerAddress: together they stay below it. Crowded ones share what the others do
// not need. Call it every few seconds: a larger share is taken at the third call in a
// row that allows it, when the others have heard of it too.
func (c *Client) SetFetchers(all, crowded int, self bool) { c.addresses.share(all, crowded, self) }

// Crowded is how many hosts wait for their addresses now, and whether any did lately.
func (c *Client) Crowded() (hosts int, lately bool) { return c.addresses.crowded() }

// addresses spaces requests to one address out. A host that has its address for
// itself does not wait: its site's delay is all that it asks for.
type addresses struct {
	rate float64 // requests a second to one address by all fetchers, 0 = no bound

	mu      sync.Mutex
	every   time.Duration             // between two of ours
	waited  time.Time                 // when a host had to wait last
	raises  int                       // calls of share in a row that allow more than is taken
	next    map[netip.Addr]addressUse // when an address is free for other hosts
	waiting map[string]Reservation    // by host, those whose time has not come
	room    int                       // entries before the next sweep
}

// addressUse is who asks an address last, and when others may.
type addressUse struct {
	host string
	at   time.Time
}

const (
	// reservationKept is how long a reservation may be late.
	reservationKept = time.Minute
	// leastSwept is what both maps may hold before anybody looks for old entries.
	leastSwept = 1024
	// crowdedFor is how long a fetcher is crowded after a host of it had to wait.
	crowdedFor = 30 * time.Second
	// leastShare is which part of an equal share fetchers keep that are not crowded.
	leastShare = 10
	// raiseAfter is how many calls of share allow more before it is taken.
	raiseAfter = 3
)

func newAddresses(rate float64) *addresses {
	a := &addresses{rate: rate, next: make(map[netip.Addr]addressUse), waiting: make(map[string]Reservation), room: leastSwept}
	a.share(1, 0, false)
	return a
}

func (a *addresses) share(all, crowded int, self bool) {
	if a.rate <= 0 {
		return
	}
	n, m := float64(max(all, 1)), float64(min(crowded, all))
	part := 1 / n
	switch {
	case m > 0 && self:
		part = (1 - (n-m)/n/leastShare) / m
	case m > 0:
		part = 1 / n / leastShare
	}
	every := time.Duration(float64(time.Second) / a.rate / part)
	a.mu.Lock()
	defer a.mu.Unlock()
	if every >= a.every {
		a.raises = 0
	} else if a.raises++; a.raises < raiseAfter && a.every > 0 {
		return
	}
	a.every, a.raises = every, 0
}

func (a *addresses) reserve(host string, addrs []netip.AddrPort, now time.Time) Reservation {
	if a.rate <= 0 {
		return Reservation{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.waiting[host]
	if ok && now.Sub(r.At) >= reservationKept {
		delete(a.waiting, host)
		ok = false
	}
	if !ok {
		host = strings.Clone(host)
		r = Reservation{Addr: addrs[0].Addr(), At: a.free(addrs[0].Addr(), host)}
		for _, ap := range addrs[1:] {
			if at := a.free(ap.Addr(), host); at.Before(r.At) && r.At.After(now) {
				r = Reservation{Addr: ap.Addr(), At: at}
			}
		}
		if r.At.Before(now) {
			r.At = now
		}
		at := r.At.Add(a.every)
		if t := a.next[r.Addr]; t.at.After(at) { // others hold reservations behind its own
			at = t.at
		}
		a.next[r.Addr] = addressUse{host, at}
	}
	if r.At.After(now) {
		a.waited = now
		if !ok {
			a.waiting[host] = r
		}
	} else {
		delete(a.waiting, host)
	}
	a.sweep(now)
	return r
}

// free is when an address may be asked for a host: at once after itself.
func (a *addresses) free(addr netip.Addr, host string) time.Time {
	if t := a.next[addr]; t.host != host {
		return t.at
	}
	return time.Time{}
}

// sweep drops what has no meaning any more, when there is twice as much as the last
// time.
func (a *addresses) sweep(now time.Time) {
	if len(a.next)+len(a.waiting) < a.room {
		return
	}
	for addr, t := range a.next {
		if t.at.Before(now) {
			delete(a.next, addr)
		}
	}
	for host, r := range a.waiting {
		if now.Sub(r.At) >= reservationKept {
			delete(a.waiting, host)
		}
	}
	a.room = max(leastSwept, 2*(len(a.next)+len(a.waiting)))
}

// crowded is how many hosts wait for their addresses, and whether any did lately.
func (a *addresses) crowded() (hosts int, lately bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting), time.Since(a.waited) < crowdedFor
}
