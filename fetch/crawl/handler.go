package crawl

import (
	"context"
	"errors"
	"time"

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
// was fetched again, has no body, nor has a wall of a protection service.
//
// Handlers run in the workers, up to Config.Concurrency of them at once, of one
// site as many as may be asked at once (usually one). While one runs, its worker
// fetches nothing, and its site waits if it is asked for one page at a time; the
// lease goes on. ctx ends when requests are cut or the site is no longer
// leased here: what the handler does then comes to nothing.
//
// When it returns nil, the page's record goes to the outputs with the items that
// were emitted, then its links and what was added are admitted, then the URL is
// settled. A crash in between brings the URL back: page and handler run again, so
// items reach the outputs at least once. Their keys are then the same. When it
// returns an error, nothing of the page is kept, and the URL is tried again later
// as after a failed fetch, or dead after Config.MaxTries fetches, of the cause
// "handler"; unless the error is one of Dead or Retry. A panic is logged and counts as an
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
	Body   []byte         // decoded but for its charset, cut at fetch.Config.MaxBody; see Record.Truncated
	Facts  *extract.Facts // what the page declares of itself; nil where there was nothing to read

	work *work.Page
}

// Link is a link of a page.
type Link struct {
	URL    string // without credentials
	Kind   extract.Kind
	Follow bool // its kind is one to follow, and nothing sets nofollow
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

// EmitAs is Emit with a key of the caller's, which must differ from those of all other items
// of the crawl.
func (p *Page) EmitAs(key string, value any) error { return p.work.EmitAs(key, value) }

// Candidate is a URL that a Handler adds.
type Candidate struct {
	URL      string  // absolute, or relative to the page's
	Meta     any     // a JSON object of up to 16 KB that goes to the URL's record, or nil
	Priority *uint8  // class, 0 (first) to 3; nil: by the crawl's rules
	Depth    *uint32 // links from a seed; nil is one more than the page's
	Seed     bool    // in scope wherever it leads; what is denied or too long stays refused

	// How it is fetched: a plain GET where all are empty. Method, headers and body have
	// 4 KB together. Each method and body is a URL of its own to the crawl, so the same
	// form goes out once; headers make no difference. A crash, a lost answer or a failure
	// may repeat a request: it must be safe to repeat.
	Method string      // default GET; CONNECT and TRACE are refused
	Header [][2]string // beside those of the crawl; they replace those of the same name. Their values are secrets. Those that Seine sets itself are refused: Host, User-Agent, Accept-Encoding, and what frames a message
	Body   []byte      // without a Content-Type it is sent as that of a form: url.Values.Encode makes one
}

// Add has a URL fetched, once in the whole crawl as any other: where it is known,
// nothing happens. The crawl's rules bind it as they do links; what they refuse is
// counted and no error. A Meta that is too large is one, and what is no URL or no request
// that can be made.
func (p *Page) Add(c Candidate) error { return p.work.Add(work.Addition(c)) }

// RefuseLinks has those links of the page not followed that match accepts, all if it is
// nil: links that were found, and where the page redirects to. What was added
// stays.
func (p *Page) RefuseLinks(match func(url string) bool) { p.work.RefuseLinks(match) }

// DropRecord has no record written, and so none of the items. The links are
// followed all the same.
func (p *Page) DropRecord() { p.work.DropRecord() }

// Dead is the error of a Handler that gives its URL up, for a cause of its own: a
// word such as sold_out, in small letters, digits and _, at most 32; one process
// counts 100 of them by name, the rest as "handler". The record has cause and err.
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
