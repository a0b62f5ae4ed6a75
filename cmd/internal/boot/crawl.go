package boot

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"seine/fetch/robots"
	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/redis"
)

// NameFlag names the crawl.
type NameFlag struct {
	Crawl string `group:"crawl" default:"seine" placeholder:"NAME" help:"Name of the crawl (${default})."`
}

// CrawlFlags are what belongs to the crawl. The first group makes its layout,
// fixed at creation; the rest are its settings, changed by `frontier set`. A
// flag that is not given is nil, zero or an empty list: a new crawl takes the
// default, a program that joins takes what the crawl has.
type CrawlFlags struct {
	Shards        int     `least:"1" group:"crawl" placeholder:"N" help:"Number of shards: that of the masters, or a multiple. Needed to create a crawl, checked later."`
	PlanURLs      Count   `least:"1" group:"crawl" name:"plan-urls" placeholder:"N" help:"URLs that the filters are sized for, such as 10M (10M)."`
	ErrorRate     float64 `least:"1e-12" group:"crawl" placeholder:"P" help:"Probability that a filter takes a new URL for a known one (1e-6)."`
	LimitBy       string  `group:"crawl" enum:",site,host" default:"" placeholder:"RULE" help:"Unit of politeness: site is the registrable domain, host is the host (site)."`
	StripParams   *bool   `group:"crawl" help:"Treat URLs that differ only in tracking parameters and session ids as the same."`
	SortQuery     *bool   `group:"crawl" help:"Treat URLs that differ only in the order of parameters as the same."`
	OtherSuffixes bool    `group:"crawl" help:"Resume a crawl that was created with another public suffix list. Hosts whose site changes are fetched again."`

	Delay         *time.Duration      `group:"polite" placeholder:"D" help:"Time from the start of one request to a site to the start of the next (1s)."`
	Jitter        *float64            `group:"polite" placeholder:"F" help:"Multiply each delay by a random factor from 1 to 1 + F (0.5)."`
	PerSite       *int                `group:"polite" placeholder:"N" help:"Requests to one site at once (1)."`
	VisitURLs     *int                `group:"polite" name:"visit-urls" placeholder:"N" help:"URLs leased per visit. A site without a delay gets up to the square of this, at most 256 (8)."`
	UserAgent     *string             `group:"polite" placeholder:"TEXT" help:"User-Agent of requests (seine/VERSION)."`
	Robots        *string             `group:"polite" placeholder:"RULE" help:"What to do with robots.txt: obey or ignore (obey)."`
	RobotsAgent   *string             `group:"polite" placeholder:"TOKEN" help:"Name of this crawler in robots.txt (the product in the User-Agent)."`
	MaxCrawlDelay *time.Duration      `group:"polite" placeholder:"D" help:"Longest Crawl-delay of a robots.txt that the crawl honours (10m)."`
	Purpose       []string            `group:"polite" placeholder:"USE" help:"What pages are wanted for: search, ai-input, ai-train, tdm, archive. Of a page that its site refuses for one of them, only the refusal is recorded (none: everything is recorded)."`
	RefusedLinks  *string             `group:"polite" placeholder:"RULE" help:"What to do with links of pages that a site refuses for the purpose: skip or follow (skip)."`
	TDMRep        *bool               `group:"polite" name:"tdmrep" help:"Ask each origin for /.well-known/tdmrep.json after its robots.txt."`
	Sites         []frontier.SiteRule `group:"polite" hidden:"" sep:"none" help:"Settings of single sites, in the file only."`

	Scope          *string  `group:"scope" placeholder:"RULE" help:"Which links to follow: those to the site of the page, to its host, or any (site)."`
	MaxDepth       *int     `group:"scope" placeholder:"N" help:"Most links between a seed and a page; 0 means no limit (0)."`
	MaxPages       *int64   `group:"scope" placeholder:"N" help:"Most fetches of the whole crawl, over all fetchers; 0 means no limit (0)."`
	MaxPerSite     *int64   `group:"scope" placeholder:"N" help:"Most URLs of one site that the crawl admits; 0 means no limit (0)."`
	MaxURL         *int     `group:"scope" name:"max-url" placeholder:"BYTES" help:"Most bytes of a URL, 2048 to 65536 (8192). A queued URL costs its length in memory of Redis."`
	Allow          []string `group:"scope" sep:"none" placeholder:"REGEX" help:"Follow only links whose URL matches one of these. A pattern may match any part of the URL. Repeatable."`
	Deny           []string `group:"scope" sep:"none" placeholder:"REGEX" help:"Do not follow links whose URL matches. It beats --allow and does not apply to seeds. Repeatable."`
	Priority       []string `group:"scope" sep:"none" placeholder:"REGEX=0..3" help:"Priority class of URLs that match; 0 goes first. The first match counts (1). Repeatable."`
	Order          *string  `group:"scope" placeholder:"RULE" help:"Order within a site: breadth or depth (breadth)."`
	SkipExt        []string `group:"scope" placeholder:"EXT" help:"Extensions of paths that are not followed, such as zip,exe (none)."`
	Follow         []string `group:"scope" placeholder:"KIND" help:"Kinds of links that are followed (navigation). Sets: navigation (a, area, frame, iframe, refresh, canonical, next, prev, header), requisites (stylesheet, icon, preload, img, srcset, source, video, audio, track, embed, object, input, background, script, svg, css, import), syndication (loc, index, entry, enclosure, home), all. In no set but all: alternate, feed, amphtml, sitemap, link, cite, base. data-src and data-srcset of lazy images count as img, source and srcset."`
	Sitemaps       *bool    `group:"scope" help:"Follow the sitemaps that robots.txt names, on any host, up to 50 MB and 50,000 URLs each."`
	IgnoreNofollow *bool    `group:"scope" help:"Follow links that are marked nofollow."`

	Recrawl      []string `group:"recrawl" sep:"none" placeholder:"REGEX=INTERVAL[..MAX]" help:"Recrawl URLs that match, after INTERVAL. An unchanged page waits half as long again, up to MAX. A changed page waits half as long, down to INTERVAL. The first match counts. Repeatable."`
	RecrawlShare *int     `group:"recrawl" placeholder:"PCT" help:"Percentage of each visit that is kept for recrawls while the site has new URLs (0: new URLs go first)."`

	Duplicates *string `group:"recrawl" placeholder:"RULE" help:"What to do with pages whose content another URL had before: off; mark, a flag in the record; skip, do not follow their links either. skip needs --digest sha256 (off)."`

	MemoryHigh *int `group:"scope" placeholder:"PCT" help:"Above this percentage of maxmemory, refuse links to the sites with the longest queues; 0 means never (0). They are lost unless --overflow keeps them."`
	MemoryLow  *int `group:"scope" placeholder:"PCT" help:"Below this percentage, accept such links again (5 less than --memory-high)."`

	Referrer *bool `group:"output" help:"Add the page that first linked to this one to each record."`

	Walls *string `group:"polite" placeholder:"on|off" help:"on: tell answers of protection services from pages. After three in a row the whole fleet backs off from the site: an hour, doubling to a day (on)."`

	Cookies *string `group:"polite" placeholder:"off|site" help:"site: store the cookies that a site sets, at most 4 KB, and send them back to it (off)."`

	Digest *string `group:"output" placeholder:"KIND" help:"Digest of each page in its record: xxh3, sha256 or none (xxh3). Only sha256 resists pages that are forged to look the same."`

	FeedKey     *string `group:"input" placeholder:"KEY" help:"Redis list from which fetchers take URLs while they run (CRAWL:feed)."`
	FeedRefetch *bool   `group:"input" help:"Fetch the URLs of the feed even if they are known."`
}

// ToLayout is the layout as far as it was given, with this program's versions:
// what redis.Open compares. redis.Create completes it.
func (c *CrawlFlags) ToLayout() frontier.Layout {
	l := frontier.Layout{
		Format: frontier.FormatVersion, Canon: frontier.CanonVersion, Suffixes: canon.SuffixVersion(),
		Shards: c.Shards, LimitBy: canon.LimitBy(c.LimitBy), PlanURLs: int64(c.PlanURLs), ErrorRate: c.ErrorRate,
		OtherSuffixes: c.OtherSuffixes,
	}
	l.StripParams = c.StripParams != nil && *c.StripParams
	l.SortQuery = c.SortQuery != nil && *c.SortQuery
	return l
}

// SameLayout refuses flags of the layout that differ from a crawl's: it is fixed. A
// crawl in a directory has neither shards nor filters.
func (c *CrawlFlags) SameLayout(has frontier.Layout, inDir bool) error {
	want := c.ToLayout()
	want.Format, want.Canon, want.Suffixes = 0, 0, ""
	if inDir {
		want.Shards, want.PlanURLs, want.ErrorRate = 0, 0, 0
	}
	err := has.Check(want)
	for _, rule := range []struct {
		name string
		has  bool
		want *bool
	}{{"strip-params", has.StripParams, c.StripParams}, {"sort-query", has.SortQuery, c.SortQuery}} {
		if err == nil && rule.want != nil && *rule.want != rule.has {
			err = fmt.Errorf("%s: the crawl has %t, given %t", rule.name, rule.has, *rule.want)
		}
	}
	if err != nil {
		return Usage("%w; shards, limit-by, plan-urls, error-rate, strip-params and sort-query are fixed when a crawl is created", err)
	}
	return nil
}

// ToSettings is the defaults with what was given, for a new crawl.
func (c *CrawlFlags) ToSettings() frontier.Settings {
	s := frontier.DefaultSettings()
	c.Apply(&s)
	return s
}

// Apply puts the settings that were given into s: a flag is a field of the same name.
// A list of one empty value empties the setting.
func (c *CrawlFlags) Apply(s *frontier.Settings) {
	flags, settings := reflect.ValueOf(c).Elem(), reflect.ValueOf(s).Elem()
	for i := range flags.NumField() {
		given, setting := flags.Field(i), settings.FieldByName(flags.Type().Field(i).Name)
		if !setting.IsValid() || given.IsZero() { // of the layout, or not given
			continue
		}
		if given.Kind() == reflect.Pointer {
			given = given.Elem()
		} else if list, ok := given.Interface().([]string); ok && len(list) == 1 && list[0] == "" {
			given = reflect.Zero(given.Type())
		}
		setting.Set(given)
	}
}

// CheckAgent fails where robots.txt is obeyed and nothing gives its name:
// the rules of a site for this crawler would be those for others.
func CheckAgent(s *frontier.Settings) error {
	if s.Robots == "ignore" || s.RobotsAgent != "" || s.UserAgent == "" || robots.Token(s.UserAgent) != "" {
		return nil
	}
	return Usage("user-agent %q begins with no product that a robots.txt could name; give the name with --robots-agent", s.UserAgent)
}

// WarnWatermarks logs where the crawl's memory watermarks do nothing.
func WarnWatermarks(ctx context.Context, f *redis.Frontier, log *slog.Logger) error {
	w, err := f.WithoutWatermarks(ctx)
	if w != nil {
		log.Warn(w.String())
	}
	return err
}
