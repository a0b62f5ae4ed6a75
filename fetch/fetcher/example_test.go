package fetcher_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"time"

	"seine/extract/sink/jsonl"
	"seine/fetch"
	"seine/fetch/crawl"
	"seine/fetch/fetcher"
	"seine/frontier"
	"seine/shard"
)

// Any number of such programs, on any number of machines, work on one crawl in
// Redis. Each writes what it fetched, and ends in order at an interrupt.
func Example_fleet() {
	member := func() (err error) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		f, err := fetcher.Open(ctx, fetcher.Config{
			Redis:    &shard.Config{Addrs: strings.Split(os.Getenv("REDIS"), ",")}, // host:port, of a cluster some nodes
			Crawl:    "example",
			Layout:   frontier.Layout{Shards: 6, PlanURLs: 1_000_000}, // whoever comes first makes the crawl
			Settings: func(s *frontier.Settings) { s.Delay = 20 * time.Millisecond },
			Fetch: fetch.Config{
				UserAgent: "example/1.0 (+https://example.com/bot)",
				AllowNet:  []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, // of a site on this machine
			},
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		output, err := jsonl.Open(jsonl.Config{Writer: os.Stdout})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, output.Close()) }()
		if _, err := f.Seed(ctx, os.Getenv("SEED")); err != nil { // every URL is admitted once, whoever seeds it
			return err
		}
		crawler, err := f.Crawler(crawl.Config{
			Sink: output, ExitWhenDone: true,
			Handler: func(_ context.Context, p *crawl.Page) error { return p.Emit(p.Title) },
		})
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, crawler.Stop)()
		return crawler.Run(context.Background())
	}
	if err := member(); err != nil {
		fmt.Println(err)
	}
}
