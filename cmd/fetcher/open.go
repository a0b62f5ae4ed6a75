package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"seine/cmd/internal/boot"
	"seine/fetch/crawl"
	"seine/frontier"
	"seine/frontier/memory"
	"seine/frontier/redis"
	"seine/shard"
)

// queue is an open crawl and what belongs to it.
type queue struct {
	crawl.Frontier
	close        func() error
	epoch        func(shard int) uint64                                 // nil in one process
	attend       func(c *crawl.Crawler, seeds bool) (attendance, error) // shows the fetcher among the crawl's members
	writeMetrics func(io.Writer)                                        // of the filters
	whole        frontier.Operated                                      // the crawl that this process alone works on; nil in a fleet
}

// open opens the crawl, in this process or in Redis.
func (g *grammar) open(env *boot.Env) (*queue, error) {
	if g.Embedded {
		return g.openMemory(env.Log)
	}
	client, err := g.OpenFit(env.Stop, "fetcher", env.Log)
	if err != nil {
		return nil, err
	}
	q, err := g.join(env.Stop, client, env.Log)
	if err == nil {
		err = g.WarnShards(env.Stop, client, env.Log)
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return q, nil
}

func (g *grammar) openMemory(log *slog.Logger) (*queue, error) {
	if g.State != "" && !memory.Holds(g.State) {
		if !g.SeedFlags.Any() {
			return nil, fmt.Errorf("%w: %s; give --seed URL or --file FILE to begin one there", memory.ErrNoCrawl, g.State)
		}
		log.Info("a new crawl begins", "state", g.State)
	}
	f, err := memory.New(memory.Config{Layout: g.ToLayout().Complete(), Settings: g.ToSettings(), Lease: g.Lease, Dir: g.State, Logger: log})
	if err != nil {
		return nil, err
	}
	err = g.Compare(f.Settings(), g.State)
	if err == nil && g.State != "" {
		err = f.Serve()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &queue{Frontier: f, close: f.Close, attend: func(c *crawl.Crawler, seeds bool) (attendance, error) {
		return attend(f, c, seeds)
	}, writeMetrics: func(io.Writer) {}, whole: f}, nil
}

// join opens the crawl in Redis, or creates it when --shards says how.
func (g *grammar) join(ctx context.Context, client *shard.Client, log *slog.Logger) (*queue, error) {
	f, err := redis.OpenOrCreate(ctx, client, g.Crawl, g.ToLayout(), g.ToSettings())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(g.Compare(f.Settings(), ""), f.Configure(g.RedisFlags.Frontier()), boot.WarnMarks(ctx, f, log)); err != nil {
		return nil, err
	}
	prober, err := f.NewProber(log)
	if err != nil {
		return nil, err
	}
	return &queue{Frontier: f, close: client.Close, epoch: client.Epoch, attend: func(c *crawl.Crawler, seeds bool) (attendance, error) {
		return attendFleet(f, prober, c, seeds)
	}, writeMetrics: prober.WriteMetrics}, nil
}

// leaveTime bounds how long a program that ends waits to say so.
const leaveTime = 2 * time.Second

// attendance is a fetcher's place among the members of its crawl.
type attendance struct {
	seeded func(context.Context) error // it admits no seeds any more
	leave  func() error
}

// attend announces the fetcher, as one that seeds until seeded is called, until
// leave is.
func attend(f frontier.Membership, c *crawl.Crawler, seeds bool) (attendance, error) {
	var seeding atomic.Bool
	seeding.Store(seeds)
	c.SetSeeding(seeds)
	self := frontier.NewMember(frontier.KindFetcher, boot.Version())
	self.ID = c.ID()
	member, err := frontier.Attend(context.Background(), f, func() frontier.Member {
		p, m := c.Progress(), self
		m.Rate, m.Pages, m.Bytes, m.Visits, m.Limit, m.Seeding = p.Rate, int64(p.Done+p.Dead), int64(p.Wire), int(p.Visits), p.Limit, seeding.Load()
		return m
	}, c.SetLive)
	if err != nil {
		return attendance{}, err
	}
	return attendance{
		seeded: func(ctx context.Context) error {
			c.SetSeeding(false)
			if seeding.Swap(false) {
				return member.Announce(ctx)
			}
			return nil
		},
		leave: func() error {
			ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
			defer cancel()
			return member.Leave(ctx)
		},
	}, nil
}

// attendFleet is attend that has the filters probed meanwhile.
func attendFleet(f *redis.Frontier, prober *redis.Prober, c *crawl.Crawler, seeds bool) (attendance, error) {
	a, err := attend(f, c, seeds)
	if err != nil {
		return a, err
	}
	stop, leave := prober.Start(context.Background(), c.Busy), a.leave
	a.leave = func() error { return errors.Join(stop(), leave()) }
	return a, nil
}
