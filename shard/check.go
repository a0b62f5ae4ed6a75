package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Warning is a setting under which a crawl runs, but worse than it could.
type Warning struct {
	Servers []string // addresses of the masters that have it so
	What    string   // what is so and what follows
	Set     string   // what to set instead
}

func (w Warning) String() string {
	return fmt.Sprintf("redis %s: %s; set %s", strings.Join(w.Servers, ", "), w.What, w.Set)
}

// checkWait is how long Check and CheckAck wait for a master.
const checkWait = 5 * time.Second

// Check looks at every master before a crawl starts on them. An eviction
// policy, a server too old (Redis before 7.0, Valkey before 7.2) or a replica
// is ErrUnfit, a missing module ErrNoBloom; the error names each server and
// what to do. Lesser things are warnings. What a managed server forbids to ask
// is not judged.
//
// A master that does not answer in time is left for later, as are those that are
// masters only later: from now on each is looked at before the first call to it, and
// again after a connection to it broke, for it may have started anew. Calls to one
// that is not fit wait until that is mended, which Config.Waits is told of.
func (c *Client) Check(ctx context.Context) ([]Warning, error) {
	c.judges.Store(true)
	var mu sync.Mutex
	byText := make(map[string]*Warning)
	faults := make(map[string]error)
	err := c.eachMaster(ctx, func(ctx context.Context, n *redis.Client) error {
		addr := n.Options().Addr
		short, cancel := context.WithTimeout(ctx, checkWait)
		defer cancel()
		breaks := c.dialler.peer(addr).breaks.Load()
		f, err := c.examine(short, n)
		mu.Lock()
		defer mu.Unlock()
		for _, w := range f.warnings {
			if byText[w.What] == nil {
				byText[w.What] = &w
			}
			byText[w.What].Servers = append(byText[w.What].Servers, addr)
		}
		if f.master != "" && c.follows() { // it was replaced just now: its successor is judged before the first call
			return ctx.Err()
		}
		faults[addr] = errors.Join(append(f.faults, f.replica(addr))...)
		if err == nil && faults[addr] == nil {
			c.fit.Store(addr, breaks)
		}
		return ctx.Err()
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("shard: check: %w", err)
	}
	errs := []error{err}
	for _, addr := range slices.Sorted(maps.Keys(faults)) {
		errs = append(errs, faults[addr])
	}
	var warnings []Warning
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		slices.Sort(byText[text].Servers)
		warnings = append(warnings, *byText[text])
	}
	return warnings, errors.Join(errs...)
}

// OpenFit is Open for programs that admit URLs: it waits while no server answers,
// refuses servers by Check and, where replicas have to acknowledge, by CheckAck, and
// tells Config.Warns what could be better.
func OpenFit(ctx context.Context, cfg Config, replicas int) (*Client, error) {
	cfg.Patient = true
	c, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	warnings, err := c.Check(ctx)
	if err == nil && replicas > 0 {
		var w *Warning
		if w, err = c.CheckAck(ctx, replicas); w != nil {
			warnings = append(warnings, *w)
		}
	}
	for _, w := range warnings {
		c.warn(w)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// WarnUneven tells Config.Warns where a crawl of so many shards would not spread
// evenly over the masters.
func (c *Client) WarnUneven(ctx context.Context, shards int) error {
	masters, err := c.Masters(ctx)
	if err != nil {
		return err
	}
	if n := len(masters); n > 0 && shards%n != 0 {
		c.warn(Warning{Servers: masters,
			What: fmt.Sprintf("%d shards do not spread evenly over %d masters; their number is fixed when the crawl is created", shards, n),
			Set:  fmt.Sprintf("%d, %d, %d, …", n, 2*n, 3*n)})
	}
	return nil
}

func (c *Client) warn(w Warning) {
	if c.cfg.Warns != nil {
		c.cfg.Warns(w)
	}
}

// follows reports whether the servers themselves tell which of them is master.
func (c *Client) follows() bool { return c.cluster != nil || c.watch != nil }

// judge looks at a master before the first call to it, and when it may have started
// anew since, if Check was called.
func (c *Client) judge(ctx context.Context, n *redis.Client) error {
	if !c.judges.Load() {
		return nil
	}
	addr := n.Options().Addr
	breaks := c.dialler.peer(addr).breaks.Load()
	if at, ok := c.fit.Load(addr); ok && at == breaks {
		return nil
	}
	f, err := c.examine(ctx, n)
	if err != nil {
		return err
	}
	if f.master != "" {
		return fmt.Errorf("%w of %s", errReplica, f.master)
	}
	if err := errors.Join(f.faults...); err != nil {
		return err
	}
	if _, known := c.fit.Swap(addr, breaks); !known && c.cfg.Warns != nil {
		for _, w := range f.warnings {
			if w.What == losable { // its replicas may be on their way, as it was not there just now
				continue
			}
			w.Servers = []string{addr}
			c.cfg.Warns(w)
		}
	}
	return nil
}

// findings is what is wrong with one server.
type findings struct {
	warnings []Warning // without Servers
	faults   []error
	master   string // address of its master, if it is a replica
}

// replica is the fault of a server at addr that is a replica, nil of a master.
func (f *findings) replica(addr string) error {
	if f.master == "" {
		return nil
	}
	return fmt.Errorf("%w: %s is a replica; name its master %s instead", ErrUnfit, addr, f.master)
}

// losable is said of a server that keeps nothing.
const losable = "neither an append-only file nor a replica: the crawl is lost when the server ends"

func (f *findings) warn(what, set string) {
	f.warnings = append(f.warnings, Warning{What: what, Set: set})
}

// examine asks one server. Its error is that the server did not answer.
func (c *Client) examine(ctx context.Context, n *redis.Client) (findings, error) {
	var f findings
	addr := n.Options().Addr
	info, err := fields(ctx, n)
	if err != nil {
		return f, err
	}
	if info["loading"] == "1" { // what it says of itself is not yet so
		return f, errLoading
	}
	if len(info) == 0 {
		f.warn(c.lack("INFO", "version, memory and replicas are not judged, and memory marks do nothing"))
	}
	if text := tooOld(info); text != "" {
		f.faults = append(f.faults, fmt.Errorf("%w: %s runs %s; Redis 7.0 or Valkey 7.2 is the oldest that works, upgrade it", ErrUnfit, addr, text))
	}
	if info["role"] == "slave" {
		f.master = net.JoinHostPort(info["master_host"], info["master_port"])
	}
	if p := info["maxmemory_policy"]; p != "" && p != "noeviction" {
		f.faults = append(f.faults, fmt.Errorf("%w: %s has maxmemory-policy %s and would throw parts of the crawl away; set maxmemory-policy noeviction", ErrUnfit, addr, p))
	}
	if info["aof_enabled"] == "0" && info["connected_slaves"] == "0" {
		f.warn(losable, "appendonly yes, or add replicas")
	}
	err = n.Do(ctx, "bf.card", "seine:check").Err() // MOVED, NOPERM and 0 all mean that it is there
	if redis.HasErrorPrefix(err, "unknown command") {
		f.faults = append(f.faults, fmt.Errorf("%w: %s does not know BF.CARD; load RedisBloom 2.4.4 or later there (redis-server --loadmodule /path/to/redisbloom.so), or use Redis 8, Redis Stack or Valkey with its bloom module", ErrNoBloom, addr))
	} else if err != nil && !isReply(err) {
		return f, err
	}
	if err := c.rights(ctx, n, &f); err != nil {
		return f, err
	}
	return f, f.settings(ctx, n, info["cluster_enabled"] == "1")
}

// errLoading says that a server reads its file.
var errLoading = errors.New("shard: the server loads its file")

// rights tries what a user of Redis is worse off without.
func (c *Client) rights(ctx context.Context, n *redis.Client, f *findings) error {
	for _, x := range []struct {
		name string
		args []any
		what string
	}{
		{"CLIENT SETNAME", []any{"client", "setname", c.cfg.Name}, "its connections have no name in CLIENT LIST"},
		{"MEMORY USAGE", []any{"memory", "usage", "seine:check"}, "queues are bounded by the number of their URLs only, and may become too large to move"},
	} {
		err := n.Do(ctx, x.args...).Err()
		if mayNotRun(err) {
			f.warn(c.lack(x.name, x.what))
		} else if err != nil && !isReply(err) {
			return err
		}
	}
	return nil
}

// lack is the warning that our user may not run a command.
func (c *Client) lack(command, follows string) (what, set string) {
	right := "+" + strings.ReplaceAll(strings.ToLower(command), " ", "|")
	return fmt.Sprintf("the user %s may not run %s: %s", or(c.cfg.Username, "default"), command, follows), right + " in its rights"
}

// mayNotRun tells that a user may not run a command from that it may not use a key.
func mayNotRun(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") && strings.Contains(err.Error(), " to run the ")
}

// settings looks at what only CONFIG tells.
func (f *findings) settings(ctx context.Context, n *redis.Client, cluster bool) error {
	for _, s := range []struct {
		name string
		bad  func(value string) bool
		what string
		set  string
	}{
		{"list-compress-depth", func(v string) bool { return v == "0" },
			"list-compress-depth is 0: long queues take four times the memory", "list-compress-depth 1"},
		{"cluster-require-full-coverage", func(v string) bool { return cluster && v == "yes" },
			"cluster-require-full-coverage is yes: one lost master stops all shards, not its own only", "cluster-require-full-coverage no"},
	} {
		have, err := n.ConfigGet(ctx, s.name).Result()
		if err != nil && !isReply(err) {
			return err
		}
		if value, ok := have[s.name]; err == nil && ok && s.bad(value) {
			f.warn(s.what, s.set)
		}
	}
	return nil
}

// fields are the lines of INFO; none where it is forbidden.
func fields(ctx context.Context, n *redis.Client) (map[string]string, error) {
	info, err := n.Info(ctx).Result()
	if err != nil && !isReply(err) {
		return nil, err
	}
	return InfoFields(info), nil
}

// tooOld names the version of a server that is too old, "" where it is not or
// does not say. Valkey answers its own version beside the Redis one it mimics.
func tooOld(info map[string]string) string {
	name, version, least := "Redis", info["redis_version"], [2]int{7, 0}
	if v := info["valkey_version"]; v != "" {
		name, version, least = "Valkey", v, [2]int{7, 2}
	}
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if err1 != nil || err2 != nil || a > least[0] || a == least[0] && b >= least[1] {
		return ""
	}
	return name + " " + version
}

// isReply tells an error that the server answered from one without an answer.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
