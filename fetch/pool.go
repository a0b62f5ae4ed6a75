package fetch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

// key names what connections are shared by.
type key struct {
	host string
	port uint16
	tls  bool
	via  int16 // index of the proxy, -1 = direct
}

// host is one key with connections in use or idle; it goes when the last does,
// so memory follows open connections and not hosts seen.
type host struct {
	key   key
	refs  int           // exchanges running or waiting; guarded by pool.mu
	idle  []*conn       // youngest last; guarded by pool.mu
	slots chan struct{} // one token an exchange
}

// pool keeps idle connections: at most max in all, each at most for keep. It
// counts open ones, idle or in use: at most limit.
type pool struct {
	perHost int
	max     int
	most    int // of limit
	keep    time.Duration
	short   shortages
	freed   chan struct{} // wakes one that waits for room

	mu      sync.Mutex
	hosts   map[key]*host
	old     conn // ring of all idle connections, the oldest is old.next
	parked  int
	open    int // connections, those being made too
	closing int // of open, those taken out of the pool to be closed
	limit   int // of open; below most after the system refused one
	needed  int // room for so many more is asked for
	waiting int // of needed, those that sleep until there may be some
	closed  bool
}

var errBusy = errors.New("no free connection to the host until the end of the fetch timeout")

func newPool(perHost, most, max int, keep time.Duration) *pool {
	p := &pool{
		perHost: perHost, most: most, limit: most, max: max, keep: keep,
		hosts: make(map[key]*host), freed: make(chan struct{}, 1), short: shortages{began: time.Now()},
	}
	p.old.prev, p.old.next = &p.old, &p.old
	return p
}

// get takes a slot of the host, waiting for one if all are taken, and an idle
// connection, nil if there is none. The caller gives both back with put.
func (p *pool) get(ctx context.Context, k key, total time.Time) (*host, *conn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, nil, fail(ClassCanceled, errClosed)
	}
	h := p.hosts[k]
	if h == nil {
		k.host = strings.Clone(k.host) // it may be part of the caller's URL
		h = &host{key: k, slots: make(chan struct{}, p.perHost)}
		p.hosts[k] = h
	}
	h.refs++
	select {
	case h.slots <- struct{}{}:
	default:
		p.mu.Unlock()
		if err := p.wait(ctx, h, total); err != nil {
			p.leave(h)
			return nil, nil, err
		}
		p.mu.Lock()
	}
	cn := p.popLocked(h)
	p.mu.Unlock()
	for cn != nil && !cn.probe.alive() {
		cn.close()
		p.mu.Lock()
		cn = p.popLocked(h)
		p.mu.Unlock()
	}
	return h, cn, nil
}

func (p *pool) wait(ctx context.Context, h *host, total time.Time) error {
	t := time.NewTimer(time.Until(total))
	defer t.Stop()
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ended(ctx, total)
	case <-t.C:
		return fail(ClassTimeout, errBusy)
	}
}

func (p *pool) popLocked(h *host) *conn {
	n := len(h.idle) - 1
	if n < 0 {
		return nil
	}
	cn := h.idle[n]
	h.idle[n] = nil
	h.idle = h.idle[:n]
	p.unlinkLocked(cn)
	return cn
}

func (p *pool) unlinkLocked(cn *conn) {
	cn.prev.next, cn.next.prev = cn.next, cn.prev
	cn.prev, cn.next = nil, nil
	p.parked--
}

// put gives the slot back and, unless it is nil, a connection fit for reuse.
func (p *pool) put(h *host, cn *conn, now time.Time) {
	var drop *conn
	p.mu.Lock()
	if cn != nil && p.closed {
		drop = cn
	} else if cn != nil {
		cn.home, cn.parked = h, now
		h.idle = append(h.idle, cn)
		last := p.old.prev
		cn.prev, cn.next = last, &p.old
		last.next, p.old.prev = cn, cn
		if p.parked++; p.parked > p.max {
			drop = p.dropLocked(p.old.next)
		} else {
			drop = p.dropNeededLocked()
		}
	}
	<-h.slots
	p.leaveLocked(h)
	p.mu.Unlock()
	if drop != nil {
		drop.close()
	}
}

func (p *pool) leave(h *host) {
	p.mu.Lock()
	p.leaveLocked(h)
	p.mu.Unlock()
}

func (p *pool) leaveLocked(h *host) {
	h.refs--
	p.forgetLocked(h)
}

func (p *pool) forgetLocked(h *host) {
	if h.refs == 0 && len(h.idle) == 0 {
		delete(p.hosts, h.key)
	}
}

// dropLocked takes an idle connection out of the pool; the caller closes it.
func (p *pool) dropLocked(cn *conn) *conn {
	h := cn.home
	for i, c := range h.idle { // the oldest stands in front
		if c == cn {
			h.idle = append(h.idle[:i], h.idle[i+1:]...)
			break
		}
	}
	p.unlinkLocked(cn)
	p.forgetLocked(h)
	p.closing++
	cn.dropped = true
	return cn
}

// expire closes what was idle for too long at now.
func (p *pool) expire(now time.Time) {
	for {
		p.mu.Lock()
		if p.parked == 0 || now.Sub(p.old.next.parked) < p.keep {
			p.mu.Unlock()
			return
		}
		cn := p.dropLocked(p.old.next)
		p.mu.Unlock()
		cn.close()
	}
}

// close closes what is idle; connections in use are closed when they come back.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.keep = 0
	p.expire(time.Now())
}

// room is how many connections are open and how many may be.
func (p *pool) room() (open, limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open, p.limit
}

func (p *pool) counts() (hosts, parked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.hosts), p.parked
}
