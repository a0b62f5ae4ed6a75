package main

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/ask"
	"seine/frontier/plan"
	"seine/frontier/redis"
)

// planCmd asks for a plan. Its defaults are those of plan.Default.
type planCmd struct {
	Bench string `type:"path" placeholder:"FILE" help:"Unit costs: output of go test -run '^$$' -bench . ./... on a machine like yours; - is stdin (those in cmd/frontier/units.txt)."`
	From  string `placeholder:"CRAWL" help:"Take pages, sites, known and queued URLs from a running crawl."`

	Pages       float64       `placeholder:"N" help:"Pages to fetch, such as 1e9."`
	Days        float64       `placeholder:"N" help:"Days that the crawl may take (as long as it takes)."`
	Sites       float64       `placeholder:"N" help:"Number of sites."`
	Exponent    float64       `default:"0.8" placeholder:"X" help:"The r-th largest site has r^-X of the pages of the largest; 0 means equal sites (${default})."`
	SiteSizes   string        `type:"path" placeholder:"FILE" help:"File with the pages of each site, one number on a line, instead of --exponent."`
	Known       float64       `placeholder:"N" help:"Known URLs at the end (pages x links x new)."`
	Queued      float64       `placeholder:"N" help:"Most queued URLs (known minus fetched, at least a quarter of the pages)."`
	Recrawls    float64       `placeholder:"N" help:"URLs that wait for a recrawl (none)."`
	Links       float64       `default:"60" placeholder:"N" help:"Links of a page (${default})."`
	New         float64       `default:"0.03" placeholder:"F" help:"Share of links that are new (${default})."`
	Own         float64       `default:"0.8" placeholder:"F" help:"Share of links that stay on the site (${default})."`
	Cached      float64       `default:"0.8" placeholder:"F" help:"Share of known links that a fetcher finds in its own cache (${default})."`
	PageBytes   float64       `default:"45056" placeholder:"N" help:"Bytes of a page (${default})."`
	WireBytes   float64       `default:"12288" placeholder:"N" help:"Bytes of a page on the wire (${default})."`
	Encoding    string        `default:"gzip" placeholder:"KIND" help:"Encoding of pages on the wire: gzip, br or zstd (${default})."`
	TLS         float64       `name:"tls" default:"0.92" placeholder:"F" help:"Share of fetches over https (${default})."`
	Fresh       float64       `default:"0.2" placeholder:"F" help:"Share of fetches that open a connection, besides that of robots.txt (${default})."`
	Resumed     float64       `default:"0.5" placeholder:"F" help:"Share of these connections that resume a TLS session (${default})."`
	NameKnown   float64       `default:"0.9" placeholder:"F" help:"Share of the others whose name and chain the fetcher verified before (${default})."`
	IssuerKnown float64       `default:"0.95" placeholder:"F" help:"Share of the rest, and of first contacts with a site, whose issuer the fetcher verified before (${default})."`
	Chain       string        `default:"p384" placeholder:"KIND" help:"Kind of certificates: p384 (P-256 under P-384), p256 or rsa2048 (${default})."`
	Retried     float64       `default:"0" placeholder:"F" help:"Share of fetches that are tried again (${default})."`
	Latency     time.Duration `default:"500ms" placeholder:"D" help:"Time of a fetch (${default})."`
	Delay       time.Duration `default:"1s" placeholder:"D" help:"Delay between requests to a site (${default})."`
	Jitter      float64       `default:"0.5" placeholder:"F" help:"Delays grow by a random share of up to this (${default})."`
	PerSite     float64       `default:"1" placeholder:"N" help:"Requests to a site at once (${default})."`
	Digest      string        `default:"xxh3" placeholder:"KIND" help:"Digest of pages (${default})."`
	Duplicates  string        `default:"off" placeholder:"RULE" help:"Handling of duplicate pages: off, mark or skip (${default})."`
	Records     string        `default:"plain" placeholder:"KIND" help:"Compression of records: plain, gzip or zstd (${default})."`
	ErrorRate   float64       `default:"1e-6" placeholder:"P" help:"False positives of the filters (${default})."`
	Embedded    bool          `help:"One process, without Redis."`

	Fetchers     float64   `placeholder:"N" help:"Number of fetchers (as many as needed)."`
	Masters      float64   `placeholder:"N" help:"Number of Redis masters (as many as needed)."`
	Cores        float64   `default:"4" placeholder:"N" help:"Processors of a fetcher's machine (${default})."`
	Memory       boot.Size `default:"8G" placeholder:"BYTES" help:"Memory of a fetcher's machine (${default})."`
	Files        float64   `default:"65536" placeholder:"N" help:"Files that a fetcher may open (${default})."`
	LinkSpeed    float64   `default:"1e9" placeholder:"BITS" help:"Bits per second of a fetcher's network (${default})."`
	MasterMemory boot.Size `default:"16G" placeholder:"BYTES" help:"Memory of a Redis master (${default})."`
	Room         float64   `default:"0.5" placeholder:"F" help:"Memory kept free in Redis for rewriting its file and for fragments, as a share of its data (${default})."`
	Load         float64   `default:"0.7" placeholder:"F" help:"Highest load of a processor or network (${default})."`
	MaxClients   float64   `default:"10000" placeholder:"N" help:"maxclients of a master (${default})."`
	NodeTimeout  float64   `default:"15" placeholder:"SECONDS" help:"cluster-node-timeout of the masters (${default})."`

	PriceFetcher float64 `placeholder:"X" help:"Price per hour of a fetcher's machine."`
	PriceMaster  float64 `placeholder:"X" help:"Price per hour of a master's machine."`
	PriceTraffic float64 `placeholder:"X" help:"Price per GB on the wire."`
	PriceDisk    float64 `placeholder:"X" help:"Price per GB of records."`
}

// Run prints the plan, also one that cannot be met, with that.
func (c *planCmd) Run(env *boot.Env, g *cli) error {
	asked := c.toAsked()
	if c.From != "" {
		if err := c.from(env, g, &asked); err != nil {
			return err
		}
	}
	if err := c.readSizes(&asked); err != nil {
		return err
	}
	if asked.Pages == 0 && len(asked.Sizes) == 0 {
		return boot.Usage("--pages and --sites, --site-sizes or --from is needed")
	}
	units, err := c.units(env)
	if err != nil {
		return err
	}
	p, err := plan.New(asked, units)
	if err != nil {
		return boot.Usage("%w", err)
	}
	return g.answer(env, p, p.Write)
}

func (c *planCmd) toAsked() plan.Asked {
	return plan.Asked{
		Pages: c.Pages, Days: c.Days, Sites: c.Sites, Exponent: c.Exponent, Known: c.Known, Queued: c.Queued, Recrawls: c.Recrawls,
		Links: c.Links, New: c.New, Own: c.Own, Cached: c.Cached, Page: c.PageBytes, Wire: c.WireBytes,
		Encoding: c.Encoding, TLS: c.TLS, Fresh: c.Fresh, Resumed: c.Resumed, NameKnown: c.NameKnown, IssuerKnown: c.IssuerKnown, Chain: c.Chain, Retried: c.Retried,
		Latency: c.Latency.Seconds(), Delay: c.Delay.Seconds(), Jitter: c.Jitter, PerSite: c.PerSite,
		Digest: c.Digest, Duplicates: c.Duplicates, Records: c.Records, Rate: c.ErrorRate, Embedded: c.Embedded,
		Fetchers: c.Fetchers, Masters: c.Masters, Cores: c.Cores, Memory: float64(c.Memory), Files: c.Files,
		MasterMemory: float64(c.MasterMemory), Room: c.Room, Load: c.Load, Link: c.LinkSpeed,
		Clients: c.MaxClients, NodeTimeout: c.NodeTimeout,
		Prices: plan.Prices{Fetcher: c.PriceFetcher, Master: c.PriceMaster, Traffic: c.PriceTraffic, Disk: c.PriceDisk},
	}
}

// from takes what is not given from a crawl as it stands.
func (c *planCmd) from(env *boot.Env, g *cli, asked *plan.Asked) error {
	name := *g
	name.Crawl = c.From
	return name.openRedis(env, func(ctx context.Context, f *redis.Frontier) error {
		r, err := f.Report(ctx)
		if err != nil {
			return err
		}
		t := r.Total
		set := func(v *float64, n int64) {
			if *v == 0 {
				*v = float64(n)
			}
		}
		set(&asked.Pages, t.Done+t.Queued+t.Waiting+t.Open)
		sites, err := allSites(ctx, f, t.Ready+t.PausedReady+t.Leases)
		if err != nil {
			return err
		}
		set(&asked.Sites, sites)
		set(&asked.Known, t.Known)
		set(&asked.Queued, t.Queued)
		set(&asked.Recrawls, t.Recrawls)
		return nil
	})
}

// allSites is how many sites a crawl has: those that were asked, finished or not, and of
// those with work the share that was not asked yet.
func allSites(ctx context.Context, f *redis.Frontier, work int64) (int64, error) {
	asked := int64(0)
	err := frontier.EachShard(ctx, f, nil, func(k int) error {
		sums, err := f.Counters(ctx, k)
		if err != nil {
			return err
		}
		for name, n := range sums.Counts {
			if strings.HasPrefix(name, frontier.CounterSite) {
				asked += n
			}
		}
		return nil
	})
	if err != nil || work == 0 {
		return asked, err
	}
	list, err := ask.Sites(ctx, f, ask.SitesQuery{Limit: math.MaxInt})
	if err != nil {
		return 0, err
	}
	looked, fresh := 0.0, 0.0
	for _, s := range list.Sites {
		if s.Queued+s.Waiting+s.Open > 0 {
			looked++
			if s.Last == "" {
				fresh++
			}
		}
	}
	return asked + int64(math.Round(float64(work)*fresh/max(looked, 1))), nil
}

// readSizes reads the pages of each site.
func (c *planCmd) readSizes(asked *plan.Asked) error {
	if c.SiteSizes == "" {
		return nil
	}
	f, err := os.Open(c.SiteSizes)
	if err != nil {
		return fmt.Errorf("--site-sizes: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 1) {
			return boot.Usage("--site-sizes: line %d of %s is %q, must be how many pages a site has", n, c.SiteSizes, text)
		}
		asked.Sizes = append(asked.Sizes, v)
	}
	return lines.Err()
}

// measuredUnits is the output of the benchmarks on the machine that it names; scripts/bench-units writes it.
//
//go:embed units.txt
var measuredUnits string

func (c *planCmd) units(env *boot.Env) (*plan.Units, error) {
	if c.Bench == "" {
		return plan.ReadUnits("cmd/frontier/units.txt", strings.NewReader(measuredUnits))
	}
	in := io.Reader(env.In)
	if c.Bench != "-" {
		f, err := os.Open(c.Bench)
		if err != nil {
			return nil, fmt.Errorf("--bench: %w", err)
		}
		defer f.Close()
		in = f
	}
	return plan.ReadUnits(c.Bench, in)
}
