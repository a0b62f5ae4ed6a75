package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seine/extract/sink"
	"seine/extract/sink/sinktest"
	"seine/shard"
	"seine/shard/shardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, cfg Config) *Sink {
	t.Helper()
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// client is one that tests look with.
func client(t testing.TB, server *shardtest.Server) *shard.Client {
	t.Helper()
	c, err := shard.Open(context.Background(), shard.Config{Addrs: server.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// urls are those of records waiting at a key.
func urls(t testing.TB, c *shard.Client, key string, stream bool) (all []string) {
	t.Helper()
	ctx := context.Background()
	var lines []string
	var err error
	if stream {
		for _, m := range c.Redis().XRange(ctx, key, "-", "+").Val() {
			lines = append(lines, m.Values["record"].(string))
		}
	} else if lines, err = c.Redis().LRange(ctx, key, 0, -1).Result(); err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		var r sink.Record
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r.URL)
	}
	return all
}

func TestContract(t *testing.T) {
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		for name, masters := range map[string]int{"one": 0, "cluster": 3} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/stream=%v", name, stream), func(t *testing.T) {
					server := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: masters})
					n := 0
					sinktest.Run(t, func(t *testing.T) sinktest.Target {
						n++
						key := fmt.Sprintf("crawl%d:items", n)
						c := client(t, server)
						return sinktest.Target{
							Open: func(t *testing.T) sink.Sink {
								return open(t, Config{Server: shard.Config{Addrs: server.Addrs}, Key: key, Stream: stream, Fields: sink.AllFields})
							},
							URLs: func(t *testing.T) []string { return urls(t, c, key, stream) },
							Break: func(t *testing.T) func() { // full
								set := func(max string) {
									for _, node := range server.Nodes {
										node.Do(t, "CONFIG", "SET", "maxmemory", max)
									}
								}
								set("1")
								return func() { set("0") }
							},
						}
					})
				})
			}
		}
	})
}

// The crawl waits while consumers lag, and goes on when they pop, as scrapy-redis
// does: nothing is missing, in order.
func TestConsumersLag(t *testing.T) {
	server := shardtest.One(t)
	c := client(t, server)
	const bound = 100_000
	s := open(t, Config{Server: shard.Config{Addrs: server.Addrs}, Key: "crawl:items", MaxBytes: bound, MaxPending: 10_000})
	const n = 5000
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range n {
			s.Write(sinktest.Record(i), func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
	}()
	sinktest.Until(t, "it waits", func() bool { return errors.Is(s.Err(), errLag) })
	if size := c.Redis().MemoryUsage(context.Background(), "crawl:items").Val(); size > 2*bound {
		t.Errorf("%d bytes", size)
	}
	for i := range n {
		got, err := c.Redis().BLPop(context.Background(), time.Minute, "crawl:items").Result()
		if err != nil || !strings.Contains(got[1], `"url":"`+sinktest.Record(i).URL+`"`) {
			t.Fatalf("record %d: %v, %v", i, got, err)
		}
	}
	<-ended
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// What all groups of a stream have read and acknowledged does not hold the crawl; what one
// has not stays.
func TestStreamTrimmed(t *testing.T) {
	server := shardtest.One(t)
	node := server.Nodes[0]
	ctx := context.Background()
	const bound, n = 100_000, 3000
	s := open(t, Config{Server: shard.Config{Addrs: server.Addrs}, Key: "items", Stream: true, MaxBytes: bound, MaxPending: 10_000})
	for _, group := range []string{"a", "b"} {
		node.Do(t, "XGROUP", "CREATE", "items", group, "0", "MKSTREAM")
	}
	c := client(t, server)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range n {
			s.Write(sinktest.Record(i), func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
	}()
	sinktest.Until(t, "it waits", func() bool { return errors.Is(s.Err(), errLag) })
	read := func(group string, most int) (got int) {
		for got < most {
			reply, err := c.Redis().Do(ctx, "XREADGROUP", "GROUP", group, "c", "COUNT", 100, "BLOCK", 60000, "STREAMS", "items", ">").Slice()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range reply[0].([]any)[1].([]any) {
				got++
				if err := c.Redis().Do(ctx, "XACK", "items", group, e.([]any)[0]).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		return got
	}
	length := c.Redis().XLen(ctx, "items").Val()
	read("a", int(length)) // the other has read nothing
	if now := c.Redis().XLen(ctx, "items").Val(); now < length {
		t.Errorf("%d entries are left of %d, though a group has not read them", now, length)
	}
	other := make(chan int)
	go func() { other <- read("b", n) }()
	if got := read("a", n-int(length)); got != n-int(length) {
		t.Errorf("group a read %d", got)
	}
	if got := <-other; got != n {
		t.Errorf("group b read %d of %d", got, n)
	}
	<-ended
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A user who may not ask what a key takes is refused at the start.
func TestMemoryUsageRefused(t *testing.T) {
	server := shardtest.One(t)
	server.Nodes[0].Do(t, "ACL", "SETUSER", "out", "on", ">pw", "~*", "+@all", "-memory")
	t.Cleanup(func() { server.Nodes[0].Do(t, "ACL", "DELUSER", "out") })
	_, err := Open(t.Context(), Config{Server: shard.Config{Addrs: []string{"redis://out@" + server.Addrs[0]}, Password: "pw"}, Key: "items"})
	if err == nil || !strings.Contains(err.Error(), "+memory|usage") {
		t.Errorf("wrong reason: %v", err)
	}
}

// Where the server is the frontier's too, nothing is appended over its watermark.
func TestMemoryHigh(t *testing.T) {
	server := shardtest.One(t)
	s := open(t, Config{Server: shard.Config{Addrs: server.Addrs}, Key: "crawl:items", MemoryHigh: 50})
	c := client(t, server)
	server.Nodes[0].Do(t, "SET", "filler", strings.Repeat("x", 4<<20))
	server.Nodes[0].Do(t, "CONFIG", "SET", "maxmemory", "8mb")
	done := make(chan error, 1)
	s.Write(sinktest.Record(0), func(err error) { done <- err })
	sinktest.Until(t, "it waits", func() bool { return errors.Is(s.Err(), errHigh) })
	if n := c.Redis().Exists(context.Background(), "crawl:items").Val(); n != 0 {
		t.Error("appended over the watermark")
	}
	server.Nodes[0].Do(t, "CONFIG", "SET", "maxmemory", "64mb")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A server that stands still, or is killed and comes back, gets each record
// once: a call whose reply was lost differs from a new one.
func TestKilledAndSlow(t *testing.T) {
	server := shardtest.Start(t, shardtest.Config{AOF: "always"})
	node := server.Nodes[0]
	s := open(t, Config{Server: shard.Config{Addrs: server.Addrs, TryTimeout: 300 * time.Millisecond}, Key: "crawl:items", MaxPending: 50_000})
	end, ended := make(chan struct{}), make(chan struct{})
	n := 0
	go func() {
		defer close(ended)
		for ; ; n++ {
			select {
			case <-end:
				return
			default:
			}
			s.Write(sinktest.Record(n), func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
	}()
	grows := func() {
		from := s.QueueStats().Kept
		sinktest.Until(t, "it writes", func() bool { return s.QueueStats().Kept > from+500 })
	}
	for range 3 {
		grows()
		node.Kill(t)
		node.Restart(t)
		grows()
		node.Stop(t)
		sinktest.Until(t, "the queue is full", func() bool { return s.QueueStats().Pending > 40_000 })
		time.Sleep(400 * time.Millisecond) // calls time out and are repeated
		node.Cont(t)
	}
	grows()
	close(end)
	<-ended
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	seen := map[string]int{}
	for _, u := range urls(t, client(t, server), "crawl:items", false) {
		seen[u]++
	}
	for i := range n {
		if c := seen[sinktest.Record(i).URL]; c != 1 {
			t.Fatalf("record %d of %d is there %d times", i, n, c)
		}
	}
}

// What can be seen at the start is refused at the start.
func TestRefused(t *testing.T) {
	server := shardtest.One(t)
	node := server.Nodes[0]
	node.Do(t, "SET", "text", "x")
	node.Do(t, "ACL", "SETUSER", "crawler", "on", ">right", "~*", "+@all")
	addr := server.Addrs[0]
	if _, err := Open(context.Background(), Config{Server: shard.Config{Addrs: []string{addr}}, Key: "text"}); err == nil || !strings.Contains(err.Error(), "holds a string") {
		t.Error(err)
	}
	if _, err := Open(context.Background(), Config{Server: shard.Config{Addrs: []string{addr}, Username: "crawler", Password: "wrongword"}, Key: "k"}); err == nil || strings.Contains(err.Error(), "wrongword") {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("right\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Parse("redis://crawler@"+addr+"?stream=mine&max_bytes=1000&password_file="+file, Config{Key: "crawl:items", MemoryHigh: 80})
	if err != nil || cfg.Key != "mine" || !cfg.Stream || cfg.MaxBytes != 1000 || cfg.MemoryHigh != 0 {
		t.Fatalf("%+v, %v", cfg, err)
	}
	s := open(t, cfg)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	own := Config{Server: shard.Config{Addrs: server.Addrs, Password: "ours"}, Key: "crawl:items", MemoryHigh: 80}
	if cfg, err := Parse("redis://crawler@"+addr+"/0?key=x", own); err != nil || cfg.MemoryHigh != 80 || cfg.Server.Password != "ours" {
		t.Errorf("the crawl's own server by another name: %+v, %v", cfg, err)
	}
	if cfg, err := Parse("redis://127.0.0.1:1?key=x", own); err != nil || cfg.MemoryHigh != 0 || cfg.Server.Password != "" {
		t.Errorf("another server: %+v, %v", cfg, err)
	}
	if cfg, err := Parse("redis:", own); err != nil || cfg.Key != own.Key || cfg.MemoryHigh != 80 {
		t.Errorf("%+v, %v", cfg, err)
	}
	for _, address := range []string{"redis:x", "redis:?max_bytes=x", "redis:?keys=x", "redis://h?password_file=/nowhere", "redis://"} {
		if _, err := Parse(address, own); err == nil {
			t.Errorf("%s is taken", address)
		}
	}
}

// A sink whose user lacks a right appends nothing, however often it tries.
func TestRightMissing(t *testing.T) {
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		server := shardtest.Start(t, shardtest.Config{Kind: kind})
		c := client(t, server)
		for _, stream := range []bool{false, true} {
			for _, right := range []string{"rpush", "xadd", "hset", "hget", "expire", "memory|usage"} {
				server.Nodes[0].Do(t, "acl", "setuser", "app", "reset", "on", ">secret", "~*", "&*", "+@all", "-"+right)
				key := fmt.Sprint("items:", right, stream)
				cfg := Config{Server: shard.Config{Addrs: []string{"redis://app:secret@" + server.Addrs[0]}}, Key: key, Stream: stream, Fields: sink.AllFields}
				if right == "memory|usage" { // the one that Open asks for
					if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "+memory|usage") {
						t.Errorf("without %s, stream %v: opened: %v", right, stream, err)
					}
					continue
				}
				s := open(t, cfg)
				need := right != "rpush" && right != "xadd" || (right == "xadd") == stream
				written := make(chan error, 1)
				s.Write(&sink.Record{URL: "http://a.example/"}, func(err error) { written <- err })
				if err := s.Close(); need == (err == nil) {
					t.Errorf("without %s, stream %v: %v", right, stream, err)
				}
				if err := <-written; need == (err == nil) {
					t.Errorf("without %s, stream %v: written: %v", right, stream, err)
				}
				if got := urls(t, c, key, stream); need && len(got) > 0 {
					t.Errorf("without %s, stream %v: %v was appended", right, stream, got)
				}
			}
		}
	})
}
