package shard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// dialler opens the connections of a client, to any node, and counts for each
// address how often a connection broke or could not be made.
type dialler struct {
	timeout time.Duration
	tls     *tls.Config // nil = plain text

	mu    sync.Mutex
	peers map[string]*peer
}

// peer is what is known of one address. It is never forgotten, so its address
// in memory stands for it.
type peer struct{ breaks atomic.Uint64 }

func newDialler(timeout time.Duration, tls *tls.Config) *dialler {
	return &dialler{timeout: timeout, tls: tls, peers: make(map[string]*peer)}
}

// peer returns what is known of an address.
func (d *dialler) peer(addr string) *peer {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.peers[addr]
	if p == nil {
		p = new(peer)
		d.peers[addr] = p
	}
	return p
}

// dial connects, with TLS where it is wanted. It has go-redis' signature.
func (d *dialler) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	p := d.peer(addr)
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	c, err := (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext(ctx, network, addr)
	if err != nil {
		p.breaks.Add(1)
		return nil, err
	}
	if d.tls == nil {
		return &conn{Conn: c, peer: p}, nil
	}
	cfg := d.tls.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secure := tls.Client(c, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		p.breaks.Add(1)
		return nil, inWords(err)
	}
	return &conn{Conn: secure, peer: p}, nil
}

// inWords is the error of a handshake. What is no TLS record is the answer of a port that
// speaks none; some such servers end the connection, or wait for the rest of a command.
func inWords(err error) error {
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &header):
		return fmt.Errorf("%w: %w", ErrPlain, err)
	case errors.Is(err, io.EOF), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("TLS handshake: the server did not answer it, perhaps its port speaks no TLS: %w", err)
	}
	return fmt.Errorf("TLS handshake: %w", err)
}

// conn notices when its connection breaks. It hides the socket from the pool's
// own health check on purpose: that would drop a broken connection in silence.
type conn struct {
	net.Conn
	peer *peer
	once sync.Once
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.broke(err)
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.broke(err)
	}
	return n, err
}

// broke counts a connection once. A time-out counts too: the pool gives such a
// connection up, and nothing is known of the call that it carried.
func (c *conn) broke(err error) {
	if !errors.Is(err, net.ErrClosed) {
		c.once.Do(func() { c.peer.breaks.Add(1) })
	}
}

// epoch is the connection epoch of one shard.
type epoch struct {
	mu     sync.Mutex
	key    string // of the shard, finds its master
	peer   *peer  // the master as last seen
	breaks uint64 // its breaks as last seen
	n      uint64
}

// observe raises the epoch if the master is another than last time or lost a
// connection since.
func (e *epoch) observe(key string, p *peer) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	breaks := p.breaks.Load()
	if e.peer != nil && (e.peer != p || e.breaks != breaks) {
		e.n++
	}
	e.key, e.peer, e.breaks = key, p, breaks
	return e.n
}
