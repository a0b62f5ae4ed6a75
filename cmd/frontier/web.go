package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"seine/cmd/internal/boot"
	"seine/cmd/internal/web"
	"seine/frontier"
)

type webCmd struct {
	Listen       string `default:"127.0.0.1:9180" placeholder:"[HOST:]PORT" help:"Serve the page there (${default}); loopback when only a port is given."`
	AllowChanges bool   `help:"Let whoever has the token pause, resume, block, retry and set."`
	WebTokenFile string `placeholder:"FILE" help:"File with the token that changes need, and reading too where the address is not loopback."`
}

// Run shows the crawl as a page until a signal.
func (c *webCmd) Run(env *boot.Env, g *cli) error {
	token, err := readToken(c.WebTokenFile)
	if err != nil {
		return err
	}
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		addr, stop, err := web.Start(web.Config{Frontier: f, Addr: c.Listen, Flag: "listen", Changes: c.AllowChanges, Token: token, Log: env.Log})
		if err != nil {
			return err
		}
		defer stop()
		env.Log.Info("serving a page of the crawl", "addr", addr)
		<-env.Stop.Done()
		return nil
	})
}

// readToken reads a token; none when there is no file.
func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("web-token-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
