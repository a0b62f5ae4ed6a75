package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seine/frontier"
	"seine/frontier/canon"
	"seine/shard"
	"seine/shard/shardtest"
)

func TestMain(m *testing.M) { shardtest.Main(m) }

const epoch = "epoch1"

// stand is a crawl on real servers, made by hand, and its raw client.
type stand struct {
	*Frontier
	rdb redis.UniversalClient
	t   testing.TB
}

// open makes a crawl of n shards with m filters each on servers.
func open(t testing.TB, s *shardtest.Server, n, m int) *stand {
	t.Helper()
	client, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	f := attach(client, "crawl", frontier.Layout{Format: 1, Shards: n, PlanURLs: planned(n, m), ErrorRate: 1e-6}, epoch)
	st := &stand{Frontier: f, rdb: client.Redis(), t: t}
	for k := range n {
		for j := range m {
			st.do("BF.RESERVE", f.keys[k].Filter(j), "0.000001", 20000)
		}
		st.do("HSET", f.keys[k].Meta(), "epoch", epoch, "rev", 7)
	}
	return st
}

// planned is for how many URLs a crawl of n shards has m filters each.
func planned(n, m int) int64 {
	if m == 1 {
		return int64(n) * 20_000
	}
	return int64(n) * int64(m) * 64_000_000
}

// one is a crawl of one shard and one filter on a server of its own.
func one(t testing.TB) *stand {
	t.Helper()
	return open(t, shardtest.One(t), 1, 1)
}

// do runs a plain command.
func (s *stand) do(args ...any) any {
	s.t.Helper()
	v, err := s.rdb.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// pass lets the server's clock pass: it stands at the last tick until the real
// time is later.
func (s *stand) pass(k int, d time.Duration) {
	s.t.Helper()
	now := max(time.Now().UnixMilli(), s.number("HGET", s.keys[k].Meta(), "tick"))
	s.do("EVAL", "#!lua flags=allow-oom\nreturn redis.call('HSET', KEYS[1], 'tick', ARGV[1])", 1, s.keys[k].Meta(), now+d.Milliseconds())
}

// number is the reply of a command as a number, 0 for none.
func (s *stand) number(args ...any) int64 {
	s.t.Helper()
	switch v := s.do(args...).(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			s.t.Fatal(args, ": ", v)
		}
		return n
	}
	return 0
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

// admit admits to shard 0 and says the verdicts as letters.
func (s *stand) admit(batch ...frontier.Candidate) string {
	s.t.Helper()
	verdicts := make([]frontier.Verdict, len(batch))
	if err := s.Admit(s.t.Context(), 0, batch, verdicts); err != nil {
		s.t.Fatal(err)
	}
	return letters(verdicts)
}

func letters(verdicts []frontier.Verdict) string {
	text := ""
	for _, v := range verdicts {
		text += string("ascf"[v])
	}
	return text
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

// acquire ticks and visits the one site that is due.
func (s *stand) acquire(urls int) frontier.Visit {
	s.t.Helper()
	s.pass(0, 2*time.Millisecond)
	r := s.tick(frontier.TickRequest{Want: 10})
	if len(r.Due) != 1 {
		s.t.Fatalf("due: %v, want one site", r.Due)
	}
	v := s.visit(frontier.VisitLimits{URLs: urls}, r.Due...)
	if len(v) != 1 {
		s.t.Fatalf("granted: %v, want one visit", v)
	}
	return v[0]
}

func (s *stand) settle(list ...frontier.Settlement) (outcomes [][]bool) {
	s.t.Helper()
	r, err := s.Settle(s.t.Context(), 0, list)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, settled := range r {
		outcomes = append(outcomes, settled.Outcomes)
	}
	return outcomes
}

// all makes one kind of outcome of every URL of a visit, and frees the site.
func all(v frontier.Visit, kind frontier.Kind) frontier.Settlement {
	st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
	for _, it := range v.Items {
		st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index, Kind: kind, Cause: "timeout"})
	}
	return st
}

// urls lists the URLs of a visit.
func urls(v frontier.Visit) (list []string) {
	for _, it := range v.Items {
		list = append(list, it.URL)
	}
	return list
}

// reset empties a server and makes the crawl anew, for the next case.
func (s *stand) reset(t testing.TB) {
	s.t = t
	s.t.Helper()
	s.do("FLUSHALL", "SYNC") // what Valkey frees in the background would still count as used
	s.settings.Store(&frontier.Settings{})
	if err := s.Configure(Config{}); err != nil {
		t.Fatal(err)
	}
	for k := range s.layout.Shards {
		for j := range s.plan.Filters {
			s.do("BF.RESERVE", s.keys[k].Filter(j), "0.000001", 20000)
		}
		s.do("HSET", s.keys[k].Meta(), "epoch", epoch, "rev", 7)
	}
}

// stat is one counter of shard 0.
func (s *stand) stat(name string) int64 {
	s.t.Helper()
	return s.number("HGET", s.keys[0].Stats(), name)
}

// stored is the URLs of a list of shard 0, from the front.
func (s *stand) stored(site string, class int) (list []string) {
	s.t.Helper()
	for _, v := range s.do("LRANGE", s.keys[0].Queue(site, class), 0, -1).([]any) {
		e, err := frontier.DecodeEntry(v.(string), site)
		if err != nil {
			s.t.Fatal(err)
		}
		list = append(list, strings.TrimPrefix(e.URL, "https://"+site+"/page/"))
	}
	return list
}

// where names the zsets that a site of shard 0 is in.
func (s *stand) where(site string) string {
	s.t.Helper()
	var in []string
	for z, name := range map[int]string{3: "0", 4: "1", 5: "2", 6: "3", 7: "paused"} {
		if s.do("ZSCORE", s.base[0][z], site) != nil {
			in = append(in, name)
		}
	}
	slices.Sort(in)
	return strings.Join(in, " ")
}

func again(c frontier.Candidate, id string) frontier.Candidate {
	c.Refetch = id
	return c
}

func class(c frontier.Candidate, p uint8) frontier.Candidate {
	c.Priority = p
	return c
}

// alter changes a site of shard 0.
func (s *stand) alter(site string, c frontier.SiteChange) {
	s.t.Helper()
	if err := s.Alter(s.t.Context(), 0, site, c); err != nil {
		s.t.Fatal(err)
	}
}

// Grow gives every filter of every shard another key, before any is full.
func (f *Frontier) Grow(ctx context.Context) error {
	for k := range f.keys {
		if err := f.grow(ctx, &f.urls, k, max(int(f.urls.each[k].Load()), 1)); err != nil {
			return err
		}
		if _, err := f.FilterSet(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func ptr[T any](v T) *T { return &v }

func shardFilter(fp canon.Fingerprint, n int) int { return shard.FilterOf(fp, n) }

// acquireOne is lease when several sites are due.
func (s *stand) acquireOne(site string, urls int) frontier.Visit {
	s.t.Helper()
	s.pass(0, 2*time.Millisecond)
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

// Audited is a report of package audit. That package imports this one, so tests
// from outside, which may import both, say here how it is made.
type Audited struct {
	Shard    int
	Sites    int64
	Leases   int64
	Gauges   map[string]int64
	Probed   int64
	Moving   bool
	Notes    []string
	Faults   []string
	Faulted  int64
	Repaired []string
	Repairs  int64
}

var AuditCheck, AuditRepair func(ctx context.Context, f *Frontier, k int, urls bool) (*Audited, error)

// zAt is a member of a zset.
func zAt(member string, score float64) redis.Z { return redis.Z{Score: score, Member: member} }
