package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"seine/cmd/internal/boot"
	"seine/fetch/fetcher"
	"seine/frontier/memory"
)

// embeddedGC is Go's GOGC of a fetcher that holds the crawl, where the environment
// has none. What a frontier holds has few pointers, so it is cheap to collect and
// dear to have room for twice.
const embeddedGC = 40

// open opens the crawl, in this process or in Redis.
func (g *grammar) open(env *boot.Env) (*fetcher.Fetcher, error) {
	fetching, err := g.Fetch("", os.Environ()) // the crawl's own user agent, if it has one, is the crawler's to send
	if err != nil {
		return nil, err
	}
	cfg := fetcher.Config{Layout: g.ToLayout(), Settings: g.Apply, Lease: g.Lease, Fetch: fetching, Version: boot.Version(), Log: env.Log}
	if g.Embedded {
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(embeddedGC)
		}
		err = g.nameState(env, &cfg)
	} else {
		err = g.nameServers(env, &cfg)
	}
	if err != nil {
		return nil, err
	}
	f, err := fetcher.Open(env.Stop, cfg)
	if errors.Is(err, fetcher.ErrConfig) {
		err = fmt.Errorf("%w: %w", boot.ErrUsage, err)
	}
	return f, err
}

// nameState logs where a crawl in this process is kept. A directory without one is
// a mistake unless there are seeds.
func (g *grammar) nameState(env *boot.Env, cfg *fetcher.Config) error {
	if cfg.State = g.State; g.State == "" || memory.HasCrawl(g.State) {
		return nil
	}
	if !g.SeedFlags.Any() {
		return fmt.Errorf("%w: %s; give --seed URL or --file FILE to begin one there", memory.ErrNoCrawl, g.State)
	}
	env.Log.Info("a new crawl begins", "state", g.State)
	return nil
}

// nameServers logs where a crawl in Redis is.
func (g *grammar) nameServers(env *boot.Env, cfg *fetcher.Config) error {
	servers, err := g.LoggedConfig("fetcher", env)
	cfg.Redis, cfg.Crawl, cfg.Replicas = &servers, g.Crawl, g.RedisFlags.Frontier().AckReplicas
	return err
}
