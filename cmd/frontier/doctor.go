package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"seine/cmd/internal/boot"
	"seine/cmd/internal/doctor"
	"seine/frontier/redis"
	"seine/shard"
)

// doctorCmd takes the fetcher's flags, so that it looks with a fetcher's eyes.
type doctorCmd struct {
	Reach string `placeholder:"URL" help:"Web page to fetch as a test of DNS and network (that of --contact)."`
	boot.FetchFlags
}

// Run looks at the servers and at this machine, and fails when something has to be
// repaired before a crawl can run.
func (c *doctorCmd) Run(env *boot.Env, g *cli) error {
	if err := errors.Join(g.onlyRedis(env), g.NameFlag.Check(), c.Check()); err != nil {
		return err
	}
	found, agent := c.servers(env.Stop, env, g)
	cfg, err := c.Fetch(agent, os.Environ())
	if err != nil {
		return err
	}
	found = append(found, doctor.Machine(env.Stop, doctor.Config{Fetch: cfg, Contact: c.Contact, Reach: c.Reach, Memory: boot.Memory()})...)
	count := map[shard.Level]int{}
	for _, f := range found {
		count[f.Level]++
	}
	err = g.answer(env, found, func(w io.Writer) {
		for _, f := range found {
			text := f.Found
			if f.Do != "" {
				text += "; " + f.Do
			}
			row(w, f.Level, f.What, place(f.Servers), text)
		}
	})
	if n := count[shard.Fail]; n > 0 && err == nil {
		err = fmt.Errorf("doctor: %d of %d findings must be fixed", n, len(found))
	}
	return err
}

// servers looks at the servers, and reads the User-Agent of the crawl, "" where there
// is none.
func (c *doctorCmd) servers(ctx context.Context, env *boot.Env, g *cli) (found []shard.Finding, agent string) {
	client, err := g.client(env)
	if err != nil {
		return []shard.Finding{{Level: shard.Fail, What: "Redis", Found: err.Error(), Do: "start it, or name it with --redis; fetcher --embedded needs none"}}, ""
	}
	defer client.Close()
	found = client.Diagnose(ctx)
	if f, err := redis.Open(ctx, client, g.Crawl, nil); err == nil {
		agent = f.Settings().UserAgent
	}
	return found, agent
}

// placesShown is how many servers a line names.
const placesShown = 3

// place names servers, or this machine.
func place(servers []string) string {
	switch n := len(servers); {
	case n == 0:
		return "here"
	case n > placesShown:
		return fmt.Sprintf("%s and %d others", strings.Join(servers[:placesShown], " "), n-placesShown)
	}
	return strings.Join(servers, " ")
}
