package main

import (
	"context"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/ask"
)

type whyCmd struct {
	URL  string `arg:"" name:"url" help:"The URL."`
	From string `placeholder:"PAGE" help:"Explain the URL as a link of this page."`
}

// Run prints why a URL was fetched or was not: the conclusion first.
func (c *whyCmd) Run(env *boot.Env, g *cli) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		a, err := ask.Why(ctx, f, ask.WhyQuery{URL: c.URL, From: c.From, Robots: boot.ReadRobots})
		if err != nil {
			return err
		}
		return g.answer(env, a, func(w io.Writer) {
			fmt.Fprintln(w, a.Why)
			for _, r := range a.Rows() {
				row(w, r.Name, r.Text)
			}
		})
	})
}
