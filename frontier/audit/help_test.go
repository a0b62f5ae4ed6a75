package audit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"seine/frontier"
	"seine/frontier/audit"
	"seine/frontier/canon"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

// stand is a crawl of one shard, its raw client, and what is between the two.
type stand struct {
	*redis.Frontier
	keys shard.Keys
	rdb  goredis.UniversalClient
	wire *wire
	t    testing.TB
}

// made is a crawl as programs make it, with a root, on a server.
func made(t testing.TB, s *shardtest.Server) *stand {
	t.Helper()
	client, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	f, err := redis.Create(t.Context(), client, "crawl", frontier.Layout{Shards: 1, PlanURLs: 20_000}, frontier.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	st := &stand{Frontier: f, keys: f.Keys(0), rdb: s.Nodes[0].Client(), wire: &wire{}, t: t}
	client.Redis().AddHook(st.wire)
	return st
}

// wire is between the crawl and its server: a hook of go-redis, which a test may
// have do something with the calls of scripts. send sends the call, again a copy whose
// reply nobody hears; keys is how many keys it has.
type wire struct {
	on func(script string, keys int, send func() error, again func()) error
}

func (w *wire) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (w *wire) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (w *wire) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		args := cmd.Args()
		if w.on == nil || cmd.Name() != "evalsha" || len(args) < 12 {
			return next(ctx, cmd)
		}
		script := ""
		if key, ok := args[11].(*string); ok {
			_, script, _ = strings.Cut(*key, ":never:")
		}
		return w.on(script, args[2].(int), func() error { return next(ctx, cmd) }, func() { next(ctx, goredis.NewCmd(ctx, args...)) })
	}
}

// do runs a plain command.
func (s *stand) do(args ...any) any {
	s.t.Helper()
	v, err := s.rdb.Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// number is the reply of a command as a number, 0 for none.
func (s *stand) number(args ...any) int64 {
	s.t.Helper()
	return shard.Int(s.do(args...))
}

// pass lets the server's clock pass: it stands at the last tick until the real
// time is later.
func (s *stand) pass(d time.Duration) {
	s.t.Helper()
	now := max(time.Now().UnixMilli(), s.number("HGET", s.keys.Meta(), "tick"))
	s.do("EVAL", "#!lua flags=allow-oom\nreturn redis.call('HSET', KEYS[1], 'tick', ARGV[1])", 1, s.keys.Meta(), now+d.Milliseconds())
}

// candidate is the i-th URL of a site.
func candidate(site string, i int) frontier.Candidate {
	url := fmt.Sprintf("https://%s/page/%d", site, i)
	return frontier.Candidate{URL: url, Site: site, Fingerprint: canon.FingerprintOf([]byte(site), []byte(url)), Priority: 2, Depth: 1}
}

func candidates(site string, from, to int) (list []frontier.Candidate) {
	for i := from; i < to; i++ {
		list = append(list, candidate(site, i))
	}
	return list
}

func (s *stand) admit(batch ...frontier.Candidate) {
	s.t.Helper()
	if err := s.Admit(s.t.Context(), 0, batch, make([]frontier.Verdict, len(batch))); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) tick(req frontier.TickRequest) frontier.TickReply {
	s.t.Helper()
	r, err := s.Tick(s.t.Context(), 0, req)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *stand) visit(limits frontier.VisitLimits, tickets ...frontier.Ticket) []frontier.Visit {
	s.t.Helper()
	v, err := s.Visit(s.t.Context(), 0, tickets, limits)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// acquire ticks and visits a site that is due.
func (s *stand) acquire(site string, urls int) frontier.Visit {
	s.t.Helper()
	s.pass(2 * time.Millisecond)
	for _, d := range s.tick(frontier.TickRequest{Want: 100}).Due {
		if d.Site == site {
			if v := s.visit(frontier.VisitLimits{URLs: urls}, d); len(v) == 1 {
				return v[0]
			}
		}
	}
	s.t.Fatalf("%s was not leased", site)
	return frontier.Visit{}
}

func (s *stand) settle(list ...frontier.Settlement) []frontier.Settled {
	s.t.Helper()
	r, err := s.Settle(s.t.Context(), 0, list)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *stand) reap(e ...frontier.Expired) {
	s.t.Helper()
	if _, err := s.Reap(s.t.Context(), 0, e); err != nil {
		s.t.Fatal(err)
	}
}

// alter changes a site.
func (s *stand) alter(site string, c frontier.SiteChange) {
	s.t.Helper()
	if err := s.Alter(s.t.Context(), 0, site, c); err != nil {
		s.t.Fatal(err)
	}
}

// all makes one kind of outcome of every URL of a visit, and frees the site.
func all(v frontier.Visit, kind frontier.Kind) frontier.Settlement {
	st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
	for _, it := range v.Items {
		st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index, Kind: kind, Cause: "timeout"})
	}
	return st
}

// readyIn is the class that a site is in.
func (s *stand) readyIn(site string) int {
	s.t.Helper()
	for class := range 4 {
		if s.do("ZSCORE", s.keys.Ready(class), site) != nil {
			return class
		}
	}
	s.t.Fatalf("%s stands in no class", site)
	return -1
}

// check looks at the shard.
func (s *stand) check(urls bool) *audit.Report {
	s.t.Helper()
	r, err := audit.Check(s.t.Context(), s.Frontier, 0, urls)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// repair repairs the shard.
func (s *stand) repair() *audit.Report {
	s.t.Helper()
	r, err := audit.Repair(s.t.Context(), s.Frontier, 0, true)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// sound fails the test when the shard is not as its rules want it.
func (s *stand) sound() {
	s.t.Helper()
	if r := s.check(true); r.Faulted > 0 || r.Moving {
		s.t.Fatalf("moving %v, %d faults: %s", r.Moving, r.Faulted, strings.Join(r.Faults, "\n"))
	}
}

// dump is all that the shard's keys hold, but for what any call changes.
func (s *stand) dump() map[string]string {
	s.t.Helper()
	all := make(map[string]string)
	for _, v := range s.do("KEYS", s.keys.Pattern()).([]any) {
		key := v.(string)
		switch kind := s.do("TYPE", key).(string); kind {
		case "hash":
			h, err := s.rdb.HGetAll(context.Background(), key).Result()
			if err != nil {
				s.t.Fatal(err)
			}
			for _, name := range []string{"calls", "tick", "quiet", "round"} {
				if key == s.keys.Stats() || key == s.keys.Meta() {
					delete(h, name)
				}
			}
			all[key] = fmt.Sprint(h)
		case "list":
			all[key] = fmt.Sprintf("%q", s.do("LRANGE", key, 0, -1))
		case "zset":
			all[key] = fmt.Sprintf("%q", s.do("ZRANGE", key, 0, -1, "WITHSCORES"))
		}
	}
	return all
}

// same fails when two dumps differ.
func (s *stand) same(before, after map[string]string) {
	s.t.Helper()
	if !maps.Equal(before, after) {
		s.t.Errorf("changed\n%v\nto\n%v", before, after)
	}
}

func ptr[T any](v T) *T { return &v }
