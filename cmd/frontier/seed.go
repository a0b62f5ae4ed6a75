package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/memory"
	"seine/frontier/redis"
	"seine/shard"
)

type seedCmd struct {
	boot.SeedFlags
	boot.CrawlFlags
	Refetch bool     `group:"input" help:"Queue URLs even if they are known."`
	Create  bool     `group:"crawl" help:"Create the crawl even if Redis has other crawls. The first crawl of a Redis needs no flag."`
	Files   []string `arg:"" optional:"" name:"files" help:"More files, because a shell expands --file DIR/* to several words."`
}

// Run admits the seeds. It creates the crawl if there is none.
func (c *seedCmd) Run(env *boot.Env, g *cli) error {
	if len(c.Files) > 0 && len(c.File) == 0 {
		return boot.Usage("%q is neither flag nor verb; name URLs with --seed, files with --file", c.Files[0])
	}
	c.File = append(c.File, c.Files...)
	if !c.SeedFlags.Any() {
		return boot.Usage("nothing to seed: give --seed URL, --sitemap URL or --file FILE (- for stdin)")
	}
	f, end, err := c.open(env, g)
	if err != nil {
		return err
	}
	return errors.Join(c.seed(env, g, f), end())
}

// open opens the crawl, and makes it where there is none. Beside other crawls in Redis it
// does so with --create or --shards only: the name may be misspelt.
func (c *seedCmd) open(env *boot.Env, g *cli) (f frontier.Operated, end func() error, err error) {
	if g.State != "" {
		return c.openDir(env, g)
	}
	client, err := g.fit(env, &c.CrawlFlags)
	if err != nil {
		return nil, nil, err
	}
	r, err := redis.OpenOrCreate(env.Stop, client, g.Crawl, c.ToLayout(), c.ToSettings())
	if errors.Is(err, frontier.ErrNoCrawl) && c.Shards == 0 {
		r, err = c.create(env, g, client, err)
	}
	if err == nil {
		err = errors.Join(frontier.Compare(r.Settings(), c.Apply, ""), r.Configure(g.Frontier()), boot.WarnWatermarks(env.Stop, r, env.Log))
	}
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return r, client.Close, nil
}

// create makes a crawl that was not found, with as many shards on each master, unless
// others are there or its creation broke off.
func (c *seedCmd) create(env *boot.Env, g *cli, client *shard.Client, missing error) (*redis.Frontier, error) {
	names, err := redis.Names(env.Stop, client)
	if errors.Is(err, shard.ErrForbidden) {
		return nil, fmt.Errorf("%w; seed --shards N makes it", missing)
	}
	if err != nil {
		return nil, err
	}
	if slices.Contains(names, g.Crawl) {
		return nil, missing
	}
	if len(names) > 0 && !c.Create {
		there := map[bool]string{true: "is", false: "are"}[len(names) == 1]
		return nil, fmt.Errorf("%w: %s; there %s %s; --create makes a new one", frontier.ErrNoCrawl, g.Crawl, there, strings.Join(names, ", "))
	}
	layout := c.ToLayout()
	if layout.Shards, err = client.DefaultShards(env.Stop); err != nil {
		return nil, err
	}
	f, err := redis.OpenOrCreate(env.Stop, client, g.Crawl, layout, c.ToSettings())
	if err == nil {
		layout = f.Layout()
		env.Log.Info("a new crawl begins", "crawl", g.Crawl, "shards", layout.Shards, "plan_urls", layout.PlanURLs, "error_rate", layout.ErrorRate)
	}
	return f, err
}

func (c *seedCmd) openDir(env *boot.Env, g *cli) (frontier.Operated, func() error, error) {
	if err := errors.Join(g.fits(env), c.Check()); err != nil {
		return nil, nil, err
	}
	f, err := memory.Open(env.Stop, g.State, env.Log)
	if errors.Is(err, memory.ErrNoCrawl) {
		env.Log.Info("a new crawl begins", "state", g.State)
		f, err = memory.New(memory.Config{Dir: g.State, Layout: c.ToLayout(), Settings: c.ToSettings(), Logger: env.Log})
	}
	if err != nil {
		return nil, nil, err
	}
	want, layout := c.ToLayout(), f.Layout()
	want.Format, want.Canon, want.Suffixes = layout.Format, layout.Canon, layout.Suffixes
	if err := errors.Join(layout.Check(want), frontier.Compare(f.Settings(), c.Apply, g.State)); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, f.Close, nil
}

// seed admits the seeds.
func (c *seedCmd) seed(env *boot.Env, g *cli, f frontier.Operated) error {
	member := frontier.NewMember(frontier.KindSeeder, boot.Version())
	attendance, err := frontier.Attend(env.Stop, f, func() frontier.Member { return member }, nil)
	if err != nil {
		return err
	}
	refetch := ""
	if c.Refetch {
		refetch = "seed:" + rand.Text()
	}
	counts, err := c.SeedFlags.Admit(env, f, refetch)
	// A stopped seeder still leaves, so that the crawl can end.
	err = errors.Join(err, attendance.Leave(context.WithoutCancel(env.Abort), ""))
	if all := counts.Admitted + counts.Seen + counts.Capped + counts.Bad; err == nil && counts.Bad > 0 {
		err = fmt.Errorf("seed: %d of %s could not be taken, the others were; the warnings say which and why", counts.Bad, boot.Number(all, "seed"))
	}
	return errors.Join(err, g.answer(env, counts, func(w io.Writer) {
		fmt.Fprintf(w, "admitted\t%d\nseen\t%d\ncapped\t%d\nwaited for room\t%d\nbad\t%d\n", counts.Admitted, counts.Seen, counts.Capped, counts.Full, counts.Bad)
	}))
}
