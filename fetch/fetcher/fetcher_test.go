package fetcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/extract/sink/jsonl"
	"seine/fetch"
	"seine/fetch/crawl"
	"seine/fetch/fetcher"
	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/memory"
	"seine/shard"
	"seine/shard/shardtest"
)

// tree serves n pages, each of which links to the next two.
func tree(t *testing.T, n int) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var i int
		if _, err := fmt.Sscanf(r.URL.Path, "/p%d", &i); err != nil || i >= n {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>page %d</title>", i)
		for _, to := range []int{2*i + 1, 2*i + 2} {
			if to < n {
				fmt.Fprintf(w, "<a href=/p%d>x</a>", to)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/p0"
}

func quick(s *frontier.Settings) { s.Delay = time.Millisecond }

// local may fetch from this machine.
func local() fetch.Config {
	return fetch.Config{UserAgent: "test/1", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
}

func open(t *testing.T, cfg fetcher.Config) *fetcher.Fetcher {
	t.Helper()
	cfg.Fetch = local()
	f, err := fetcher.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// output keeps records in memory.
func output(t *testing.T) (*jsonl.Sink, *bytes.Buffer) {
	t.Helper()
	var text bytes.Buffer
	s, err := jsonl.Open(jsonl.Config{Writer: &text})
	if err != nil {
		t.Fatal(err)
	}
	return s, &text
}

// titles are the items of all records.
func titles(t *testing.T, text []byte) map[string]int {
	t.Helper()
	found := make(map[string]int)
	dec := json.NewDecoder(bytes.NewReader(text))
	for {
		var r struct {
			URL   string
			Items []struct{ Value string }
		}
		err := dec.Decode(&r)
		if err == io.EOF {
			return found
		}
		if err != nil || len(r.Items) != 1 {
			t.Fatalf("%+v: %v", r, err)
		}
		found[r.Items[0].Value]++
	}
}

// each runs a test on the three places of a crawl; outlives says whether it outlives a
// Fetcher.
func each(t *testing.T, test func(t *testing.T, cfg fetcher.Config, outlives bool)) {
	t.Run("memory", func(t *testing.T) { test(t, fetcher.Config{Settings: quick}, false) })
	t.Run("state", func(t *testing.T) { test(t, fetcher.Config{Settings: quick, State: t.TempDir()}, true) })
	t.Run("redis", func(t *testing.T) {
		servers := &shard.Config{Addrs: shardtest.One(t).Addrs}
		test(t, fetcher.Config{Settings: quick, Redis: servers, Crawl: "api", Layout: frontier.Layout{Shards: 2, PlanURLs: 10_000}}, true)
	})
}

// TestCrawl: a crawl is opened, seeded, run with a handler, stopped and gone on
// with; while it runs, its fetcher is a member whose progress others see.
func TestCrawl(t *testing.T) {
	const pages = 60
	each(t, func(t *testing.T, cfg fetcher.Config, outlives bool) {
		seed := tree(t, pages)
		found := make(map[string]int)
		for start := 0; ; start++ {
			cfg.Version = fmt.Sprint("v", start)
			f := open(t, cfg)
			if start == 0 {
				counts, err := f.Seed(t.Context(), seed, "no URL")
				bad, ok := errors.AsType[*frontier.BadSeed](err)
				if !ok || bad.Text != "no URL" || counts.Admitted != 1 || counts.Bad != 1 {
					t.Fatalf("seeded %+v: %v", counts, err)
				}
			}
			out, text := output(t)
			var c *crawl.Crawler
			var once sync.Once
			c, err := f.Crawler(crawl.Config{Sink: out, ExitWhenDone: true, Handler: func(ctx context.Context, p *crawl.Page) error {
				once.Do(func() {
					members, err := f.Frontier().Members(ctx)
					if err != nil || len(members) != 1 || members[0].ID != c.ID() || members[0].Kind != frontier.KindFetcher || members[0].Version != cfg.Version {
						t.Errorf("members %+v: %v", members, err)
					}
				})
				if outlives && start == 0 && p.Depth == 3 {
					c.Stop()
				}
				return p.Emit(p.Title)
			}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Crawler(crawl.Config{Sink: out}); err == nil {
				t.Error("it has two crawlers")
			}
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			p := c.Progress()
			var metrics bytes.Buffer
			c.WriteMetrics(&metrics)
			f.WriteMetrics(&metrics)
			for _, name := range []string{"seine_crawl_limited_by", "seine_fetch_"} {
				if !strings.Contains(metrics.String(), name) {
					t.Errorf("no metric %s", name)
				}
			}
			if err := errors.Join(out.Close(), f.Withdraw()); err != nil {
				t.Fatal(err)
			}
			if members, err := f.Frontier().Members(t.Context()); err != nil || len(members) != 0 {
				t.Errorf("members %+v when it has left: %v", members, err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			got := titles(t, text.Bytes())
			if p.Done != uint64(len(got)) || p.Limit == "" {
				t.Errorf("progress %+v, %d records", p, len(got))
			}
			for title := range got {
				found[title]++
			}
			if p.Ended == crawl.EndFinished {
				break
			}
			if start > 0 || len(found) == pages {
				t.Fatalf("start %d: it was to be stopped once: %+v", start, p)
			}
		}
		for title, n := range found {
			if n != 1 {
				t.Errorf("%s: %d records", title, n)
			}
		}
		if len(found) != pages {
			t.Errorf("%d of %d pages", len(found), pages)
		}
	})
}

// TestFleet: two programs, as in the example, fetch each page of one crawl once.
func TestFleet(t *testing.T) {
	servers := shardtest.Masters(t, 3).Addrs
	t.Setenv("REDIS", strings.Join(servers, ","))
	t.Setenv("SEED", tree(t, 80))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = write
	defer func() { os.Stdout = stdout }()
	written := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(read)
		written <- all
	}()
	var both sync.WaitGroup
	for range 2 {
		both.Go(Example_fleet)
	}
	both.Wait()
	os.Stdout = stdout
	write.Close()
	found := titles(t, <-written)
	for title, n := range found {
		if n != 1 {
			t.Errorf("%s: %d records", title, n)
		}
	}
	if len(found) != 80 {
		t.Errorf("%d of 80 pages", len(found))
	}

	var log bytes.Buffer
	f := open(t, fetcher.Config{Redis: &shard.Config{Addrs: servers}, Crawl: "uneven", Layout: frontier.Layout{Shards: 4, PlanURLs: 10_000},
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "4 shards do not spread evenly over 3 masters") {
		t.Errorf("the log does not warn: %s", log.String())
	}
}

// TestOpenRefuses: what a crawl has, and what a program was given.
func TestOpenRefuses(t *testing.T) {
	each(t, func(t *testing.T, cfg fetcher.Config, outlives bool) {
		if !outlives {
			return
		}
		cfg.Layout.LimitBy = canon.ByHost
		if err := open(t, cfg).Close(); err != nil {
			t.Fatal(err)
		}
		reopen := func(change func(*fetcher.Config)) error {
			c := cfg
			c.Fetch = local()
			change(&c)
			f, err := fetcher.Open(t.Context(), c)
			if err == nil {
				err = f.Close()
			}
			return err
		}
		for name, c := range map[string]struct {
			change func(*fetcher.Config)
			want   error
		}{
			"nothing said":   {func(c *fetcher.Config) { c.Layout, c.Settings = frontier.Layout{}, nil }, nil},
			"the same":       {func(c *fetcher.Config) {}, nil},
			"other settings": {func(c *fetcher.Config) { c.Settings = func(s *frontier.Settings) { s.PerSite = 7 } }, frontier.ErrDiffers},
			"other layout":   {func(c *fetcher.Config) { c.Layout.LimitBy = canon.ByDomain }, frontier.ErrLayout},
			"other versions": {func(c *fetcher.Config) { c.Layout.Canon = 99 }, fetcher.ErrConfig},
			"bad fetch":      {func(c *fetcher.Config) { c.Fetch.ReadTimeout = -1 }, fetcher.ErrConfig},
		} {
			if err := reopen(c.change); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	})
	if _, err := fetcher.Open(t.Context(), fetcher.Config{Redis: &shard.Config{}, State: t.TempDir()}); !errors.Is(err, fetcher.ErrConfig) {
		t.Error(err)
	}
	if _, err := fetcher.Open(t.Context(), fetcher.Config{Redis: &shard.Config{Addrs: shardtest.One(t).Addrs}, Crawl: "none"}); !errors.Is(err, frontier.ErrNoCrawl) {
		t.Error(err)
	}
	dir := t.TempDir()
	f := open(t, fetcher.Config{State: dir})
	if _, err := fetcher.Open(t.Context(), fetcher.Config{State: dir}); !errors.Is(err, memory.ErrInUse) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestRecrawlNeverDone: a crawl that recrawls has no end of its own.
func TestRecrawlNeverDone(t *testing.T) {
	f := open(t, fetcher.Config{Settings: func(s *frontier.Settings) { s.Recrawl = []string{".=1h"} }})
	out, _ := output(t)
	if _, err := f.Crawler(crawl.Config{Sink: out, ExitWhenDone: true}); err == nil || !strings.Contains(err.Error(), "never done") {
		t.Error(err)
	}
	if err := errors.Join(out.Close(), f.Close()); err != nil {
		t.Error(err)
	}
}
