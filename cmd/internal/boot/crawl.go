package boot

import (
	"context"
	"log/slog"
	"time"

	"seine/fetch/robots"
	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/redis"
)

// NameFlag says which crawl.
type NameFlag struct {
	Crawl string `group:"crawl" default:"seine" placeholder:"NAME" help:"Name of the crawl (${default})."`
}

// CrawlFlags are what belongs to the crawl. The first group makes its layout,
// fixed at creation; the rest are its settings, changed by `frontier set`. A
// flag that is not given is nil, zero or an empty list: a new crawl takes the
// default, a program that joins takes what the crawl has.
type CrawlFlags struct {
	Shards        int     `least:"1" group:"crawl" placeholder:"N" help:"Shards; given when the crawl is created, later checked. As many as masters, or a multiple."`
	PlanURLs      Count   `least:"1" group:"crawl" name:"plan-urls" placeholder:"N" help:"URLs to plan filters for, such as 10M (10M)."`
	ErrorRate     float64 `least:"1e-12" group:"crawl" placeholder:"P" help:"False positives of the filters a probe (1e-6)."`
	LimitBy       string  `group:"crawl" enum:",site,host" default:"" placeholder:"RULE" help:"What is a site: registrable domain (site) or host (site)."`
	StripParams   *bool   `group:"crawl" help:"URLs that differ in tracking parameters only are the same."`
	SortQuery     *bool   `group:"crawl" help:"URLs that differ in the order of parameters only are the same."`
	OtherSuffixes bool    `group:"crawl" help:"Go on with a crawl made with another public suffix list; hosts whose site changes are fetched anew."`

	Delay         *time.Duration      `group:"polite" placeholder:"D" help:"From the start of one request to a site to the start of the next (1s)."`
	Jitter        *float64            `group:"polite" placeholder:"F" help:"Delays are stretched by a random factor from 1 to 1 + F (0.5)."`
	PerSite       *int                `group:"polite" placeholder:"N" help:"Requests to one site at once (1)."`
	VisitURLs     *int                `group:"polite" name:"visit-urls" placeholder:"N" help:"URLs of a site lent at once (8)."`
	UserAgent     *string             `group:"polite" placeholder:"TEXT" help:"User-Agent of requests (seine/VERSION)."`
	Robots        *string             `group:"polite" placeholder:"RULE" help:"robots.txt: obey or ignore (obey)."`
	RobotsAgent   *string             `group:"polite" placeholder:"TOKEN" help:"Our name in robots.txt (product of the user agent)."`
	MaxCrawlDelay *time.Duration      `group:"polite" placeholder:"D" help:"Longest Crawl-delay of a robots.txt that is honoured (10m)."`
	Sites         []frontier.SiteRule `group:"polite" hidden:"" sep:"none" help:"Settings of single sites, in the file only."`

	Scope          *string  `group:"scope" placeholder:"RULE" help:"A link is followed to its page's site, its host, or any (site)."`
	MaxDepth       *int     `group:"scope" placeholder:"N" help:"Links from a seed, 0 unlimited (0)."`
	MaxPages       *int64   `group:"scope" placeholder:"N" help:"Fetches of the whole crawl, 0 unlimited (0)."`
	MaxPerSite     *int64   `group:"scope" placeholder:"N" help:"URLs admitted a site, 0 unlimited (0)."`
	MaxURL         *int     `group:"scope" name:"max-url" placeholder:"BYTES" help:"Longest URL that is taken, 2048 to 65536 (8192). While it waits, a URL costs its length in memory of Redis."`
	Allow          []string `group:"scope" sep:"none" placeholder:"REGEX" help:"Follow only URLs that match one of these. Repeatable."`
	Deny           []string `group:"scope" sep:"none" placeholder:"REGEX" help:"Do not follow URLs that match; beats --allow. Repeatable."`
	Priority       []string `group:"scope" sep:"none" placeholder:"REGEX=0..3" help:"Class of URLs that match, 0 first; the first match counts. Repeatable."`
	Order          *string  `group:"scope" placeholder:"RULE" help:"Within a site: breadth or depth (breadth)."`
	SkipExt        []string `group:"scope" placeholder:"EXT" help:"Extensions of paths that are not followed."`
	Follow         []string `group:"scope" placeholder:"KIND" help:"Kinds of links that are followed (navigation). Sets: navigation (a, area, frame, iframe, refresh, canonical, next, prev, header), requisites (stylesheet, icon, preload, img, srcset, source, video, audio, track, embed, object, input, background, script, svg, css, import), syndication (loc, index, entry, enclosure, home), all. In no set but all: alternate, feed, amphtml, sitemap, link, cite, base. data-src and data-srcset of lazy images count as img, source and srcset."`
	Sitemaps       *bool    `group:"scope" help:"Follow the sitemaps that robots.txt names."`
	IgnoreNofollow *bool    `group:"scope" help:"Follow links that are marked nofollow."`

	Recrawl      []string `group:"again" sep:"none" placeholder:"REGEX=INTERVAL[..MAX]" help:"Fetch pages whose URLs match again after INTERVAL; after half as long again when they did not change, up to MAX, after half as long when they did, down to INTERVAL. The first match counts. Repeatable."`
	RecrawlShare *int     `group:"again" placeholder:"PCT" help:"Per cent of a visit that pages to be fetched again have while new URLs are there (0: what those leave)."`

	Duplicates *string `group:"again" placeholder:"RULE" help:"Pages whose content another URL brought before: off, mark (their records say so) or skip (and their links are not followed; needs --digest sha256) (off)."`

	MemoryHigh *int `group:"scope" placeholder:"PCT" help:"Above so many per cent of Redis's maxmemory turn away links of the sites with the longest queues, 0 never (0). They are lost, or kept with --overflow."`
	MemoryLow  *int `group:"scope" placeholder:"PCT" help:"Below it let them in again (5 below --memory-high)."`

	Referrer *bool `group:"output" help:"Records name the page that linked to theirs first."`

	Cookies *string `group:"polite" placeholder:"off|site" help:"Keep the cookies that a site sets, 4 KB at most, and send them back to it (off)."`

	Digest *string `group:"output" placeholder:"KIND" help:"Digest of pages in their records: xxh3, sha256 (against pages made to look the same), or none (xxh3)."`

	FeedKey   *string `group:"input" placeholder:"KEY" help:"Redis list that URLs are fed through (CRAWL:feed)."`
	FeedAgain *bool   `group:"input" help:"Fetch what the feed names though it is known."`
}

// ToLayout is the layout as far as it was given, with this program's versions:
// what redis.Open compares. redis.Create completes it.
func (c *CrawlFlags) ToLayout() frontier.Layout {
	l := frontier.Layout{
		Format: frontier.FormatVersion, Canon: frontier.CanonVersion, Suffixes: canon.SuffixVersion(),
		Shards: c.Shards, LimitBy: canon.LimitBy(c.LimitBy), PlanURLs: int64(c.PlanURLs), ErrorRate: c.ErrorRate,
		OtherSuffixes: c.OtherSuffixes,
	}
	set(&l.StripParams, c.StripParams)
	set(&l.SortQuery, c.SortQuery)
	return l
}

// GivesLayout says whether any flag of the layout was given.
func (c *CrawlFlags) GivesLayout() bool {
	return c.Shards != 0 || c.PlanURLs != 0 || c.ErrorRate != 0 || c.LimitBy != "" || c.StripParams != nil || c.SortQuery != nil
}

// ToSettings is the defaults with what was given, for a new crawl.
func (c *CrawlFlags) ToSettings() frontier.Settings {
	s := frontier.DefaultSettings()
	c.Apply(&s)
	return s
}

// Apply puts the settings that were given into s.
func (c *CrawlFlags) Apply(s *frontier.Settings) {
	set(&s.Delay, c.Delay)
	set(&s.Jitter, c.Jitter)
	set(&s.PerSite, c.PerSite)
	set(&s.VisitURLs, c.VisitURLs)
	set(&s.UserAgent, c.UserAgent)
	set(&s.Robots, c.Robots)
	set(&s.RobotsAgent, c.RobotsAgent)
	set(&s.MaxCrawlDelay, c.MaxCrawlDelay)
	set(&s.Scope, c.Scope)
	set(&s.MaxDepth, c.MaxDepth)
	set(&s.MaxPages, c.MaxPages)
	set(&s.MaxPerSite, c.MaxPerSite)
	set(&s.MaxURL, c.MaxURL)
	set(&s.Order, c.Order)
	set(&s.Referrer, c.Referrer)
	set(&s.Digest, c.Digest)
	set(&s.Cookies, c.Cookies)
	set(&s.Duplicates, c.Duplicates)
	set(&s.RecrawlShare, c.RecrawlShare)
	set(&s.MemoryHigh, c.MemoryHigh)
	set(&s.MemoryLow, c.MemoryLow)
	set(&s.Sitemaps, c.Sitemaps)
	set(&s.IgnoreNofollow, c.IgnoreNofollow)
	set(&s.FeedKey, c.FeedKey)
	set(&s.FeedAgain, c.FeedAgain)
	setList(&s.Allow, c.Allow)
	setList(&s.Deny, c.Deny)
	setList(&s.Priority, c.Priority)
	setList(&s.SkipExt, c.SkipExt)
	setList(&s.Recrawl, c.Recrawl)
	setList(&s.Follow, c.Follow)
	if c.Sites != nil {
		s.Sites = c.Sites
	}
}

func set[T any](dst *T, given *T) {
	if given != nil {
		*dst = *given
	}
}

// setList replaces a list that was given; one empty value empties it.
func setList(dst *[]string, given []string) {
	switch {
	case len(given) == 1 && given[0] == "":
		*dst = nil
	case given != nil:
		*dst = given
	}
}

// CheckAgent fails where robots.txt is obeyed and nothing says by which name:
// the rules of a site for this crawler would be those for others.
func CheckAgent(s *frontier.Settings) error {
	if s.Robots == "ignore" || s.RobotsAgent != "" || s.UserAgent == "" || robots.Token(s.UserAgent) != "" {
		return nil
	}
	return Usage("user-agent %q begins with no product that a robots.txt could name; give the name with --robots-agent", s.UserAgent)
}

// WarnMarks logs where the crawl's memory marks do nothing.
func WarnMarks(ctx context.Context, f *redis.Frontier, log *slog.Logger) error {
	w, err := f.Unmarked(ctx)
	if w != nil {
		log.Warn(w.String())
	}
	return err
}
