package shard

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Endpoint is the master to ask for one key, for programs that speak to it
// over connections of their own.
type Endpoint struct {
	Addr     string
	Ask      bool // send ASKING before the command: the slot is on its way to this node
	Username string
	Password Secret
	DB       int

	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Dial opens a connection to the master, with TLS where the client has it.
// Logging in and choosing the database are left to the caller.
func (e Endpoint) Dial(ctx context.Context) (net.Conn, error) {
	return e.dial(ctx, "tcp", e.Addr)
}

// Owner is the address of the master that a key's slot belongs to, as last
// heard from the cluster.
func (c *Client) Owner(ctx context.Context, key string) (string, error) {
	n, err := c.master(ctx, key)
	if err != nil {
		return "", err
	}
	return n.Options().Addr, nil
}

// Each calls try with the master of a key of shard k, and again as Run does
// until it succeeds, fails for good or ctx ends. An error reply of the server
// that try returns must have go-redis' method RedisError to be known as one.
// op names the call in errors.
func (c *Client) Each(ctx context.Context, k int, op, key string, try func(context.Context, Endpoint) error) error {
	return c.repeat(ctx, k, op, key, func(n *redis.Client, ask bool) error {
		return try(ctx, Endpoint{Addr: n.Options().Addr, Ask: ask, Username: c.cfg.Username, Password: c.cfg.Password, DB: c.cfg.DB,
			dial: c.dial})
	})
}

// Await calls try until it succeeds, or fails with an error that does not pass
// by itself or by somebody who repairs it, or ctx ends; Config.Waits reports it as it does
// a call to the master of key.
func (c *Client) Await(ctx context.Context, k int, op, key string, try func(context.Context) error) error {
	return c.repeat(ctx, k, op, key, func(*redis.Client, bool) error { return try(ctx) })
}

// repeat tries until a call succeeds, fails for good, or ctx or Config.GiveUp is over.
// A master that was given up is not waited for again within silentFor.
func (c *Client) repeat(ctx context.Context, k int, op, key string, try func(n *redis.Client, ask bool) error) error {
	if c.cfg.GiveUp == 0 {
		return c.insist(ctx, k, op, key, try)
	}
	owner, err := c.Owner(ctx, key)
	if err != nil {
		owner = "its master"
	}
	if until, ok := c.silent.Load(owner); ok && time.Now().Before(until.(time.Time)) {
		return &Error{Shard: k, Op: op, Err: &silence{owner, ErrUnreachable}}
	}
	short, cancel := context.WithTimeout(ctx, c.cfg.GiveUp)
	defer cancel()
	err = c.insist(short, k, op, key, try)
	if err == nil || err == redis.Nil || short.Err() == nil || ctx.Err() != nil {
		return err
	}
	c.silent.Store(owner, time.Now().Add(silentFor))
	return &Error{Shard: k, Op: op, Err: &silence{owner, err}}
}

// silentFor is how long a master that was given up is taken for silent.
const silentFor = 10 * time.Second

// insist is the one loop around all calls: it finds the master of key, tries,
// and decides how to go on.
func (c *Client) insist(ctx context.Context, k int, op, key string, try func(n *redis.Client, ask bool) error) error {
	began := time.Now()
	addr, asking := "", false // where a redirect sends the next try
	for attempt, redirects := 0, 0; ; {
		n, err := c.node(ctx, key, addr)
		if err == nil {
			err = c.awaitFit(ctx, n)
		}
		if err == nil {
			if !asking {
				c.observe(k, key, n.Options().Addr)
			}
			if err = try(n, asking); err == nil || err == redis.Nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return &Error{Shard: k, Op: op, Err: ended(ctx, err)}
		}
		var f fault
		f, addr = classify(err)
		addr = onHost(n, addr)
		if errors.Is(err, redis.ErrClosed) && !c.closed.Load() {
			f, addr = broken, "" // go-redis closed a node that left the cluster
		}
		if n != nil && isDemoted(err) { // what answers to this address next is another master
			c.dialler.peer(n.Options().Addr).breaks.Add(1)
		}
		asking = f == ask
		if f == permanent || c.cfg.GiveUp > 0 && errors.Is(err, ErrEmpty) {
			return &Error{Shard: k, Op: op, Err: c.allowed(n, err)}
		}
		c.retries[f].Inc()
		c.reportWait(ctx, k, op, key, n, began, err)
		switch {
		case c.cluster != nil:
			c.cluster.ReloadState(ctx)
		case c.watch != nil:
			c.watch.find(ctx, time.Now())
		}
		if addr != "" && redirects < maxRedirects {
			redirects++
			continue
		}
		addr, asking, redirects = "", false, 0
		if pause(ctx, attempt, c.cfg.MaxPause) != nil {
			return &Error{Shard: k, Op: op, Err: ended(ctx, err)}
		}
		attempt++
	}
}

// maxRedirects in a row are followed at once; then the slot table is given
// time to settle.
const maxRedirects = 4

// pause waits before the next try: 2 ms, doubled with each, at most limit,
// between half and all of it by chance so that a fleet does not return in step.
func pause(ctx context.Context, attempt int, limit time.Duration) error {
	d := min(2*time.Millisecond<<min(attempt, 20), limit)
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// node is the connection to the master of key, or to an address that a redirect
// named: a connection of our own, for the node may be in no slot table yet.
func (c *Client) node(ctx context.Context, key, addr string) (*redis.Client, error) {
	if addr == "" || c.cluster == nil {
		return c.master(ctx, key)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.spare[addr]
	if n == nil {
		n = redis.NewClient(c.options(addr))
		c.spare[addr] = n
	}
	return n, nil
}

// master is the connection to the master of key by the slot table.
func (c *Client) master(ctx context.Context, key string) (*redis.Client, error) {
	switch {
	case c.watch != nil:
		return c.watch.current(), nil
	case c.single != nil:
		return c.single, nil
	}
	return c.cluster.MasterForKey(ctx, key)
}

// newNode makes the connection to a node for go-redis' cluster client, which
// goes on setting it up: until the slot table names it, it is not ours to use.
func (c *Client) newNode(opt *redis.Options) *redis.Client {
	n := redis.NewClient(c.options(opt.Addr))
	host, _, _ := net.SplitHostPort(opt.Addr)
	n.AddHook(sameHost{host})
	return n
}

// eachMaster calls f with every master, several at once.
func (c *Client) eachMaster(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	if c.cluster == nil {
		n, err := c.master(ctx, "")
		if err != nil {
			return err
		}
		return f(ctx, n)
	}
	return c.cluster.ForEachMaster(ctx, f)
}
