package crawl

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"hash"
	"time"

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
	take   func(*extract.Found) // onLink, made once

	url        canon.URL // of the page in hand
	target     canon.URL // of a redirect
	raw        []byte    // text to be parsed
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

// maxKeptBody is the largest body buffer that a hand keeps for the next page.
const maxKeptBody = 1 << 20

func (w *Worker) newHand() *hand {
	h := &hand{
		w:      w,
		parser: canon.NewParser(w.cfg.Canon),
		sites:  canon.NewSites(w.cfg.Frontier.Layout().LimitBy),
		digest: sha256.New(),
	}
	h.take = h.onLink
	return h
}

// newPage returns the scanner of pages under the rules of p.
func (w *Worker) newPage(p *policy) *extract.Page {
	return extract.NewPage(extract.PageConfig{
		Config:         extract.Config{Robots: w.robotsAgent(), Text: w.cfg.Fields.Has(sink.FieldText)},
		Canon:          w.cfg.Canon,
		LimitBy:        w.cfg.Frontier.Layout().LimitBy,
		Follow:         p.follow,
		IgnoreNofollow: p.settings.IgnoreNofollow,
		MaxLinks:       w.cfg.MaxLinks,
	})
}

// visitURL fetches one URL of a visit and hands its page on. sent, if not nil,
// is called when the request has gone out.
func (h *hand) visitURL(l *loan, item *frontier.Item, sent func()) {
	h.begin(l, item)
	h.page.counted = true
	h.req = fetch.Request{URL: item.URL, Header: l.headers(), Sent: sent}
	began := time.Now()
	err := h.w.cfg.Fetcher.Do(l.ctx, &h.req, &h.resp, h)
	if h.scan {
		h.links.Close() //nolint:errcheck // a broken end is in the facts
	}
	began = h.tell(began, err, sent != nil)
	if err != nil && l.ctx.Err() != nil {
		h.abandon() // the lease is gone, or the program ends: the URL comes back by itself
		return
	}
	h.conclude(began, err)
}

// tell moves the site's clock for the request just made, and returns when it
// began.
func (h *hand) tell(began time.Time, err error, parallel bool) time.Time {
	sent := !h.resp.Start.IsZero()
	if sent {
		began = h.resp.Start
	}
	latency := h.resp.FirstByte
	if err != nil {
		latency = 0
	}
	h.loan.requested(began, latency, parallel && sent)
	return began
}

// abandon lets go of the page in hand as if it had not been asked for.
func (h *hand) abandon() {
	h.w.flow.add(-h.page.bytes)
	h.w.giveBack()
}

// begin clears the hand for a page.
func (h *hand) begin(l *loan, item *frontier.Item) {
	if h.policy = h.w.policy.Load(); h.policy != h.built {
		h.links, h.built = h.w.newPage(h.policy), h.policy
	}
	h.loan, h.item = l, item
	h.page = &page{loan: l, outcome: frontier.Outcome{Index: item.Index}}
	h.src = source{site: l.visit.Site, host: h.url.Host()}
	h.rec = sink.Record{}
	h.resp.Status = 0
	if cap(h.body) > maxKeptBody {
		h.body = nil
	}
	h.body = h.body[:0]
	h.out = nil
	h.digest.Reset()
	h.scan = false
	h.known = 0 // of a page that is to be fetched again, whose links count then
	clear(h.refused[:])
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
	kind := cmp.Or(r.ContentType, r.Sniffed)
	h.links.Reset(extract.Doc{
		Base:        &h.url,
		ContentType: kind,
		Link:        r.Header.Values("Link"),
		Refresh:     r.Header.Values("Refresh"),
		Robots:      r.Header.Values("X-Robots-Tag"),
		Sitemap:     h.policy.settings.Sitemaps && isSitemap(&h.url, kind),
	}, h.take)
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
		h.page.charge(h.w, chargeStep)
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
	if !h.policy.inScope(h.src, ln.URL, ln.Site) {
		h.refused[refusedScope]++
		return
	}
	if r := h.policy.filter(ln.URL, h.item.Depth+1); r != accepted {
		h.refused[r]++
		return
	}
	if h.w.laneOf(ln.Fingerprint).known.has(ln.Fingerprint) {
		h.known++
		return
	}
	h.page.addLink(frontier.Candidate{
		URL:         string(ln.URL.Fetch()),
		Site:        ln.Site,
		Fingerprint: ln.Fingerprint,
		Priority:    h.policy.class(ln.URL),
		Depth:       h.item.Depth + 1,
	})
}

// conclude decides what became of the URL and sends page and record on.
func (h *hand) conclude(began time.Time, err error) {
	switch status := h.resp.Status; {
	case err != nil:
		h.failed(began, err)
	case h.w.cfg.retryCode(status):
		after, _ := fetch.RetryAfter(h.resp.Header, time.Now())
		text := statusText(status)
		h.loan.refused(began, failure{slower: status == 429 || status == 503, after: after, text: text})
		h.again(causeStatus, text, after)
	default:
		h.loan.answered()
		if status >= 300 && status < 400 && h.resp.Location != "" {
			h.redirect()
		}
	}
	if h.page.outcome.Kind == frontier.Retry {
		h.abandon()
		h.loan.settle(h.page.outcome)
		return
	}
	h.record(err, true)
	h.flushCounts()
	h.pass()
}

// pass sends record and page on.
func (h *hand) pass() {
	w := h.w
	h.page.charge(w, 0)
	w.sinking.Add(1)
	w.writing.Add(1)
	w.cfg.Sink.Write(&h.rec, h.page.sunk)
	w.writing.Add(-1)
}

// failed turns a fetch error into an outcome.
func (h *hand) failed(began time.Time, err error) {
	class, retry := causeOther, true
	if fe, ok := errors.AsType[*fetch.Error](err); ok {
		class, retry = fe.Class, fe.Retry
	}
	h.page.drop(h.w)
	if !retry {
		h.dead(class, err.Error())
		return
	}
	h.loan.refused(began, failure{slower: true, text: err.Error()})
	if d := h.loan.doom(); d != nil {
		h.dead(d.cause, d.text)
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
	o.NotBefore = max(retryDelay(h.w.cfg.Backoff, int(h.item.Attempts)), min(after, maxRetryAfter))
}

func (h *hand) dead(cause, text string) {
	o := &h.page.outcome
	o.Kind, o.Cause, o.Text = frontier.Dead, cause, clip(text, maxErrorText)
}

// bury settles a URL as dead that was never asked for.
func (h *hand) bury(l *loan, item *frontier.Item, cause, text string) {
	h.begin(l, item)
	h.resp = fetch.Response{Header: h.resp.Header}
	h.dead(cause, text)
	h.record(nil, false)
	h.page.counted = h.w.budget.bury()
	h.pass()
}
