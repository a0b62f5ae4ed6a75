//go:build linux

package scale

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"seine/bloom"
	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

// use is what a server has used so far: processor time of the thread that runs
// scripts, bytes that came in and went out.
type use struct{ us, in, out float64 }

func (u use) minus(o use) use { return use{u.us - o.us, u.in - o.in, u.out - o.out} }

// infoOf reads numbers of INFO.
func infoOf(ctx context.Context, n *shardtest.Node, sections ...string) (map[string]float64, error) {
	text, err := n.Client().Info(ctx, sections...).Result()
	if err != nil {
		return nil, err
	}
	numbers := make(map[string]float64)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			numbers[name] = v
		}
	}
	return numbers, nil
}

func usedBy(ctx context.Context, n *shardtest.Node) (use, error) {
	info, err := infoOf(ctx, n, "cpu", "stats")
	return use{1e6 * (info["used_cpu_user_main_thread"] + info["used_cpu_sys_main_thread"]), info["total_net_input_bytes"], info["total_net_output_bytes"]}, err
}

// stand is a crawl with the servers that it is on.
type stand struct {
	t *testing.T
	*crawl
	f      *redis.Frontier
	client *shard.Client
	server *shardtest.Server
	sites  int
	lone   uint32 // sites that measurements made
}

// addrs is where programs find the servers.
func (s *stand) addrs() []string {
	if s.watched() {
		return []string{s.server.SentinelURL()}
	}
	return s.server.Addrs
}

// watched reports whether sentinels watch the server and its replica.
func (s *stand) watched() bool { return len(s.server.Watch) > 0 }

// master is the server that has a shard.
func (s *stand) master(k int) *shardtest.Node {
	addr, err := s.client.Owner(s.t.Context(), s.f.Keys(k).Meta())
	if err != nil {
		s.t.Fatal(err)
	}
	i := slices.IndexFunc(s.server.Nodes, func(n *shardtest.Node) bool { return n.Addr == addr })
	if i < 0 {
		s.t.Fatal("shard ", k, " is at ", addr)
	}
	return s.server.Nodes[i]
}

// serving are the servers that have shards.
func (s *stand) serving() (nodes []*shardtest.Node) {
	for k := range s.parts {
		if n := s.master(k); !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// cost takes what do uses of the master of a shard, for each of n URLs.
func (s *stand) cost(ctx context.Context, k, n int, do func() error) (use, error) {
	var at [4]use
	for i := range at {
		if i == 3 {
			if err := do(); err != nil {
				return use{}, err
			}
		}
		var err error
		if at[i], err = usedBy(ctx, s.master(k)); err != nil {
			return use{}, err
		}
	}
	asking := at[2].minus(at[1]) // what it takes to ask
	u := at[3].minus(at[2]).minus(asking)
	return use{u.us / float64(n), u.in / float64(n), u.out / float64(n)}, nil
}

// steps are what is measured, each with what it does to one shard, for how many
// URLs.
var steps = []string{"admit new", "admit seen", "admit, new site", "visit", "settle"}

// round measures each step once.
func (s *stand) round(ctx context.Context, round, calls int) (costs []use, err error) {
	p := s.parts[round%len(s.parts)]
	measure := func(n int, do func() error) {
		if err == nil {
			var u use
			u, err = s.cost(ctx, p.shard, n, do)
			costs = append(costs, u)
		}
	}
	// What a fetcher sends: the links of 8 pages, 12 each.
	const pages = 8
	batches := make([][]frontier.Candidate, calls)
	for i := range batches {
		p.start()
		for range pages {
			p.add(p.pick(), perRun)
		}
		batches[i] = slices.Clone(p.made())
	}
	admit := func(batches [][]frontier.Candidate) func() error {
		return func() error {
			for _, b := range batches {
				if err := p.f.Admit(ctx, p.shard, b, make([]frontier.Verdict, len(b))); err != nil {
					return err
				}
			}
			return nil
		}
	}
	n := calls * pages * perRun
	measure(n, admit(batches))
	measure(n, admit(batches))
	p.known += int64(n)

	const lone = 96
	p.start()
	for len(p.batch) < lone {
		name := nameOf(firstLone + s.lone)
		s.lone++
		if print := canon.FingerprintOf([]byte(name), nil); p.f.Of(print) == p.shard {
			p.write(name, print.Site, 0)
		}
	}
	measure(lone, admit([][]frontier.Candidate{p.made()}))
	p.known += lone

	// Visits of 8 URLs, 32 a call.
	var visits []frontier.Visit
	lease := func() error {
		for range max(1, calls/4) {
			tick, err := p.f.Tick(ctx, p.shard, frontier.TickRequest{Want: 32})
			if err != nil {
				return err
			}
			granted, err := p.f.Visit(ctx, p.shard, tick.Due, frontier.VisitLimits{URLs: 8})
			if err != nil {
				return err
			}
			visits = append(visits, granted...)
		}
		return nil
	}
	measure(1, lease)
	leased := 0
	for _, v := range visits {
		leased += len(v.Items)
	}
	measure(max(leased, 1), func() error { return p.settle(ctx, visits) })
	if err == nil {
		u := &costs[3]
		*u = use{u.us / float64(max(leased, 1)), u.in / float64(max(leased, 1)), u.out / float64(max(leased, 1))}
	}
	return costs, err
}

// costs measures a number of rounds on the crawl and on the control by turns, and
// says the medians.
func (b *bench) costs(ctx context.Context, rounds, calls int) error {
	var here, there [][]use
	for round := range rounds {
		control, err := b.control.round(ctx, round, calls)
		if err != nil {
			return fmt.Errorf("control: %w", err)
		}
		costs, err := b.round(ctx, round, calls)
		if err != nil {
			return err
		}
		here, there = append(here, costs), append(there, control)
	}
	b.say("  %-16s %9s %17s %9s %9s %9s %9s", "a URL", "us", "quartiles", "control", "ratio", "bytes in", "out")
	for i, name := range steps {
		us := quartiles(here, func(r int) float64 { return here[r][i].us })
		control := quartiles(here, func(r int) float64 { return there[r][i].us })
		ratio := quartiles(here, func(r int) float64 { return here[r][i].us / there[r][i].us })
		in := quartiles(here, func(r int) float64 { return here[r][i].in })
		out := quartiles(here, func(r int) float64 { return here[r][i].out })
		b.say("  %-16s %9.2f %8.2f %8.2f %9.2f %9.2f %9.0f %9.0f", name, us[1], us[0], us[2], control[1], ratio[1], in[1], out[1])
	}
	return nil
}

// quartiles are those of a number of each round.
func quartiles(rounds [][]use, of func(round int) float64) [3]float64 {
	all := make([]float64, len(rounds))
	for r := range rounds {
		all[r] = of(r)
	}
	slices.Sort(all)
	return [3]float64{all[len(all)/4], all[len(all)/2], all[len(all)*3/4]}
}

// memory says what each kind of key takes. Queues and sites are sampled, as many
// of those with the ranks 1 to 2, 2 to 4, 4 to 8 and so on; others are all asked.
func (b *bench) memory(ctx context.Context) error {
	kinds := make(map[string]float64)
	var used, rss, startup, entries, longest float64
	for _, n := range b.serving() {
		info, err := infoOf(ctx, n, "memory")
		if err != nil {
			return err
		}
		used, rss, startup = used+info["used_memory"], rss+info["used_memory_rss"], startup+info["used_memory_startup"]
	}
	for _, p := range b.parts {
		node, keys := b.master(p.shard), b.f.Keys(p.shard)
		for kind, list := range map[string][]string{
			"ready, leases":      {keys.Ready(0), keys.Ready(1), keys.Ready(2), keys.Ready(3), keys.PausedReady(), keys.Leases()},
			"counts and reports": {keys.Meta(), keys.Stats(), keys.Counters(), keys.Seeds(), keys.Probes(), keys.Top("pages"), keys.Top("dead"), keys.Top("queued")},
		} {
			if err := sizes(ctx, node, list, func(_ int, bytes float64) { kinds[kind] += bytes }); err != nil {
				return err
			}
		}
		set, err := b.f.FilterSet(ctx, p.shard)
		if err == nil {
			err = sizes(ctx, node, set.All(), func(_ int, bytes float64) { kinds["filters"] += bytes })
		}
		if err != nil {
			return err
		}
		for low := 0; low < len(p.names); low = 2*low + 1 {
			high := min(2*low+1, len(p.names))
			n := min(high-low, sampled)
			var queues, others []string
			for i := range n {
				name := p.names[low+i*(high-low)/n]
				queues = append(queues, keys.Queue(name, 2))
				others = append(others, keys.Site(name), keys.Rules(name))
			}
			share := float64(high-low) / float64(n)
			err := sizes(ctx, node, queues, func(_ int, bytes float64) {
				kinds["queues"] += share * bytes
				longest = max(longest, bytes)
			})
			if err == nil {
				err = sizes(ctx, node, others, func(i int, bytes float64) {
					kinds[[]string{"sites", "robots rules"}[i%2]] += share * bytes
				})
			}
			if err != nil {
				return err
			}
		}
	}
	b.say("  memory of Redis %s (resident %s), of which by kind of key:", plainBytes(used), plainBytes(rss))
	rest := used - startup
	for _, kind := range []string{"filters", "queues", "sites", "robots rules", "ready, leases", "counts and reports"} {
		b.say("    %-20s %10s", kind, plainBytes(kinds[kind]))
		rest -= kinds[kind]
	}
	b.say("    %-20s %10s (tables of keys; what sampling missed)", "rest", plainBytes(rest))
	stats, err := b.f.Stats(ctx)
	if err != nil {
		return err
	}
	total := frontier.Total(stats)
	entries = float64(total.Queued)
	b.say("  a queued URL takes %.1f bytes in its queue, a known one %.2f in its filter; the longest queue asked takes %s",
		kinds["queues"]/entries, kinds["filters"]/float64(total.Known), plainBytes(longest))
	return nil
}

// sampled is how many sites of an octave of ranks and a shard are asked for.
const sampled = 64

// sizes asks for the memory of keys; one that is not there has none.
func sizes(ctx context.Context, n *shardtest.Node, keys []string, each func(i int, bytes float64)) error {
	pipe := n.Client().Pipeline()
	asked := make([]*goredis.IntCmd, len(keys))
	for i, key := range keys {
		asked[i] = pipe.MemoryUsage(ctx, key, 0)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return err
	}
	for i, cmd := range asked {
		if bytes, err := cmd.Result(); err == nil {
			each(i, float64(bytes))
		} else if !errors.Is(err, goredis.Nil) {
			return err
		}
	}
	return nil
}

// wrong says how often filters were wrong: of the new URLs since the last time,
// and of random fingerprints now.
func (b *bench) wrong(ctx context.Context, probes int) error {
	var met bloom.Probe
	for _, p := range b.parts {
		met = met.Add(bloom.Probe{N: p.known, Hits: p.wrong})
	}
	lately := bloom.Probe{N: met.N - b.met.N, Hits: met.Hits - b.met.Hits}
	b.met = met
	filters, err := b.f.Filters(ctx, probes)
	if err != nil {
		return err
	}
	var random bloom.Probe
	keys, layers := 0, 0
	for _, s := range filters {
		random = random.Add(*s.Probe)
		layers = max(layers, s.Layers)
		keys++
	}
	b.say("  false positives: %d of %d new URLs since the last step, %v; %d of %d random fingerprints now, %v; promised %g",
		lately.Hits, lately.N, lately, random.Hits, random.N, random, b.f.Layout().ErrorRate)
	b.say("  %d filters, of up to %d layers", keys, layers)
	return nil
}

// plainBytes is a number of bytes for people.
func plainBytes(n float64) string {
	unit := min(max(bits.Len64(uint64(max(n, 0)))-1, 0)/10, 3)
	return fmt.Sprintf("%.4g %s", n/float64(int64(1)<<(10*unit)), []string{"B", "KiB", "MiB", "GiB"}[unit])
}
