// Package web is a synthetic web with an answer key.
//
// It consists of sites, s0.example, s1.example and so on, whose sizes follow a
// power law. Nothing of it is stored: host, path and content of page n of a
// site follow from the seed by hashing, so a web of millions of pages costs no
// memory, is the same in every process, and can say of any URL what a right
// crawl does with it.
//
// The pages of a site form a tree, page 0 ("/") its root, the children of page
// n being n*f+1 to n*f+f. f is the number of new links of a page, by default
// 10% of 62. All other links of a page lead to pages with a smaller number
// (known by then to a crawl in order), or to other sites; they are spelled in
// many ways, so that one page stands behind many texts. Features add what
// real sites do: redirects, missing pages, robots rules, traps, failing
// servers. Pages that robots.txt or nofollow keep a crawler from, and what is
// only reachable through them, are linked from nowhere else, so the set of
// URLs that a right crawl fetches is exact: Expect lists it.
//
// Serve answers HTTP for all hosts on one listener (ConnectTo says how a
// crawler gets there) and keeps a log of requests, with the time at which each
// arrived. Verify compares log and records with the key. On two
// cores, the client included, it answers from 0.9 (small pages) to 0.4 (62 links,
// all gentle features) of the requests a second of a server of one fixed page:
// bench/results/web.txt.
package web

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Features is a set of things that a web does beside serving plain pages.
type Features uint32

// The features.
const (
	// Spellings writes links to one page in many ways.
	Spellings Features = 1 << iota
	// Redirects puts redirects, chains of them and loops before pages.
	Redirects
	// Missing links to pages that are not there: 404, 410 and 200 that says so.
	Missing
	// Robots gives sites a robots.txt of many forms, and pages it forbids.
	Robots
	// Nofollow adds nofollow links and pages, and noindex pages.
	Nofollow
	// Charsets writes pages in many encodings.
	Charsets
	// Encodings compresses bodies: gzip, br, zstd, deflate.
	Encodings
	// Sizes adds empty pages and pages of megabytes, some over the body limit.
	Sizes
	// Failures adds URLs that answer 429 or 503 with Retry-After for a while,
	// some that never get better, and sites whose robots.txt fails at first.
	Failures
	// Slow adds URLs that answer late, drip, or reset the connection.
	Slow
	// Traps adds endless calendars, session ids, echoing queries, growing paths
	// and redirects that never arrive.
	Traps
	// Cookies has sites that show pages to those alone who bring the cookie that they
	// set; others they send to where they were.
	Cookies
)

// Gentle is what a quick demonstration can have: nothing of it makes a crawl
// wait or go astray.
const Gentle = Spellings | Redirects | Missing | Robots | Nofollow | Charsets | Encodings

// AllFeatures is everything that a crawler without cookies gets through.
const AllFeatures = Traps<<1 - 1

var featureNames = []string{"spellings", "redirects", "missing", "robots", "nofollow", "charsets", "encodings", "sizes", "failures", "slow", "traps", "cookies"}

// ParseFeatures reads names separated by commas; gentle, all and none are names too.
func ParseFeatures(s string) (Features, error) {
	var f Features
next:
	for name := range strings.SplitSeq(s, ",") {
		switch name {
		case "gentle":
			f |= Gentle
			continue
		case "all":
			f |= AllFeatures
			continue
		case "none", "":
			continue
		}
		for i, n := range featureNames {
			if n == name {
				f |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("web: unknown feature %q: gentle, all, none, %s", name, strings.Join(featureNames, ", "))
	}
	return f, nil
}

// Config of a Web. The zero value of a field is the default it names.
type Config struct {
	Seed       uint64        // another seed is another web
	Sites      int           // default 20
	Pages      int           // over all sites, at least one a site; default 1,000
	Links      int           // links a page; default 62
	New        float64       // share of them that is new; default 0.1
	Exponent   float64       // of the power law of site sizes; default 1.8
	URLBytes   int           // average length of URLs; default some 40
	Features   Features      // default none
	Agent      string        // robots token that robots.txt files name; default "seine"
	CrawlDelay time.Duration // of the sites that ask for one; default 200 ms
	Scheme     string        // http or https (the listener given to Serve speaks TLS then); default http
	NoLog      bool          // keep no log of requests
}

// Demo is the web of a demonstration: some thousand pages on twenty sites, the
// largest with some 380, of which none makes a crawler wait for more than 100 ms
// between requests.
func Demo(seed uint64) Config {
	return Config{Seed: seed, Sites: 20, Pages: 1000, Features: Gentle, CrawlDelay: 100 * time.Millisecond}
}

// Validate names all that is wrong with c.
func (c *Config) Validate() error {
	var errs []error
	if c.Sites < 0 || c.Pages < 0 || c.Links < 0 || c.URLBytes < 0 || c.URLBytes > 1000 {
		errs = append(errs, errors.New("web: Sites, Pages, Links and URLBytes cannot be negative, URLBytes not above 1,000"))
	}
	if !(c.New >= 0 && c.New <= 1) { // nor is NaN
		errs = append(errs, fmt.Errorf("web: New is %v: a share, 0 to 1", c.New))
	}
	if c.Exponent != 0 && !(c.Exponent > 1) {
		errs = append(errs, fmt.Errorf("web: Exponent is %v: more than 1", c.Exponent))
	}
	if c.Features&^(AllFeatures|Cookies) != 0 {
		errs = append(errs, fmt.Errorf("web: unknown Features %#x", c.Features))
	}
	if c.Scheme != "" && c.Scheme != "http" && c.Scheme != "https" {
		errs = append(errs, fmt.Errorf("web: Scheme is %q: http or https", c.Scheme))
	}
	if c.CrawlDelay < 0 {
		errs = append(errs, errors.New("web: CrawlDelay cannot be negative"))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	orInt := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	orInt(&c.Sites, 20)
	orInt(&c.Pages, 1000)
	orInt(&c.Links, 62)
	if c.New == 0 {
		c.New = 0.1
	}
	if c.Exponent == 0 {
		c.Exponent = 1.8
	}
	if c.Agent == "" {
		c.Agent = "seine"
	}
	if c.CrawlDelay == 0 {
		c.CrawlDelay = 200 * time.Millisecond
	}
	if c.Scheme == "" {
		c.Scheme = "http"
	}
	return c
}

// Web is one synthetic web. It is safe for concurrent use.
type Web struct {
	cfg    Config
	fanout int
	sizes  []int // pages by site
	sets   []charset

	mu    sync.Mutex
	log   []Request
	tries map[trial]int // requests of URLs that answer differently with time
}

// New makes a web.
func New(cfg Config) (*Web, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	sets, err := loadCharsets()
	if err != nil {
		return nil, err
	}
	w := &Web{cfg: cfg, sets: sets, tries: map[trial]int{}}
	w.fanout = max(1, int(math.Round(float64(cfg.Links)*cfg.New)))
	w.sizes = sizes(cfg.Sites, cfg.Pages, cfg.Exponent)
	return w, nil
}

// sizes shares pages out by rank: with a density of exponent a, the k-th
// largest of many sites has a size proportional to k^(-1/(a-1)).
func sizes(sites, pages int, exponent float64) []int {
	weights := make([]float64, sites)
	sum := 0.0
	for k := range weights {
		weights[k] = math.Pow(float64(k+1), -1/(exponent-1))
		sum += weights[k]
	}
	out := make([]int, sites)
	for k, w := range weights {
		out[k] = max(1, int(math.Round(float64(pages)*w/sum)))
	}
	return out
}

// Sites is the number of sites.
func (w *Web) Sites() int { return len(w.sizes) }

// Pages is the number of pages of a site, including those that no right crawl fetches.
func (w *Web) Pages(site int) int { return w.sizes[site] }

const domain = ".example"

// Host is the host name of a site.
func (w *Web) Host(site int) string { return "s" + strconv.Itoa(site) + domain }

// siteOf is the site of a host name, without port; -1 if there is none.
func (w *Web) siteOf(host string) int {
	name, ok := strings.CutSuffix(host, domain)
	if !ok || len(name) < 2 || name[0] != 's' || (name[1] == '0' && len(name) > 2) {
		return -1
	}
	n := digits(name[1:])
	if n >= len(w.sizes) {
		return -1
	}
	return n
}

// digits reads s as a number; -1 if it is none, or has a leading zero or more than 9 digits.
func digits[T string | []byte](s T) int {
	if len(s) == 0 || len(s) > 9 || (s[0] == '0' && len(s) > 1) {
		return -1
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// URL is the canonical URL of page n of a site.
func (w *Web) URL(site, n int) string {
	return string(w.appendURL(nil, site, kindPage, n, 0))
}

// Seeds are the URLs of the roots of sites, of all without arguments.
func (w *Web) Seeds(sites ...int) []string {
	if sites == nil {
		for k := range w.sizes {
			sites = append(sites, k)
		}
	}
	var out []string
	for _, k := range sites {
		out = append(out, w.URL(k, 0))
	}
	return out
}
