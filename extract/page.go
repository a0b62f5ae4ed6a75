package extract

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"

	"golang.org/x/text/encoding"

	"seine/extract/charset"
	"seine/frontier/canon"
)

// Found is one URL that a page links to. Its memory is valid during the call
// that hands it over.
type Found struct {
	Link
	URL         *canon.URL
	Site        string            // of URL
	Fingerprint canon.Fingerprint // of URL
	Follow      bool              // its kind is one to follow and nothing says nofollow
	Foreign     bool              // listed by a sitemap that another site submitted: not to be followed
}

// PageConfig of a Page; zero fields are the documented defaults.
type PageConfig struct {
	Config
	Canon          canon.Config
	LimitBy        canon.LimitBy // site rule, default canon.ByDomain
	Follow         Kinds         // kinds that are followed, default Navigation; of a sitemap its locations always are
	IgnoreNofollow bool          // follow links in spite of nofollow, on links and on pages
	MaxLinks       int           // distinct URLs passed on per page, sitemaps and feeds aside, default 20000
	Every          bool          // for tools: hand on repeated links too, and with a nil URL those that are no URL
}

// Validate says everything that is wrong with c.
func (c PageConfig) Validate() error {
	errs := []error{c.Config.Validate(), c.Canon.Validate()}
	if c.LimitBy != "" {
		errs = append(errs, c.LimitBy.Validate())
	}
	if c.Follow&^All != 0 {
		errs = append(errs, fmt.Errorf("extract: Follow %#x names links that do not exist; use the Kind constants", uint64(c.Follow)))
	}
	if c.MaxLinks < 0 {
		errs = append(errs, fmt.Errorf("extract: MaxLinks is %d; set it to 0 for the default or to 1 at least", c.MaxLinks))
	}
	return errors.Join(errs...)
}

// Counts says what became of a page's links.
type Counts struct {
	Links    int // met, of the kinds wanted
	Found    int // passed on
	Repeated int // a URL that was passed on before
	Over     int // beyond MaxLinks
	Invalid  int // no URL
	Other    int // not http or https
	Foreign  int // a sitemap's locations on sites that did not submit it: found, not followed
	TooLong  int // longer than PageConfig.Canon allows
	Guarded  int // refused by another guard of canon: too deep, repeats, parameters
}

// Page takes a document in chunks and hands on the URLs that it links to: each
// once, resolved and canonical. One per goroutine; Reset for each document.
//
// Browsers resolve every link of a document with its first base element,
// wherever it stands. The links of a page therefore wait until the base is there
// or the document ends, 64 KiB of them. Beyond that, those that wait are resolved
// without it; where a base comes after all, Facts.LateBase says for how many it
// was too late. Links of headers, sitemaps, feeds and style sheets do not wait.
type Page struct {
	cfg    PageConfig
	scan   *Scanner
	parse  *canon.Parser
	sites  *canon.Sites
	emit   func(*Found)
	onLink func(*Link) // take, made once

	base    canon.URL  // of a base element, or an xml:base
	baseURL *canon.URL // what links are resolved with
	url     canon.URL
	found   Found
	seen    set   // keys passed on
	raws    set   // texts resolved before, with the same base and the same follow
	queue   queue // links that wait for the base
	early   int   // links that waited no longer
	counts  Counts
	follow  Kinds
	sitemap bool
	site    string // whose pages a sitemap lists
	home    string // of a sitemap: what an index leads to may be there too
}

// NewPage returns a page; cfg must be valid.
func NewPage(cfg PageConfig) *Page {
	if cfg.Follow == 0 {
		cfg.Follow = Navigation
	}
	if cfg.Kinds == 0 {
		cfg.Kinds = cfg.Follow | Syndication
	}
	if cfg.LimitBy == "" {
		cfg.LimitBy = canon.ByDomain
	}
	cfg.MaxLinks = cmp.Or(cfg.MaxLinks, 20_000)
	p := &Page{cfg: cfg, scan: NewScanner(cfg.Config), parse: canon.NewParser(cfg.Canon), sites: canon.NewSites(cfg.LimitBy)}
	p.onLink = p.resolveLink
	if !cfg.Every {
		p.scan.col.met = p.repeats
	}
	return p
}

// Reset makes the page ready for another document, whose URL is doc.Base.
// emit gets URLs while the document is written and closed.
func (p *Page) Reset(doc Doc, emit func(*Found)) {
	p.emit, p.baseURL, p.counts, p.early = emit, doc.Base, Counts{}, 0
	p.follow = p.cfg.Follow
	p.sitemap = doc.Sitemap
	if doc.Sitemap {
		p.follow |= Of(Loc, Index, Entry)
		if doc.Base != nil {
			p.home = p.sites.Of(doc.Base.Host()).Name
			p.site = p.home
		}
		if doc.SitemapOf != nil {
			p.site = p.sites.Of(doc.SitemapOf).Name
		}
	}
	p.seen.clear()
	p.raws.clear()
	p.queue.clear()
	p.scan.Reset(doc, p.onLink)
}

// Write takes the next bytes of the document; it never fails.
func (p *Page) Write(b []byte) (int, error) { return p.scan.Write(b) }

// Close ends the document.
func (p *Page) Close() error {
	err := p.scan.Close()
	p.release()
	return err
}

// Facts is what the page states about itself, complete after Close.
func (p *Page) Facts() *Facts { return p.scan.Facts() }

// Counts says what became of the page's links so far.
func (p *Page) Counts() Counts { return p.counts }

// take receives the scanner's links.
func (p *Page) resolveLink(l *Link) {
	if l.Kind == Base {
		p.setBase(l.Raw)
		return
	}
	p.counts.Links++
	if p.full() {
		p.counts.Over++
		return
	}
	if p.raws.n > maxRaws {
		p.raws.clear()
	}
	raw := l.Raw
	if i := bytes.IndexByte(raw, '#'); i >= 0 { // most repeats differ in the fragment only
		raw = raw[:i]
	}
	key := maphash.Bytes(textSeed, raw)
	if l.Base != nil {
		key ^= bits.RotateLeft64(maphash.Bytes(textSeed, l.Base), 1)
	}
	if !p.raws.addHash(key, p.follows(l)) && !p.cfg.Every {
		p.counts.Repeated++
		return
	}
	if p.scan.read != readHTML && p.scan.read != readMarkdown || p.scan.col.based {
		p.resolve(l)
		return
	}
	if !p.queue.push(l) {
		p.early += len(p.queue.links)
		p.release()
		if !p.queue.push(l) { // longer than all that may wait
			p.early++
			p.resolve(l)
		}
	}
}

// repeats reports whether an anchor that says nothing of whether to follow it has a
// text, up to its fragment, that was taken before. If so it is counted, and done with.
func (p *Page) repeats(raw []byte) bool {
	if p.full() || !p.raws.hasHash(maphash.Bytes(textSeed, raw), p.follow.Has(Anchor)) {
		return false
	}
	p.counts.Links++
	p.counts.Repeated++
	return true
}

// full reports whether no more links are to be passed on. A sitemap has a bound of
// its own, MaxLocs.
func (p *Page) full() bool {
	return p.counts.Found >= p.cfg.MaxLinks && (!p.sitemap || p.scan.col.facts.Markup || p.scan.col.listed)
}

// follows reports whether a link is one to follow, as far as it says itself.
func (p *Page) follows(l *Link) bool {
	return p.follow.Has(l.Kind) && (p.cfg.IgnoreNofollow || !l.NoFollow)
}

// setBase resolves the first base element; one that is no address of the web
// leaves the document's own. HTML, 4.2.3 "set the frozen base URL", has it so of
// data, javascript and what is no URL; behind other schemes there is nothing to
// crawl, and pages that were saved to a disk and published have them.
func (p *Page) setBase(raw []byte) {
	if p.parse.Resolve(&p.base, p.baseURL, raw, nil) == nil {
		p.baseURL = &p.base
		if p.early > 0 {
			p.scan.col.facts.LateBase = p.early
			p.raws.clear()
		}
	}
	p.release()
}

// release resolves what waited.
func (p *Page) release() {
	p.queue.each(p.resolve)
	p.queue.clear()
}

// resolve hands a link on as a URL, unless it was before.
func (p *Page) resolve(l *Link) {
	if p.full() {
		p.counts.Over++
		return
	}
	follow := p.follows(l) && (p.cfg.IgnoreNofollow || !p.scan.col.facts.Said.NoFollow)
	base := p.baseURL
	if l.Base != nil && p.parse.Parse(&p.base, l.Base) == nil {
		base = &p.base
	}
	if err := p.parse.Resolve(&p.url, base, l.Raw, p.queryEncoding()); err != nil {
		p.refused(err)
		if p.cfg.Every {
			p.found = Found{Link: *l}
			p.emit(&p.found)
		}
		return
	}
	site, fp := p.sites.Fingerprint(&p.url)
	if !p.seen.addHash(fp.Key^fp.Site, follow) && !p.cfg.Every {
		p.counts.Repeated++
		return
	}
	p.counts.Found++
	foreign := p.sitemap && follow && (l.Kind == Loc || l.Kind == Index) && site.Name != p.site && (l.Kind != Index || site.Name != p.home)
	if foreign {
		p.counts.Foreign++
	}
	p.found = Found{Link: *l, URL: &p.url, Site: site.Name, Fingerprint: fp, Follow: follow && !foreign, Foreign: foreign}
	p.emit(&p.found)
}

// textSeed is of this process, so that nobody can write links that hide others.
var textSeed = maphash.MakeSeed()

// maxRaws bounds the texts remembered, of which a page may hold any number that
// are no URL. Forgetting them costs time only.
const maxRaws = 32 << 10

// queryEncoding is the encoding that browsers escape queries in, nil for UTF-8.
// A page that declares none is read as UTF-8 where that is valid; once it was,
// its queries are escaped as the bytes that they were written in.
func (p *Page) queryEncoding() encoding.Encoding {
	if p.scan.col.facts.Charset == "iso-2022-jp" { // decoded before the scanner
		enc, _ := charset.Lookup("iso-2022-jp")
		return enc
	}
	return p.scan.col.dec.Encoding()
}

func (p *Page) refused(err error) {
	switch {
	case errors.Is(err, canon.ErrNotCrawlable):
		p.counts.Other++
	case errors.Is(err, canon.ErrInvalid):
		p.counts.Invalid++
	case errors.Is(err, canon.ErrTooLong):
		p.counts.TooLong++
	default:
		p.counts.Guarded++
	}
}
