package crawl

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"sync"
	"sync/atomic"
	"time"

	"seine/extract"
	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/canon"
)

// worker makes one request at a time and owns all memory a request needs; a worker
// always has one. It is the fetcher's handler: the body passes through it into
// the scanner.
type worker struct {
	crawler *Crawler
	parser  *canon.Parser
	sites   *canon.Sites
	scanner *extract.Page
	built   *policy // that links was made for
	digest  hash.Hash
	onFound func(*extract.Found) // onLink, made once

	url        canon.URL // of the page at hand
	target     canon.URL // of a redirect
	raw        []byte    // text to be parsed
	origin     []byte
	robotsBody []byte
	req        fetch.Request
	resp       fetch.Response
	rec        sink.Record
	wire       fetch.Wire // where Config.Exchanges asks for it
	exchange   sink.Exchange

	// Of the page at hand:
	policy   *policy
	visit    *visit
	item     *frontier.Item
	page     *page
	src      source
	scan     bool // the body goes through the scanner
	body     []byte
	linksOut []string // links, where the record wants them
	refused  [refusals]int
	known    int
}

// maxKeptBody is the largest body buffer that a worker keeps for the next page.
const maxKeptBody = 1 << 20

func (c *Crawler) newWorker() *worker {
	w := &worker{
		crawler: c,
		parser:  canon.NewParser(c.cfg.Canon),
		sites:   canon.NewSites(c.cfg.Frontier.Layout().LimitBy),
		digest:  sha256.New(),
	}
	w.onFound = w.onLink
	return w
}

// newPage returns the scanner of pages under the rules of p.
func (c *Crawler) newPage(pol *policy) *extract.Page {
	return extract.NewPage(extract.PageConfig{
		Config:         extract.Config{Robots: c.robotsAgent(), Text: c.cfg.Fields.Has(sink.FieldText)},
		Canon:          c.cfg.Canon,
		LimitBy:        c.cfg.Frontier.Layout().LimitBy,
		Follow:         pol.follow,
		IgnoreNofollow: pol.settings.IgnoreNofollow,
		MaxLinks:       c.cfg.MaxLinks,
	})
}

// visitURL fetches one URL of a visit and hands its page on. sent, if not nil,
// is called when the request has gone out.
func (w *worker) visitURL(v *visit, item *frontier.Item, sent func()) {
	w.begin(v, item)
	w.page.counted = true
	w.req = fetch.Request{URL: item.URL, Header: v.headers(), Sent: sent}
	if w.crawler.cfg.Exchanges {
		w.req.Wire = &w.wire
	}
	began := time.Now()
	err := w.crawler.cfg.Fetcher.Do(v.ctx, &w.req, &w.resp, w)
	if w.scan {
		w.scanner.Close() //nolint:errcheck // a broken end is in the facts
	}
	began = w.moveClock(began, err, sent != nil)
	if err != nil && v.ctx.Err() != nil {
		w.abandon() // the lease is gone, or the program ends: the URL comes back by itself
		return
	}
	w.conclude(began, err)
}

// moveClock moves the site's clock for the request just made, and returns when it
// began.
func (w *worker) moveClock(began time.Time, err error, parallel bool) time.Time {
	sent := !w.resp.Start.IsZero()
	if sent {
		began = w.resp.Start
	}
	latency := w.resp.FirstByte
	if err != nil {
		latency = 0
	}
	w.visit.moveClock(began, latency, parallel && sent)
	return began
}

// abandon lets go of the page at hand as if it had not been asked for.
func (w *worker) abandon() {
	w.crawler.flow.add(-w.page.bytes)
	w.crawler.giveBack()
}

// begin readies the worker for a page.
func (w *worker) begin(v *visit, item *frontier.Item) {
	if w.policy = w.crawler.policy.Load(); w.policy != w.built {
		w.scanner, w.built = w.crawler.newPage(w.policy), w.policy
	}
	w.visit, w.item = v, item
	w.page = &page{visit: v, outcome: frontier.Outcome{Index: item.Index}}
	w.src = source{site: v.lent.Site, host: w.url.Host()}
	w.rec = sink.Record{}
	w.resp.Status = 0
	if cap(w.body) > maxKeptBody {
		w.body = nil
	}
	w.body = w.body[:0]
	if cap(w.wire.Response) > maxKeptBody {
		w.wire.Response = nil
	}
	w.linksOut = nil
	w.digest.Reset()
	w.scan = false
	w.known = 0 // of a page that is to be fetched again, whose links count then
	clear(w.refused[:])
}

// Begin implements fetch.Handler.
func (w *worker) Begin(r *fetch.Response) bool {
	switch {
	case r.Status >= 400: // error pages are read for their size and digest, without links
		return true
	case r.Status >= 300 && r.Location != "":
		return false
	} // a 3xx that leads nowhere is the page that browsers show
	if !w.crawler.cfg.Accepts(r) {
		return false
	}
	w.scan = true
	w.scanner.Reset(extract.Doc{
		Base:        &w.url,
		ContentType: r.Type,
		Link:        r.Header.Values("Link"),
		Refresh:     r.Header.Values("Refresh"),
		Robots:      r.Header.Values("X-Robots-Tag"),
		Sitemap:     w.policy.settings.Sitemaps && isSitemap(&w.url, r.Type),
	}, w.onFound)
	return true
}

// Write implements fetch.Handler.
func (w *worker) Write(p []byte) (int, error) {
	w.digest.Write(p)
	if w.crawler.cfg.Fields.Has(sink.FieldBody) {
		w.body = append(w.body, p...)
	}
	if w.scan {
		w.scanner.Write(p) //nolint:errcheck // it never fails
		w.page.charge(w.crawler, chargeStep)
	}
	return len(p), nil
}

// onLink receives each link of the page once.
func (w *worker) onLink(ln *extract.Found) {
	if w.crawler.cfg.Fields.Has(sink.FieldLinksOut) {
		w.linksOut = append(w.linksOut, string(ln.URL.AppendRedacted(nil)))
	}
	if !ln.Follow {
		w.refused[refusedNofollow]++
		return
	}
	if !w.policy.inScope(w.src, ln.URL, ln.Site) {
		w.refused[refusedScope]++
		return
	}
	if r := w.policy.filter(ln.URL, w.item.Depth+1); r != accepted {
		w.refused[r]++
		return
	}
	if w.crawler.loopOf(ln.Fingerprint).known.has(ln.Fingerprint) {
		w.known++
		return
	}
	w.page.add(frontier.Candidate{
		URL:         string(ln.URL.Fetch()),
		Site:        ln.Site,
		Fingerprint: ln.Fingerprint,
		Priority:    w.policy.class(ln.URL),
		Depth:       w.item.Depth + 1,
	})
}

// conclude decides what became of the URL and sends page and record on.
func (w *worker) conclude(began time.Time, err error) {
	switch status := w.resp.Status; {
	case err != nil:
		w.fail(began, err)
	case w.crawler.cfg.retryCode(status):
		after, _ := fetch.RetryAfter(w.resp.Header, time.Now())
		text := statusText(status)
		w.visit.refused(began, failure{slower: status == 429 || status == 503, after: after, text: text})
		w.retry(causeStatus, text, after)
	default:
		w.visit.answered()
		if status >= 300 && status < 400 && w.resp.Location != "" {
			w.redirect()
		}
	}
	if w.page.outcome.Kind == frontier.Retry {
		w.abandon()
		w.visit.settle(w.page.outcome)
		return
	}
	w.fillRecord(err, true)
	w.flushCounts()
	w.write()
}

// write sends record and page on.
func (w *worker) write() {
	c := w.crawler
	w.page.charge(c, 0)
	c.recording.Add(1)
	c.writing.Add(1)
	c.cfg.Sink.Write(&w.rec, w.page.recorded)
	c.writing.Add(-1)
}

// fail turns a fetch error into an outcome.
func (w *worker) fail(began time.Time, err error) {
	class, retry := causeOther, true
	if fe, ok := errors.AsType[*fetch.Error](err); ok {
		class, retry = fe.Class, fe.Retry
	}
	w.page.dropLinks(w.crawler)
	if !retry {
		w.dead(class, err.Error())
		return
	}
	w.visit.refused(began, failure{slower: true, text: err.Error()})
	if d := w.visit.deadSite(); d != nil {
		w.dead(d.cause, d.text)
		return
	}
	w.retry(class, err.Error(), 0)
}

// retry makes the outcome a retry, or dead after the last one.
func (w *worker) retry(cause, text string, after time.Duration) {
	if int(w.item.Attempts)+1 >= w.crawler.cfg.MaxTries {
		w.dead(cause, text)
		return
	}
	o := &w.page.outcome
	o.Kind, o.Cause = frontier.Retry, cause
	o.NotBefore = max(retryDelay(w.crawler.cfg.Backoff, int(w.item.Attempts)), min(after, maxRetryAfter))
}

func (w *worker) dead(cause, text string) {
	o := &w.page.outcome
	o.Kind, o.Cause, o.Text = frontier.Dead, cause, clip(text, maxErrorText)
}

// endUnasked settles a URL as dead that was never asked for.
func (w *worker) endUnasked(v *visit, item *frontier.Item, cause, text string) {
	w.begin(v, item)
	w.resp = fetch.Response{Header: w.resp.Header}
	w.dead(cause, text)
	w.fillRecord(nil, false)
	w.page.counted = w.crawler.budget.countUnasked()
	w.write()
}

// workerPool bounds the requests under way. A visit holds a worker while it has a
// request to make now and gives it back while it waits for its site's clock,
// so the number of lent sites may be far above the number of workers.
type workerPool struct {
	size   int
	demand atomic.Int64 // workers held, waited for or reserved by a shard loop
	hungry atomic.Int32 // shard loops that know of due sites and found no worker
	tokens chan struct{}
	onIdle func() // called when a worker became free
	mu     sync.Mutex
	spare  []*worker
	make   func() *worker
}

func newWorkerPool(size int, mk func() *worker, onIdle func()) *workerPool {
	wp := &workerPool{size: size, tokens: make(chan struct{}, size), make: mk, onIdle: onIdle}
	for range size {
		wp.tokens <- struct{}{}
	}
	return wp
}

// reserve takes up to half of the idle workers for visits about to be lent; a
// shard loop that gets its whole wish asks again.
func (wp *workerPool) reserve() int {
	for {
		d := wp.demand.Load()
		idle := int64(wp.size) - d
		if idle <= 0 {
			return 0
		}
		n := (idle + 1) / 2
		if wp.demand.CompareAndSwap(d, d+n) {
			return int(n)
		}
	}
}

// unreserve gives back what reserve gave and no visit took.
func (wp *workerPool) unreserve(n int) {
	if n > 0 {
		wp.demand.Add(int64(-n))
		wp.onIdle()
	}
}

// acquire waits for a worker. reserved says that the demand is counted already.
func (wp *workerPool) acquire(ctx context.Context, reserved bool) (*worker, error) {
	if !reserved {
		wp.demand.Add(1)
	}
	select {
	case <-wp.tokens:
	default:
		select {
		case <-wp.tokens:
		case <-ctx.Done():
			wp.demand.Add(-1)
			return nil, ctx.Err()
		}
	}
	wp.mu.Lock()
	defer wp.mu.Unlock()
	if n := len(wp.spare); n > 0 {
		w := wp.spare[n-1]
		wp.spare = wp.spare[:n-1]
		return w, nil
	}
	return wp.make(), nil
}

// release gives a worker and its worker back.
func (wp *workerPool) release(w *worker) {
	wp.mu.Lock()
	wp.spare = append(wp.spare, w)
	wp.mu.Unlock()
	wp.tokens <- struct{}{}
	wp.demand.Add(-1)
	wp.onIdle()
}

// busy is the number of workers in use.
func (wp *workerPool) busy() int { return wp.size - len(wp.tokens) }

// idle is the number of workers that nothing asks for.
func (wp *workerPool) idle() int { return wp.size - int(wp.demand.Load()) }
