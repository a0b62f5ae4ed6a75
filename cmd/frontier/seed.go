package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier"
)

type seedCmd struct {
	boot.SeedFlags
	boot.CrawlFlags
	Again bool `group:"input" help:"Queue URLs that are known once more."`
}

// Run admits the seeds. With --shards it creates the crawl if there is none.
func (c *seedCmd) Run(env *boot.Env, g *cli) error {
	if len(c.Seed)+len(c.File) == 0 {
		return boot.Usage("nothing to seed: give --seed URL or --file FILE (- for stdin)")
	}
	client, err := g.OpenFit(env.Stop, "frontier", env.Log)
	if err != nil {
		return err
	}
	defer client.Close()
	want := c.ToLayout()
	f, err := frontier.OpenOrCreate(env.Stop, client, g.Crawl, want, c.ToSettings())
	if err != nil {
		return err
	}
	if err := errors.Join(c.Compare(f.Settings()), f.Configure(g.Frontier())); err != nil {
		return err
	}
	member := frontier.NewMember(frontier.KindSeeder, boot.Version())
	leave, err := f.Attend(env.Stop, func() frontier.Member { return member })
	if err != nil {
		return err
	}
	counts, err := c.admit(env, f)
	// A stopped seeder still leaves, so that the crawl can end.
	err = errors.Join(err, leave(context.WithoutCancel(env.Abort)))
	return errors.Join(err, g.answer(env, counts, func(w io.Writer) {
		fmt.Fprintf(w, "admitted\t%d\nseen\t%d\ncapped\t%d\nfull, tried again\t%d\nbad\t%d\n", counts.Admitted, counts.Seen, counts.Capped, counts.Full, counts.Bad)
	}))
}

// maxBadShown is how many bad lines are told of one by one.
const maxBadShown = 100

// admit hands every seed to a Seeder and tells of bad ones.
func (c *seedCmd) admit(env *boot.Env, f *frontier.Frontier) (frontier.SeedCounts, error) {
	cfg := frontier.SeedConfig{OnWait: func(why error, left int) {
		env.Log.Warn("seeds wait", "why", why, "left", left)
	}}
	if c.Again {
		cfg.Again = "seed:" + rand.Text()
	}
	seeder, err := frontier.NewSeeder(f, cfg)
	if err != nil {
		return frontier.SeedCounts{}, err
	}
	bad := func(where string, err error) {
		switch n := seeder.Counts().Bad; {
		case n < maxBadShown:
			env.Log.Warn("bad seed", "at", where, "error", err)
		case n == maxBadShown:
			env.Log.Warn("more bad seeds are only counted")
		}
	}
	err = c.Each(env.In, func(where, text string, fault error) error {
		if fault != nil {
			seeder.Skip()
			bad(where, fault)
			return nil
		}
		var refused *frontier.BadSeed
		err := seeder.Add(env.Stop, text)
		if errors.As(err, &refused) {
			bad(where, refused)
			return nil
		}
		return err
	})
	if flushed := seeder.Flush(env.Stop); err == nil {
		err = flushed
	}
	return seeder.Counts(), err
}
