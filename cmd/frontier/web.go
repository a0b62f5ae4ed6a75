package main

import (
	"context"

	"seine/cmd/internal/boot"
	"seine/cmd/internal/web"
	"seine/frontier"
)

type webCmd struct {
	Listen string `default:"127.0.0.1:9180" placeholder:"[HOST:]PORT" help:"Serve the web page at this address; a port alone means loopback (${default})."`
	boot.WebFlags
}

// Run shows the crawl as a page until a signal.
func (c *webCmd) Run(env *boot.Env, g *cli) error {
	token, err := c.Token()
	if err != nil {
		return err
	}
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		_, stop, err := web.Start(web.Config{Frontier: f, Addr: c.Listen, Flag: "listen", Changes: c.AllowChanges, Token: token, Hosts: c.WebHost, Log: env.Log})
		if err != nil {
			return err
		}
		defer stop()
		<-env.Stop.Done()
		return nil
	})
}
