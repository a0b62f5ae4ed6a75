package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
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
	epoch        func(shard int) uint64                     // nil in one process
	attend       func(*crawl.Crawler) (func() error, error) // shows the fetcher among the crawl's members
	writeMetrics func(io.Writer)                            // of the filters
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
	f, err := memory.New(memory.Config{Layout: g.ToLayout().Complete(), Settings: g.ToSettings(), Lease: g.Lease, Dir: g.State, Logger: log})
	if err != nil {
		return nil, err
	}
	alone := func(*crawl.Crawler) (func() error, error) { return func() error { return nil }, nil }
	return &queue{Frontier: f, close: f.Close, attend: alone, writeMetrics: func(io.Writer) {}}, nil
}

// join opens the crawl in Redis, or creates it when --shards says how.
func (g *grammar) join(ctx context.Context, client *shard.Client, log *slog.Logger) (*queue, error) {
	f, err := redis.OpenOrCreate(ctx, client, g.Crawl, g.ToLayout(), g.ToSettings())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(g.Compare(f.Settings()), f.Configure(g.RedisFlags.Frontier()), boot.WarnMarks(ctx, f, log)); err != nil {
		return nil, err
	}
	prober, err := f.NewProber(log)
	if err != nil {
		return nil, err
	}
	return &queue{Frontier: f, close: client.Close, epoch: client.Epoch, attend: func(c *crawl.Crawler) (func() error, error) {
		return attend(f, prober, c)
	}, writeMetrics: prober.WriteMetrics}, nil
}

// leaveTime bounds how long a program that ends waits to say so.
const leaveTime = 2 * time.Second

// attend announces the fetcher, and has the filters probed, until leave is called.
func attend(f *redis.Frontier, prober *redis.Prober, c *crawl.Crawler) (leave func() error, err error) {
	m := frontier.NewMember(frontier.KindFetcher, boot.Version())
	end, err := frontier.Attend(context.Background(), f, func() frontier.Member {
		p := c.Progress()
		m.Rate, m.Pages, m.Visits, m.Limit = p.Rate, int64(p.Done+p.Dead), int(p.Visits), p.Limit
		return m
	})
	if err != nil {
		return nil, err
	}
	stop := prober.Start(context.Background(), c.Busy)
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
		defer cancel()
		return errors.Join(stop(), end(ctx))
	}, nil
}
