package shard

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Level says how bad a finding is.
type Level string

// The levels of findings.
const (
	OK   Level = "ok"
	Warn Level = "warn" // a crawl runs, but worse than it could
	Fail Level = "fail" // it does not run, or loses data
)

// Finding is one thing that was looked at.
type Finding struct {
	Level   Level    `json:"level"`
	What    string   `json:"what"`              // what was looked at
	Servers []string `json:"servers,omitempty"` // addresses of the masters it is so at, none = this machine
	Found   string   `json:"found"`             // of several servers that of the worst
	Do      string   `json:"do,omitempty"`      // what to do about it, "" when nothing has to be done

	worst float64 // how bad it is among the same findings of other servers
	unfit error   // why no crawl runs on the server
}

// Diagnose looks at every master that the servers name: version and module, memory,
// what is kept on disk, replicas, settings, clock and latency. The findings are in
// the order of their list, one each for what is the same at several masters. What a
// user may not ask is a finding too. Cost: some 25 small calls to each master.
func (c *Client) Diagnose(ctx context.Context) []Finding {
	var mu sync.Mutex
	var all []Finding
	var skews []time.Duration
	err := c.eachMaster(ctx, func(ctx context.Context, n *redis.Client) error {
		short, cancel := context.WithTimeout(ctx, checkWait)
		defer cancel()
		p := &inspection{ctx: short, n: n, c: c, whole: true}
		p.inspect()
		if p.err != nil {
			p.note(Fail, "answer", p.err.Error(), "start the server, or see what holds it up", 0)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, p.findings...)
		if p.timed {
			skews = append(skews, p.skew)
		}
		return nil
	})
	if err != nil {
		all = append(all, Finding{Level: Fail, What: "cluster", Found: err.Error(), Do: "see redis-cli --cluster check"})
	}
	found := merge(all)
	if len(skews) > 1 {
		apart := slices.Max(skews) - slices.Min(skews)
		f := Finding{Level: OK, What: "clocks of masters", Found: fmt.Sprintf("%v apart", round(apart))}
		if apart > skewHigh {
			f.Level, f.Do = Warn, "let NTP set them: a replica whose clock is behind holds its shards up when it takes over"
		}
		found = append(found, f)
	}
	return found
}

// inspection is one look at one master.
type inspection struct {
	ctx      context.Context
	n        *redis.Client
	c        *Client
	whole    bool              // all of it; else only what decides whether, and how well, a crawl runs
	info     map[string]string // INFO
	master   string            // address of its master, if it is a replica
	skew     time.Duration     // of its clock, if timed
	timed    bool
	findings []Finding
	err      error // the server did not answer
}

func (p *inspection) note(level Level, what, found, do string, worst float64) *Finding {
	p.findings = append(p.findings, Finding{Level: level, What: what, Servers: []string{p.n.Options().Addr}, Found: found, Do: do, worst: worst})
	return &p.findings[len(p.findings)-1]
}

// noteIf notes found at this level when it is bad, else as ok.
func (p *inspection) noteIf(bad bool, level Level, what, found, do string, worst float64) *Finding {
	if !bad {
		level, do = OK, ""
	}
	return p.note(level, what, found, do, worst)
}

// refuseIf notes found as a reason to refuse the server when it is bad, else as ok.
func (p *inspection) refuseIf(bad bool, err error, what, found, do string) {
	if f := p.noteIf(bad, Fail, what, found, do, 0); bad {
		f.unfit = err
	}
}

// of is a number of INFO, 0 where it has none.
func (p *inspection) of(name string) int64 { return Int(p.info[name]) }

// failed keeps the error of a call that the server did not answer.
func (p *inspection) failed(err error) bool {
	if err != nil && !isReply(err) {
		p.err = err
	}
	return p.err != nil
}

// lacks notes that our user may not run a command.
func (p *inspection) lacks(command, follows string) {
	p.note(Warn, command, fmt.Sprintf("the user %s may not run %s: %s", cmp.Or(p.c.cfg.Username, "default"), command, follows),
		"allow it: ACL SETUSER … +"+strings.ReplaceAll(strings.ToLower(command), " ", "|"), 0)
}

func (p *inspection) inspect() {
	if p.info, p.err = fields(p.ctx, p.n); p.err != nil {
		return
	}
	if p.info["loading"] == "1" { // what it says of itself is not yet so
		p.err = errLoading
		return
	}
	steps := []func(){p.module, p.rights, p.settings}
	if p.whole {
		steps = append(steps, p.cluster, p.timing)
	}
	if len(p.info) == 0 {
		p.lacks("INFO", "version, memory and replicas are not judged, and memory watermarks do nothing")
	} else {
		p.version()
		p.persistence()
		if p.whole {
			p.memory()
			p.clients()
		}
	}
	for _, step := range steps {
		if step(); p.err != nil {
			return
		}
	}
}

func (p *inspection) version() {
	found := "Redis " + p.info["redis_version"]
	if v := p.info["valkey_version"]; v != "" {
		found = "Valkey " + v
	}
	p.refuseIf(tooOld(p.info) != "", ErrUnfit, "version", found, "upgrade it: Redis 7.0 or Valkey 7.2 is the oldest that works")
	if p.info["role"] == "slave" {
		p.master = net.JoinHostPort(p.info["master_host"], p.info["master_port"])
		p.refuseIf(true, ErrUnfit, "role", "replica", "name its master "+p.master)
	}
	policy := p.info["maxmemory_policy"]
	p.refuseIf(policy != "noeviction" && policy != "", ErrUnfit, "maxmemory-policy", cmp.Or(policy, "unknown"),
		"set maxmemory-policy noeviction: any other throws parts of the crawl away")
}

// Shares of maxmemory, and of the machine's memory.
const (
	memoryHigh = 0.8  // candidates are soon turned away
	memoryFull = 0.97 // they are
	memoryMost = 0.85 // an AOF rewrite needs the rest
)

func (p *inspection) memory() {
	if n := p.of("evicted_keys"); n > 0 {
		p.note(Fail, "evicted keys", fmt.Sprint(n, " keys were thrown away"), "hold the crawl against its rules: frontier check --urls, and frontier bloom info", float64(n))
	}
	used, most, machine := p.of("used_memory"), p.of("maxmemory"), p.of("total_system_memory")
	found := gib(used) + " in use"
	switch share := float64(used) / float64(max(most, 1)); {
	case most == 0:
		p.note(Warn, "memory", found+", no maxmemory: the system ends the server when memory is out", "set maxmemory to about 70% of the machine's memory", float64(used))
	case machine > 0 && float64(most) > memoryMost*float64(machine):
		p.note(Warn, "memory", fmt.Sprintf("%s of maxmemory %s, and the machine has %s", found, gib(most), gib(machine)), "leave 30% of the machine's memory for rewrites and moves", float64(most)/float64(machine))
	default:
		level := OK
		if share > memoryFull {
			level = Fail
		} else if share > memoryHigh {
			level = Warn
		}
		p.noteIf(level != OK, level, "memory", fmt.Sprintf("%s, %.0f%% of maxmemory", found, 100*share), "add memory or masters, or set memory-high: above maxmemory nothing new is admitted", share)
	}
}

func (p *inspection) persistence() {
	aof, replicas := p.info["aof_enabled"] == "1", inStep(p.info)
	switch {
	case p.info["aof_enabled"] == "0" && p.info["connected_slaves"] == "0":
		p.note(Warn, "persistence", losable, "set appendonly yes, or add replicas", 0)
	case !p.whole:
	case !aof:
		p.note(Warn, "persistence", fmt.Sprint("no append-only file, replicas: ", replicas), "set appendonly yes: a restart of master and replica loses the crawl", 0)
	default:
		p.note(OK, "persistence", "append-only file", "", 0)
	}
	if !p.whole {
		return
	}
	for name, what := range map[string]string{"aof_last_write_status": "writing the append-only file", "aof_last_bgrewrite_status": "rewriting the append-only file", "rdb_last_bgsave_status": "the last snapshot"} {
		if p.info[name] == "err" {
			p.note(Fail, name, what+" failed", "give it room on its disk and see the server's log: writes may be refused until then", 0)
		}
	}
	if p.info["cluster_enabled"] == "1" || p.c.cfg.Master != "" {
		p.noteIf(replicas == 0, Warn, "replicas", fmt.Sprint(replicas), "add one: without, its shards wait until the master itself is back", float64(-replicas))
	}
	if us := p.of("latest_fork_usec"); us > time.Second.Microseconds() {
		p.note(Warn, "fork", fmt.Sprintf("the server stood still for %v to fork", time.Duration(us)*time.Microsecond), "more and smaller masters, and no transparent huge pages", float64(us))
	}
}

// inStep is how many replicas of a master are connected and have its data, by its
// INFO.
func inStep(info map[string]string) (n int) {
	for name, value := range info {
		if strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online") {
			n++
		}
	}
	return n
}

// connsOfProgram is how many connections a program has to a master at most.
const connsOfProgram = 4

func (p *inspection) clients() {
	most, now := p.of("maxclients"), p.of("connected_clients")
	if most == 0 {
		return
	}
	found := fmt.Sprintf("%d of maxclients %d, room for %d more programs", now, most, (most-now)/connsOfProgram)
	p.noteIf(float64(now) > memoryHigh*float64(most), Warn, "connections", found, "raise maxclients and the server's limit of open files", float64(now)/float64(most))
	if n := p.of("rejected_connections"); n > 0 {
		p.note(Warn, "refused connections", fmt.Sprint(n), "raise maxclients and the server's limit of open files", float64(n))
	}
}

// module looks for the commands of filters, and for the module's name and version
// where it may.
func (p *inspection) module() {
	err := p.n.Do(p.ctx, "bf.card", "seine:check").Err() // MOVED, NOPERM and 0 all mean that it is there
	if p.failed(err) {
		return
	}
	if redis.HasErrorPrefix(err, "unknown command") {
		p.refuseIf(true, ErrNoBloom, "bloom module", "none", "load RedisBloom 2.4.4 or later (redis-server --loadmodule /path/to/redisbloom.so), or use Redis 8, Redis Stack or Valkey with its bloom module")
		return
	}
	if !p.whole {
		return
	}
	found := "it is there; this user may not read its version"
	list, _ := p.n.Do(p.ctx, "module", "list").Slice()
	for _, m := range list {
		has := map[string]any{}
		for pair := range slices.Chunk(Array(m), 2) {
			has[Text(pair[0])] = pair[len(pair)-1]
		}
		if name := Text(has["name"]); name == "bf" || name == "bloom" {
			found = fmt.Sprintf("%s, version %v", name, has["ver"])
		}
	}
	p.note(OK, "bloom module", found, "", 0)
}

// rights tries what a user of Redis is worse off without.
func (p *inspection) rights() {
	for _, x := range []struct {
		name string
		args []any
		what string
	}{
		{"CLIENT SETNAME", []any{"client", "setname", p.c.cfg.Name}, "its connections have no name in CLIENT LIST"},
		{"MEMORY USAGE", []any{"memory", "usage", "seine:check"}, "queues are bounded by the number of their URLs only, and may become too large to move"},
	} {
		err := p.n.Do(p.ctx, x.args...).Err()
		if p.failed(err) {
			return
		}
		if mayNotRun(err) {
			p.lacks(x.name, x.what)
		}
	}
}

// settings are those that only CONFIG tells; the first basicSettings matter to Check.
var settings = []struct {
	name    string
	bad     func(value string, cluster bool) bool
	problem string
	do      string
}{
	{"list-compress-depth", func(v string, _ bool) bool { return v == "0" }, "long queues take four times the memory", "set list-compress-depth 1"},
	{"cluster-require-full-coverage", func(v string, cluster bool) bool { return cluster && v == "yes" }, "one lost master stops all shards, not its own only", "set cluster-require-full-coverage no"},
	{"cluster-replica-validity-factor", func(v string, cluster bool) bool { return cluster && v != "0" }, "a replica that was cut off for long does not take over", "set cluster-replica-validity-factor 0"},
	{"cluster-node-timeout", func(v string, cluster bool) bool { return cluster && Int(v) < 5000 }, "ms: a slow disk or a moving slot is taken for a death", "set cluster-node-timeout 15000"},
	{"appendfsync", func(v string, _ bool) bool { return v == "no" }, "half a minute is lost when the machine dies", "set appendfsync everysec"},
	{"timeout", func(v string, _ bool) bool { return v != "0" }, "s: idle connections are closed, and what fetchers remember as known is forgotten each time", "set timeout 0"},
	{"tcp-keepalive", func(v string, _ bool) bool { return v == "0" }, "connections of dead programs stay", "set tcp-keepalive 60"},
	{"save", func(v string, _ bool) bool { return v != "" }, "snapshots beside an append-only file only cost memory", `set save ""`},
	{"busy-reply-threshold", func(v string, _ bool) bool { return Int(v) < 1000 }, "ms: a script on a slow machine has others refused", "set busy-reply-threshold 5000"},
}

const basicSettings = 2

func (p *inspection) settings() {
	list := settings
	if !p.whole {
		list = settings[:basicSettings]
	}
	names := []any{"config", "get"}
	for _, s := range list {
		names = append(names, s.name)
	}
	reply, err := p.n.Do(p.ctx, names...).Slice()
	if p.failed(err) {
		return
	}
	if err != nil && p.whole {
		p.lacks("CONFIG GET", "settings are not judged")
	}
	have := map[string]string{}
	for i := 0; i+1 < len(reply); i += 2 {
		have[Text(reply[i])] = Text(reply[i+1])
	}
	cluster := p.info["cluster_enabled"] == "1"
	for _, s := range list {
		v, known := have[s.name]
		if !known || s.name == "save" && p.info["aof_enabled"] != "1" {
			continue
		}
		found := cmp.Or(v, `""`)
		if s.bad(v, cluster) {
			p.note(Warn, s.name, found+": "+s.problem, s.do, 0)
		} else if cluster || !strings.HasPrefix(s.name, "cluster-") {
			p.note(OK, s.name, found, "", 0)
		}
	}
}

func (p *inspection) cluster() {
	if p.info["cluster_enabled"] != "1" {
		return
	}
	text, err := p.n.ClusterInfo(p.ctx).Result()
	if err != nil {
		return
	}
	f := InfoFields(text)
	p.noteIf(f["cluster_state"] != "ok" || f["cluster_slots_ok"] != strconv.Itoa(Slots), Fail, "cluster",
		fmt.Sprintf("state %s, %s of %d slots served by %s masters", f["cluster_state"], f["cluster_slots_ok"], Slots, f["cluster_size"]),
		"see redis-cli --cluster check, and start what is down", 0)
}

const (
	pings       = 15
	latencyHigh = 5 * time.Millisecond // a call has to be a small part of a page
	skewHigh    = time.Second
)

// timing measures the time of a call, and how far the server's clock is from ours.
func (p *inspection) timing() {
	trips := make([]time.Duration, 0, pings)
	best := time.Hour
	for range pings {
		began := time.Now()
		now, err := p.n.Time(p.ctx).Result()
		if err != nil {
			if len(trips) == 0 {
				p.err = err
				return
			}
			break
		}
		trip := time.Since(began)
		trips = append(trips, trip)
		if trip < best {
			best, p.skew, p.timed = trip, now.Sub(began.Add(trip/2)), true
		}
	}
	slices.Sort(trips)
	median := trips[len(trips)/2]
	p.noteIf(median > latencyHigh, Warn, "latency", fmt.Sprintf("%v, longest %v", round(median), round(trips[len(trips)-1])), "place fetchers near Redis, and see redis-cli --latency and SLOWLOG GET there", float64(median))
	p.noteIf(p.skew.Abs() > skewHigh, Warn, "clock", fmt.Sprintf("%v from this machine's", round(p.skew)), "let NTP set the clocks of servers and fetchers", float64(p.skew.Abs()))
}

func gib(n int64) string { return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30)) }

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// InfoFields are the name:value lines of INFO and CLUSTER INFO.
func InfoFields(text string) map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}

// merge makes one finding of those that are the same but for the server.
func merge(all []Finding) []Finding {
	type kind struct {
		what, do string
		level    Level
	}
	merged, order := map[kind]Finding{}, []kind{}
	for _, f := range all {
		k := kind{f.What, f.Do, f.Level}
		m, known := merged[k]
		if !known {
			order = append(order, k)
			merged[k] = f
			continue
		}
		f.Servers = append(m.Servers, f.Servers...)
		if m.worst >= f.worst {
			f.Found, f.worst = m.Found, m.worst
		}
		merged[k] = f
	}
	out := make([]Finding, len(order))
	for i, k := range order {
		out[i] = merged[k]
		slices.Sort(out[i].Servers)
	}
	return out
}
