package frontier

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"seine/frontier/canon"
	"seine/frontier/headers"
)

// Settings is what belongs to the crawl and may change while it runs. Running
// fetchers pick a change up within seconds by its revision. In JSON durations
// are texts such as "1.5s".
type Settings struct {
	Rev            int64         `json:"-"`                       // revision as last read, raised by every change
	Delay          time.Duration `json:"delay"`                   // from the start of one request to a site to the start of the next
	Jitter         float64       `json:"jitter"`                  // delays are stretched by a random factor from 1 to 1 + Jitter
	PerSite        int           `json:"per_site"`                // requests to one site at once
	VisitURLs      int           `json:"visit_urls"`              // URLs leased in one visit
	Scope          string        `json:"scope"`                   // site, host, any
	MaxDepth       int           `json:"max_depth"`               // links from a seed, 0 = unlimited
	MaxPages       int64         `json:"max_pages"`               // settled fetches, all shards, 0 = unlimited
	MaxPerSite     int64         `json:"max_per_site"`            // URLs admitted a site, 0 = unlimited
	MaxURL         int           `json:"max_url,omitempty"`       // bytes of the longest URL that is taken, 0 = DefaultMaxURL
	Allow          []string      `json:"allow,omitempty"`         // a URL must match one, when there are any
	Deny           []string      `json:"deny,omitempty"`          // and none of these
	Priority       []string      `json:"priority,omitempty"`      // REGEX=0..3, the first match wins
	Order          string        `json:"order"`                   // within a site: breadth, depth
	SkipExt        []string      `json:"skip_ext,omitempty"`      // extensions of paths that are not fetched
	UserAgent      string        `json:"user_agent"`              // "" = the program's own
	Robots         string        `json:"robots"`                  // obey, ignore
	RobotsAgent    string        `json:"robots_agent"`            // "" = the product token of UserAgent
	MaxCrawlDelay  time.Duration `json:"max_crawl_delay"`         // the longest Crawl-delay of a robots.txt that is honoured, 0 = DefaultMaxCrawlDelay
	Sitemaps       bool          `json:"sitemaps"`                // follow the sitemaps that robots.txt names
	IgnoreNofollow bool          `json:"ignore_nofollow"`         // follow links that ask not to be
	Follow         []string      `json:"follow,omitempty"`        // kinds of links that are followed, none = navigation
	FeedKey        string        `json:"feed_key"`                // "" = <crawl>:feed
	FeedRefetch    bool          `json:"feed_refetch"`            // elements of the feed are fetched though known
	MemoryHigh     int           `json:"memory_high"`             // per cent of maxmemory above which links of the longest queues are turned away, 0 = never
	MemoryLow      int           `json:"memory_low"`              // below which they are let in again, 0 = 5 below MemoryHigh; nothing without it
	Referrer       bool          `json:"referrer"`                // URLs carry the page that linked to them to their records
	Digest         string        `json:"digest"`                  // of pages: xxh3, sha256, none; "" = sha256
	Duplicates     string        `json:"duplicates,omitempty"`    // what is done about pages whose content another URL brought: off, mark, skip; "" = off
	Recrawl        []string      `json:"recrawl,omitempty"`       // REGEX=INTERVAL[..MAX], the first match counts: how often pages are recrawled
	RecrawlShare   int           `json:"recrawl_share,omitempty"` // per cent of a visit that they have while new URLs are there
	Cookies        string        `json:"cookies,omitempty"`       // off, site: whether a site gets back the cookies that it sets; "" = off
	Walls          string        `json:"walls,omitempty"`         // on, off: whether answers that protection services give in place of pages are told apart; "" = on
	Purpose        []string      `json:"purpose,omitempty"`       // what pages are wanted for, of Purposes: what a site refuses for one of them is not kept
	RefusedLinks   string        `json:"refused_links,omitempty"` // skip, follow: what is done about links of pages that their site refuses; "" = skip
	TDMRep         bool          `json:"tdmrep,omitempty"`        // origins are asked for /.well-known/tdmrep.json beside robots.txt
	Sites          []SiteRule    `json:"sites,omitempty"`
}

// Purposes are what Settings.Purpose may have.
var Purposes = []string{"search", "ai-input", "ai-train", "tdm", "archive"}

// Kinds of Settings.RefusedLinks.
const (
	RefusedSkip   = "skip"
	RefusedFollow = "follow"
)

// FollowsRefused reports whether links are followed of pages that their site refuses for
// the purposes of the crawl.
func (s *Settings) FollowsRefused() bool { return s.RefusedLinks == RefusedFollow }

// Kinds of Settings.Cookies.
const (
	CookiesOff  = "off"
	CookiesSite = "site"
)

// KeepsCookies reports whether sites get back the cookies that they set.
func (s *Settings) KeepsCookies() bool { return s.Cookies == CookiesSite }

// Kinds of Settings.Walls; off takes each answer for the site's own.
const (
	WallsOn  = "on"
	WallsOff = "off"
)

// SeesWalls reports whether answers of protection services are told apart.
func (s *Settings) SeesWalls() bool { return s.Walls != WallsOff }

// Kinds of digests that tell pages apart. XXH3, 128 bits of it, costs a small part
// of SHA-256, but who wants to can make two pages of one XXH3.
const (
	DigestXXH3   = "xxh3"
	DigestSHA256 = "sha256"
	DigestNone   = "none"
)

// DigestKind is the kind of digest that records have: that of a crawl from before
// there was a choice is SHA-256.
func (s *Settings) DigestKind() string { return cmp.Or(s.Digest, DigestSHA256) }

// DuplicatesRule is what is done about pages whose content another URL brought.
func (s *Settings) DuplicatesRule() string { return cmp.Or(s.Duplicates, DuplicatesOff) }

// DefaultSettings is what a crawl has where nothing else is set.
func DefaultSettings() Settings {
	return Settings{
		Delay: time.Second, Jitter: 0.5, PerSite: 1, VisitURLs: 8,
		Scope: "site", Order: "breadth", Robots: "obey", MaxCrawlDelay: DefaultMaxCrawlDelay, MaxURL: DefaultMaxURL, Digest: DigestXXH3,
	}
}

// DefaultMaxCrawlDelay bounds Crawl-delay where nothing else is set, also in
// crawls that were made before it could be set.
const DefaultMaxCrawlDelay = 10 * time.Minute

// CrawlDelayCap is the longest Crawl-delay that is honoured.
func (s *Settings) CrawlDelayCap() time.Duration {
	return cmp.Or(s.MaxCrawlDelay, DefaultMaxCrawlDelay)
}

// The bounds of MaxURL in bytes, and its default.
const (
	LeastMaxURL   = 2 << 10
	DefaultMaxURL = 8 << 10
	MostMaxURL    = canon.DefaultMaxLength
)

// LongestURL is how many bytes a URL may have that is taken into the crawl. URLs
// that are queued when it is lowered are fetched all the same.
func (s *Settings) LongestURL() int { return cmp.Or(s.MaxURL, DefaultMaxURL) }

// ValidateDuplicates says what is wrong with Duplicates, or with Digest beside it.
func (s *Settings) ValidateDuplicates() error {
	rule, kind := s.DuplicatesRule(), s.DigestKind()
	switch {
	case !slices.Contains([]string{DuplicatesOff, DuplicatesMark, DuplicatesSkip}, rule):
		return fmt.Errorf("frontier: settings: duplicates is %q, must be one of %s, %s, %s", rule, DuplicatesOff, DuplicatesMark, DuplicatesSkip)
	case rule == DuplicatesSkip && kind != DigestSHA256:
		return fmt.Errorf("frontier: settings: duplicates is skip and digest %s: who can make two contents of one digest could have the links of another's page left out; set digest to sha256, or duplicates to mark", kind)
	case rule == DuplicatesMark && kind == DigestNone:
		return errors.New("frontier: settings: duplicates is mark and digest none: contents are compared by their digests; set digest to xxh3 or sha256")
	}
	return nil
}

// Validate joins all faults of the settings.
func (s *Settings) Validate() error {
	var faults []error
	bad := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("frontier: settings: "+format, args...))
	}
	oneOf := func(name, v string, of ...string) {
		if !slices.Contains(of, v) {
			bad("%s is %q, must be one of %s", name, v, strings.Join(of, ", "))
		}
	}
	oneOf("scope", s.Scope, "site", "host", "any")
	oneOf("order", s.Order, "breadth", "depth")
	oneOf("robots", s.Robots, "obey", "ignore")
	oneOf("digest", s.DigestKind(), DigestXXH3, DigestSHA256, DigestNone)
	oneOf("walls", cmp.Or(s.Walls, WallsOn), WallsOn, WallsOff)
	oneOf("cookies", cmp.Or(s.Cookies, CookiesOff), CookiesOff, CookiesSite)
	oneOf("refused-links", cmp.Or(s.RefusedLinks, RefusedSkip), RefusedSkip, RefusedFollow)
	for _, p := range s.Purpose {
		oneOf("purpose", p, Purposes...)
	}
	if err := s.ValidateDuplicates(); err != nil {
		faults = append(faults, err)
	}
	if s.Delay < 0 {
		bad("delay is %v, must not be negative", s.Delay)
	}
	if s.MaxCrawlDelay < 0 || s.MaxCrawlDelay > maxCrawlDelay {
		bad("max-crawl-delay is %v, must be 0 to %v; 0 is %v", s.MaxCrawlDelay, maxCrawlDelay, DefaultMaxCrawlDelay)
	}
	if !(s.Jitter >= 0 && s.Jitter <= maxJitter) {
		bad("jitter is %v, must be 0 to %d", s.Jitter, maxJitter)
	}
	if s.PerSite < 1 {
		bad("per-site is %d, must be at least 1", s.PerSite)
	}
	if s.VisitURLs < 1 || s.VisitURLs > maxVisitURLs {
		bad("visit-urls is %d, must be 1 to %d", s.VisitURLs, maxVisitURLs)
	}
	if s.MaxURL != 0 && (s.MaxURL < LeastMaxURL || s.MaxURL > MostMaxURL) {
		bad("max-url is %d, must be %d to %d bytes", s.MaxURL, LeastMaxURL, MostMaxURL)
	}
	if s.MaxDepth < 0 || s.MaxPages < 0 || s.MaxPerSite < 0 {
		bad("max-depth, max-pages and max-per-site must not be negative; 0 is unlimited")
	}
	for name, list := range map[string][]string{"allow": s.Allow, "deny": s.Deny} {
		for _, re := range list {
			if _, err := regexp.Compile(re); err != nil {
				bad("%s: %w", name, err)
			}
		}
	}
	for _, p := range s.Priority {
		if _, _, err := ParsePriority(p); err != nil {
			faults = append(faults, err)
		}
	}
	for _, p := range s.Recrawl {
		if _, _, err := ParseRecrawl(p); err != nil {
			faults = append(faults, err)
		}
	}
	if s.RecrawlShare < 0 || s.RecrawlShare > 100 {
		bad("recrawl-share is %d, must be 0 to 100 per cent", s.RecrawlShare)
	}
	if strings.ContainsFunc(s.UserAgent, isControl) {
		bad("user-agent is %q, must be one line without control characters", s.UserAgent)
	}
	if strings.ContainsFunc(s.RobotsAgent, notInToken) {
		bad("robots-agent is %q, must be a product token of letters, digits, - and _, such as examplebot", s.RobotsAgent)
	}
	for _, ext := range s.SkipExt {
		if name := strings.TrimPrefix(ext, "."); name == "" || strings.ContainsFunc(name, isControl) || strings.ContainsAny(name, " ./?#") {
			bad("skip-ext is %q, must be the end of a path such as jpg", ext)
		}
	}
	if tag := strings.IndexByte(s.FeedKey, '{'); strings.Contains(s.FeedKey, "}") && (tag < 0 || strings.IndexByte(s.FeedKey[tag:], '}') < 2) {
		bad("feed-key is %q: braces must enclose a hash tag", s.FeedKey)
	}
	faults = append(faults, s.validateWatermarks())
	for i := range s.Sites {
		if err := s.Sites[i].Validate(); err != nil {
			faults = append(faults, fmt.Errorf("frontier: settings: %w", err))
		}
	}
	return errors.Join(faults...)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// notInToken tells what no product token holds. RFC 9309 has no digits in one,
// names of crawlers do.
func notInToken(r rune) bool {
	return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// maxCrawlDelay is the longest delay that anybody reads out of a robots.txt.
const maxCrawlDelay = 24 * time.Hour

// maxJitter bounds Jitter: delays at most twice as long at random.
const maxJitter = 1

// maxVisitURLs keeps the visit script under a millisecond and its arguments
// under Lua's unpack limit.
const maxVisitURLs = 1000

// ParsePriority reads REGEX=0..3.
func ParsePriority(rule string) (*regexp.Regexp, uint8, error) {
	at := strings.LastIndexByte(rule, '=')
	if at < 0 {
		return nil, 0, fmt.Errorf("frontier: settings: priority %q must be REGEX=0..3", rule)
	}
	class, err := strconv.ParseUint(rule[at+1:], 10, 8)
	if err != nil || class > 3 {
		return nil, 0, fmt.Errorf("frontier: settings: priority %q must end in =0 to =3", rule)
	}
	re, err := regexp.Compile(rule[:at])
	if err != nil {
		return nil, 0, fmt.Errorf("frontier: settings: priority: %w", err)
	}
	return re, uint8(class), nil
}

// Classifier compiles rules of priority; the first that matches a URL gives its
// class.
func Classifier(rules []string) (func(url []byte) (class uint8, ok bool), error) {
	type rule struct {
		re    *regexp.Regexp
		class uint8
	}
	var list []rule
	for _, text := range rules {
		re, class, err := ParsePriority(text)
		if err != nil {
			return nil, err
		}
		list = append(list, rule{re, class})
	}
	return func(url []byte) (uint8, bool) {
		for _, r := range list {
			if r.re.Match(url) {
				return r.class, true
			}
		}
		return 0, false
	}, nil
}

// Masked is a copy for people to see: what may be secret of site rules is
// replaced by xxxxx.
func (s *Settings) Masked() *Settings {
	c := *s
	c.Sites = slices.Clone(s.Sites)
	for i := range c.Sites {
		r := &c.Sites[i]
		if r.Auth != "" {
			r.Auth = "xxxxx"
		}
		if r.Headers != nil {
			headers := make(map[string]string, len(r.Headers))
			for name := range r.Headers {
				headers[name] = "xxxxx"
			}
			r.Headers = headers
		}
	}
	return &c
}

// span is a duration that JSON shows as text.
type span time.Duration

func (d span) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *span) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = span(v)
	return err
}

type plainSettings Settings
type plainRule SiteRule

// MarshalJSON writes delays as texts.
func (s Settings) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Delay         span `json:"delay"`
		MaxCrawlDelay span `json:"max_crawl_delay"`
		plainSettings
	}{span(s.Delay), span(s.MaxCrawlDelay), plainSettings(s)})
}

// UnmarshalJSON reads what MarshalJSON wrote; absent fields stay as they are, but
// for the digest: a crawl that names none was made when there was but one.
func (s *Settings) UnmarshalJSON(b []byte) error {
	s.Digest = ""
	v := struct {
		Delay         span `json:"delay"`
		MaxCrawlDelay span `json:"max_crawl_delay"`
		*plainSettings
	}{span(s.Delay), span(s.MaxCrawlDelay), (*plainSettings)(s)}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	s.Delay, s.MaxCrawlDelay = time.Duration(v.Delay), time.Duration(v.MaxCrawlDelay)
	return nil
}

// MarshalJSON writes the delay as text.
func (r SiteRule) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainRule
		Delay *span `json:"delay,omitempty"`
	}{plainRule(r), (*span)(r.Delay)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *SiteRule) UnmarshalJSON(b []byte) error {
	v := struct {
		*plainRule
		Delay *span `json:"delay"`
	}{plainRule: (*plainRule)(r)}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	r.Delay = (*time.Duration)(v.Delay)
	return nil
}

// SiteRule overrides settings for the sites that match; the first match wins.
type SiteRule struct {
	Match     string            `json:"match"`               // host, or *.domain
	Delay     *time.Duration    `json:"delay,omitempty"`     // nil = the crawl's
	PerSite   int               `json:"per_site,omitempty"`  // 0 = the crawl's
	MaxPages  *int64            `json:"max_pages,omitempty"` // nil = the crawl's, 0 = any
	Headers   map[string]string `json:"headers,omitempty"`
	Auth      string            `json:"auth,omitempty"`       // user:password, never logged
	TLSLegacy bool              `json:"tls_legacy,omitempty"` // key exchanges that only old servers need are offered
	UserAgent string            `json:"user_agent,omitempty"` // "" = the crawl's; robots.txt is read for the crawl's RobotsAgent all the same
	Bind      []string          `json:"bind,omitempty"`       // addresses and networks that requests leave from; none = those of each fetcher
}

// Bound is Bind as one text, with commas.
func (r *SiteRule) Bound() string { return strings.Join(r.Bind, ",") }

// HasAgent reports whether requests say another user agent than the crawl's.
func (r *SiteRule) HasAgent() bool {
	for name := range r.Headers {
		if strings.EqualFold(name, "User-Agent") {
			return true
		}
	}
	return r.UserAgent != ""
}

// SetSite changes what the settings have for one site alone, beginning with the rule
// that is for it by now. The list of rules becomes another.
func (s *Settings) SetSite(site string, change func(*SiteRule)) {
	rule := SiteRule{}
	if r := s.Rule(site); r != nil {
		rule = *r
	}
	rule.Match = site
	change(&rule)
	rest := slices.DeleteFunc(slices.Clone(s.Sites), func(r SiteRule) bool { return r.Match == site })
	s.Sites = rest
	if s.Rule(site) != nil || !rule.isEmpty() {
		s.Sites = append([]SiteRule{rule}, rest...)
	}
}

// isEmpty reports whether the rule changes nothing.
func (r *SiteRule) isEmpty() bool {
	return r.Delay == nil && r.PerSite == 0 && r.MaxPages == nil && len(r.Headers) == 0 && r.Auth == "" && !r.TLSLegacy && r.UserAgent == "" && len(r.Bind) == 0
}

// Rule is the first rule for a site, nil when there is none.
func (s *Settings) Rule(site string) *SiteRule {
	for i := range s.Sites {
		if r := &s.Sites[i]; r.matches(site) {
			return r
		}
	}
	return nil
}

// DelayOf is the delay of a site by the settings alone: its rule's, or the
// crawl's.
func (s *Settings) DelayOf(site string) time.Duration {
	if r := s.Rule(site); r != nil && r.Delay != nil {
		return *r.Delay
	}
	return s.Delay
}

// CapOf is how many URLs the settings let a site have, 0 = any: its rule's, or
// the crawl's.
func (s *Settings) CapOf(site string) int64 {
	if r := s.Rule(site); r != nil && r.MaxPages != nil {
		return *r.MaxPages
	}
	return s.MaxPerSite
}

// Caps reports whether any site is capped by the settings.
func (s *Settings) Caps() bool {
	return s.MaxPerSite > 0 || slices.ContainsFunc(s.Sites, func(r SiteRule) bool { return r.MaxPages != nil && *r.MaxPages > 0 })
}

// matches reports whether the rule, for a name or *.domain, is for a site.
func (r *SiteRule) matches(site string) bool {
	domain, ok := strings.CutPrefix(r.Match, "*.")
	if !ok {
		return r.Match == site
	}
	return site == domain || strings.HasSuffix(site, "."+domain)
}

// Validate says what is wrong with the rule.
func (r *SiteRule) Validate() error {
	host := strings.TrimPrefix(r.Match, "*.")
	switch {
	case host == "" || strings.ContainsAny(host, "*/: \t") && !strings.HasPrefix(host, "["):
		return fmt.Errorf("sites: match is %q, must be a host or *.domain", r.Match)
	case r.Delay != nil && *r.Delay < 0 || r.PerSite < 0 || r.MaxPages != nil && *r.MaxPages < 0:
		return fmt.Errorf("sites: %s: values must not be negative", r.Match)
	case r.Auth != "" && !strings.Contains(r.Auth, ":"):
		return fmt.Errorf("sites: %s: auth must be user:password", r.Match)
	case strings.ContainsFunc(r.UserAgent, isControl):
		return fmt.Errorf("sites: %s: user_agent is %q, must be one line without control characters", r.Match, r.UserAgent)
	}
	for _, entry := range r.Bind {
		_, err := netip.ParseAddr(entry)
		if _, no := netip.ParsePrefix(entry); err != nil && no != nil {
			return fmt.Errorf("sites: %s: bind has %q, must be an IP address or a network such as 2001:db8::/64", r.Match, entry)
		}
	}
	for name, value := range r.Headers {
		if err := headers.Check(name, value); err != nil {
			return fmt.Errorf("sites: %s: %w", r.Match, err)
		}
		if r.UserAgent != "" && strings.EqualFold(name, "User-Agent") {
			return fmt.Errorf("sites: %s: user_agent and a header User-Agent are two names; leave one out", r.Match)
		}
	}
	return nil
}
