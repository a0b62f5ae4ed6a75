package crawl

import (
	"bytes"
	"net/netip"
	"strings"
	"time"

	"seine/extract"
	"seine/extract/fields"
	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/canon"
)

// urlReader parses URLs in memory of its own.
type urlReader struct {
	parser *canon.Parser
	sites  *canon.Sites
	url    canon.URL // as parsed by read
	target canon.URL // that url's page leads to
	base   canon.URL // that sitemaps are resolved with
	raw    []byte
}

func (c *Crawler) newURLReader() *urlReader {
	return &urlReader{parser: canon.NewParser(c.cfg.Canon), sites: canon.NewFewSites(c.cfg.Frontier.Layout().LimitBy)}
}

// read parses a stored URL into u.url.
func (u *urlReader) read(text string) error {
	u.raw = append(u.raw[:0], text...)
	return u.parser.Parse(&u.url, u.raw)
}

// worker makes one request at a time and owns all memory that a request needs,
// but for the scanner, which it has only while there is something to scan.
// It is the fetcher's handler: the body passes through it into the scanner.
type worker struct {
	crawler *Crawler
	*urlReader
	onLink func(*extract.Found) // w.found, made once
	onSent func()               // w.sent, likewise

	robotsBody []byte
	req        fetch.Request
	resp       fetch.Response
	rec        sink.Record
	wire       fetch.Wire // where Config.Exchanges asks for it
	exchange   sink.Exchange

	// Of the page being fetched:
	policy     *policy
	visit      *visit
	lent       frontier.Item // of the visit, see starts
	item       *frontier.Item
	page       *page
	name       string // of the page, see shown
	src        source
	scan       bool          // the body goes through the scanner
	listing    bool          // as a sitemap or feed
	scanner    *extract.Page // one of policy's, while a body comes and until its page is sent on
	digest     *digest       // one of the crawler's, likewise; nil where no body came
	brought    int           // candidates of the last page that had some
	body       []byte
	rules      fields.Rules // that make its fields
	parsed     *fields.Page // the tree, once rules wanted it
	linksOut   []string     // links, where the record wants them
	links      []foundLink  // where there is a Handler, and their text
	linkText   []byte
	given      string // of its request, where the crawl keeps cookies: the Cookie header of the site's rule
	asked      string // and the whole
	refused    [refusals]int
	known      int
	met        uint64 // links of it that found was called with
	unfollowed uint64 // which of them the crawl does not follow, 0 for none

	entered bool // there is room for what its next request brings
	passed  bool // the visit has another starter since the request went out
}

// maxKeptBody is the largest body buffer that a worker keeps for the next page.
const maxKeptBody = 1 << 20

func (c *Crawler) newWorker() *worker {
	w := &worker{crawler: c, urlReader: c.newURLReader()}
	w.onLink, w.onSent = w.found, w.sent
	return w
}

// leastMaxTag is how many bytes of a tag are read at least. A tag has room for a URL
// as long as the crawl takes, entities and other attributes.
const leastMaxTag = 64 << 10

// newScanner returns the scanner of pages under the rules of pol.
func (c *Crawler) newScanner(pol *policy) *extract.Page {
	parsing := c.cfg.Canon
	parsing.MaxLength = pol.settings.LongestURL()
	return extract.NewPage(extract.PageConfig{
		Config:         extract.Config{Robots: c.robotsAgent(), Text: c.cfg.Fields.Has(sink.FieldText), SimHash: c.cfg.Fields.Has(sink.FieldSimHash), MaxText: c.cfg.MaxText, MaxTag: max(leastMaxTag, 2*parsing.MaxLength)},
		Canon:          parsing,
		LimitBy:        c.cfg.Frontier.Layout().LimitBy,
		Follow:         pol.follow,
		IgnoreNofollow: pol.settings.IgnoreNofollow,
		MaxLinks:       c.cfg.MaxLinks,
	})
}

// visitURL fetches one URL of a visit, which w.url is, and sends its page on.
// addr, if valid, is the address to be tried first; sent, if not nil, is called
// each time the request has gone out.
func (w *worker) visitURL(v *visit, item *frontier.Item, addr netip.Addr, sent func()) {
	w.begin(v, item)
	w.req = v.request(item.URL)
	w.req.Addr, w.req.Sent = addr, sent
	w.addCookies()
	w.askChanged()
	if item.Sitemap {
		w.req.MaxBody = maxSitemap
	}
	if w.crawler.cfg.Exchanges {
		w.req.Wire = &w.wire
	}
	began := time.Now()
	err := w.crawler.cfg.Fetcher.Do(v.ctx, &w.req, &w.resp, w)
	if w.scan {
		w.scanner.Close() //nolint:errcheck // a broken end is in the facts
	}
	w.conclude(w.replyOf(began, err, sent != nil), err)
	if w.digest != nil {
		w.crawler.digests.Put(w.digest)
		w.digest = nil
	}
	if w.scan {
		w.policy.scanners.Put(w.scanner)
		w.scanner = nil
	}
}

// replyOf is when the request just made began, and how soon it was answered.
func (w *worker) replyOf(began time.Time, err error, parallel bool) reply {
	r := reply{began: began}
	if !w.resp.Start.IsZero() {
		r.began, r.sent = w.resp.Start, parallel
	}
	if err == nil {
		r.latency = w.resp.FirstByte
	}
	return r
}

// begin readies the worker for a page.
func (w *worker) begin(v *visit, item *frontier.Item) {
	w.policy = w.crawler.policy.Load()
	w.visit, w.item, w.name = v, item, ""
	w.page = &page{visit: v, outcome: frontier.Outcome{Index: item.Index}, counted: true, likely: w.brought}
	w.entered = false // what the page brings is counted from here on
	w.src = source{site: v.lent.Site, host: w.url.Host()}
	if item.SitemapOf != "" {
		w.src = source{host: []byte(item.SitemapOf)}
		w.src.site = w.sites.Of(w.src.host).Name
	}
	w.rec = sink.Record{}
	w.resp.Status = 0
	if cap(w.body) > maxKeptBody {
		w.body = nil
	}
	w.body = w.body[:0]
	if cap(w.wire.Response) > maxKeptBody {
		w.wire.Response = nil
	}
	w.linksOut, w.rules, w.parsed = nil, nil, nil
	if cap(w.linkText) > maxKeptBody {
		w.links, w.linkText = nil, nil
	}
	w.links, w.linkText = w.links[:0], w.linkText[:0]
	w.scan = false
	w.known = 0 // of a page that is to be fetched again, whose links count then
	w.met, w.unfollowed = 0, 0
	clear(w.refused[:])
}

// Begin implements fetch.Handler.
func (w *worker) Begin(r *fetch.Response) bool {
	switch {
	case r.Status >= 400: // error pages are read for their size and digest, without links
		return true
	case r.Status >= 300 && r.Location != "" || isUnmodified(r):
		return false
	} // a 3xx that leads nowhere is the page that browsers show
	if !w.item.Sitemap && !w.crawler.cfg.Accepts(r) {
		return false
	}
	w.scan = true
	if w.crawler.cfg.Rules != nil {
		w.rules = w.crawler.cfg.Rules.For(w.visit.lent.Site, string(w.url.Host()))
	}
	if w.scanner, _ = w.policy.scanners.Get().(*extract.Page); w.scanner == nil {
		w.scanner = w.crawler.newScanner(w.policy)
	}
	w.listing = w.item.Sitemap || w.policy.settings.Sitemaps && isSitemap(&w.url, r.Type)
	w.scanner.Reset(extract.Doc{
		Base:        &w.url,
		ContentType: r.Type,
		Link:        r.Header.Values("Link"),
		Refresh:     r.Header.Values("Refresh"),
		Robots:      r.Header.Values("X-Robots-Tag"),
		Sitemap:     w.listing,
		SitemapOf:   w.src.host,
	}, w.onLink)
	return true
}

// maxSitemap is the size of the largest sitemap that is read whole, decoded
// (sitemaps.org), whatever the limit of pages is.
const maxSitemap = 50 << 20

// isSitemap reports whether a document that nobody named as one is read as a
// sitemap: by its type, or by
// its name where the type says little.
func isSitemap(u *canon.URL, contentType string) bool {
	return strings.Contains(contentType, "xml") && !strings.Contains(contentType, "xhtml") ||
		bytes.Contains(u.Path(), []byte("sitemap")) && !strings.Contains(contentType, "html")
}

// Write implements fetch.Handler.
func (w *worker) Write(p []byte) (int, error) {
	if w.digest == nil {
		if w.digest, _ = w.crawler.digests.Get().(*digest); w.digest == nil {
			w.digest = new(digest)
		}
		w.digest.begin(w.policy.settings.DigestKind())
	}
	w.digest.write(p)
	if w.rules != nil || w.crawler.cfg.Handler != nil || w.crawler.cfg.Fields.Has(sink.FieldBody) {
		w.body = append(w.body, p...)
	}
	if w.scan {
		w.scanner.Write(p) //nolint:errcheck // it never fails
		w.page.holdText(len(w.scanner.Facts().Text))
	}
	return len(p), nil
}

// found receives each link of the page once.
func (w *worker) found(ln *extract.Found) {
	if w.crawler.cfg.Fields.Has(sink.FieldLinksOut) {
		w.linksOut = append(w.linksOut, string(ln.URL.AppendRedacted(nil)))
	}
	if w.crawler.cfg.Handler != nil {
		w.linkText = ln.URL.AppendRedacted(w.linkText)
		w.links = append(w.links, foundLink{end: len(w.linkText), kind: ln.Kind, follow: ln.Follow})
	}
	w.met++
	if ln.Foreign {
		w.refused[refusedForeign]++
		return
	}
	if !ln.Follow {
		w.refuseLink(refusedNofollow)
		return
	}
	if ln.Kind == extract.Index {
		w.foundSitemap(ln)
		return
	}
	if !w.policy.inScope(w.src, ln.URL, ln.Site) {
		w.refuseLink(refusedScope)
		return
	}
	if r := w.policy.filter(ln.URL, w.item.Depth+1); r != accepted {
		w.refuseLink(r)
		return
	}
	within := w.within(ln)
	if within == 0 && w.crawler.loopOf(ln.Fingerprint).knows(ln.Fingerprint) {
		w.known++
		return
	}
	p, class := w.page, w.policy.class(ln.URL)
	p.linkDepth, p.referrer = w.item.Depth+1, w.referrer()
	if within == 0 {
		p.addLink(ln.Fingerprint, ln.URL.Fetch(), ln.Site, class)
		return
	}
	p.addWithin(frontier.Candidate{
		URL: string(ln.URL.Fetch()), Site: ln.Site, Fingerprint: ln.Fingerprint,
		Priority: class, Depth: p.linkDepth, Referrer: p.referrer,
	}, within)
}

// refuseLink counts the link at hand, which is not followed, and adds it to those
// of the page.
func (w *worker) refuseLink(r refusal) {
	w.refused[r]++
	w.unfollowed = w.unfollowed*unfollowedPrime + w.met
}

// unfollowedPrime is that of FNV-1a for 64 bits.
const unfollowedPrime = 1099511628211

// shown is the URL of the page at hand as records have it, made once.
func (w *worker) shown() string {
	if w.name == "" {
		var room [256]byte
		w.name = string(w.url.AppendRedacted(room[:0]))
	}
	return w.name
}

// referrer is what the links of the page at hand keep of it: its URL where the
// crawl wants that.
func (w *worker) referrer() string {
	if !w.policy.settings.Referrer {
		return ""
	}
	return w.shown()
}

// foundSitemap takes a sitemap that an index names. Of the crawl's rules only
// those that deny bind it; indexes of indexes are as many as redirects may be.
func (w *worker) foundSitemap(ln *extract.Found) {
	if int(w.item.Redirects) >= w.crawler.cfg.MaxRedirects {
		w.refused[refusedDepth]++
		return
	}
	if r := w.policy.bars(ln.URL); r != accepted {
		w.refused[r]++
		return
	}
	c := sitemapCandidate(ln.URL, ln.Site, ln.Fingerprint, w.src.host)
	c.Depth, c.Redirects, c.Referrer = w.item.Depth, w.item.Redirects+1, w.referrer()
	w.page.addWithin(c, w.within(ln))
}

// sitemapCandidate is a sitemap that host named.
func sitemapCandidate(u *canon.URL, site string, fp canon.Fingerprint, host []byte) frontier.Candidate {
	c := frontier.Candidate{
		URL: string(u.Fetch()), Site: site, Fingerprint: fp,
		Sitemap: true, Again: frontier.SitemapRequest(string(host)),
	}
	if !bytes.Equal(u.Host(), host) {
		c.SitemapOf = string(host)
	}
	return c
}
