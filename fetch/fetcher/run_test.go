package fetcher_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/fetch/crawl"
	"seine/fetch/fetcher"
	"seine/frontier"
	"seine/shard"
	"seine/shard/shardtest"
)

// TestRun: a crawl in one call has a handler see every page, in this process and in
// Redis, where it makes the crawl.
func TestRun(t *testing.T) {
	const pages = 30
	run := func(t *testing.T, cfg fetcher.Config) {
		var mu sync.Mutex
		seen := make(map[string]bool)
		cfg.Seeds, cfg.Fetch, cfg.Settings = []string{tree(t, pages)}, local(), quick
		cfg.Handler = func(_ context.Context, p *crawl.Page) error {
			mu.Lock()
			defer mu.Unlock()
			seen[p.Title] = true
			return nil
		}
		if err := fetcher.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if len(seen) != pages {
			t.Errorf("the handler saw %d of %d pages", len(seen), pages)
		}
	}
	t.Run("memory", func(t *testing.T) { run(t, fetcher.Config{}) })
	t.Run("redis", func(t *testing.T) {
		servers := &shard.Config{Addrs: shardtest.One(t).Addrs}
		run(t, fetcher.Config{Redis: servers, Crawl: "run", Layout: frontier.Layout{PlanURLs: 10_000}})
		f := open(t, fetcher.Config{Redis: servers, Crawl: "run"})
		defer f.Close()
		if n := f.Frontier().Shards(); n != 6 {
			t.Errorf("the crawl was made with %d shards, not 6", n)
		}
	})
}

// TestRunEnds: once its context has ended, Run ends a handler that waits for the
// handler's own, when the grace is over, and names that.
func TestRunEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	err := fetcher.Run(ctx, fetcher.Config{
		Seeds: []string{tree(t, 3)}, Fetch: local(), Settings: quick, Grace: time.Millisecond,
		Handler: func(ctx context.Context, _ *crawl.Page) error {
			stop()
			<-ctx.Done()
			return ctx.Err()
		},
	})
	if !errors.Is(err, fetcher.ErrGrace) {
		t.Errorf("Run returned %v", err)
	}
}

// TestCloseWhileRunning: Close ends a Crawler that runs, whatever its handler waits for,
// and Run says why.
func TestCloseWhileRunning(t *testing.T) {
	each(t, func(t *testing.T, cfg fetcher.Config, _ bool) {
		f := open(t, cfg)
		if _, err := f.Seed(t.Context(), tree(t, 3)); err != nil {
			t.Fatal(err)
		}
		out, _ := output(t)
		defer out.Close()
		handling := make(chan struct{})
		c, err := f.Crawler(crawl.Config{Sink: out, Handler: func(ctx context.Context, _ *crawl.Page) error {
			close(handling)
			<-ctx.Done()
			return ctx.Err()
		}})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- c.Run(context.Background()) }()
		<-handling
		c.Stop() // waits for handlers, so it ends nothing by itself here
		closed := make(chan error)
		go func() { closed <- f.Close() }()
		if err := <-ended; !errors.Is(err, fetcher.ErrClosed) {
			t.Errorf("Run returned %v", err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if err := c.Run(t.Context()); err == nil {
			t.Error("it ran twice")
		}
	})
}

// TestConfigOfOthers: what would be overwritten, or does nothing, is refused by name.
func TestConfigOfOthers(t *testing.T) {
	if _, err := fetcher.Open(t.Context(), fetcher.Config{Seeds: []string{"https://example.com/"}}); !errors.Is(err, fetcher.ErrConfig) || !strings.Contains(err.Error(), "Seeds") {
		t.Errorf("Open with seeds: %v", err)
	}
	f := open(t, fetcher.Config{})
	defer f.Close()
	out, _ := output(t)
	defer out.Close()
	if _, err := f.Crawler(crawl.Config{Sink: out, Lease: time.Minute}); !errors.Is(err, fetcher.ErrConfig) || !strings.Contains(err.Error(), "Lease") {
		t.Errorf("a lease of its own: %v", err)
	}
}
