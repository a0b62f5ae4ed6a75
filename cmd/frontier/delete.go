package main

import (
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier/redis"
)

type deleteCmd struct {
	Name string `arg:"" name:"crawl" help:"The crawl to delete; --crawl is ignored here."`
	Yes  bool   `help:"Confirm."`
}

// Run deletes the crawl that is named.
func (c *deleteCmd) Run(env *boot.Env, g *cli) error {
	if !c.Yes {
		return boot.Usage("this deletes all that %s knows; say --yes", c.Name)
	}
	if err := (&boot.NameFlag{Crawl: c.Name}).Check(); err != nil {
		return err
	}
	client, err := g.client(env)
	if err != nil {
		return err
	}
	defer client.Close()
	n, err := redis.Delete(env.Stop, client, c.Name)
	if err != nil {
		return err
	}
	return g.answer(env, map[string]any{"deleted": c.Name, "keys": n}, func(w io.Writer) {
		fmt.Fprintf(w, "deleted %s, %d keys\n", c.Name, n)
	})
}
