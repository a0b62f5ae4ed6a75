package crawl

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"seine/extract/fields"
	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/canon"
)

// page is a fetched URL on its way to being settled: where the crawl looks for
// duplicates it first waits to be told whether it is one (question); its record reaches
// the sink, then verdicts come on its candidates, then its outcome is settled. A
// crash before the last step brings the URL back, so sinks see a record at least
// once.
type page struct {
	visit      *visit
	outcome    frontier.Outcome
	candidates []candidate
	likely     int          // how many there will be
	linkDepth  uint32       // of the links
	referrer   string       // that the links keep of it
	size       int64        // what candidates and text hold
	text       int64        // of size: until the record is in the sink
	bytes      int64        // of size: what flow control knows of
	pending    atomic.Int32 // candidates without a verdict
	returned   atomic.Bool  // it goes back to be fetched again, for its record or a candidate found no place
	mute       atomic.Bool  // that is because a shard is silent
	counted    bool         // holds a page of the budget
	facts      frontier.Facts
	seen       atomic.Int64 // candidates that were known
	dropRecord bool         // its handler wants none
	added      int          // of candidates, those that its handler added, the last

	writtenAt    time.Time // when its record went to the sink
	older, newer *page     // that wait for the sink, guarded by flow.mu
}

const (
	// candidateOverhead is what a candidate on its way costs beside its text, in a
	// list that has grown to hold it, and restOverhead what one costs that is more
	// than a link.
	candidateOverhead = 128
	restOverhead      = 256
	// maxLikely is for how many candidates a page makes room at once.
	maxLikely = 128
	// chargeStep is how far a page may grow before flow control is told.
	chargeStep = 64 << 10
)

// addLink takes a URL that the page links to.
func (p *page) addLink(fp canon.Fingerprint, url []byte, site string, class uint8) {
	p.take(candidate{fingerprint: fp, url: string(url), site: site, from: p, class: class}, 0)
}

// add takes a candidate that the page brought up and that is more than a link.
func (p *page) add(c frontier.Candidate) { p.addWithin(c, 0) }

// addWithin is add of one that, if it is known, is to be fetched again so soon at
// the latest.
func (p *page) addWithin(c frontier.Candidate, within time.Duration) {
	l := candidateOf(c, p)
	l.rest.within = within
	p.take(l, restOverhead+len(c.Meta))
}

// take keeps a candidate, which holds more bytes beside its own.
func (p *page) take(l candidate, more int) {
	if p.candidates == nil {
		p.candidates = make([]candidate, 0, min(max(p.likely, 1), maxLikely))
	}
	p.candidates = append(p.candidates, l)
	p.size += int64(candidateOverhead + len(l.url) + more)
	p.charge(chargeStep)
}

// charge tells flow control what the page holds, once it has grown by step.
func (p *page) charge(step int64) {
	if more := p.size - p.bytes; more > 0 && more >= step {
		p.visit.loop.crawler.flow.add(more)
		p.bytes = p.size
	}
}

// holdText says how many bytes of text the page holds until its record is in the sink.
func (p *page) holdText(n int) {
	if more := int64(n) - p.text; more > 0 {
		p.text += more
		p.size += more
		p.charge(chargeStep)
	}
}

// dropText says that the text is in the sink.
func (p *page) dropText() {
	p.visit.loop.crawler.flow.add(-p.text)
	p.size -= p.text
	p.bytes -= p.text
	p.text = 0
}

// dropCandidates lets go of what a page that failed brought up.
func (p *page) dropCandidates(c *Crawler) {
	c.flow.add(-p.bytes)
	p.candidates, p.size, p.bytes, p.text = nil, 0, 0, 0
}

// Causes of retries and of the dead that package crawl names; the others
// are the classes of fetch.Error.
const (
	causeInvalid      = "invalid"       // the stored URL does not parse (a newer version wrote it)
	causeRobots       = "robots"        // robots.txt disallows it
	causeStatus       = "status"        // the server kept answering with a code that is retried
	causeRedirectLoop = "redirect_loop" // redirects to itself, or too many in a row
	causeUnreachable  = "unreachable"   // its site could not be reached for too long
	causeSilent       = "silent_shard"  // candidates of its page are of a shard that does not answer; never of the dead
	causeHandler      = "handler"       // the Handler failed at its page
	causeOther        = "other"
)

// silentPause is how long a page waits that went back for a silent shard's sake,
// and up to half as long again.
const silentPause = time.Minute

// maxErrorText bounds the error text kept with a dead URL and in its record.
const maxErrorText = 300

// retryCode reports whether a status is worth another attempt.
func (cfg *Config) retryCode(status int) bool {
	if cfg.RetryCodes != nil {
		return slices.Contains(cfg.RetryCodes, status)
	}
	switch status {
	case 408, 425, 429, 500, 502, 503, 504:
		return true
	}
	return status >= 520 && status < 530
}

func statusText(status int) string {
	if t := http.StatusText(status); t != "" {
		return t
	}
	return "unknown status"
}

// conclude decides what became of the URL, tells its visit what the site is
// like, and sends page and record on.
func (w *worker) conclude(r reply, err error) {
	p, v := w.page, w.visit
	if err != nil && v.ctx.Err() != nil {
		v.requested(r)
		w.abandon() // the lease is gone, or the program ends: the URL comes back by itself
		return
	}
	w.takeCookies()
	w.decide(&r, err)
	w.countAnswer()
	p.outcome.Tries = 1
	if !p.goesBack() {
		w.planNext(err)
		w.fillRecord(err)
		if w.crawler.cfg.Handler != nil {
			w.handle(err)
		}
	}
	v.logURL(&p.outcome, w.item, w.url.AppendRedacted, w.resp.Status, w.resp.Took)
	if p.goesBack() {
		w.abandon()
		v.settle(p.outcome)
		return
	}
	w.noteFacts()
	w.flushCounts()
	p.charge(0)
	w.crawler.flow.end(p.size)
	if n := len(p.candidates); n > 0 {
		w.brought = n
	}
	if w.takesPart() {
		w.compare()
		return
	}
	p.write(&w.rec)
}

// goesBack reports whether the page is to be fetched again, and has no record.
func (p *page) goesBack() bool {
	return p.outcome.Kind == frontier.Retry || p.outcome.Kind == frontier.Requeue
}

// decide makes the outcome, and hands the visit what the request brought.
func (w *worker) decide(r *reply, err error) {
	p, v, cfg, status := w.page, w.visit, &w.crawler.cfg, w.resp.Status
	switch {
	case err != nil:
		p.dropCandidates(w.crawler)
		class, retry := errorClass(err)
		if fetch.Local(class) { // the URL goes back as if it had not been tried
			v.requested(*r)
			p.outcome.Kind = frontier.Requeue
			return
		}
		if !retry {
			v.requested(*r)
			p.outcome = deadOutcome(w.item, class, err.Error())
			return
		}
		r.failure = &failure{slower: true, cause: class, text: err.Error()}
		v.requested(*r)
		if d := v.deadSite(); d != nil {
			p.outcome = deadOutcome(w.item, d.cause, d.text)
			return
		}
		p.outcome = cfg.retryOutcome(w.item, class, err.Error(), 0)
	case cfg.retryCode(status):
		after, _ := fetch.RetryAfter(w.resp.Header, time.Now())
		r.failure = &failure{slower: status == 429 || status == 503, after: after, cause: causeStatus, text: statusText(status)}
		v.requested(*r)
		p.outcome = cfg.retryOutcome(w.item, causeStatus, r.failure.text, after)
	default:
		r.answered = true
		v.requested(*r)
		if status >= 300 && status < 400 && w.resp.Location != "" {
			w.redirect()
		}
	}
}

// abandon lets go of the page just fetched as if it had not been asked for.
func (w *worker) abandon() {
	w.crawler.flow.add(-w.page.bytes)
	w.crawler.flow.end(0)
	w.crawler.giveBack()
}

// errorClass is the class of a fetch error, and whether another try may do.
func errorClass(err error) (class string, retry bool) {
	if e, ok := errors.AsType[*fetch.Error](err); ok {
		return e.Class, e.Retry
	}
	return causeOther, true
}

// retryOutcome has item tried again, no sooner than after, or makes it dead after
// its last try.
func (cfg *Config) retryOutcome(item *frontier.Item, cause, text string, after time.Duration) frontier.Outcome {
	if int(item.Attempts)+1 >= cfg.MaxTries {
		return deadOutcome(item, cause, text)
	}
	return frontier.Outcome{
		Index: item.Index, Kind: frontier.Retry, Cause: cause,
		NotBefore: max(retryDelay(cfg.Backoff, int(item.Attempts)), min(after, maxRetryAfter)),
	}
}

func deadOutcome(item *frontier.Item, cause, text string) frontier.Outcome {
	return frontier.Outcome{Index: item.Index, Kind: frontier.Dead, Cause: cause, Text: clip(text, maxErrorText)}
}

// redirect makes of Location a candidate of the first class that keeps depth,
// meta and seed standing.
func (w *worker) redirect() {
	if err := w.parser.Resolve(&w.target, &w.url, []byte(w.resp.Location), nil); err != nil {
		w.rec.Location = redacted(clip(w.resp.Location, maxErrorText))
		w.refuse(refusalOf(err))
		return
	}
	w.rec.Location = string(w.target.AppendRedacted(nil))
	again := ""
	if bytes.Equal(w.target.Key(), w.url.Key()) {
		if bytes.Equal(w.target.Fetch(), w.url.Fetch()) {
			if w.bouncesAsIs() {
				w.page.outcome = deadOutcome(w.item, causeRedirectLoop, "redirects to itself"+w.wantsCookies())
				return
			}
			again = w.otherCookies()
		} else {
			again = "redirect" // the same URL to the frontier, another spelling to the server
		}
	}
	if int(w.item.Redirects) >= w.crawler.cfg.MaxRedirects {
		w.page.outcome = deadOutcome(w.item, causeRedirectLoop, "too many redirects in a row")
		return
	}
	from := w.remember()
	site, fp := w.sites.Fingerprint(&w.target)
	if w.isLoop(site.Name, fp) {
		w.page.outcome = deadOutcome(w.item, causeRedirectLoop, "redirects back to where it came from"+w.wantsCookies())
		return
	}
	if again == "" && w.item.Trail.Has(fp) {
		again = w.otherCookies()
	}
	if r := w.refuses(&w.target, site.Name); r != accepted {
		w.refuse(r)
		return
	}
	if again == "" && !w.item.Sitemap && w.crawler.loopOf(fp).knows(fp) {
		w.known++
		w.rec.Seen = true
		return
	}
	c := frontier.Candidate{
		URL:         string(w.target.Fetch()),
		Site:        site.Name,
		Fingerprint: fp,
		Depth:       w.item.Depth,
		Redirects:   w.item.Redirects + 1,
		Trail:       w.trail(from),
		Seed:        w.item.Seed,
		Meta:        w.item.Meta,
		Again:       again,
		Referrer:    w.item.Referrer,
		From:        w.shown(),
	}
	if w.item.Sitemap {
		s := sitemapCandidate(&w.target, site.Name, fp, w.src.host)
		c.Sitemap, c.SitemapOf, c.Again = true, s.SitemapOf, cmp.Or(again, s.Again)
	}
	w.page.add(c)
}

// refuse says that the target of a redirect is not followed.
func (w *worker) refuse(r refusal) {
	w.refused[r]++
	w.rec.Refused = refusalNames[r]
}

// remember notes that the URL at hand, which redirects, is known, as all are that
// are lent: a redirect from elsewhere to it is told as such. It returns its
// fingerprint.
func (w *worker) remember() canon.Fingerprint {
	_, fp := w.sites.Fingerprint(&w.url)
	w.crawler.known.add(fp, w.crawler.loopOf(fp).checkEpoch())
	return fp
}

// refuses says why the target of a redirect is not followed. That of a seed is
// in scope wherever it leads, as the seed is, and that of a sitemap; only what is
// denied or too long is refused.
func (w *worker) refuses(target *canon.URL, site string) refusal {
	if w.item.Seed || w.item.Sitemap {
		return w.policy.bars(target)
	}
	if !w.policy.inScope(w.src, target, site) {
		return refusedScope
	}
	return w.policy.filter(target, w.item.Depth)
}

// fillRecord fills the record of the page just fetched.
func (w *worker) fillRecord(err error) {
	r, resp := &w.rec, &w.resp
	at := resp.Start
	if at.IsZero() {
		at = time.Now()
	}
	w.visit.fillRecord(r, w.item, &w.page.outcome, at)
	r.URL = w.shown()
	r.Attempts++
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

// fillRecord fills what a record says without a request; at is when the URL was fetched,
// or was not.
func (v *visit) fillRecord(r *sink.Record, item *frontier.Item, o *frontier.Outcome, at time.Time) {
	r.V = sink.Version
	r.FetchedAt = at.UTC()
	r.Depth = item.Depth
	r.Site = v.lent.Site
	r.Attempts = int(item.Attempts)
	r.Redirects = int(item.Redirects)
	r.Referrer, r.From = item.Referrer, item.From
	if item.Meta != "" {
		r.Meta = []byte(item.Meta)
	}
	if o.Kind == frontier.Dead || o.Kind == frontier.Again && o.Cause != "" {
		r.Error = &sink.Error{Class: o.Cause, Text: o.Text}
	}
}

// recordExchange shows what was on the wire, in the worker's own memory.
func (w *worker) recordExchange(err error) {
	e := &w.exchange
	*e = sink.Exchange{Request: w.wire.Request, Response: w.wire.Response, Body: w.wire.Body, Chunked: w.wire.Chunked, Addr: w.wire.Addr}
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
	r, resp, wanted := &w.rec, &w.resp, w.crawler.cfg.Fields
	if w.digest != nil {
		r.Digest = w.digest.text()
	}
	if w.scan {
		f := w.scanner.Facts()
		r.Title, r.Text, r.TextTruncated = string(f.Title), string(f.Text), f.TextCut
		r.Charset, r.NoIndex, r.Links = f.Charset, f.NoIndex, w.scanner.Counts().Found
		if wanted.Has(sink.FieldSimHash) && f.SimHash != 0 {
			r.SimHash = fmt.Sprintf("%016x", f.SimHash)
		}
		if w.rules != nil && f.Markup {
			w.applyRules(f.Charset)
		}
		w.page.holdText(len(r.Text) + len(r.Fields))
	}
	r.LinksOut = w.linksOut
	if wanted.Has(sink.FieldBody) {
		r.SetBody(w.body)
	}
	if resp.Header == nil {
		return
	}
	r.ETag = resp.Header.Get("ETag")
	r.Modified = resp.Header.Get("Last-Modified")
	if wanted.Has(sink.FieldHeaders) {
		resp.Header.Each(func(name, value string) { r.Headers = append(r.Headers, [2]string{name, value}) })
	}
}

// applyRules makes the fields of the page at hand. Rules run through libraries
// that walk whatever trees the web has: one that panics costs the page its
// fields, and not the program.
func (w *worker) applyRules(encoding string) {
	log := w.crawler.cfg.Log.With("url", w.rec.URL)
	defer func() {
		if v := recover(); v != nil {
			log.Error("rules of fields panicked; the page has none", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	var err error
	if w.parsed, err = fields.NewPage(w.body, encoding, &w.url); err != nil {
		log.Error("rules of fields cannot read the page; it has none", "err", err)
		return
	}
	w.parsed.MaxText = w.crawler.cfg.MaxText
	result := w.rules.Apply(w.parsed)
	w.rec.Fields = result.AppendJSON(nil)
	w.rec.TextTruncated = w.rec.TextTruncated || result.Truncated
}

// countAnswer counts the request just made, whatever becomes of its URL: a site that
// refuses every request shows in the metrics. A request that this machine could not
// make is none.
func (w *worker) countAnswer() {
	p, cs := w.page, w.crawler.count
	if w.resp.Status > 0 {
		p.facts.Status, p.facts.Media = cs.answers.count(&w.resp)
	} else if p.outcome.Kind == frontier.Requeue {
		return
	}
	cs.page(&w.resp)
	if p.outcome.Kind == frontier.Retry && w.resp.Status > 0 {
		p.outcome.Facts = &p.facts
	}
}

// noteFacts fills in what reports count of the page just fetched.
func (w *worker) noteFacts() {
	f := &w.page.facts
	f.Bytes, f.Seed, f.Again = w.rec.Bytes, seedOf(w.item, w.rec.URL), w.item.Last.At > 0
	if w.scan {
		n := w.scanner.Counts()
		w.refused[refusedInvalid] += n.Invalid
		w.refused[refusedScheme] += n.Other
		w.refused[refusedTooLong] += n.TooLong
		w.refused[refusedGuard] += n.Guarded
		w.refused[refusedOver] += n.Over
		f.Links = int64(n.Found)
	}
	f.Known = int64(w.known)
	for i, n := range w.refused {
		f.Refused[i] = uint32(n)
	}
	w.page.outcome.Facts = f
}

// seedOf is the URL of an item that was seeded, "" of any other.
func seedOf(item *frontier.Item, url string) string {
	if !item.Begins() {
		return ""
	}
	return url
}

// flushCounts counts what became of the links of the page just fetched.
func (w *worker) flushCounts() {
	cs := w.crawler.count
	cs.known.Add(w.known)
	w.known = 0
	cs.links.Add(int(w.page.facts.Links))
	for i, n := range w.refused {
		if n > 0 {
			cs.refusals[i].Add(n)
		}
	}
	clear(w.refused[:])
}

// write sends the record to the sink, which copies what it keeps.
func (p *page) write(r *sink.Record) {
	c := p.visit.loop.crawler
	p.charge(0)
	c.flow.writes(p)
	if p.dropRecord {
		p.recorded(nil)
		return
	}
	c.writing.Add(1)
	c.cfg.Sink.Write(r, p.recorded)
	c.writing.Add(-1)
}

// endUnasked settles a URL that no request was made for: u is what it parsed to,
// nil if it did not; tries is how often it counts as tried in this visit.
func (v *visit) endUnasked(item *frontier.Item, u *canon.URL, o frontier.Outcome, tries int) {
	o.Tries = uint8(tries)
	p := &page{visit: v, outcome: o}
	var r sink.Record
	v.fillRecord(&r, item, &o, time.Now())
	r.Attempts += tries
	if u == nil {
		r.URL = redacted(item.URL)
	} else {
		r.URL = string(u.AppendRedacted(nil))
	}
	if v.loop.crawler.cfg.Handler != nil {
		v.handleUnasked(item, u, p, &r)
	}
	v.logURL(&p.outcome, item, func([]byte) []byte { return []byte(r.URL) }, 0, 0)
	p.facts.Seed, p.facts.Again = seedOf(item, r.URL), item.Last.At > 0
	p.outcome.Facts = &p.facts
	if p.goesBack() {
		v.settle(p.outcome)
		return
	}
	p.write(&r)
}

// outcomeNames are the kinds of outcome, as the log has them.
var outcomeNames = [...]string{frontier.Done: "done", frontier.Retry: "retry", frontier.Dead: "dead", frontier.Requeue: "requeue", frontier.Again: "again"}

// logURL writes at level debug what became of a URL; url appends it.
func (v *visit) logURL(o *frontier.Outcome, item *frontier.Item, url func([]byte) []byte, status int, took time.Duration) {
	log := v.loop.crawler.cfg.Log
	if !log.Enabled(v.ctx, slog.LevelDebug) {
		return
	}
	said := []any{"url", string(url(nil)), "outcome", outcomeNames[o.Kind], "status", status, "ms", took.Milliseconds()}
	if o.Cause != "" {
		said = append(said, "cause", o.Cause)
	}
	if o.Text != "" {
		said = append(said, "err", o.Text)
	}
	if item.Referrer != "" {
		said = append(said, "referrer", item.Referrer)
	}
	log.Debug("url", said...)
}

// recorded is called when the page's record is in the sink, or cannot get
// there: a sink that loses records ends the crawler in order, and the URL goes
// back.
func (p *page) recorded(err error) {
	c := p.visit.loop.crawler
	c.flow.wrote(p)
	p.dropText()
	c.admitting.Add(1)
	if err != nil {
		c.endWith(fmt.Errorf("crawl: the sink lost a record, so its page was not settled: %w", err))
		p.returned.Store(true)
		p.candidates = nil
	}
	candidates := p.candidates
	p.candidates = nil
	if len(candidates) == 0 {
		p.settle()
		return
	}
	p.pending.Store(int32(len(candidates)))
	for len(candidates) > 0 { // in runs of one shard
		l := c.loopOf(candidates[0].fingerprint)
		end := 1
		for end < len(candidates) && c.loopOf(candidates[end].fingerprint) == l {
			end++
		}
		l.admitter.add(candidates[:end])
		candidates = candidates[end:]
	}
}

// answered counts the verdict on one candidate. Full says that nobody will ask
// for room again.
func (p *page) answered(v frontier.Verdict) {
	if v == frontier.Seen {
		p.seen.Add(1)
	}
	if v == frontier.Full && !p.returned.Swap(true) && !p.mute.Load() {
		p.visit.loop.crawler.count.returned.Add(1)
	}
	if p.pending.Add(-1) == 0 {
		p.settle()
	}
}

// settle hands the outcome to the visit: a page whose record or candidates found
// no place goes back to be fetched again.
func (p *page) settle() {
	c := p.visit.loop.crawler
	c.admitting.Add(-1)
	c.flow.add(-p.bytes)
	if p.returned.Load() {
		if p.counted {
			c.giveBack()
		}
		p.outcome = frontier.Outcome{Index: p.outcome.Index, Kind: frontier.Requeue}
		if p.mute.Load() {
			p.outcome.Kind, p.outcome.Blameless, p.outcome.Cause = frontier.Retry, true, causeSilent
			p.outcome.NotBefore = retryDelay(silentPause, 0)
		}
	} else if p.counted {
		c.budget.settle()
	}
	p.outcome.Unasked = !p.counted && p.outcome.Kind == frontier.Dead
	p.facts.Known += p.seen.Load()
	p.visit.settle(p.outcome)
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

// clip bounds a text from the web and makes it valid UTF-8.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
