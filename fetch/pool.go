package fetch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"seine/fetch/egress"
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

// pool keeps idle connections: at most max in all, in at most room bytes, each until its
// time. It counts open ones, idle or in use: at most limit.
type pool struct {
	perHost int
	max     int
	most    int // of limit
	room    func() int64
	short   shortages
	freed   chan struct{} // wakes one that waits for room

	mu      sync.Mutex
	hosts   map[key]*host
	old     conn // ring of all idle connections, the oldest is old.next
	parked  int
	bytes   int64 // of memory that they take
	open    int   // connections, those being made too
	closing int   // of open, those taken out of the pool to be closed
	limit   int   // of open; below most after the system refused one
	needed  int   // room for so many more is asked for
	waiting int   // of needed, those that sleep until there may be some
	closed  bool
}

var errBusy = errors.New("no free connection to the host until the end of the fetch timeout")

func newPool(perHost, most, max int, room func() int64) *pool {
	p := &pool{
		perHost: perHost, most: most, limit: most, max: max, room: room,
		hosts: make(map[key]*host), freed: make(chan struct{}, 1), short: shortages{began: time.Now()},
	}
	p.old.prev, p.old.next = &p.old, &p.old
	return p
}

// getConn takes a slot of the host, waiting for one if all are taken, and an idle
// connection that leaves from an address of from, nil if there is none. The caller gives
// both back with putConn.
func (p *pool) getConn(ctx context.Context, k key, from *egress.Pair, total time.Time) (*host, *conn, error) {
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
	for cn != nil && (!from.Has(cn.bound) || time.Now().After(cn.until) || !cn.probe.alive()) {
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
	p.bytes -= cn.bytes
}

// putConn gives the slot back and, unless it is nil, a connection fit for reuse.
func (p *pool) putConn(h *host, cn *conn) {
	var drop []*conn
	p.mu.Lock()
	if cn != nil {
		p.parkLocked(h, cn)
		for p.parked > 0 && (p.closed || p.parked > p.max || p.bytes > p.room()) {
			drop = append(drop, p.dropLocked(p.dearestLocked()))
		}
		if needed := p.dropNeededLocked(); needed != nil {
			drop = append(drop, needed)
		}
	}
	<-h.slots
	p.leaveLocked(h)
	p.mu.Unlock()
	for _, cn := range drop {
		cn.close()
	}
}

func (p *pool) parkLocked(h *host, cn *conn) {
	cn.home, cn.bytes = h, cn.idleMemory()
	h.idle = append(h.idle, cn)
	last := p.old.prev
	cn.prev, cn.next = last, &p.old
	last.next, p.old.prev = cn, cn
	p.parked++
	p.bytes += cn.bytes
}

// compared is how many of the oldest idle connections dearestLocked looks at.
const compared = 8

// dearestLocked is the connection to close where there is no room: of the oldest that
// which takes the most memory. What a new one costs hardly depends on that: a session
// is resumed.
func (p *pool) dearestLocked() *conn {
	dearest := p.old.next
	for cn, n := dearest.next, 1; cn != &p.old && n < compared; cn, n = cn.next, n+1 {
		if cn.bytes > dearest.bytes {
			dearest = cn
		}
	}
	return dearest
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

// expire closes what may not be idle any longer at now.
func (p *pool) expire(now time.Time) {
	var drop []*conn
	p.mu.Lock()
	for cn, next := p.old.next, (*conn)(nil); cn != &p.old; cn = next {
		if next = cn.next; p.closed || !now.Before(cn.until) {
			drop = append(drop, p.dropLocked(cn))
		}
	}
	p.mu.Unlock()
	for _, cn := range drop {
		cn.close()
	}
}

// close closes what is idle; connections in use are closed when they come back.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.expire(time.Time{})
}

// openOf is how many connections are open and how many may be.
func (p *pool) openOf() (open, limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open, p.limit
}

func (p *pool) counts() (hosts, parked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.hosts), p.parked
}
