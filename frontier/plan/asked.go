// Package plan works out what a crawl needs before it begins: machines, memory,
// time and money, from what is asked for and from measured unit costs.
//
// Time is that of a queue which asks every site as often as its delay allows
// while all machines together can do no more than so many pages a second. If L
// pages of each site (or all that it has) have been fetched, A(L) sites still have
// some; the next page of each takes the delay, or A(L) pages at the rate of the
// machines, whichever is longer. The sum of that over all L up to the largest
// site is how long the crawl takes. Links are taken for known when their site's
// turn comes: the first minutes, in which few sites are known, are not in it.
//
// Processor time and memory are sums of unit costs, each of a benchmark. A unit
// that was not measured is an error that names it; nothing is guessed.
package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"seine/frontier"
)

// Asked is what a plan is asked for. Shares are from 0 to 1.
type Asked struct {
	Pages       float64   `json:"pages"`              // to fetch
	Days        float64   `json:"days"`               // in which; 0: as long as it takes
	Sites       float64   `json:"sites"`              // that these are spread over
	Exponent    float64   `json:"exponent"`           // the r-th largest site has r^-exponent of the pages of the largest
	Sizes       []float64 `json:"-"`                  // pages of each site instead, in any order
	Known       float64   `json:"known"`              // URLs in the end; 0: pages x links x new
	Queued      float64   `json:"queued"`             // URLs at most; 0: what is known and not fetched, or a quarter of the pages
	Recrawls    float64   `json:"recrawls"`           // URLs that wait for a recrawl, at most
	Links       float64   `json:"links_a_page"`       //
	New         float64   `json:"new_share"`          // of the links
	Own         float64   `json:"own_share"`          // of the links, that lead to their page's site
	Cached      float64   `json:"cached_share"`       // of the links to known URLs, that a fetcher need not ask Redis about
	Page        float64   `json:"page_bytes"`         //
	Wire        float64   `json:"wire_bytes"`         // of a page; fewer than its bytes are unpacked
	Encoding    string    `json:"encoding"`           // in which they come: gzip, br or zstd
	TLS         float64   `json:"tls_share"`          // of the fetches
	Fresh       float64   `json:"fresh_share"`        // of the fetches, that open a connection; that of robots.txt comes on top
	Resumed     float64   `json:"resumed_share"`      // of the fresh TLS connections, that resume a session
	NameKnown   float64   `json:"name_known_share"`   // of the fresh ones that do not, whose name was verified before with the same chain
	IssuerKnown float64   `json:"issuer_known_share"` // of the rest and of first contacts, whose issuer was verified before
	Chain       string    `json:"chain"`              // kind of certificates: p384, p256 or rsa2048
	Retried     float64   `json:"retried_share"`      // of the fetches
	Latency     float64   `json:"latency_seconds"`    // of a fetch
	Delay       float64   `json:"delay_seconds"`      // between requests to a site
	Jitter      float64   `json:"jitter"`             //
	PerSite     float64   `json:"requests_a_site"`    // at once
	Digest      string    `json:"digest"`             // kind
	Duplicates  string    `json:"duplicates"`         // what is done about pages of known content: off, mark or skip
	Records     string    `json:"records"`            // plain, gzip or zstd
	Rate        float64   `json:"error_rate"`         // of the filters
	Embedded    bool      `json:"embedded,omitempty"` // one process, no Redis

	Fetchers     float64 `json:"fetchers"`            // 0: as many as it takes
	Masters      float64 `json:"masters"`             // 0: as many as it takes
	Cores        float64 `json:"cores"`               // of a fetcher's machine
	Memory       float64 `json:"memory_bytes"`        // of a fetcher's machine
	Files        float64 `json:"files"`               // that a fetcher may open
	MasterMemory float64 `json:"master_memory_bytes"` //
	Room         float64 `json:"room"`                // of Redis's data again, for rewriting its file and for fragments
	Load         float64 `json:"load"`                // of a processor that a plan may use
	Link         float64 `json:"link_bits"`           // a second, of a fetcher's machine
	Clients      float64 `json:"clients"`             // that a master accepts, maxclients
	NodeTimeout  float64 `json:"node_timeout_seconds"`
	Prices       Prices  `json:"prices"`
}

// Prices are in any currency; 0 leaves a part out.
type Prices struct {
	Fetcher float64 `json:"fetcher_hour"`
	Master  float64 `json:"master_hour"`
	Traffic float64 `json:"traffic_GB"`
	Disk    float64 `json:"disk_GB"`
}

// Default is a broad crawl whose pages and sites are still to be given.
func Default() Asked {
	return Asked{Exponent: 0.8, Links: 60, New: 0.03, Own: 0.8, Cached: 0.8, Page: 44 << 10, Wire: 12 << 10, Encoding: "gzip",
		TLS: 0.92, Fresh: 0.2, Resumed: 0.5, NameKnown: 0.9, IssuerKnown: 0.95, Chain: "p384",
		Latency: 0.5, Delay: 1, Jitter: 0.5, PerSite: 1, Digest: "xxh3", Duplicates: frontier.DuplicatesOff, Records: "plain", Rate: 1e-6,
		Cores: 4, Memory: 8e9, Files: 65536, MasterMemory: 16e9, Room: 0.5, Load: 0.7, Link: 1e9, Clients: 10000, NodeTimeout: 15}
}

// Validate joins all faults.
func (a *Asked) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("plan: "+format, args...)) }
	for _, v := range []struct {
		name        string
		v, min, max float64
	}{
		{"pages", a.Pages, 1, 1e15}, {"days", a.Days, 0, 1e5}, {"sites", a.Sites, 1, 1e12}, {"exponent", a.Exponent, 0, 10},
		{"known", a.Known, 0, 1 << 50}, {"queued", a.Queued, 0, 1 << 50}, {"URLs that wait for a recrawl", a.Recrawls, 0, 1 << 50}, {"links", a.Links, 0, 1e6}, {"share of new links", a.New, 0, 1},
		{"share of own links", a.Own, 0, 1}, {"share of cached links", a.Cached, 0, 1}, {"bytes of a page", a.Page, 0, 1e12},
		{"bytes on the wire", a.Wire, 0, 1e12}, {"share of TLS", a.TLS, 0, 1}, {"share of fresh connections", a.Fresh, 0, 1},
		{"share of resumed sessions", a.Resumed, 0, 1}, {"share of known names", a.NameKnown, 0, 1},
		{"share of known issuers", a.IssuerKnown, 0, 1}, {"share of retries", a.Retried, 0, 1}, {"latency", a.Latency, 0, 3600},
		{"delay", a.Delay, 0, 1e7}, {"jitter", a.Jitter, 0, 100}, {"requests a site", a.PerSite, 1, 1e4}, {"fetchers", a.Fetchers, 0, 1e6},
		{"masters", a.Masters, 0, 1000}, {"cores", a.Cores, 0.01, 1e4}, {"memory", a.Memory, 1e6, 1e15}, {"files", a.Files, 16, 1e9},
		{"memory of a master", a.MasterMemory, 1e6, 1e15}, {"room", a.Room, 0, 10}, {"load", a.Load, 0.01, 1}, {"link", a.Link, 1, 1e15},
		{"clients", a.Clients, 1, 1e9}, {"node timeout", a.NodeTimeout, 0.001, 1e6},
	} {
		if !(v.v >= v.min && v.v <= v.max) {
			fault("%s is %g, must be %g .. %g", v.name, v.v, v.min, v.max)
		}
	}
	if decoded[a.Encoding] == "" {
		fault("encoding is %q, must be gzip, br or zstd", a.Encoding)
	}
	if !slices.Contains(chains, a.Chain) {
		fault("chain is %q, must be %s", a.Chain, strings.Join(chains, ", "))
	}
	if err := a.settings().ValidateDuplicates(); err != nil {
		errs = append(errs, err)
	}
	if a.Pages < a.Sites {
		fault("%g pages on %g sites: a site has at least one", a.Pages, a.Sites)
	}
	if a.Known > 0 && a.Known < a.Pages {
		fault("%g pages of %g known URLs: only known ones are fetched", a.Pages, a.Known)
	}
	if a.Embedded && (a.Fetchers > 1 || a.Masters > 0) {
		fault("embedded is one process without masters")
	}
	return errors.Join(errs...)
}

// Complete sets what was not given and follows from the rest.
func (a *Asked) Complete() {
	if len(a.Sizes) > 0 {
		a.Sites, a.Pages = float64(len(a.Sizes)), 0
		for _, n := range a.Sizes {
			a.Pages += n
		}
	}
	if a.Known == 0 {
		a.Known = max(a.Pages, a.Sites+math.Round(a.Pages*a.Links*a.New))
	}
	if a.Queued == 0 {
		a.Queued = max(a.Known-a.Pages, a.Pages/4, a.Sites)
	}
	if a.Embedded {
		a.Fetchers = 1
	}
}

// settings are those of the crawl that decide about contents of pages.
func (a *Asked) settings() *frontier.Settings {
	return &frontier.Settings{Digest: a.Digest, Duplicates: a.Duplicates}
}

// remembers reports whether contents of pages are remembered.
func (a *Asked) remembers() bool { return a.settings().DuplicatesRule() != frontier.DuplicatesOff }

// interval is how far apart requests to a site are, in seconds.
func (a *Asked) interval() float64 {
	return max(a.Delay*(1+a.Jitter/2), a.Latency/a.PerSite)
}
