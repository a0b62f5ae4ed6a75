package crawl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"seine/fetch/crawl/internal/watch"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// panicTries is how many fetches a URL has at whose page the handler panics.
const panicTries = 3

// panicError is a panic of the handler.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.value) }

// handle calls the handler, and counts what came of it. It is the work.Handler of the
// crawl, so its errors have a cause that this process counts.
func (c *Crawler) handle(ctx context.Context, wp *work.Page) error {
	p := &Page{Record: wp.Record(), Header: wp.Header(), Body: wp.Body(), Facts: wp.Facts(), work: wp}
	call := c.handlers.Begin(p.URL, time.Now())
	err := c.callHandler(ctx, p)
	_, panicked := errors.AsType[*panicError](err)
	switch now := time.Now(); {
	case err == nil:
		c.handlers.End(call, watch.HandlerOK, now)
		c.handlers.Items.Add(wp.Items())
		return nil
	case panicked:
		c.handlers.End(call, watch.HandlerPanicked, now)
	default:
		c.handlers.End(call, watch.HandlerFailed, now)
	}
	if h, ok := errors.AsType[*work.HandlerError](err); ok {
		own := *h
		own.Cause, own.Err = c.handlers.Cause(h.Cause), err
		return &own
	}
	if panicked {
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
