package crawl

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"seine/extract"
	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/canon"
)

// hand makes one request at a time and owns all memory a request needs; a slot
// always has one. It is the fetcher's handler: the body passes through it into
// the scanner.
type hand struct {
	w      *Worker
	parser *canon.Parser
	sites  *canon.Sites
	links  *extract.Page
	built  *policy // that links was made for
	digest hash.Hash

	url        canon.URL // of the page in hand
	target     canon.URL // of a redirect
	origin     []byte
	robotsBody []byte
	req        fetch.Request
	resp       fetch.Response
	rec        sink.Record

	// Of the page in hand:
	policy  *policy
	loan    *loan
	item    *frontier.Item
	page    *page
	src     source
	scan    bool // the body goes through the scanner
	body    []byte
	out     []string // links, where the record wants them
	refused [refusals]int
	known   int
}

func (w *Worker) newHand() *hand {
	return &hand{
		w:      w,
		parser: canon.NewParser(w.cfg.Canon),
		sites:  canon.NewSites(w.cfg.Frontier.Layout().LimitBy),
		digest: sha256.New(),
	}
}

// newPage returns the scanner of pages under the rules of p.
func (w *Worker) newPage(p *policy) *extract.Page {
	return extract.NewPage(extract.PageConfig{
		Config:         extract.Config{Robots: w.robotsAgent(), Text: w.cfg.Fields.Has(sink.FieldText)},
		Canon:          w.cfg.Canon,
		Follow:         p.follow,
		IgnoreNofollow: p.settings.IgnoreNofollow,
		MaxLinks:       w.cfg.MaxLinks,
	})
}

// visitURL fetches one URL of a visit and hands its page on. sent, if not nil,
// is called when the request has gone out or will not.
func (h *hand) visitURL(l *loan, item *frontier.Item, sent func()) {
	h.begin(l, item)
	h.req = fetch.Request{URL: item.URL, Header: l.headers(), Sent: sent}
	start := time.Now()
	err := h.w.cfg.Fetcher.Do(l.ctx, &h.req, &h.resp, h)
	if sent != nil {
		sent()
	}
	if h.scan {
		h.links.Close() //nolint:errcheck // a broken end is in the facts
	}
	l.requested(&h.resp, start, err)
	if l.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		h.w.budget.giveBack()
		return // the lease is gone, or the program ends: the URL comes back by itself
	}
	h.conclude(err)
}

// begin clears the hand for a page.
func (h *hand) begin(l *loan, item *frontier.Item) {
	if h.policy = h.w.policy.Load(); h.policy != h.built {
		h.links, h.built = h.w.newPage(h.policy), h.policy
	}
	h.loan, h.item = l, item
	h.page = &page{loan: l, outcome: frontier.Outcome{Index: item.Index}}
	h.src = source{site: l.visit.Site, host: string(h.url.Host())}
	h.rec = sink.Record{}
	h.resp.Status = 0
	h.body = h.body[:0]
	h.out = nil
	h.digest.Reset()
	h.scan = false
}

// Begin implements fetch.Handler.
func (h *hand) Begin(r *fetch.Response) bool {
	if r.Status < 200 || r.Status >= 300 {
		return r.Status >= 400 // error pages are read for their size and digest, without links
	}
	if !h.w.cfg.Accepts(r) {
		return false
	}
	h.scan = true
	h.links.Reset(extract.Doc{
		Base:        &h.url,
		ContentType: cmp.Or(r.ContentType, r.Sniffed),
		Link:        r.Header.Values("Link"),
		Refresh:     r.Header.Values("Refresh"),
		Robots:      r.Header.Values("X-Robots-Tag"),
	}, h.onLink)
	return true
}

// Write implements fetch.Handler.
func (h *hand) Write(p []byte) (int, error) {
	h.digest.Write(p)
	if h.w.cfg.Fields.Has(sink.FieldBody) {
		h.body = append(h.body, p...)
	}
	if h.scan {
		h.links.Write(p) //nolint:errcheck // it never fails
	}
	return len(p), nil
}

// onLink receives each link of the page once.
func (h *hand) onLink(ln *extract.Found) {
	if h.w.cfg.Fields.Has(sink.FieldLinksOut) {
		h.out = append(h.out, string(ln.URL.AppendRedacted(nil)))
	}
	if !ln.Follow {
		h.refused[refusedNofollow]++
		return
	}
	site := h.sites.Of(ln.URL.Host())
	if !h.policy.inScope(h.src, ln.URL, site.Name) {
		h.refused[refusedScope]++
		return
	}
	if r := h.policy.filter(ln.URL, h.item.Depth+1); r != accepted {
		h.refused[r]++
		return
	}
	fp := canon.Fingerprint{Site: site.Hash, Key: xxhash.Sum64(ln.URL.Key())}
	if h.w.laneOf(fp).known.has(fp) {
		h.known++
		return
	}
	h.page.addLink(frontier.Candidate{
		URL:         string(ln.URL.Fetch()),
		Site:        site.Name,
		Fingerprint: fp,
		Priority:    h.policy.class(ln.URL),
		Depth:       h.item.Depth + 1,
	})
}

// conclude decides what became of the URL and sends page and record on.
func (h *hand) conclude(err error) {
	switch {
	case err != nil:
		h.failed(err)
	case h.w.cfg.retryCode(h.resp.Status):
		after, _ := fetch.RetryAfter(h.resp.Header, time.Now())
		h.loan.refused(after)
		h.again(causeStatus, statusText(h.resp.Status), after)
	default:
		h.loan.answered()
		if h.resp.Status >= 300 && h.resp.Status < 400 && h.resp.Location != "" {
			h.redirect()
		}
	}
	if h.page.outcome.Kind == frontier.Retry || h.page.outcome.Kind == frontier.Requeue {
		h.w.budget.giveBack()
		h.loan.settle(h.page.outcome)
		return
	}
	h.record(err)
	h.flushCounts()
	h.w.flow.add(h.page.bytes)
	h.w.sinking.Add(1)
	h.w.cfg.Sink.Write(&h.rec, h.page.sunk)
}

// failed turns a fetch error into an outcome.
func (h *hand) failed(err error) {
	class, retry := causeOther, true
	var fe *fetch.Error
	if errors.As(err, &fe) {
		class, retry = fe.Class, fe.Retry
	}
	h.page.links = nil
	h.page.bytes = 0
	if !retry {
		h.dead(class, err.Error())
		return
	}
	h.loan.refused(0)
	if h.loan.failedOften() {
		h.loan.setAside()
		if h.w.cfg.ExitWhenDone && h.loan.givenUp(h.w.cfg.GiveUp) {
			h.dead(causeUnreachable, err.Error())
			return
		}
		h.page.outcome.Kind = frontier.Requeue
		return
	}
	h.again(class, err.Error(), 0)
}

// again makes the outcome a retry, or dead after the last one.
func (h *hand) again(cause, text string, after time.Duration) {
	if int(h.item.Attempts)+1 >= h.w.cfg.MaxTries {
		h.dead(cause, text)
		return
	}
	o := &h.page.outcome
	o.Kind, o.Cause = frontier.Retry, cause
	o.NotBefore = max(retryDelay(int(h.item.Attempts)), min(after, maxRetryAfter))
}

func (h *hand) dead(cause, text string) {
	o := &h.page.outcome
	o.Kind, o.Cause, o.Text = frontier.Dead, cause, clip(text, maxErrorText)
}

// redirect turns Location into a candidate of the first class that keeps depth,
// meta and seed standing.
func (h *hand) redirect() {
	if err := h.parser.Resolve(&h.target, &h.url, []byte(h.resp.Location), nil); err != nil {
		h.rec.Location = clip(h.resp.Location, maxErrorText)
		return
	}
	h.rec.Location = string(h.target.AppendRedacted(nil))
	if string(h.target.Key()) == string(h.url.Key()) {
		h.dead(causeRedirectLoop, "redirects to itself")
		return
	}
	if int(h.item.Redirects) >= h.w.cfg.MaxRedirects {
		h.dead(causeRedirectLoop, "too many redirects in a row")
		return
	}
	site, fp := h.sites.Fingerprint(&h.target)
	if !h.item.Seed && !h.policy.inScope(h.src, &h.target, site.Name) {
		h.refused[refusedScope]++
		return
	}
	if r := h.policy.filter(&h.target, h.item.Depth); r != accepted {
		h.refused[r]++
		return
	}
	h.page.addLink(frontier.Candidate{
		URL:         string(h.target.Fetch()),
		Site:        site.Name,
		Fingerprint: fp,
		Depth:       h.item.Depth,
		Redirects:   h.item.Redirects + 1,
		Seed:        h.item.Seed,
		Meta:        h.item.Meta,
	})
}

// bury settles a URL as dead that was never asked for.
func (h *hand) bury(l *loan, item *frontier.Item, cause, text string) {
	h.begin(l, item)
	h.resp = fetch.Response{}
	h.dead(cause, text)
	h.record(nil)
	h.w.sinking.Add(1)
	h.w.cfg.Sink.Write(&h.rec, h.page.sunk)
}

// record fills the record of the page in hand.
func (h *hand) record(err error) {
	r, resp := &h.rec, &h.resp
	r.V = sink.Version
	r.URL = string(h.url.AppendRedacted(nil))
	r.Status = resp.Status
	r.FetchedAt = time.Now().UTC()
	r.Depth = h.item.Depth
	r.Site = h.loan.visit.Site
	r.ContentType = resp.ContentType
	r.Bytes, r.WireBytes = resp.Bytes, resp.WireBytes
	r.Seconds = resp.Seconds.Seconds()
	r.Truncated = resp.Truncated
	r.Attempts = int(h.item.Attempts) + 1
	r.Redirects = int(h.item.Redirects)
	if h.item.Meta != "" {
		r.Meta = []byte(h.item.Meta)
	}
	if o := &h.page.outcome; o.Kind == frontier.Dead {
		r.Error = &sink.Error{Class: o.Cause, Text: o.Text}
	}
	if resp.Status == 0 || err != nil {
		return
	}
	if resp.Bytes > 0 {
		r.Digest = "sha256:" + hex.EncodeToString(h.digest.Sum(nil))
	}
	if resp.Header == nil {
		return
	}
	r.ETag = resp.Header.Get("ETag")
	r.Modified = resp.Header.Get("Last-Modified")
	if h.scan {
		f := h.links.Facts()
		r.Title, r.Text = string(f.Title), string(f.Text)
		r.Charset, r.NoIndex, r.Links = f.Charset, f.NoIndex, h.links.Counts().Found
	}
	h.extraFields()
}

// extraFields fills what --fields asked for.
func (h *hand) extraFields() {
	r, f := &h.rec, h.w.cfg.Fields
	r.LinksOut = h.out
	if f.Has(sink.FieldHeaders) {
		h.resp.Header.Each(func(name, value string) { r.Headers = append(r.Headers, [2]string{name, value}) })
	}
	if f.Has(sink.FieldBody) {
		r.SetBody(h.body)
	}
}

func (h *hand) flushCounts() {
	c, resp := h.w.count, &h.resp
	c.page(resp)
	c.known.Add(h.known)
	h.known = 0
	for i, n := range h.refused {
		if n > 0 {
			c.refusals[i].Add(n)
		}
	}
	c.links.Add(h.rec.Links)
	clear(h.refused[:])
}

// clip bounds a text from the web and makes it safe to print.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
