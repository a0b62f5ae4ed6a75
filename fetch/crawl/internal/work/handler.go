package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	dom "golang.org/x/net/html"

	"seine/extract"
	"seine/extract/fields"
	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/canon"
)

// Handler is the crawl owner's code that sees each URL that ended. An error that is no
// HandlerError counts as one of the cause CauseHandler.
type Handler func(ctx context.Context, p *Page) error

// HandlerError is what a Handler makes of its URL.
type HandlerError struct {
	Kind  frontier.Kind // Dead or Retry
	Cause string
	After time.Duration // of Retry: no sooner
	Tries int           // fetches that the URL has at most, 0 = Config.MaxTries
	Err   error
}

func (e *HandlerError) Error() string { return e.Err.Error() }
func (e *HandlerError) Unwrap() error { return e.Err }

// Page is what a Handler sees of one URL. It is the job under way, and the handler's for
// the time of the call only.
type Page struct {
	*job
	items   []sink.Item
	dropped bool
	found   int // of the candidates: those that were found, before what is added
}

// callHandler has the handler see the URL, whose record is filled but for what it adds.
// The outcome is another one where the handler failed.
func (j *job) callHandler(ctx context.Context) {
	if j.cfg.Handle == nil || j.permit.URL == nil { // there is nothing that a handler could tell its URL by
		return
	}
	p := &Page{job: j, found: len(j.res.Candidates)}
	err := j.cfg.Handle(ctx, p)
	if err == nil {
		j.res.DropRecord = p.dropped
		j.res.Added = len(j.res.Candidates) - p.found
		if j.refuses == 0 {
			j.rec.Items = p.items
		}
		return
	}
	j.dropCandidates()
	o := &j.res.Outcome
	if ctx.Err() != nil {
		*o = frontier.Outcome{Index: o.Index, Kind: frontier.Requeue}
		return
	}
	tries := o.Tries
	*o = j.handlerOutcome(err)
	o.Tries = tries
	if o.Kind == frontier.Dead {
		j.rec.Error = &sink.Error{Class: o.Cause, Text: o.Text}
	}
}

// handlerOutcome is what an error of the handler makes of the URL.
func (j *job) handlerOutcome(err error) frontier.Outcome {
	h, ok := errors.AsType[*HandlerError](err)
	if !ok {
		h = &HandlerError{Kind: frontier.Retry, Cause: CauseHandler}
	}
	last := j.cfg.MaxTries
	if h.Tries > 0 {
		last = min(last, h.Tries)
	}
	if h.Kind == frontier.Dead || int(j.item.Attempts)+1 >= last {
		return Dead(j.item, h.Cause, err.Error())
	}
	return j.cfg.Retry(j.item, h.Cause, err.Error(), h.After)
}

// Record is what the outputs will get.
func (p *Page) Record() *sink.Record { return &p.rec }

// Header is that of the answer; nil where none came.
func (p *Page) Header() fetch.Header {
	if !p.asked || p.resp.Status == 0 || p.err != nil {
		return nil
	}
	return p.resp.Header
}

// Body is the decoded body.
func (p *Page) Body() []byte { return p.body }

// Facts are what the page says of itself; nil where there was nothing to read, or the site
// refuses it.
func (p *Page) Facts() *extract.Facts {
	if !p.scan || p.refuses != 0 {
		return nil
	}
	return p.scanner.Facts()
}

// Links is the number of distinct links that were found on the page.
func (p *Page) Links() int { return len(p.links) }

// EachLink calls f with each link, in order: its URL without credentials, its kind, and
// whether that is one to follow and nothing says nofollow.
func (p *Page) EachLink(f func(url string, kind extract.Kind, follow bool)) {
	start := 0
	for _, l := range p.links {
		f(string(p.linkText[start:l.end]), l.kind, l.follow)
		start = l.end
	}
}

// Tree parses the page, as HTML whatever its type, when it is first asked for.
func (p *Page) Tree() (*dom.Node, error) {
	if p.parsed == nil {
		parsed, err := fields.NewPage(p.body, p.rec.Charset, p.permit.URL)
		if err != nil {
			return nil, fmt.Errorf("crawl: %s: %w", p.rec.URL, err)
		}
		p.parsed = parsed
	}
	return p.parsed.Tree, nil
}

// Emit adds an item whose key is made of the page's URL and the number of the item.
func (p *Page) Emit(value any) error {
	return p.EmitAs(fmt.Sprintf("%x-%d", p.fingerprint().Append(nil), len(p.items)), value)
}

// EmitAs adds an item under a key.
func (p *Page) EmitAs(key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("crawl: item of %s: %w", p.rec.URL, err)
	}
	p.items = append(p.items, sink.Item{Key: key, Value: text})
	return nil
}

// Addition is a URL that a Handler adds. Its fields mean what those of crawl.Candidate
// mean.
type Addition struct {
	URL      string
	Meta     any
	Priority *uint8
	Depth    *uint32
	Seed     bool
	Method   string
	Header   [][2]string
	Body     []byte
}

// Add makes a candidate of a URL. What the crawl's rules refuse is counted and no error.
func (p *Page) Add(a Addition) error {
	u := &p.Target
	if err := p.Parser.Resolve(u, p.permit.URL, []byte(a.URL), nil); err != nil {
		return fmt.Errorf("crawl: %s adds %q: %w", p.rec.URL, frontier.HideCredentials(a.URL), err)
	}
	request, err := frontier.NewRequest(a.Method, a.Header, a.Body)
	if err != nil {
		return fmt.Errorf("crawl: %s adds %s: %w", p.rec.URL, u, err)
	}
	site, fp := p.Sites.Fingerprint(u)
	c := frontier.Candidate{URL: string(u.Fetch()), Site: site.Name, Fingerprint: request.Fingerprint(fp), Request: request, Depth: p.item.Depth + 1, Seed: a.Seed, Priority: p.policy.Class(u)}
	if a.Priority != nil {
		c.Priority = min(3, *a.Priority)
	}
	if a.Depth != nil {
		c.Depth = *a.Depth
	}
	c.Referrer = p.res.Referrer
	if a.Meta != nil {
		meta, err := json.Marshal(a.Meta)
		if err == nil {
			c.Meta, err = frontier.CompactMeta(meta)
		}
		if err != nil {
			return fmt.Errorf("crawl: %s adds %s: %w", p.rec.URL, u, err)
		}
	}
	if r := p.additionRefusal(u, &c); r != Accepted {
		p.refused[r]++
		return nil
	}
	p.addCandidate(c, 0)
	return nil
}

// additionRefusal says why a URL that was added is not followed.
func (p *Page) additionRefusal(u *canon.URL, c *frontier.Candidate) Refusal {
	if c.Seed {
		return p.policy.Denies(u)
	}
	src := Source{site: p.permit.Site, host: p.permit.URL.Host()}
	if !p.policy.InScope(src, u, c.Site) {
		return RefusedScope
	}
	return p.policy.Filter(u, c.Depth)
}

// RefuseLinks has those links of the page not followed that match says, all where
// it is nil: links that were found, and where the page redirects to. What was added
// stays.
func (p *Page) RefuseLinks(match func(url string) bool) {
	found := p.res.Candidates[:p.found]
	kept := slices.DeleteFunc(slices.Clone(found), func(c Candidate) bool { return match == nil || match(c.URL) })
	if n := len(found) - len(kept); n > 0 {
		p.refusedHash = p.refusedHash*refusedPrime + p.met + uint64(n)
		p.refused[RefusedHandler] += n
	}
	p.res.Candidates = append(kept, p.res.Candidates[p.found:]...)
	p.found = len(kept)
}

// Items is how many items were added.
func (p *Page) Items() int { return len(p.items) }

// DropRecord has no record written.
func (p *Page) DropRecord() { p.dropped = true }
