package fetch

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"seine/fetch/egress"
	"seine/frontier/canon"
)

// bound is where the connections of a client leave from: by its own list, and by those of
// requests, as rules of sites have them.
type bound struct {
	own     *egress.List // nil: what the system chooses
	proxied bool

	mu    sync.Mutex
	lists map[string]boundList
}

// boundList is a list of requests as it was found, or why it is of no use.
type boundList struct {
	list  *egress.List
	err   error
	until time.Time // it is looked at anew then
}

const (
	boundKept = 30 * time.Second
	mostBound = 1024 // lists of requests that are remembered
)

var errBoundProxy = errors.New("requests go through a proxy (--proxy)")

func newBound(cfg *Config) (*bound, error) {
	b := &bound{proxied: len(cfg.Proxies) > 0, lists: make(map[string]boundList)}
	if len(cfg.Bind) == 0 {
		return b, nil
	}
	var err error
	b.own, err = egress.Open(cfg.Bind)
	return b, err
}

// listOf is the list with that text, "" for the client's own, which may be nil.
func (b *bound) listOf(text string, now time.Time) (*egress.List, error) {
	switch {
	case text == "":
		return b.own, nil
	case b.proxied:
		return nil, errBoundProxy
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l, ok := b.lists[text]; ok && now.Before(l.until) {
		return l.list, l.err
	}
	if len(b.lists) >= mostBound {
		for other := range b.lists {
			delete(b.lists, other)
			break
		}
	}
	l := boundList{until: now.Add(boundKept)}
	l.list, l.err = egress.Open(strings.Split(strings.Clone(text), ","))
	if !l.list.IsEmpty() {
		l.err = nil // the others are those of other machines
	}
	b.lists[strings.Clone(text)] = l
	return l.list, l.err
}

// MayLeaveFrom is why requests with this Request.Bind cannot be made by this machine, or
// nil. They would end with ClassBind.
func (c *Client) MayLeaveFrom(bind string) error {
	now := time.Now()
	list, err := c.bound.listOf(bind, now)
	if err == nil && list != nil {
		_, err = list.Choose("", now)
	}
	return err
}

// leaveFrom is where requests for t leave from.
func (c *Client) leaveFrom(t *target, bind string) (egress.Pair, *Error) {
	if bind == "" && c.bound.own == nil {
		return egress.Pair{}, nil
	}
	now := time.Now()
	list, err := c.bound.listOf(bind, now)
	var p egress.Pair
	if err == nil {
		p, err = list.Choose(canon.ByDomain.SiteOf(t.host), now)
	}
	if err != nil {
		if bind == "" {
			c.pool.short.note(ClassBind)
		}
		return p, fail(ClassBind, err)
	}
	return p, nil
}

// countBound counts a connection by the entry of the list that has its own address, which
// it returns.
func (x *exchange) countBound(raw net.Conn) netip.Addr {
	local := x.from.V4
	own, _ := raw.LocalAddr().(*net.TCPAddr)
	if own.IP.To4() == nil {
		local = x.from.V6
	}
	counter := x.c.m.boundRule
	if !x.byRule {
		counter = x.c.m.bound[local.Entry()]
	}
	counter.Inc()
	return local.Addr
}
