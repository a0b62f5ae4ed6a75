package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/fetch/crawl"
	"seine/frontier"
)

// seed admits what --seed and --file name before the crawl starts.
func (g *grammar) seed(env *boot.Env, f crawl.Frontier, w *crawl.Worker) error {
	if len(g.Seed)+len(g.File) == 0 {
		return nil
	}
	s := frontier.NewSeeder(f, frontier.SeedConfig{Classify: w.Class})
	add := func(text string) error {
		err := s.Add(env.Stop, text)
		var bad *frontier.BadSeed
		if errors.As(err, &bad) {
			env.Log.Warn("not a seed", "url", text, "err", bad.Err)
			return nil
		}
		return err
	}
	for _, u := range g.Seed {
		if err := add(u); err != nil {
			return err
		}
	}
	return s.Flush(env.Stop)
}

var _ = fmt.Sprint
var _ io.Reader
var _ context.Context

func (g *grammar) monitor(env *boot.Env, w *crawl.Worker) (func(), error) {
	if g.MetricsAddr == "" {
		return func() {}, nil
	}
	addr, stop, err := boot.Monitor{Addr: g.MetricsAddr, Ready: w.Ready, Write: w.WriteMetrics}.Start()
	if err != nil {
		return nil, err
	}
	env.Log.Info("monitor", "addr", addr)
	return stop, nil
}
