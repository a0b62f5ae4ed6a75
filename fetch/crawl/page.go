package crawl

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/canon"
)

// page is a fetched URL on its way to being settled: first its record reaches
// the sink, then its links are admitted, then its outcome is settled. A crash
// before the last step brings the URL back, so sinks see a record at least once.
type page struct {
	visit      *visit
	outcome    frontier.Outcome
	candidates []candidate
	size       int64        // what the links hold
	bytes      int64        // of size: what flow control knows of
	pending    atomic.Int32 // links not answered yet
	returned   atomic.Bool  // a link found no room and will not be asked for again
	counted    bool         // holds a page of the budget
}

const (
	// linkOverhead is what a waiting link costs beside its text.
	linkOverhead = 160
	// chargeStep is how far a page may grow before flow control is told.
	chargeStep = 64 << 10
)

// add takes a candidate that the page's links brought up.
func (p *page) add(c frontier.Candidate) {
	p.candidates = append(p.candidates, candidate{Candidate: c, from: p})
	p.size += int64(len(c.URL)+len(c.Meta)) + linkOverhead
}

// charge tells flow control what the page holds, once it has grown by step.
func (p *page) charge(c *Crawler, step int64) {
	if more := p.size - p.bytes; more > 0 && more >= step {
		c.flow.add(more)
		p.bytes = p.size
	}
}

// dropLinks lets go of the links of a page that failed.
func (p *page) dropLinks(c *Crawler) {
	c.flow.add(-p.bytes)
	p.candidates, p.size, p.bytes = nil, 0, 0
}

// recorded is called when the page's record is in the sink, or cannot get there: a
// sink that loses records ends the crawler in order, and the URL goes back.
func (p *page) recorded(err error) {
	c := p.visit.loop.crawler
	c.recording.Add(-1)
	if err != nil {
		c.endWith(fmt.Errorf("crawl: the sink lost a record, so its page was not settled: %w", err))
		p.returned.Store(true)
		c.admitting.Add(1)
		p.settle()
		return
	}
	c.admitting.Add(1)
	n := len(p.candidates)
	if n == 0 {
		p.settle()
		return
	}
	p.pending.Store(int32(n))
	candidates := p.candidates
	p.candidates = nil
	for len(candidates) > 0 { // hand over runs of links of one shard
		l := c.loopOf(candidates[0].Fingerprint)
		end := 1
		for end < len(candidates) && c.loopOf(candidates[end].Fingerprint) == l {
			end++
		}
		l.admitter.add(candidates[:end])
		candidates = candidates[end:]
	}
}

// answered counts one answered link. Full says that it will not be asked for
// again.
func (p *page) answered(v frontier.Verdict) {
	if v == frontier.Full && !p.returned.Swap(true) {
		p.visit.loop.crawler.count.returned.Add(1)
	}
	if p.pending.Add(-1) == 0 {
		p.settle()
	}
}

// settle settles the page: one whose record or links were refused goes back
// to be fetched again.
func (p *page) settle() {
	c := p.visit.loop.crawler
	c.admitting.Add(-1)
	c.flow.add(-p.bytes)
	if p.returned.Load() {
		if p.counted {
			c.giveBack()
		}
		p.outcome = frontier.Outcome{Index: p.outcome.Index, Kind: frontier.Requeue}
	}
	p.visit.settle(p.outcome)
}

// redirect turns Location into a candidate of the first class that keeps depth,
// meta and seed standing.
func (w *worker) redirect() {
	if err := w.parser.Resolve(&w.target, &w.url, []byte(w.resp.Location), nil); err != nil {
		w.rec.Location = redacted(clip(w.resp.Location, maxErrorText))
		w.refused[refusedInvalid]++
		return
	}
	w.rec.Location = string(w.target.AppendRedacted(nil))
	again := ""
	if bytes.Equal(w.target.Key(), w.url.Key()) {
		if bytes.Equal(w.target.Fetch(), w.url.Fetch()) {
			w.dead(causeRedirectLoop, "redirects to itself")
			return
		}
		again = "redirect" // the same URL to the frontier, another spelling to the server
	}
	if int(w.item.Redirects) >= w.crawler.cfg.MaxRedirects {
		w.dead(causeRedirectLoop, "too many redirects in a row")
		return
	}
	site, fp := w.sites.Fingerprint(&w.target)
	if r := w.refuses(&w.target, site.Name); r != accepted {
		w.refused[r]++
		return
	}
	if again == "" && w.crawler.loopOf(fp).known.has(fp) {
		w.known++
		w.rec.Seen = true
		return
	}
	w.page.add(frontier.Candidate{
		URL:         string(w.target.Fetch()),
		Site:        site.Name,
		Fingerprint: fp,
		Depth:       w.item.Depth,
		Redirects:   w.item.Redirects + 1,
		Seed:        w.item.Seed,
		Meta:        w.item.Meta,
		Again:       again,
	})
}

// refuses says why the target of a redirect is not followed. That of a seed is
// in scope wherever it leads, as the seed is; only what is denied is refused.
func (w *worker) refuses(target *canon.URL, site string) refusal {
	if w.item.Seed {
		if w.policy.denies(target) {
			return refusedRule
		}
		return accepted
	}
	if !w.policy.inScope(w.src, target, site) {
		return refusedScope
	}
	return w.policy.filter(target, w.item.Depth)
}

// redacted takes credentials out of a text that should be a URL and is none.
func redacted(text string) string {
	slashes := strings.Index(text, "//")
	if slashes < 0 {
		return text
	}
	rest := text[slashes+2:]
	end := strings.IndexAny(rest, "/?#\\")
	if end < 0 {
		end = len(rest)
	}
	if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
		return text[:slashes+2] + rest[at+1:]
	}
	return text
}

// fillRecord fills the record of the page at hand. asked says whether a request was
// made for it.
func (w *worker) fillRecord(err error, asked bool) {
	r, resp := &w.rec, &w.resp
	r.V = sink.Version
	r.FetchedAt = time.Now().UTC()
	r.Depth = w.item.Depth
	r.Site = w.visit.lent.Site
	r.Attempts = int(w.item.Attempts)
	r.Redirects = int(w.item.Redirects)
	if w.item.Meta != "" {
		r.Meta = []byte(w.item.Meta)
	}
	o := &w.page.outcome
	if o.Kind == frontier.Dead {
		r.Error = &sink.Error{Class: o.Cause, Text: o.Text}
	}
	if o.Cause == causeInvalid {
		r.URL = redacted(w.item.URL) // h.url is none
	} else {
		r.URL = string(w.url.AppendRedacted(nil))
	}
	if !asked {
		return
	}
	r.Attempts++
	if !resp.Start.IsZero() {
		r.FetchedAt = resp.Start.UTC()
	}
	r.Status = resp.Status
	r.ContentType = resp.ContentType
	r.Bytes, r.WireBytes = resp.Bytes, resp.WireBytes
	r.Seconds = resp.Took.Seconds()
	r.Truncated = resp.Truncated
	if w.crawler.cfg.Exchanges && !resp.Start.IsZero() {
		w.recordExchange(err)
	}
	if resp.Status > 0 && err == nil {
		w.recordAnswer()
	}
}

// recordExchange shows what was on the wire, in the worker's own memory.
func (w *worker) recordExchange(err error) {
	e := &w.exchange
	*e = sink.Exchange{Request: w.wire.Request, Response: w.wire.Response, Body: w.wire.Body, Addr: w.wire.Addr}
	w.rec.Exchange = e
	if w.wire.Whole {
		return
	}
	cut := w.resp.Cut
	if fe, ok := errors.AsType[*fetch.Error](err); ok {
		cut = fe.Class
	}
	switch cut {
	case fetch.ClassBodySize, fetch.ClassBodyWire:
		e.Cut = "length"
	case fetch.ClassTimeout, fetch.ClassIdle:
		e.Cut = "time"
	case fetch.ClassShort, fetch.ClassReset:
		e.Cut = "disconnect"
	default: // not wanted, or broken inside its coding
		e.Cut = "unspecified"
	}
}

// recordAnswer fills in what a complete answer says.
func (w *worker) recordAnswer() {
	r, resp, fields := &w.rec, &w.resp, w.crawler.cfg.Fields
	if resp.Bytes > 0 {
		var sum [32]byte
		var text [7 + 64]byte
		copy(text[:], "sha256:")
		hex.Encode(text[7:], w.digest.Sum(sum[:0]))
		r.Digest = string(text[:])
	}
	if w.scan {
		f := w.scanner.Facts()
		r.Title, r.Text = string(f.Title), string(f.Text)
		r.Charset, r.NoIndex, r.Links = f.Charset, f.NoIndex, w.scanner.Counts().Found
	}
	r.LinksOut = w.linksOut
	if fields.Has(sink.FieldBody) {
		r.SetBody(w.body)
	}
	if resp.Header == nil {
		return
	}
	r.ETag = resp.Header.Get("ETag")
	r.Modified = resp.Header.Get("Last-Modified")
	if fields.Has(sink.FieldHeaders) {
		resp.Header.Each(func(name, value string) { r.Headers = append(r.Headers, [2]string{name, value}) })
	}
}

// flushCounts counts the page at hand and what became of its links.
func (w *worker) flushCounts() {
	cs := w.crawler.count
	cs.page(&w.resp)
	cs.known.Add(w.known)
	w.known = 0
	if w.scan {
		n := w.scanner.Counts()
		w.refused[refusedInvalid] += n.Invalid
		w.refused[refusedScheme] += n.Other
		w.refused[refusedGuard] += n.Guarded
		w.refused[refusedOver] += n.Over
		cs.links.Add(n.Found)
	}
	for i, n := range w.refused {
		if n > 0 {
			cs.refusals[i].Add(n)
		}
	}
	clear(w.refused[:])
}

// clip bounds a text from the web and makes it valid UTF-8.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
