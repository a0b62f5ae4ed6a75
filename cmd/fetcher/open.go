package main

import (
	"crypto/rand"
	"errors"
	"os"
	"time"

	"seine/cmd/internal/boot"
	"seine/fetch/crawl"
	"seine/frontier"
	"seine/frontier/memory"
	"seine/shard"
)

// queue is an open crawl and what belongs to it.
type queue struct {
	crawl.Frontier
	close  func() error
	epoch  func(shard int) uint64
	member frontier.Member
}

// open opens the crawl, in this process or in Redis.
func (g *grammar) open(env *boot.Env) (*queue, error) {
	layout := g.ToLayout()
	if g.Embedded {
		f, err := memory.New(memory.Config{Layout: layout.Complete(), Settings: g.ToSettings(), Lease: g.Lease})
		if err != nil {
			return nil, err
		}
		return &queue{Frontier: f, close: f.Close}, nil
	}
	client, err := g.RedisFlags.Open(env.Stop, product+"-fetcher")
	if err != nil {
		return nil, err
	}
	f, err := g.join(env, client, layout)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	host, _ := os.Hostname()
	return &queue{Frontier: f, close: client.Close, epoch: client.Epoch, member: frontier.Member{
		ID: rand.Text(), Kind: frontier.KindFetcher, Version: boot.Version(), Host: host, PID: os.Getpid(), Started: time.Now().UTC(),
	}}, nil
}

// join opens the crawl in Redis, or creates it when --shards says how.
func (g *grammar) join(env *boot.Env, client *shard.Client, layout frontier.Layout) (*frontier.Frontier, error) {
	warnings, err := client.Check(env.Stop)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		env.Log.Warn(w.String())
	}
	f, err := frontier.Open(env.Stop, client, g.Crawl, &layout)
	if errors.Is(err, frontier.ErrNoCrawl) && g.Shards > 0 {
		f, err = frontier.Create(env.Stop, client, g.Crawl, layout, g.ToSettings())
		if errors.Is(err, frontier.ErrExists) { // another was faster
			f, err = frontier.Open(env.Stop, client, g.Crawl, &layout)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := g.Compare(f.Settings()); err != nil {
		return nil, err
	}
	cfg := frontier.Config{Lease: g.Lease}
	if g.Ack == "replica" {
		cfg.AckReplicas = 1
	}
	return f, f.Configure(cfg)
}
