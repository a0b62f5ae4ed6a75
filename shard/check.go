package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	Do      string   // what to do about it
}

func (w Warning) String() string {
	return fmt.Sprintf("redis %s: %s; %s", strings.Join(w.Servers, ", "), w.What, w.Do)
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
// that is not fit wait until that is repaired, which Config.Waits reports.
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
		in := &inspection{ctx: short, n: n, c: c}
		in.inspect()
		warnings, fault := in.judge()
		mu.Lock()
		defer mu.Unlock()
		for _, w := range warnings {
			if byText[w.What] == nil {
				byText[w.What] = &w
				w.Servers = nil
			}
			byText[w.What].Servers = append(byText[w.What].Servers, addr)
		}
		if in.master != "" && c.follows() { // it was replaced just now: its successor is judged before the first call
			return ctx.Err()
		}
		if faults[addr] = fault; in.err == nil && fault == nil {
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
			Do:   fmt.Sprintf("set %d, %d, %d, …", n, 2*n, 3*n)})
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

// awaitFit inspects a master before the first call to it, and when it may have started
// anew since, if Check was called.
func (c *Client) awaitFit(ctx context.Context, n *redis.Client) error {
	if !c.judges.Load() {
		return nil
	}
	addr := n.Options().Addr
	breaks := c.dialler.peer(addr).breaks.Load()
	if at, ok := c.fit.Load(addr); ok && at == breaks {
		return nil
	}
	in := &inspection{ctx: ctx, n: n, c: c}
	in.inspect()
	warnings, fault := in.judge()
	switch {
	case in.err != nil:
		return in.err
	case in.master != "":
		return fmt.Errorf("%w of %s", errReplica, in.master)
	case fault != nil:
		return fault
	}
	if _, known := c.fit.Swap(addr, breaks); !known && c.cfg.Warns != nil {
		for _, w := range warnings {
			if strings.HasSuffix(w.What, losable) { // its replicas may be on their way, as it was not there just now
				continue
			}
			c.cfg.Warns(w)
		}
	}
	return nil
}

// losable describes a server that keeps nothing.
const losable = "neither an append-only file nor a replica: the crawl is lost when the server ends"

// errLoading says that a server reads its file.
var errLoading = errors.New("shard: the server loads its file")

// judge makes warnings of the findings that a crawl is worse off for, and an error of
// those that it cannot run with.
func (in *inspection) judge() (warnings []Warning, fault error) {
	addr := in.n.Options().Addr
	var faults []error
	for _, f := range in.findings {
		switch {
		case f.unfit != nil:
			faults = append(faults, fmt.Errorf("%w: %s has %s %s: %s", f.unfit, addr, f.What, f.Found, f.Do))
		case f.Level == Warn:
			warnings = append(warnings, Warning{Servers: f.Servers, What: f.What + ": " + f.Found, Do: f.Do})
		}
	}
	return warnings, errors.Join(faults...)
}

// mayNotRun reports whether a user may not run a command, rather than not use a key.
func mayNotRun(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") && strings.Contains(err.Error(), " to run the ")
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
