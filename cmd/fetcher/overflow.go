package main

import (
	"fmt"

	"seine/cmd/internal/boot"
	"seine/extract/sink/jsonl"
	"seine/fetch/crawl"
)

// overflow is where candidates go that Redis has no room for; nil: nowhere.
type overflow struct {
	*jsonl.Lines
	env        *boot.Env
	dir, crawl string
}

// openOverflow opens what --overflow names.
func (g *grammar) openOverflow(env *boot.Env) (*overflow, error) {
	if g.Overflow == "" {
		return nil, nil
	}
	lines, err := jsonl.OpenLines(jsonl.LinesConfig{Dir: g.Overflow, Name: g.Crawl})
	if err != nil {
		return nil, fmt.Errorf("overflow: %w", err)
	}
	return &overflow{Lines: lines, env: env, dir: g.Overflow, crawl: g.Crawl}, nil
}

// keeper is o as the crawler wants it.
func (o *overflow) keeper() crawl.Overflow {
	if o == nil {
		return nil
	}
	return o
}

// close finishes the last file and logs how to take back what the crawler, if
// there was one, left there.
func (o *overflow) close(c *crawl.Crawler) error {
	if o == nil {
		return nil
	}
	err := o.Lines.Close()
	if c == nil {
		return err
	}
	p := c.Progress()
	if p.Overflow > 0 {
		o.env.Log.Warn("candidates that found no room in Redis are in files and not in the crawl; give Redis memory and take them back",
			"candidates", p.Overflow, "do", fmt.Sprintf("frontier seed --crawl %s --file %s/*", o.crawl, o.dir))
	}
	if err != nil { // no page was settled for what is not on disk
		o.env.Log.Warn("the overflow could not write all it was given; nothing is lost, these candidates are in Redis or their pages are fetched again", "err", err)
	}
	return nil
}
