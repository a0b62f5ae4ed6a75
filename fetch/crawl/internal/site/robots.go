package site

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seine/extract/preference"
	"seine/extract/sink"
	"seine/fetch"
	"seine/fetch/crawl/internal/work"
	"seine/fetch/robots"
	"seine/fetch/wall"
	"seine/frontier"
)

// RulesHop is how far the way to the rules of an origin is: by RFC 9309 section 2.3 up to
// five redirects are followed.
type RulesHop struct {
	Origin string
	URL    string // to be asked next
	Hops   int
	Cross  CrossReservation // of URL, where it is of another site

	Found *robots.Rules // of robots.txt: URL is of the TDM file of the origin, nil = not yet
	TTL   time.Duration // of Found
}

// CrossReservation is a time on the clock of another site, for a request for rules of
// robots.txt: a redirect leads there. The site is not leased to this visit, and any number
// of sites may share it, so its clock in its own shard grants the time.
type CrossReservation struct {
	Slack  time.Duration // how long the request may take to go out; 0 = no time was asked for
	Latest time.Time     // when the request must have gone out, zero = it may not
	Err    error         // why nobody may ask there
}

// RulesRequest is one request for a robots.txt.
type RulesRequest struct {
	fetch.Request
	Agent    string    // whose rules are read
	Latest   time.Time // when it must have gone out, zero = at any time
	Exchange bool      // the wire is kept for Robots.Exchange
	Walls    *wall.Set // that tell walls from rules, nil = none do
	TDM      bool      // it is for the TDM file of an origin, not for its robots.txt
}

// RulesAnswer is what came of it.
type RulesAnswer struct {
	Rules    *robots.Rules // nil: they are at Location
	TDM      []preference.TDMRule
	TTL      time.Duration // how long they may be kept
	Location string
	Hold     time.Duration // how long the site asks for no request
	Reply    work.Reply
	Err      error // why nothing may be fetched for now; ErrTooLate: no request was made
}

// Robots makes requests for robots.txt, in memory that is used again.
type Robots struct {
	Response fetch.Response // of the last one

	req   fetch.Request
	wire  fetch.Wire
	body  []byte
	whole bool // the body of a refusal is read too: it may be a wall
	signs wall.Scratch
}

var (
	// ErrRulesServer means that the site cannot answer for its rules now.
	ErrRulesServer = errors.New("robots.txt: the server has an error")
	// ErrRulesWall means that a protection service answered in place of the site.
	ErrRulesWall = errors.New("robots.txt: a wall stands in place of it")
	// ErrTooLate means that a request did not go out in its time.
	ErrTooLate = errors.New("robots.txt: too late")

	errRulesEnough = errors.New("robots.txt: longer than is read")
)

// WasAnswered reports whether a request for rules that ended with err had an answer.
func WasAnswered(err error) bool {
	return err == nil || errors.Is(err, ErrRulesServer) || errors.Is(err, ErrRulesWall)
}

// Ask makes one request. A status of 4xx means no rules, 429 and 5xx that nothing may be
// fetched for now (RFC 9309, section 2.3.1), and so does a wall, whatever its status.
func (r *Robots) Ask(ctx context.Context, client fetch.Doer, q *RulesRequest) (a RulesAnswer) {
	began := time.Now()
	if a.Err = r.request(ctx, client, q); errors.Is(a.Err, ErrTooLate) {
		return a
	}
	a.Reply = work.ReplyOf(&r.Response, began, a.Err, false)
	if a.Err != nil {
		return a
	}
	text, err := DecodeRules(r.body, r.Response.Header)
	if q.Walls != nil {
		if v := q.Walls.Judge(&r.signs, r.Response.Status, r.Response.Header, text); v.Sure == wall.Certain {
			a.Hold, _ = fetch.RetryAfter(r.Response.Header, time.Now())
			a.Reply.Wall, a.Err = v.Vendor, fmt.Errorf("%w: %s", ErrRulesWall, v.Vendor)
			a.Reply.Failure = &work.Failure{After: a.Hold, Cause: frontier.CauseWall, Text: a.Err.Error()}
			return a
		}
	}
	switch status := r.Response.Status; {
	case status >= 300 && status < 400 && r.Response.Location != "":
		a.Location = r.Response.Location
	case status == 429 || status >= 500:
		a.Hold, _ = fetch.RetryAfter(r.Response.Header, time.Now())
		a.Err = fmt.Errorf("%w: %d %s", ErrRulesServer, status, work.StatusText(status))
	case status >= 200 && status < 300:
		if a.Err = err; err == nil && q.TDM {
			a.TDM = preference.ParseTDM(text)
		} else if err == nil {
			a.Rules, a.TTL = robots.Parse(text, q.Agent), CacheTime(r.Response.Header, RulesTTL)
		}
	default:
		a.Rules, a.TTL = robots.Parse(nil, q.Agent), RulesTTL
	}
	return a
}

// request makes the request, unless it cannot go out in its time.
func (r *Robots) request(ctx context.Context, client fetch.Doer, q *RulesRequest) error {
	r.body, r.Response.Status, r.req, r.whole = r.body[:0], 0, q.Request, q.Walls != nil
	r.req.MaxBody, r.req.Raw = robots.MaxBytes, true
	if q.Exchange {
		r.req.Wire, r.Response.Start = &r.wire, time.Time{}
	}
	timed := ctx
	if !q.Latest.IsZero() {
		var cancel context.CancelFunc
		timed, cancel = context.WithCancel(ctx)
		defer cancel()
		late := time.AfterFunc(time.Until(q.Latest), cancel)
		defer late.Stop()
		r.req.Sent = func() { late.Stop() }
	}
	err := client.Do(timed, &r.req, &r.Response, (*robotsBody)(r))
	switch {
	case errors.Is(err, errRulesEnough):
		return nil
	case err != nil && timed.Err() != nil && ctx.Err() == nil:
		return ErrTooLate
	case err != nil && r.Response.Status >= 400 && ctx.Err() == nil:
		return nil // its status says enough
	}
	return err
}

// Exchange is what was on the wire of the last request, which ended with err. Its memory is
// the caller's.
func (r *Robots) Exchange(err error) sink.Exchange {
	e := work.ExchangeOf(&r.wire, &r.Response, r.req.Header, err)
	r.wire = fetch.Wire{} // few of a worker's requests are for rules
	return e
}

// robotsBody collects the body of a robots.txt, its codings on.
type robotsBody Robots

// Begin implements fetch.Handler.
func (b *robotsBody) Begin(r *fetch.Response) bool {
	return r.Status >= 200 && r.Status < 300 || r.Status >= 400 && b.whole
}

// Write implements fetch.Handler.
func (b *robotsBody) Write(p []byte) (int, error) {
	room := robots.MaxBytes - len(b.body)
	if len(p) >= room {
		b.body = append(b.body, p[:room]...)
		return room, errRulesEnough
	}
	b.body = append(b.body, p...)
	return len(p), nil
}
