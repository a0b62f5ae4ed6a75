package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/redis"
)

type seedCmd struct {
	boot.SeedFlags
	boot.CrawlFlags
	Again bool     `group:"input" help:"Queue URLs that are known once more."`
	Files []string `arg:"" optional:"" name:"files" help:"More files, as a shell makes of --file DIR/*."`
}

// Run admits the seeds. With --shards it creates the crawl if there is none.
func (c *seedCmd) Run(env *boot.Env, g *cli) error {
	if len(c.Files) > 0 && len(c.File) == 0 {
		return boot.Usage("%q is neither flag nor verb; name files with --file", c.Files[0])
	}
	c.File = append(c.File, c.Files...)
	if len(c.Seed)+len(c.File) == 0 {
		return boot.Usage("nothing to seed: give --seed URL or --file FILE (- for stdin)")
	}
	client, err := g.fit(env, &c.CrawlFlags)
	if err != nil {
		return err
	}
	defer client.Close()
	want := c.ToLayout()
	f, err := redis.OpenOrCreate(env.Stop, client, g.Crawl, want, c.ToSettings())
	if err != nil {
		return err
	}
	if err := errors.Join(c.Compare(f.Settings()), f.Configure(g.Frontier()), boot.WarnMarks(env.Stop, f, env.Log)); err != nil {
		return err
	}
	member := frontier.NewMember(frontier.KindSeeder, boot.Version())
	attendance, err := frontier.Attend(env.Stop, f, func() frontier.Member { return member }, nil)
	if err != nil {
		return err
	}
	again := ""
	if c.Again {
		again = "seed:" + rand.Text()
	}
	counts, err := c.SeedFlags.Admit(env, f, again)
	// A stopped seeder still leaves, so that the crawl can end.
	err = errors.Join(err, attendance.Leave(context.WithoutCancel(env.Abort)))
	return errors.Join(err, g.answer(env, counts, func(w io.Writer) {
		fmt.Fprintf(w, "admitted\t%d\nseen\t%d\ncapped\t%d\nwaited for room\t%d\nbad\t%d\n", counts.Admitted, counts.Seen, counts.Capped, counts.Full, counts.Bad)
	}))
}
