package main_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/frontier/redis"

	"github.com/klauspost/compress/zstd"

	"seine/frontier"
	"seine/shard"
	"seine/shard/shardtest"
)

// Above the memory mark a fetcher goes on: links of a huge site are turned away
// once many wait, all of others are fetched, and metrics and log tell it. With
// --overflow what is turned away is kept.
func TestMemoryWatermark(t *testing.T) {
	t.Parallel()
	t.Run("capped", func(t *testing.T) {
		if served := aboveWatermark(t); !strings.Contains(served, `shard="0",verdict="full"} 0`) {
			t.Error("links found no room")
		}
	})
	t.Run("overflow", func(t *testing.T) {
		dir := t.TempDir()
		served := aboveWatermark(t, "--overflow", dir)
		kept := bytes.Count(unpack(t, dir), []byte(`"depth":1,"seed":false}`))
		for _, want := range []string{fmt.Sprint(`seine_crawl_overflow_candidates_total{crawl="seine"} `, kept), `shard="0",verdict="capped"} 0`} {
			if !strings.Contains(served, want+"\n") {
				t.Errorf("%d lines were kept, and metrics do not say %s", kept, want)
			}
		}
	})
}

// unpack is what the files of a directory hold.
func unpack(t *testing.T, dir string) (all []byte) {
	t.Helper()
	paths, err := filepath.Glob(dir + "/*")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files: ", err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil {
			all, err = z.DecodeAll(text, all)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// aboveWatermark crawls with 500 links in the longest queue, and returns the metrics
// at the end.
func aboveWatermark(t *testing.T, flags ...string) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		links := map[string]int{"huge.example": 2000, "small-1.example": 3, "small-2.example": 3}[r.Host]
		if r.URL.Path != "/" {
			links = 0
		}
		for i := range links {
			fmt.Fprintf(w, "<a href='/%d'>x</a>", i)
		}
		fmt.Fprint(w, "</html>")
	}))
	t.Cleanup(srv.Close)
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())

	server := shardtest.Start(t, shardtest.Config{Directives: []string{"maxmemory-policy noeviction"}})
	client, err := shard.Open(t.Context(), shard.Config{Addrs: server.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	settings := frontier.DefaultSettings()
	settings.Delay, settings.Robots, settings.MemoryLow, settings.MemoryHigh = 0, "ignore", 1, 2
	f, err := redis.Create(t.Context(), client, "seine", frontier.Layout{Shards: 1, PlanURLs: 10_000}, settings)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := f.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server.Nodes[0].Do(t, "config", "set", "maxmemory", 25*stats[0].Memory.Used)
	server.Nodes[0].Do(t, "hset", shard.KeysOf("seine", shard.NewMap(1).Tag(0)).Meta(), "longest", 500, "since", time.Now().Add(time.Hour).UnixMilli())

	p := start(t, append(flags, "--redis", server.Addrs[0], "--metrics-addr", "127.0.0.1:0", "--connect-to", "::127.0.0.1:"+port, "--per-address", "0",
		"--seed", "http://huge.example/", "--seed", "http://small-1.example/", "--seed", "http://small-2.example/")...)
	var served string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		served = scrape(t, p)
		if done, err := f.Finished(t.Context()); done && err == nil && strings.Contains(p.log.String(), "memory watermark") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the crawl does not end: ", served)
		}
	}
	for _, want := range []string{`seine_frontier_queue_cap_urls{crawl="seine",shard="0"} `, `seine_frontier_memory_bytes{crawl="seine",shard="0"} `} {
		if _, value, ok := strings.Cut(served, want); !ok || value[0] == '0' {
			t.Errorf("%sis not above 0", want)
		}
	}
	if stats, err = f.Stats(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := stats[0]
	if huge := s.Known - 2 - 2*3 - 1; huge < 200 || huge > 500 || s.TurnedAway != 2000-huge || s.Done != s.Known {
		t.Errorf("%d links of the huge site were admitted, %+v", huge, s)
	}
	if text := s.Pressure(&settings); !strings.Contains(text, "links to queues of") {
		t.Error(text, s)
	}
	return served
}
