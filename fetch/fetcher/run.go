package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"seine/extract/sink"
	"seine/fetch/crawl"
)

// ErrGrace means that pages were cut short: they did not end within Config.Grace after
// the context of Run had. They are fetched again when the crawl goes on.
var ErrGrace = errors.New("fetcher: pages were cut short because Grace ran out")

// Run opens the crawl of cfg, admits its seeds and fetches what they lead to, until
// nothing is left in the whole crawl. One with a setting recrawl is never done. Once ctx
// has ended it starts nothing new, ends what is open, and returns nil, or ErrGrace. Seeds that are no URLs are an error before anything is
// fetched.
func Run(ctx context.Context, cfg Config) (err error) {
	f, err := open(ctx, cfg, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Seed(ctx, cfg.Seeds...); err != nil {
		return err
	}
	c, err := f.Crawler(crawl.Config{Handler: cfg.Handler, Sink: sinkOf(&cfg), ExitWhenDone: len(f.queue.Settings().Recrawl) == 0})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	defer context.AfterFunc(ctx, func() { end(c, cmp.Or(cfg.Grace, defaultGrace), ended) })()
	return c.Run(context.WithoutCancel(ctx))
}

// defaultGrace is that of the fetcher program.
const defaultGrace = 30 * time.Second

// end has a Crawler end in order, and aborts it when it has not ended within grace.
func end(c *crawl.Crawler, grace time.Duration, ended <-chan struct{}) {
	c.Stop()
	select {
	case <-ended:
	case <-time.After(grace):
		c.Abort(fmt.Errorf("%w (%s)", ErrGrace, grace))
	}
}

// sinkOf is the sink of a Config, or one that lets records go.
func sinkOf(cfg *Config) sink.Sink {
	if cfg.Sink != nil {
		return cfg.Sink
	}
	return discard{}
}

// discard is a sink of records that nobody wants.
type discard struct{}

func (discard) Write(_ *sink.Record, done func(error)) { done(nil) }
func (discard) Err() error                             { return nil }
func (discard) Close() error                           { return nil }
