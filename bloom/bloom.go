// Package bloom keeps the filters that remember which URLs a crawl knows:
// it sizes and reserves them, tells how full they are, measures how often they
// err, and writes them to a file and back.
//
// A shard of a crawl has one or more filters, RedisBloom keys that hold the
// fingerprints of all URLs ever admitted. Each is planned for at most 64 million
// URLs and 256 MB, so that it can move between masters. A filter that gets more than
// it was planned for grows by another layer; no URL in it is ever forgotten. Where a
// layer would make its key larger than [MaxKeyBytes], it is a key of its own. All
// filters of a shard have the same number of keys; a [Set] names them.
// A filter may hold an unknown URL for known: that URL is never fetched. How often
// is [Plan.ErrorRate], and [Filters.Probe] measures it by asking for random
// fingerprints, which nobody can have admitted. A [Record] keeps what many such
// probes found while the filter grew, and [Judge] says what follows from it.
//
// Admission itself probes and adds inside the scripts of package frontier/redis;
// nothing here is on its way. Filters are never created on the side with the
// server's default capacity: a filter that is missing is an error, since an
// empty one in its place would let every URL in again.
//
// A dump is a stream with a version and checksums. Loading builds the filters
// under other names beside the old ones, and only when the whole dump proved
// sound do they take their place; a crash before leaves the old ones.
package bloom

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	// Two clients of Redis meet here. go-redis, behind package shard, finds masters,
	// follows moves and repeats calls; redisbloom-go knows the replies of BF commands
	// and is built on redigo. So shard says where and how to connect, and redigo
	// speaks there: TLS, user and retries are the same for both.
	redisbloom "github.com/RedisBloom/redisbloom-go"
	"github.com/gomodule/redigo/redis"

	"seine/shard"
)

// What callers tell apart.
var (
	// ErrMissing: there is no filter under the key.
	ErrMissing = errors.New("bloom: no such filter")
	// ErrOther: there is a filter under the key, reserved by another plan.
	ErrOther = errors.New("bloom: filter of another plan")
	// ErrDamaged: a dump is cut off or altered.
	ErrDamaged = errors.New("bloom: damaged dump")
	// ErrNoDumps: the server's module can neither dump nor load filters.
	ErrNoDumps = errors.New("bloom: no dumps")
)

// Filters reaches the filters of any crawl. It is safe for concurrent use and
// keeps at most two connections to each master, beside those of the shard client.
type Filters struct {
	client *shard.Client

	mu    sync.Mutex
	pools map[string]*redis.Pool // by address
}

// New uses the servers, TLS and log-in of a shard client, which must outlive it.
func New(client *shard.Client) *Filters {
	return &Filters{client: client, pools: make(map[string]*redis.Pool)}
}

// Close ends the connections of its own.
func (f *Filters) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, p := range f.pools {
		errs = append(errs, p.Close())
	}
	clear(f.pools)
	return errors.Join(errs...)
}

// Reserve makes the filter of a plan, empty. One that is there already from
// the same plan, however full and grown, is left as it is; another is ErrOther.
func (f *Filters) Reserve(ctx context.Context, k int, key string, p Plan) error {
	exists := false
	err := f.on(ctx, k, "BF.RESERVE", key, func(c *redisbloom.Client) error {
		args := []any{key, strconv.FormatFloat(p.ErrorRate, 'g', -1, 64), p.Capacity}
		if p.Expansion == 0 {
			args = append(args, "NONSCALING")
		} else {
			args = append(args, "EXPANSION", p.Expansion)
		}
		_, err := do(ctx, c, "BF.RESERVE", args...)
		if err != nil && strings.Contains(err.Error(), "exists") {
			exists, err = true, nil
		}
		return err
	})
	if err != nil || !exists {
		return err
	}
	have, err := f.Info(ctx, k, key)
	if err != nil {
		return err
	}
	if fault := p.differs(have); fault != "" {
		return fmt.Errorf("%w: %s was reserved with %s; run with the crawl's own plan, or create the crawl under another name", ErrOther, key, fault)
	}
	return nil
}

// differs says in what a filter departs from the plan, "" where it does not.
// RedisBloom does not tell the error rate of a filter, but its size does.
func (p Plan) differs(have Info) string {
	planned := p.bytes(have.Layers)
	switch {
	case have.Expansion != p.Expansion:
		return fmt.Sprintf("expansion %d, not %d", have.Expansion, p.Expansion)
	case have.Capacity != p.capacity(have.Layers):
		return fmt.Sprintf("capacity %d in %d layers, not %d", have.Capacity, have.Layers, p.capacity(have.Layers))
	case have.rate != 0 && have.rate != p.ErrorRate, have.rate == 0 && abs(have.Bytes-planned) > planned/40+256*int64(have.Layers):
		return fmt.Sprintf("another error rate than %g", p.ErrorRate)
	}
	return ""
}

// Set names the filters of one shard: those of URLs, or the one of contents.
type Set struct {
	Shard    int
	Keys     shard.Keys
	Plan     Plan
	Each     int  // keys of each filter
	Contents bool // it is that of contents
}

// Key is the i-th key of filter j, be there so many or not.
func (s Set) Key(j, i int) string {
	if s.Contents {
		return s.Keys.Contents(i)
	}
	return s.Keys.FilterKey(j, i)
}

// Filter are the keys of filter j, the one that is added to last.
func (s Set) Filter(j int) []string {
	keys := make([]string, s.Each)
	for i := range keys {
		keys[i] = s.Key(j, i)
	}
	return keys
}

// All are the keys of all filters: the first of each, then the second of each.
func (s Set) All() []string {
	keys := make([]string, 0, s.Each*s.Plan.Filters)
	for i := range s.Each {
		for j := range s.Plan.Filters {
			keys = append(keys, s.Key(j, i))
		}
	}
	return keys
}

// Info is the state of one filter, or of one of its keys.
type Info struct {
	Items     int64 `json:"items"`    // URLs added
	Capacity  int64 `json:"capacity"` // URLs before the next layer
	Bytes     int64 `json:"bytes"`    // memory
	Layers    int   `json:"layers"`
	Expansion int   `json:"expansion"` // size of the next layer over that of the last, in the first key

	Keys    int   `json:"keys,omitempty"`      // that the filter has
	Largest int64 `json:"key_bytes,omitempty"` // memory of the largest of them

	rate float64 // where the server tells it
}

// Fill is the share of the capacity that is used.
func (i Info) Fill() float64 { return float64(i.Items) / float64(max(i.Capacity, 1)) }

// BitsPerURL is the memory that each URL costs, 0 of an empty filter.
func (i Info) BitsPerURL() float64 {
	if i.Items == 0 {
		return 0
	}
	return float64(8*i.Bytes) / float64(i.Items)
}

// Info reads the state of the filter that has these keys. Cost: one call a key, of
// constant time.
func (f *Filters) Info(ctx context.Context, k int, keys ...string) (Info, error) {
	var sum Info
	for i, key := range keys {
		info, err := f.keyInfo(ctx, k, key)
		if err != nil {
			return Info{}, err
		}
		if i == 0 {
			sum = info
			continue
		}
		sum.Items += info.Items
		sum.Capacity += info.Capacity
		sum.Bytes += info.Bytes
		sum.Layers += info.Layers
		sum.Keys++
		sum.Largest = max(sum.Largest, info.Largest)
	}
	return sum, nil
}

// keyInfo reads the state of one key.
func (f *Filters) keyInfo(ctx context.Context, k int, key string) (Info, error) {
	var info Info
	err := f.on(ctx, k, "BF.INFO", key, func(c *redisbloom.Client) error {
		reply, err := redis.Values(do(ctx, c, "BF.INFO", key))
		if err != nil {
			return err
		}
		info = Info{}
		for i := 0; i+1 < len(reply); i += 2 {
			name, _ := redis.String(reply[i], nil)
			n, _ := redis.Int64(reply[i+1], nil) // nil for a filter that must not grow
			switch name {
			case "Capacity":
				info.Capacity = n
			case "Size":
				info.Bytes = n
			case "Number of filters":
				info.Layers = int(n)
			case "Number of items inserted":
				info.Items = n
			case "Expansion rate":
				info.Expansion = int(n)
			case "Error rate": // Valkey's module
				info.rate, _ = redis.Float64(reply[i+1], nil)
			}
		}
		info.Keys, info.Largest = 1, info.Bytes
		return nil
	})
	if err != nil && strings.Contains(err.Error(), "not found") {
		return Info{}, fmt.Errorf("%w: %s", ErrMissing, key)
	}
	return info, err
}

// on calls try with the master of key until it succeeds, as the shard client
// does.
func (f *Filters) on(ctx context.Context, k int, op, key string, try func(*redisbloom.Client) error) error {
	return f.client.Each(ctx, k, op, key, func(_ context.Context, e shard.Endpoint) error {
		err := try(&redisbloom.Client{Pool: f.pool(e)})
		var reply redis.Error
		if errors.As(err, &reply) {
			return serverError(reply)
		}
		return err
	})
}

// serverError is an error reply, marked as such for the shard client.
type serverError string

func (e serverError) Error() string { return string(e) }

// RedisError marks the error as one that the server answered.
func (e serverError) RedisError() {}

// do runs a command that redisbloom-go lacks or lacks an option of, no longer
// than ctx lives: a server that is frozen must not hold up who only looks.
func do(ctx context.Context, c *redisbloom.Client, command string, args ...any) (any, error) {
	conn, err := c.Pool.(contextPool).GetContext(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return redis.DoContext(conn, ctx, command, args...)
}

// contextPool is what every pool of this package is.
type contextPool interface {
	GetContext(context.Context) (redis.Conn, error)
}

// timeout of one command; a chunk of a dump has 16 MB.
const timeout = 10 * time.Second

// pool returns the connections to a master.
func (f *Filters) pool(e shard.Endpoint) redisbloom.ConnPool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pools[e.Addr]
	if p == nil {
		p = &redis.Pool{MaxIdle: 1, MaxActive: 1, Wait: true, IdleTimeout: time.Minute,
			DialContext: func(ctx context.Context) (redis.Conn, error) { return dial(ctx, e) }}
		f.pools[e.Addr] = p
	}
	if e.Ask {
		return asking{p}
	}
	return p
}

// dial connects, logs in and chooses the database.
func dial(ctx context.Context, e shard.Endpoint) (redis.Conn, error) {
	plain, err := e.Dial(ctx)
	if err != nil {
		return nil, err
	}
	conn := redis.NewConn(plain, timeout, timeout)
	if e.Password != "" || e.Username != "" {
		args := []any{string(e.Password)}
		if e.Username != "" {
			args = []any{e.Username, string(e.Password)}
		}
		if _, err = conn.Do("AUTH", args...); err != nil {
			conn.Close()
			return nil, err
		}
	}
	if e.DB != 0 {
		if _, err = conn.Do("SELECT", e.DB); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

// asking is a pool whose connections say ASKING before each command.
type asking struct{ *redis.Pool }

func (p asking) Get() redis.Conn { return askingConn{p.Pool.Get()} }

func (p asking) GetContext(ctx context.Context) (redis.Conn, error) {
	conn, err := p.Pool.GetContext(ctx)
	return askingConn{conn}, err
}

type askingConn struct{ redis.Conn }

func (c askingConn) Do(command string, args ...any) (any, error) {
	if _, err := c.Conn.Do("ASKING"); err != nil {
		return nil, err
	}
	return c.Conn.Do(command, args...)
}

// DoContext is Do, with an end.
func (c askingConn) DoContext(ctx context.Context, command string, args ...any) (any, error) {
	if _, err := redis.DoContext(c.Conn, ctx, "ASKING"); err != nil {
		return nil, err
	}
	return redis.DoContext(c.Conn, ctx, command, args...)
}

// ReceiveContext makes it a redis.ConnWithContext.
func (c askingConn) ReceiveContext(ctx context.Context) (any, error) {
	return redis.ReceiveContext(c.Conn, ctx)
}

func abs(n int64) int64 { return max(n, -n) }
