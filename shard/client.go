// Package shard places a crawl on Redis: which shard owns a site, which slot
// and so which master holds a shard, what its keys are called, and how a
// script runs there.
//
// A crawl is split into n shards, fixed when it is created. [Map] sends a
// fingerprint to its shard and gives shard k a hash tag whose slot lies in the
// k-th of n equal slot ranges, so that six shards on six masters sit one on
// each. [Keys] builds every key name of a shard; all of them carry its tag and
// so share its slot, which is what lets one script touch them together.
//
// [Client] talks to one server or to a cluster, whichever it finds. [Client.Run]
// runs a [Script] on the master that owns a shard and repeats it through moved
// slots, failovers, restarts and broken connections until its context ends.
// A repeated call may reach Redis twice, and the first copy may arrive last;
// so every script must have the same effect once and twice, early and late.
// What a script itself reports, out of memory say, is returned at once.
//
// Redis may forget the last moments before a crash or a failover, though it
// acknowledged them. [Client.Epoch] tells when that may have happened to a
// shard: what a caller remembers as admitted holds only within one epoch.
package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Client is connected to one Redis server or cluster, or to the one of some servers
// that sentinels name as master. It is safe for
// concurrent use.
type Client struct {
	cfg     Config
	dialler *dialler
	rdb     redis.UniversalClient
	single  *redis.Client        // rdb, when it is one server
	cluster *redis.ClusterClient // rdb, when it is a cluster
	watch   *sentinels           // who knows the server, when sentinels do
	closed  atomic.Bool
	retries [broken + 1]*metrics.Counter // by fault
	seconds sync.Map                     // name of a script -> *metrics.PrometheusHistogram

	epochs sync.Map    // shard number -> *epoch
	judges atomic.Bool // Check was called: no master is worked on before it was found fit
	fit    sync.Map    // addresses of masters that were -> breaks of their peer then

	mu    sync.Mutex
	spare map[string]*redis.Client // by address, to nodes that a redirect named
	waits map[string]time.Time     // by address: when Config.Waits reported it last
	open  map[int]sawOpen          // slots that were seen half moved

	silent sync.Map // address of a master -> time.Time until when calls to it fail at once, with Config.GiveUp

	patience patience
}

// DiscardDriverLog ends the log of go-redis, in all of the process: it prints errors
// that it also returns. Programs call it once, before Open.
func DiscardDriverLog() { redis.SetLogger(&logging.VoidLogger{}) }

// Open connects to the first address that answers and finds out whether it is
// a cluster. It tries each address once; with Config.Patient again and again
// while none answers, which Config.Waits reports.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.GiveUp > 0 { // of several addresses one may be silent
		cfg.DialTimeout = cmp.Or(cfg.DialTimeout, cfg.GiveUp/2)
	}
	resolved, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	if resolved.Metrics == nil {
		resolved.Metrics = metrics.NewSet()
	}
	secure, err := resolved.TLS.load()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: resolved, dialler: newDialler(resolved.DialTimeout, secure),
		spare: make(map[string]*redis.Client), waits: make(map[string]time.Time),
		open: make(map[int]sawOpen), patience: patience{first: 5 * time.Second, again: 30 * time.Second, open: time.Minute}}
	for f := range c.retries {
		c.retries[f] = resolved.Metrics.GetOrCreateCounter(fmt.Sprintf("seine_shard_retries_total{fault=%q}", fault(f)))
	}
	began := time.Now()
	for attempt := 0; ; attempt++ {
		err, final := c.openAny(ctx)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, ErrForbidden) {
			err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		if final || !cfg.Patient {
			return nil, err
		}
		if w := (Wait{Shard: -1, Op: "open", Master: strings.Join(resolved.Addrs, ", "), For: time.Since(began), Err: err}); c.mayReport(&w) {
			c.cfg.Waits(w)
		}
		if pause(ctx, attempt, c.cfg.MaxPause) != nil {
			return nil, err
		}
	}
}

// openAny tries each address once. final says that trying again will not help.
func (c *Client) openAny(ctx context.Context) (err error, final bool) {
	if c.cfg.Master != "" {
		if c.watch, err = c.watched(ctx); err != nil {
			f, _ := classify(err)
			return fmt.Errorf("sentinels %s: %w", strings.Join(c.cfg.Addrs, ", "), err), f == permanent
		}
		return nil, false
	}
	var faults []error
	for _, addr := range c.cfg.Addrs {
		isCluster, err := c.askCluster(ctx, addr)
		if err == nil {
			err = c.connect(ctx, addr, isCluster)
		}
		if err == nil {
			return nil, false
		}
		f, _ := classify(err)
		final = final || f == permanent
		faults = append(faults, fmt.Errorf("%s: %w", addr, c.allowed(nil, err)))
	}
	return errors.Join(faults...), final
}

// errDatabase: Config.DB is none of the server's.
var errDatabase = errors.New("no such database")

// connect makes the client of the server or cluster at addr and tries it.
func (c *Client) connect(ctx context.Context, addr string, isCluster bool) error {
	switch {
	case !isCluster:
		c.single = redis.NewClient(c.options(addr))
		c.rdb = c.single
	case c.cfg.DB != 0:
		return fmt.Errorf("%w: a cluster has only database 0, not %d", errDatabase, c.cfg.DB)
	default: // its nodes get the options of a single server
		c.cluster = redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.cfg.Addrs, NewClient: c.newNode,
			ContextTimeoutEnabled: true, DisableRoutingPolicies: true, ClusterStateReloadInterval: 15 * time.Second})
		c.rdb = c.cluster
	}
	var err error
	if isCluster { // whatever state its single nodes are in
		_, err = c.cluster.MasterForKey(ctx, "")
	} else if err = c.single.Ping(ctx).Err(); err != nil {
		if f, _ := classify(err); f == busy { // loading, or with a full disk: it is there
			err = nil
		}
	}
	if err != nil {
		c.rdb.Close()
		c.single, c.cluster, c.rdb = nil, nil, nil
		return err
	}
	return nil
}

// askCluster reports whether the server at addr runs in cluster mode.
func (c *Client) askCluster(ctx context.Context, addr string) (bool, error) {
	opt := c.options(addr)
	opt.DB = 0 // a cluster refuses any other before it can be asked
	if c.cfg.GiveUp > 0 {
		opt.ReadTimeout = c.cfg.GiveUp / 2
	}
	one := redis.NewClient(opt)
	defer one.Close()
	info, err := one.Info(ctx, "cluster").Result()
	if err == nil && strings.Contains(info, "cluster_enabled:") {
		return strings.Contains(info, "cluster_enabled:1"), nil
	}
	var reply redis.Error
	if err != nil && !errors.As(err, &reply) {
		return false, err
	}
	// INFO is forbidden or says nothing, as some managed servers have it.
	if err = one.ClusterInfo(ctx).Err(); err == nil {
		return true, nil
	}
	if errors.As(err, &reply) && !redis.IsAuthError(err) {
		return false, one.Ping(ctx).Err()
	}
	return false, err
}

// options are those of a connection to one server.
func (c *Client) options(addr string) *redis.Options {
	return &redis.Options{Addr: addr, Username: c.cfg.Username, Password: string(c.cfg.Password), DB: c.cfg.DB, OnConnect: c.named,
		Dialer: c.dial, DialTimeout: c.cfg.DialTimeout, DialerRetries: 1, ReadTimeout: c.cfg.TryTimeout, WriteTimeout: c.cfg.TryTimeout,
		PoolSize: c.cfg.Conns, MaxActiveConns: c.cfg.Conns, PoolTimeout: c.cfg.TryTimeout, MaxRetries: -1, ContextTimeoutEnabled: true,
		Protocol: 2, DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}
}

// dial connects to a server, with TLS where it is wanted.
func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.dialler.dial(ctx, network, addr)
	if err == nil && c.watch != nil {
		if err = c.watch.confirm(ctx, addr); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, err
}

// named gives a new connection its name, unless our user may not.
func (c *Client) named(ctx context.Context, conn *redis.Conn) error {
	if err := conn.ClientSetName(ctx, c.cfg.Name).Err(); err != nil && !isReply(err) {
		return err
	}
	return nil
}

// Close ends all connections. Calls in flight fail.
func (c *Client) Close() error {
	c.closed.Store(true)
	var err error
	if c.watch != nil {
		err = c.watch.close()
	} else {
		err = c.rdb.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.spare {
		err = errors.Join(err, n.Close())
	}
	clear(c.spare)
	return err
}

// Redis is the underlying client, for plain commands outside the shards. A
// call through it is repeated by go-redis at most, not by this package.
func (c *Client) Redis() redis.UniversalClient {
	if c.watch != nil {
		return c.watch.current()
	}
	return c.rdb
}

// Cluster reports whether the servers form a cluster.
func (c *Client) Cluster() bool { return c.cluster != nil }

// String names the servers, never the password.
func (c *Client) String() string { return c.cfg.String() }

// Epoch is the connection epoch of shard k: it rises whenever a connection to
// the shard's master broke, the master could not be reached, or another node
// became master, and so whenever acknowledged writes may have been lost.
// Before the first call to the shard it is 0. A caller that caches what a call
// answered reads Epoch before the call and keeps the answer only while Epoch
// still says the same. It costs a table look-up, no traffic.
func (c *Client) Epoch(k int) uint64 {
	v, ok := c.epochs.Load(k)
	if !ok {
		return 0
	}
	e := v.(*epoch)
	e.mu.Lock()
	key, seen := e.key, e.peer
	e.mu.Unlock()
	if addr, err := c.Owner(context.Background(), key); err == nil {
		seen = c.dialler.peer(addr)
	}
	return e.observe(key, seen)
}

// observe notes that shard k, found by key, is about to be asked at addr.
func (c *Client) observe(k int, key, addr string) {
	v, ok := c.epochs.Load(k)
	if !ok {
		v, _ = c.epochs.LoadOrStore(k, new(epoch))
	}
	v.(*epoch).observe(key, c.dialler.peer(addr))
}

// leastShards is how many shards a crawl has at least by default: it may grow to as many
// masters.
const leastShards = 6

// DefaultShards is the number of shards of a new crawl on these masters: as many on each,
// and at least six in all.
func (c *Client) DefaultShards(ctx context.Context) (int, error) {
	masters, err := c.Masters(ctx)
	if err != nil {
		return 0, err
	}
	each := (leastShards + len(masters) - 1) / len(masters)
	return each * len(masters), nil
}

// Masters lists the addresses of all masters, sorted. It asks the cluster.
func (c *Client) Masters(ctx context.Context) ([]string, error) {
	byAddr := make(map[string]bool)
	err := c.eachMaster(ctx, func(_ context.Context, n *redis.Client) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		byAddr[n.Options().Addr] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("shard: masters: %w", err)
	}
	return slices.Sorted(maps.Keys(byAddr)), nil
}
