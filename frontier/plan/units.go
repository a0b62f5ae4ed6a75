package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"seine/bloom"
)

// Units are measured costs: the medians of what Go benchmarks reported.
type Units struct {
	Machine string // whose they are
	values  map[unit][]float64
}

// unit is one number of one benchmark: package below the module, name without
// "Benchmark" and the number of processors, and what benchfmt makes of its unit.
type unit struct{ pkg, name, per string }

func (u unit) String() string { return fmt.Sprintf("%s Benchmark%s %s", u.pkg, u.name, u.per) }

// ErrMissing says that benchmarks do not tell all that a plan needs.
var ErrMissing = errors.New("plan: unit costs are missing")

// ReadUnits reads the output of go test -bench.
func ReadUnits(name string, r io.Reader) (*Units, error) {
	u := &Units{values: make(map[unit][]float64)}
	var machines []string
	in := benchfmt.NewReader(r, name)
	for in.Scan() {
		result, ok := in.Result().(*benchfmt.Result)
		if !ok {
			continue // what is no benchmark
		}
		if m := result.GetConfig("cpu"); m != "" && !slices.Contains(machines, m) {
			machines = append(machines, m)
		}
		pkg := strings.TrimPrefix(result.GetConfig("pkg"), "seine/")
		base, parts := result.Name.Parts()
		full := string(base)
		for _, p := range parts {
			if p[0] != '-' { // the number of processors
				full += string(p)
			}
		}
		for _, v := range result.Values {
			key := unit{pkg, full, v.Unit}
			u.values[key] = append(u.values[key], v.Value)
			if v.OrigUnit != "" {
				key.per = v.OrigUnit
				u.values[key] = append(u.values[key], v.OrigValue)
			}
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if len(u.values) == 0 {
		return nil, fmt.Errorf("plan: %s holds no benchmark; go test -run '^$' -bench . ./... prints them", name)
	}
	u.Machine = cmp.Or(strings.Join(machines, ", "), "a machine that the file does not name")
	return u, nil
}

// lookup gathers what a plan takes from units, and what it does not find there.
type lookup struct {
	units   *Units
	missing []string
}

// get is the median of what was measured.
func (l *lookup) get(pkg, name, per string) float64 {
	key := unit{pkg, name, per}
	got := slices.Sorted(slices.Values(l.units.values[key]))
	if len(got) == 0 {
		if !slices.Contains(l.missing, key.String()) {
			l.missing = append(l.missing, key.String())
		}
		return 0
	}
	return (got[(len(got)-1)/2] + got[len(got)/2]) / 2
}

func (l *lookup) err() error {
	if len(l.missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s; go test -run '^$' -bench . ./... measures all", ErrMissing, strings.Join(l.missing, ", "))
}

// costs are the units in the terms of the plan: processor time in microseconds,
// memory in bytes.
type costs struct {
	fetch                     [4]float64 // a kept connection, by the sizes of fetchKB
	tlsRequest, tlsKB         float64    // more, when it is encrypted
	fresh                     float64    // more, for a connection of its own
	chain, issuerKnown        float64    // the same under TLS, its chain verified in full, or below a known issuer
	nameKnown, resumed        float64    // the same of a name that was verified before, and of a resumed session
	inflateKB                 float64
	page, link, scanKB        float64
	digestKB                  float64
	record, recordBytes       float64
	lease1, lease8            pair // leasing and settling a URL, in calls of many
	visitCall, settleCall     pair // more, for a call of its own
	newOwn, newFar, firstSite pair
	seenOwn, seenFar          pair
	retry, rules              pair
	inFlight, idle, resident  float64
	leased                    float64
	idleShard                 pair    // a second of each shard, with nothing to do
	idleRedis                 float64 // bytes of a shard with nothing in it
	plain, entry              float64 // of a queued URL in Redis, near the ends of its queue and between
	site, lease, rule         float64 // in Redis
	memEntry, memSite         float64 // embedded
	recrawl                   float64 // of a URL that waits for its recrawl, wherever
	content                   float64 // of the content of a page, wherever
	duplicates                pair    // asking whether it came before
}

// pair is what a call costs Redis and its caller.
type pair struct{ redis, client float64 }

func (p pair) plus(o pair) pair         { return pair{p.redis + o.redis, p.client + o.client} }
func (p pair) less(o pair) pair         { return pair{max(0, p.redis-o.redis), max(0, p.client-o.client)} }
func (p pair) times(f float64) pair     { return pair{p.redis * f, p.client * f} }
func mix(a, b pair, share float64) pair { return a.times(share).plus(b.times(1 - share)) }

// fetchKB are the sizes of pages whose fetch is measured.
var fetchKB = [4]float64{1, 16, 64, 256}

// decoded are the encodings of bodies: at which levels their decoding is measured.
var decoded = map[string]string{"gzip": "gzip6", "br": "br5", "zstd": "zstd3"}

// chains are the kinds of certificates whose verification is measured: P-256 under
// P-384, all P-256, and RSA-2048.
var chains = []string{"p384", "p256", "rsa2048"}

// contentRate is the error rate at which the filter of contents is measured.
const contentRate = 1e-6

// newCosts looks up what a crawl of this kind needs.
func newCosts(u *Units, a *Asked) (*costs, error) {
	l := &lookup{units: u}
	us := func(pkg, name, per string) float64 { return l.get(pkg, name, per) / 1e3 } // ns to us
	var c costs
	for i, kb := range fetchKB {
		c.fetch[i] = us("fetch", fmt.Sprintf("Fetch/kept/%.0fKB", kb), "cpu-ns/page")
	}
	tls1, tls64 := us("fetch", "Fetch/kept_TLS/1KB", "cpu-ns/page"), us("fetch", "Fetch/kept_TLS/64KB", "cpu-ns/page")
	c.tlsRequest = max(0, tls1-c.fetch[0])
	c.tlsKB = max(0, (tls64-c.fetch[2]-c.tlsRequest)/64)
	c.fresh = max(0, us("fetch", "Fetch/fresh/1KB", "cpu-ns/page")-c.fetch[0])
	shake := func(how string) float64 {
		return max(0, us("fetch", "Chains/"+a.Chain+"/"+how, "cpu-ns/page")-tls1)
	}
	c.chain, c.issuerKnown, c.nameKnown, c.resumed = shake("as_is"), shake("issuer_known"), shake("name_known"), shake("resumed")
	c.inflateKB = us("fetch", "Codings/page", decoded[a.Encoding]+"-ns/KB")
	c.scanKB = us("extract", "Scan/text", "ns/KB")
	c.page, c.link = us("fetch/crawl", "Cost/page", "cpu-ns/page"), us("fetch/crawl", "Cost/known_link", "cpu-ns/link")
	c.digestKB = us("fetch/crawl/internal/work", "Digest/"+a.Digest, "ns/KB")
	c.record = us("extract/sink/jsonl", "Record/"+a.Records, "cpu-ns/record")
	c.recordBytes = l.get("extract/sink/jsonl", "Record/"+a.Records, "file-B/record")
	c.inFlight, c.idle = l.get("fetch", "InFlight", "B/request"), a.TLS*l.get("fetch", "IdleHosts/pool/https", "B/host")+(1-a.TLS)*l.get("fetch", "IdleHosts/pool/http", "B/host")
	c.resident, c.leased = l.get("frontier/plan", "Resident", "B/fetcher"), l.get("fetch/crawl", "LeasedSite", "B/site")
	if a.Recrawls > 0 && a.Embedded {
		c.recrawl = l.get("frontier/memory", "Recrawl", "bytes/URL")
	} else if a.Recrawls > 0 {
		c.recrawl = l.get("frontier/redis", "RecrawlBytes", "bytes/URL")
	}
	if a.remembers() && a.Embedded {
		c.content = l.get("frontier/memory", "Contents", "bytes/page")
	} else if a.remembers() {
		const at = "Duplicates"
		c.content = l.get("frontier/redis", at, "bytes/page") * bloom.Plan{ErrorRate: a.Rate}.IdealBits() / bloom.Plan{ErrorRate: contentRate}.IdealBits()
		c.duplicates = pair{l.get("frontier/redis", at, "redis-us/page"), l.get("frontier/redis", at, "client-us/page")}
	}
	if a.Embedded {
		c.memEntry, c.memSite = l.get("frontier/memory", "Queued", "bytes/URL"), l.get("frontier/memory", "Sites", "bytes/site")
		return &c, l.err()
	}
	c.redis(l)
	return &c, l.err()
}

// redis looks up what Redis and its client cost.
func (c *costs) redis(l *lookup) {
	const pkg = "frontier/redis"
	both := func(name, before, per string) pair {
		return pair{l.get(pkg, name, before+"redis-us/"+per), l.get(pkg, name, before+"client-us/"+per)}
	}
	visit1, settle1 := both("Lease/1_a_visit", "visit-", "URL"), both("Lease/1_a_visit", "settle-", "URL")
	c.lease1 = visit1.plus(settle1)
	c.lease8 = both("Lease/8_a_visit", "visit-", "URL").plus(both("Lease/8_a_visit", "settle-", "URL"))
	alone := func(before string) pair { // Redis does other things between, the fetcher is at work
		return pair{both("Lease/1_a_call_seldom", before, "URL").redis, both("Lease/1_a_call", before, "URL").client}
	}
	c.visitCall, c.settleCall = alone("visit-").less(visit1), alone("settle-").less(settle1)
	c.retry = both("Lease/retry", "settle-", "URL")
	c.newOwn, c.newFar = both("URL/new/own=100%", "", "URL"), both("URL/new/own=0%", "", "URL")
	c.seenOwn, c.seenFar = both("URL/seen/own=100%", "", "URL"), both("URL/seen/own=0%", "", "URL")
	c.firstSite, c.rules = both("URL/first_of_its_site", "", "URL"), both("Rules", "", "site")
	stand := func(per string) float64 { return l.get("frontier/plan", "IdleShard/shard", per) }
	c.idleShard = pair{stand("redis-us/s"), stand("client-us/s")}
	c.idleRedis = stand("redis-B")
	c.plain, c.entry = l.get(pkg, "EntryBytes/short", "bytes/entry"), l.get(pkg, "EntryBytes/nodes_-3", "bytes/entry")
	c.site, c.lease, c.rule = l.get(pkg, "SiteBytes", "bytes/site"), l.get(pkg, "LeaseBytes", "bytes/lease"), l.get(pkg, "Rules", "bytes/site")
}

// fetchOf is what a page of so many KB on the wire takes to read, between the
// sizes that were measured and beyond the last.
func (c *costs) fetchOf(kb float64) float64 {
	i := 1
	for i < len(fetchKB)-1 && kb > fetchKB[i] {
		i++
	}
	slope := max(0, (c.fetch[i]-c.fetch[i-1])/(fetchKB[i]-fetchKB[i-1]))
	return c.fetch[i-1] + slope*max(0, kb-fetchKB[i-1])
}
