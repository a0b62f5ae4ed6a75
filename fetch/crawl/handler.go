package crawl

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	dom "golang.org/x/net/html"

	"seine/extract"
	"seine/extract/sink"
	"seine/fetch"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// Handler is code of the crawl's owner that looks at every URL that ended: pages,
// redirects, error pages, and URLs that nothing came of, whose Record says why. It
// sees exactly what gets a record. A page that a server called unchanged, when it
// was fetched again, has no body.
//
// Handlers run in the workers, up to Config.Concurrency of them at once, of one
// site as many as may be asked at once (usually one). While one runs, its worker
// fetches nothing, and its site waits if it is asked for one page at a time; the
// lease goes on. ctx ends when requests are cut or the site is no longer lent
// here: what the handler does then comes to nothing.
//
// When it returns nil, the page's record goes to the outputs with the items that
// were emitted, then its links and what was added are admitted, then the URL is
// settled. A crash in between brings the URL back: page and handler run again, so
// items reach the outputs at least once. Their keys are then the same. When it
// returns an error, nothing of the page is kept, and the URL is tried again later
// as after a failed fetch, or dead after Config.MaxTries fetches, of the cause
// "handler"; Dead and Retry say otherwise. A panic is logged and counts as an
// error, but the third fetch of a URL is then its last.
type Handler func(ctx context.Context, p *Page) error

// Page is what a Handler sees of one URL. The page, and all memory that is reached
// through it, is the handler's for the time of the call only; strings, and the tree
// once it was asked for, stay. It is not safe for concurrent use.
type Page struct {
	// Record is what the outputs will get: URL, Status, Depth, Meta, Referrer, From,
	// Title, Charset, Location and, where the URL is dead, Error. It is to be read.
	*sink.Record
	Header fetch.Header   // nil where no answer came
	Body   []byte         // decoded but for its charset, cut at fetch.Config.MaxBody; Record.Truncated tells
	Facts  *extract.Facts // what the page says of itself; nil where there was nothing to read

	work  *work.Page
	began time.Time
}

// Link is a link of a page.
type Link struct {
	URL    string // without credentials
	Kind   extract.Kind
	Follow bool // its kind is one to follow, and nothing says nofollow
}

// Links are the distinct links that were found on the page, in order, those that
// the crawl does not follow too. Cost: a string each.
func (p *Page) Links() []Link {
	if p.work.Links() == 0 {
		return nil
	}
	links := make([]Link, 0, p.work.Links())
	p.work.EachLink(func(url string, kind extract.Kind, follow bool) { links = append(links, Link{url, kind, follow}) })
	return links
}

// Tree parses the page, as HTML whatever its type, when it is first asked for; what
// <template> elements hold is left out. It is for golang.org/x/net/html and what
// builds on that, such as cascadia and goquery. Cost: ten to twenty times the body
// in memory, and some 10 ms a megabyte.
func (p *Page) Tree() (*dom.Node, error) { return p.work.Tree() }

// Emit adds an item to the record, any value that encoding/json takes. Its key is
// made of the page's URL and the number of the item on it, so it is the same when
// the page is fetched again, as long as the handler emits in the same order.
func (p *Page) Emit(value any) error { return p.work.Emit(value) }

// EmitAs is Emit with a key of the caller's, which tells the item from all others
// of the crawl.
func (p *Page) EmitAs(key string, value any) error { return p.work.EmitAs(key, value) }

// Candidate is a URL that a Handler adds.
type Candidate struct {
	URL      string  // absolute, or relative to the page's
	Meta     any     // a JSON object of up to 16 KB that goes to the URL's record, or nil
	Priority *uint8  // class, 0 (first) to 3; nil as the crawl's rules say
	Depth    *uint32 // links from a seed; nil is one more than the page's
	Seed     bool    // in scope wherever it leads; what is denied or too long stays refused
}

// Add has a URL fetched, once in the whole crawl as any other: where it is known,
// nothing happens. The crawl's rules bind it as they do links; what they refuse is
// counted and no error. A Meta that is too large, and what is no URL, is one.
func (p *Page) Add(c Candidate) error { return p.work.Add(work.Addition(c)) }

// RefuseLinks has those links of the page not followed that match says, all where
// it is nil: links that were found, and where the page redirects to. What was added
// stays.
func (p *Page) RefuseLinks(match func(url string) bool) { p.work.RefuseLinks(match) }

// DropRecord has no record written, and so none of the items. The links are
// followed all the same.
func (p *Page) DropRecord() { p.work.DropRecord() }

// Dead is the error of a Handler that gives its URL up, for a cause of its own: a
// word such as sold_out, in small letters, digits and _, at most 32; one process
// tells 100 of them apart, the rest are "handler". The record has cause and err.
func Dead(cause string, err error) error {
	return &work.HandlerError{Kind: frontier.Dead, Cause: cause, Err: orCause(err, cause)}
}

// Retry is the error of a Handler that wants its URL fetched again, no sooner than
// after, and at most an hour later; it is dead after Config.MaxTries fetches. The
// cause is as in Dead.
func Retry(cause string, after time.Duration, err error) error {
	return &work.HandlerError{Kind: frontier.Retry, Cause: cause, After: after, Err: orCause(err, cause)}
}

func orCause(err error, cause string) error {
	if err == nil {
		return errors.New(cause)
	}
	return err
}

var causeForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// mostCauses is how many causes of handlers a process tells apart: each has a dead
// list and metrics of its own.
const mostCauses = 100

// panicTries is how many fetches a URL has at whose page the handler panics.
const panicTries = 3

// panicError is a panic of the handler.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.value) }

// handle calls the handler, and counts what came of it. It is the work.Handler of the
// crawl, so its errors name a cause that this process tells apart.
func (c *Crawler) handle(ctx context.Context, wp *work.Page) error {
	p := &Page{Record: wp.Record(), Header: wp.Header(), Body: wp.Body(), Facts: wp.Facts(), work: wp, began: time.Now()}
	c.handling.begin(p)
	err := c.callHandler(ctx, p)
	c.handling.end(p, err)
	if err == nil {
		c.handling.items.Add(wp.Items())
		return nil
	}
	if h, ok := errors.AsType[*work.HandlerError](err); ok {
		own := *h
		own.Cause, own.Err = c.handling.cause(h.Cause), err
		return &own
	}
	if _, ok := errors.AsType[*panicError](err); ok {
		return &work.HandlerError{Kind: frontier.Retry, Cause: work.CauseHandler, Tries: panicTries, Err: err}
	}
	return err
}

func (c *Crawler) callHandler(ctx context.Context, p *Page) (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.cfg.Log.Error("the handler panicked; the URL is tried again, or dead after its third fetch", "url", p.URL, "panic", v, "stack", string(debug.Stack()))
			err = &panicError{v}
		}
	}()
	return c.cfg.Handler(ctx, p)
}

// handling is what the handler does now, and did.
type handling struct {
	seconds *metrics.PrometheusHistogram
	items   *metrics.Counter
	results [handlerResults]*metrics.Counter

	mu      sync.Mutex
	running map[*Page]struct{}
	causes  map[string]bool
}

// What a call of the handler came to.
const (
	handlerOK = iota
	handlerFailed
	handlerPanicked
	handlerResults
)

var handlerResultNames = [handlerResults]string{"ok", "error", "panic"}

// newHandling has the metrics of handlers in a set.
func newHandling(s *metrics.Set) *handling {
	h := &handling{
		seconds: s.NewPrometheusHistogramExt("seine_crawl_handler_seconds", metrics.ExponentialBuckets(1e-5, 4, 12)),
		items:   s.NewCounter("seine_crawl_handler_items_total"),
		running: make(map[*Page]struct{}),
		causes:  make(map[string]bool),
	}
	for i, name := range handlerResultNames {
		h.results[i] = s.NewCounter(fmt.Sprintf("seine_crawl_handler_calls_total{result=%q}", name))
	}
	return h
}

// write shows what the handlers do now.
func (h *handling) write(gauge func(name string, v int64)) {
	running, _, oldest, _ := h.now(time.Now())
	gauge("seine_crawl_handlers_active", int64(running))
	gauge("seine_crawl_handler_oldest_seconds", int64(oldest.Seconds()))
}

func (h *handling) begin(p *Page) {
	h.mu.Lock()
	h.running[p] = struct{}{}
	h.mu.Unlock()
}

func (h *handling) end(p *Page, err error) {
	h.mu.Lock()
	delete(h.running, p)
	h.mu.Unlock()
	h.seconds.Update(time.Since(p.began).Seconds())
	result := handlerOK
	if err != nil {
		result = handlerFailed
		if _, ok := errors.AsType[*panicError](err); ok {
			result = handlerPanicked
		}
	}
	h.results[result].Inc()
}

// cause is the name under which a handler's cause is known.
func (h *handling) cause(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.causes[name] {
		return name
	}
	if !causeForm.MatchString(name) || len(h.causes) >= mostCauses {
		return work.CauseHandler
	}
	h.causes[name] = true
	return name
}

// handlerHangs is how long a handler may take before it is said to hang.
const handlerHangs = time.Minute

// now is how many handlers run, and how many of them hang; oldest runs for longest,
// and is one of them if any does.
func (h *handling) now(at time.Time) (running, hanging int, oldest time.Duration, url string) {
	if h == nil {
		return 0, 0, 0, ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.running {
		age := at.Sub(p.began)
		if age > oldest {
			oldest, url = age, p.URL
		}
		if age >= handlerHangs {
			hanging++
		}
	}
	return len(h.running), hanging, oldest, url
}
