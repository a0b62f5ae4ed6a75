package plan

import (
	"fmt"
	"math"

	"seine/bloom"
)

// Plan is what was asked for and what it takes. Times are in seconds, memory in
// bytes, processor time in microseconds.
type Plan struct {
	Machine string  `json:"units_of"` // whose unit costs these are
	Asked   Asked   `json:"asked"`
	Why     string  `json:"why_not,omitempty"` // it cannot be met
	Nearest string  `json:"nearest,omitempty"` // that can
	Seconds float64 `json:"seconds"`           // it takes
	Bound   string  `json:"bound"`             // what holds it up
	Curve   []point `json:"curve"`             // the long tail
	Mean    float64 `json:"pages_a_second"`    //
	Peak    float64 `json:"pages_a_second_at_most"`
	Largest float64 `json:"pages_of_largest_site"`

	Parts    []Part   `json:"fetcher_us_a_page"`
	Page     float64  `json:"fetcher_us_a_page_in_all"`
	Fetchers Fetchers `json:"fetchers"`
	Redis    *Redis   `json:"redis,omitempty"`
	Disk     float64  `json:"record_bytes"`
	Traffic  float64  `json:"wire_bytes"`
	Cost     float64  `json:"cost_a_million_pages,omitempty"`
	Breaks   []string `json:"breaks"`
	Watch    []string `json:"near"` // how far the limits are
	Commands []string `json:"commands"`

	pace []stretch
}

// Part is a share of a cost.
type Part struct {
	Name string  `json:"name"`
	Cost float64 `json:"cost"`
}

// Fetchers is what each of them needs.
type Fetchers struct {
	Count       float64 `json:"count"`
	Cores       float64 `json:"cores_used"`
	Memory      float64 `json:"memory_bytes"`
	InFlight    float64 `json:"requests_in_flight"`
	Workers     float64 `json:"workers"` // of each, its --concurrency
	Connections float64 `json:"connections"`
	Files       float64 `json:"files"`
	Opened      float64 `json:"connections_opened_a_second"`
	Spent       float64 `json:"processor_seconds"` // of all fetchers, from start to end
	Bits        float64 `json:"bits_a_second"`
}

// Redis is what the masters need.
type Redis struct {
	Masters float64 `json:"masters"`
	Shards  int     `json:"shards"`
	Page    float64 `json:"us_a_page"`
	Spent   float64 `json:"processor_seconds"` // of all masters, from start to end
	Cores   float64 `json:"core_of_each"`
	Memory  float64 `json:"memory_of_each_bytes"` // with room
	Kinds   []Part  `json:"bytes_by_kind"`
	Filter  float64 `json:"largest_filter_bytes"`
	Queue   float64 `json:"longest_queue_urls"`
	Clients float64 `json:"connections_of_each"`
}

// Limits of one key: beyond them moving it to another master blocks or fails.
const (
	filterMost    = 256e6 // bytes
	queueMost     = 8e6   // entries
	secondsAtMost = 2.5   // that a master stands still for either
)

// New plans a crawl.
func New(a Asked, u *Units) (*Plan, error) {
	a.Complete()
	if err := a.Validate(); err != nil {
		return nil, err
	}
	c, err := newCosts(u, &a)
	if err != nil {
		return nil, err
	}
	spread := newSizes(&a)
	p, err := price(a, u.Machine, c, spread, pair{})
	if err != nil || a.Embedded {
		return p, err
	}
	return price(a, u.Machine, c, spread, p.calls(c).times(1/a.Pages))
}

// price plans a crawl whose pages cost so much beyond their share of full calls.
func price(a Asked, machine string, c *costs, spread sizes, calls pair) (*Plan, error) {
	p := &Plan{Machine: machine, Asked: a, Largest: spread.largest}
	p.fetcherCost(c, calls.client)
	redis := p.redisCost(c) + calls.redis
	p.time(spread, redis)
	p.fetchers(c, spread)
	if !a.Embedded {
		if err := p.redis(c, spread, redis); err != nil {
			return nil, err
		}
	}
	p.Disk, p.Traffic = a.Pages*c.recordBytes, a.Pages*a.Wire
	p.cost()
	p.commands()
	return p, nil
}

// visit is how many URLs a visit has.
func (p *Plan) visit() float64 { return min(8, max(1, p.Asked.Pages/p.Asked.Sites)) }

// leasing is what a URL costs to lease and to settle, between visits of 1 and of 8.
func (p *Plan) leasing(c *costs) pair {
	fixed := (1/p.visit() - 1.0/8) / (1 - 1.0/8) // a visit's own share of it
	return mix(c.lease1, c.lease8, fixed)
}

// gather is how long a fetcher gathers what a call carries, in seconds.
const gather = 0.002

// calls is what all calls cost beyond the share that URLs have of full ones: where a
// crawl is slow each visit and each page has a call of its own.
func (p *Plan) calls(c *costs) (all pair) {
	for _, s := range p.pace {
		pages := gather * s.rate / (float64(p.Redis.Shards) * p.Fetchers.Count) // that end while a call waits
		all = all.plus(c.visitCall.times(s.pages / max(p.visit(), pages))).plus(c.settleCall.times(s.pages / max(1, pages)))
	}
	return all
}

// admit is what the links of a page cost.
func (p *Plan) admit(c *costs) pair {
	a := &p.Asked
	fresh := a.Known / a.Pages // of a page
	seen := max(0, a.Links-fresh) * (1 - a.Cached)
	return mix(c.newOwn, c.newFar, a.Own).times(fresh).plus(mix(c.seenOwn, c.seenFar, a.Own).times(seen))
}

// site is what a site costs once, a page.
func (p *Plan) site(c *costs) pair {
	first := c.firstSite.plus(c.newFar.times(-1))
	return first.plus(c.rules).times(p.Asked.Sites / p.Asked.Pages)
}

// fetcherCost adds up what a page takes.
func (p *Plan) fetcherCost(c *costs, calls float64) {
	a := &p.Asked
	kb, wire := a.Page/1024, a.Wire/1024
	verified := a.IssuerKnown*c.issuerKnown + (1-a.IssuerKnown)*c.chain
	first := (1-a.TLS)*c.fresh + a.TLS*verified // to a site
	later := (1-a.TLS)*c.fresh + a.TLS*(a.Resumed*c.resumed+(1-a.Resumed)*(a.NameKnown*c.nameKnown+(1-a.NameKnown)*verified))
	inflate := 0.0
	if a.Wire < a.Page {
		inflate = c.inflateKB * kb
	}
	sites := a.Sites / a.Pages
	p.Parts = []Part{
		{"fetch", c.fetchOf(wire) + a.TLS*(c.tlsRequest+c.tlsKB*wire)},
		{"connections", a.Fresh * later},
		{"inflate", inflate},
		{"scan", c.scanKB * max(0, kb-1)},
		{"links", c.link * a.Links},
		{"digest", c.digestKB * max(0, kb-1)}, // of the first KB it is in the page's cost
		{"page", c.page},
		{"record", c.record},
		{"robots.txt", sites * (c.fetchOf(1) + first)},
	}
	if !a.Embedded {
		p.Parts = append(p.Parts, Part{"Redis client", calls + p.leasing(c).plus(p.admit(c)).plus(p.site(c)).plus(c.retry.times(a.Retried)).plus(c.duplicates).client})
	}
	for _, part := range p.Parts {
		p.Page += part.Cost
	}
}

// redisCost is what a page takes of all masters.
func (p *Plan) redisCost(c *costs) float64 {
	if p.Asked.Embedded {
		return 0
	}
	return p.leasing(c).plus(p.admit(c)).plus(p.site(c)).plus(c.retry.times(p.Asked.Retried)).plus(c.duplicates).redis
}

// time finds the rate that machines must reach, or that those given do, and what
// holds the crawl up.
func (p *Plan) time(spread sizes, redis float64) {
	a := &p.Asked
	bounds := map[string]float64{}
	if a.Fetchers > 0 {
		bounds["fetchers' processors"] = a.Fetchers * a.Cores * a.Load * 1e6 / p.Page
		bounds["network"] = a.Fetchers * a.Link * a.Load / (8 * max(1, a.Wire))
		if a.Latency > 0 {
			bounds["descriptors"] = a.Fetchers * a.Files * a.Load / a.Latency
		}
	}
	if a.Masters > 0 && redis > 0 {
		bounds[redisBound] = a.Masters * a.Load * 1e6 / redis
	}
	rate, name := math.Inf(1), ""
	for bound, v := range bounds {
		if v < rate || v == rate && bound < name {
			rate, name = v, bound
		}
	}
	interval := a.interval()
	least := spread.take(interval, math.Inf(1)).seconds
	if a.Days > 0 {
		wanted, possible := spread.rateFor(interval, a.Days*86400)
		switch {
		case !possible:
			p.Why = fmt.Sprintf("the largest site has %.0f pages, which at one in %.3g s take %s", spread.largest, interval, span(least))
			p.Nearest = fmt.Sprintf("--days %.2f, or --max-per-site %.0f of the crawl", math.Ceil(least*nearly/864)/100, math.Floor(a.Days*86400/interval))
			enough, _ := spread.rateFor(interval, least*nearly)
			rate = min(rate, enough)
		case wanted > rate:
			took := spread.take(interval, rate).seconds
			p.Why = fmt.Sprintf("%s allow %.0f pages/s, and %.0f are needed", name, rate, wanted)
			p.Nearest = fmt.Sprintf("--days %.2f, or %.3g times as much of these", math.Ceil(took/864)/100, wanted/rate)
		default:
			rate, name = wanted, "" // they could do more
		}
	}
	if math.IsInf(rate, 1) { // nothing is given: nearly as fast as the sites allow
		rate, _ = spread.rateFor(interval, least*nearly)
	}
	t := spread.take(interval, rate)
	p.Seconds, p.Curve, p.Peak, p.pace = t.seconds, t.curve, t.peak, t.pace
	p.Mean = a.Pages / t.seconds
	p.Bound = p.boundOf(t, name, least)
}

// nearly is how much longer than the sites demand a crawl may take when no time
// is asked for: the last percents of speed would take most of the machines.
const nearly = 1.05

// boundOf names what most of the time is due to.
func (p *Plan) boundOf(t timing, machines string, least float64) string {
	switch {
	case t.seconds > least*(2*nearly-1) && machines != "" && t.machines > t.seconds/2:
		return machines
	case t.seconds > least*(2*nearly-1):
		return "the days that were asked for"
	case p.Largest > 2*p.Asked.Pages/p.Asked.Sites:
		return "politeness of the largest sites"
	}
	return "politeness: sites x delay"
}

// leased is how many sites fetchers have at the highest rate.
func (p *Plan) leased() float64 {
	a := &p.Asked
	return min(a.Sites, p.Peak*max(a.interval()*p.visit(), a.Latency))
}

// garbage is how far memory grows before it is collected, by Go's default GOGC, and
// embeddedGarbage by that of a fetcher that holds the crawl.
const garbage, embeddedGarbage = 2, 1.4

// openLeast and openMost bound the pages that a fetcher holds while they wait, a
// sixteenth of its memory.
const openLeast, openMost = 16 << 20, 32 << 20

// redisBound is that the masters' processors hold a crawl up.
const redisBound = "Redis"

// workersLeast is how many workers a fetcher has however few it needs.
const workersLeast = 16

// fetchers sizes them for the highest rate.
func (p *Plan) fetchers(c *costs, spread sizes) {
	a, f := &p.Asked, &p.Fetchers
	flight := p.Peak * a.Latency
	kept := min(a.Sites, spread.above(0), p.Peak*60) // an idle connection is worth keeping for about a minute
	f.Count = a.Fetchers
	if f.Count == 0 {
		for _, need := range []float64{
			p.Peak * p.Page / 1e6 / (a.Cores * a.Load),
			p.Peak * a.Wire * 8 / (a.Link * a.Load),
			flight * 1.2 / a.Files,
			(flight*c.inFlight + kept*c.idle) / max(1, a.Memory*a.Load-c.resident),
		} {
			f.Count = max(1, f.Count, math.Ceil(need))
		}
	}
	f.Cores = p.Peak * p.Page / 1e6 / f.Count
	f.InFlight = flight / f.Count
	f.Workers = max(workersLeast, math.Ceil(f.InFlight*1.2))
	f.Spent = p.Page * a.Pages / 1e6
	f.Connections = min(f.InFlight+kept/f.Count, 0.8*a.Files)
	f.Files = f.Connections + 64
	f.Opened, f.Bits = p.Peak*a.Fresh/f.Count, p.Peak*a.Wire*8/f.Count
	kept, room := f.Workers*c.inFlight+f.Connections*c.idle+p.leased()/f.Count*c.leased, float64(garbage)
	if a.Embedded {
		room = embeddedGarbage
		kept += a.Queued*c.memEntry + a.Sites*c.memSite + a.Recrawls*c.recrawl + a.Pages*c.content
	}
	if p.Bound == redisBound { // pages wait for it with all their links
		kept += min(max(openLeast, a.Memory/16), openMost)
	}
	f.Memory = c.resident + room*kept
	if f.Memory > a.Memory {
		p.breaks("a fetcher needs %s, its machine has %s", Bytes(f.Memory), Bytes(a.Memory))
	}
	if f.Files > a.Files {
		p.breaks("a fetcher needs %.0f descriptors and may have %.0f: --files of the plan, ulimit -n there", f.Files, a.Files)
	}
}

// redis sizes the masters.
func (p *Plan) redis(c *costs, spread sizes, page float64) error {
	a := &p.Asked
	r := &Redis{Page: page}
	p.Redis = r
	kinds := []Part{
		{"queues", p.queueBytes(c, spread)},
		{"sites", min(a.Sites, a.Queued) * max(0, c.site-c.plain)},
		{"robots.txt rules", min(a.Sites, p.Peak*86400) * c.rule},
		{"leases", p.leased() * c.lease},
	}
	if a.Recrawls > 0 {
		kinds = append(kinds, Part{"recrawls", a.Recrawls * c.recrawl})
	}
	if a.remembers() { // the filter of contents is made for as many pages as there are URLs
		kinds = append(kinds, Part{"contents", a.Known * c.content})
	}
	data := 0.0
	for _, k := range kinds {
		data += k.Cost
	}
	filters, err := bloom.NewPlan(int64(a.Known), a.Rate, 1)
	if err != nil {
		return err
	}
	data += float64(filters.Bytes()) + c.idleRedis*max(1, a.Masters)
	r.Masters = a.Masters
	if r.Masters == 0 {
		r.Masters = max(1, math.Ceil(p.Peak*page/1e6/a.Load), math.Ceil(data*(1+a.Room)/a.MasterMemory))
		if r.Masters == 2 {
			r.Masters = 3 // the fewest of a cluster
		}
	}
	r.Shards = int(r.Masters)
	for a.Known/float64(r.Shards) > shardMost {
		r.Shards += int(r.Masters)
	}
	if filters, err = bloom.NewPlan(int64(a.Known), a.Rate, r.Shards); err != nil {
		return err
	}
	r.Kinds = append([]Part{{"filters", float64(filters.Bytes())}}, kinds...)
	r.Filter = float64(filters.FilterBytes())
	r.Queue = p.Largest * a.Queued / a.Pages
	r.Memory = data * (1 + a.Room) / r.Masters
	r.Cores = p.Peak * page / 1e6 / r.Masters
	r.Spent = (page*a.Pages + c.idleShard.redis*r.Masters*p.Seconds) / 1e6
	p.Fetchers.Spent += c.idleShard.client * r.Masters * p.Fetchers.Count * p.Seconds / 1e6
	r.Clients = p.Fetchers.Count*connectionsAFetcher + 10
	p.limits(r)
	return nil
}

// plainBytes is what of a queue is not compressed, its first node and its last, as
// deploy/redis.conf has it: list-compress-depth 1, list-max-listpack-size -3.
const plainBytes = 2 * 16 << 10

// queueBytes is what the queues take in Redis. A site's share of the queued URLs is
// that of the pages.
func (p *Plan) queueBytes(c *costs, spread sizes) (bytes float64) {
	queued := p.Asked.Queued / p.Asked.Pages
	spread.each(func(from, to, sites float64) bool {
		each := c.entry
		if from*queued*c.plain < plainBytes {
			each = c.plain
		}
		bytes += (to - from) * sites * queued * each
		return true
	})
	return bytes
}

const (
	shardMost           = 250e6 // URLs of a shard: more shards let a crawl grow
	connectionsAFetcher = 4     // to a master
)

// limits says what would break, and how far it is.
func (p *Plan) limits(r *Redis) {
	a := &p.Asked
	still := max(r.Filter/filterMost, r.Queue/queueMost) * secondsAtMost
	check := func(v, most float64, what, far string) {
		if v > most {
			p.breaks("%s", what)
			return
		}
		p.Watch = append(p.Watch, far)
	}
	check(r.Filter, filterMost, fmt.Sprintf("a filter of %s cannot be moved: more shards", Bytes(r.Filter)),
		fmt.Sprintf("largest filter %s of %s that can be moved", Bytes(r.Filter), Bytes(filterMost)))
	check(r.Queue, queueMost, fmt.Sprintf("the largest site's queue has %s URLs, of %s that can be moved: --max-per-site", count(r.Queue), count(queueMost)),
		fmt.Sprintf("longest queue %s URLs of %s that can be moved", count(r.Queue), count(queueMost)))
	check(still, a.NodeTimeout, fmt.Sprintf("a master stands still for %.1f s when its largest key moves, node timeout %.1f s: smaller keys or a longer one", still, a.NodeTimeout),
		fmt.Sprintf("a master stands still for %.1f s when its largest key moves, node timeout %.0f s", still, a.NodeTimeout))
	check(r.Clients, a.Clients, fmt.Sprintf("%.0f connections to a master, maxclients %.0f", r.Clients, a.Clients),
		fmt.Sprintf("%.0f connections to a master of maxclients %.0f", r.Clients, a.Clients))
	check(r.Memory, a.MasterMemory, fmt.Sprintf("a master needs %s and has %s", Bytes(r.Memory), Bytes(a.MasterMemory)),
		fmt.Sprintf("a master needs %s of %s", Bytes(r.Memory), Bytes(a.MasterMemory)))
	check(r.Cores, 1, fmt.Sprintf("a master needs %.2f processors and uses one", r.Cores), fmt.Sprintf("a master uses %.0f%% of its processor", 100*r.Cores))
}

func (p *Plan) breaks(format string, args ...any) {
	p.Breaks = append(p.Breaks, fmt.Sprintf(format, args...))
}

// cost is that of a million pages.
func (p *Plan) cost() {
	price, hours := p.Asked.Prices, p.Seconds/3600
	all := p.Fetchers.Count*price.Fetcher*hours + p.Traffic/1e9*price.Traffic + p.Disk/1e9*price.Disk
	if p.Redis != nil {
		all += p.Redis.Masters * price.Master * hours
	}
	p.Cost = all / p.Asked.Pages * 1e6
}

// commands are those that run the crawl.
func (p *Plan) commands() {
	a := &p.Asked
	polite := fmt.Sprintf("--delay %s --jitter %g --per-site %g", seconds(a.Delay), a.Jitter, a.PerSite)
	if a.remembers() {
		polite += " --digest " + a.Digest + " --duplicates " + a.Duplicates
	}
	if a.Embedded {
		p.Commands = []string{fmt.Sprintf("fetcher --embedded --state DIR --file SEEDS --out pages.jsonl --concurrency %.0f %s", p.Fetchers.Workers, polite)}
		return
	}
	p.Commands = []string{
		fmt.Sprintf("frontier create --redis ADDR --crawl NAME --shards %d --plan-urls %.0f --error-rate %g %s", p.Redis.Shards, a.Known, a.Rate, polite),
		"frontier seed --redis ADDR --crawl NAME --file SEEDS",
		fmt.Sprintf("fetcher --redis ADDR --crawl NAME --out pages.jsonl --concurrency %.0f   # %.0f of them", p.Fetchers.Workers, p.Fetchers.Count),
	}
}
