package simulate

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// plan is what a simulation is made of. As text it is a line each, and a run can be
// started from that.
type plan struct {
	Seed     uint64
	Fetchers int
	Shards   int
	Sites    int
	Pages    int // of a site at most
	MaxPages int64
	PerSite  int // requests to a site at once
	Alone    int // 1: fetchers do not know of each other, and throw no dice for when they look for work
	Faults   []fault
}

// fault is something that breaks, and heals by itself.
type fault struct {
	Kind string
	At   time.Duration
	For  time.Duration
	Who  int // the fetcher or the shard
}

// Kinds of faults.
const (
	faultLoss  = "loss"  // calls to all shards and their answers are lost, repeated and late
	faultDown  = "down"  // a shard answers nothing, and comes back as it was
	faultCut   = "cut"   // a shard and a fetcher do not reach each other
	faultKill  = "kill"  // a fetcher dies, and another takes its place
	faultStop  = "stop"  // a fetcher ends in order, and another takes its place
	faultFull  = "full"  // a shard has no room
	faultSink  = "sink"  // the output of a fetcher takes nothing
	faultMove  = "move"  // a shard dies, and its replica takes over, which lags behind
	faultStale = "stale" // a shard is cut off from its replica, answers for a while, and then the replica takes over
	faultClock = "clock" // the clock of a shard's server is set forward
	faultPause = "pause" // a shard is paused, by a person
)

// kinds are all kinds, each with whom it strikes.
var kinds = []struct {
	name string
	who  string // shard, fetcher, both, or "" for all
	most time.Duration
}{
	{faultLoss, "", 10 * time.Minute},
	{faultDown, "shard", 4 * time.Minute},
	{faultCut, "both", 4 * time.Minute},
	{faultKill, "fetcher", 3 * time.Minute},
	{faultStop, "fetcher", 2 * time.Minute},
	{faultFull, "shard", 3 * time.Minute},
	{faultSink, "fetcher", 3 * time.Minute},
	{faultMove, "shard", time.Minute},
	{faultStale, "shard", 30 * time.Second},
	{faultClock, "shard", time.Hour},
	{faultPause, "shard", 3 * time.Minute},
}

// newPlan draws a plan.
func newPlan(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, hash("plan")))
	p := &plan{Seed: seed, Fetchers: 1 + r.IntN(5), Shards: 1 + r.IntN(6), Pages: 4 + r.IntN(60), PerSite: 1}
	p.Sites = []int{5, 10, 30, 100}[r.IntN(4)]
	if r.IntN(40) == 0 {
		p.Fetchers, p.Shards, p.Sites, p.Pages = 5, 6, 2000, 12
	}
	if r.IntN(5) == 0 {
		p.MaxPages = int64(20 + r.IntN(p.Sites*10))
	}
	if r.IntN(4) == 0 {
		p.PerSite = 2 + r.IntN(3)
	}
	p.Alone = r.IntN(2)
	chosen := r.Perm(len(kinds))[:r.IntN(len(kinds)+1)]
	within := []int{40, 150, 1200}[r.IntN(3)] // many crawls take a minute or two
	for range []int{0, 3, 8, 20}[r.IntN(4)] {
		if len(chosen) == 0 {
			break
		}
		k := kinds[chosen[r.IntN(len(chosen))]]
		f := fault{Kind: k.name, At: seconds(r.IntN(within)), For: max(time.Second, seconds(r.IntN(int(k.most.Seconds()))))}
		switch k.who {
		case "shard":
			f.Who = r.IntN(p.Shards)
		case "fetcher":
			f.Who = r.IntN(p.Fetchers)
		case "both":
			f.Who = r.IntN(p.Shards * p.Fetchers)
		}
		p.Faults = append(p.Faults, f)
	}
	slices.SortFunc(p.Faults, func(a, b fault) int { return int(a.At - b.At) })
	return p
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// String is the plan as text.
func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\nfetchers %d\nshards %d\nsites %d\npages %d\nmax_pages %d\nper_site %d\nalone %d\n",
		p.Seed, p.Fetchers, p.Shards, p.Sites, p.Pages, p.MaxPages, p.PerSite, p.Alone)
	for _, f := range p.Faults {
		fmt.Fprintf(&b, "fault %s %d at %s for %s\n", f.Kind, f.Who, f.At, f.For)
	}
	return b.String()
}

// parsePlan reads what String wrote, and steps after it.
func parsePlan(text string) (*plan, map[string]replayed, error) {
	p, steps := new(plan), make(map[string]replayed)
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		word, rest, _ := strings.Cut(line, " ")
		var err error
		switch word {
		case "seed":
			_, err = fmt.Sscan(rest, &p.Seed)
		case "fetchers":
			_, err = fmt.Sscan(rest, &p.Fetchers)
		case "shards":
			_, err = fmt.Sscan(rest, &p.Shards)
		case "sites":
			_, err = fmt.Sscan(rest, &p.Sites)
		case "pages":
			_, err = fmt.Sscan(rest, &p.Pages)
		case "max_pages":
			_, err = fmt.Sscan(rest, &p.MaxPages)
		case "per_site":
			_, err = fmt.Sscan(rest, &p.PerSite)
		case "alone":
			_, err = fmt.Sscan(rest, &p.Alone)
		case "fault":
			var f fault
			var at, long string
			if _, err = fmt.Sscanf(rest, "%s %d at %s for %s", &f.Kind, &f.Who, &at, &long); err == nil {
				if f.At, err = time.ParseDuration(at); err == nil {
					f.For, err = time.ParseDuration(long)
				}
			}
			p.Faults = append(p.Faults, f)
		case "", "#":
		default:
			var r replayed
			name, _, _ := strings.Cut(rest, ": ")
			_, err = fmt.Sscan(word, &r.at)
			r.order = n
			steps[name] = r
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %q: %w", n, line, err)
		}
	}
	return p, steps, lines.Err()
}

// healed is when the last fault has ended.
func (p *plan) healed() (t time.Duration) {
	for _, f := range p.Faults {
		if f.Kind == faultClock {
			t = max(t, f.At)
		} else {
			t = max(t, f.At+f.For)
		}
	}
	return t
}

// has reports whether there are faults of some kinds.
func (p *plan) has(kinds ...string) bool {
	return slices.ContainsFunc(p.Faults, func(f fault) bool { return slices.Contains(kinds, f.Kind) })
}

// during reports whether a fault of a kind strikes who at a time.
func (p *plan) during(kind string, who int, t time.Duration) bool {
	return slices.ContainsFunc(p.Faults, func(f fault) bool {
		return f.Kind == kind && f.Who == who && f.At <= t && t < f.At+f.For
	})
}
