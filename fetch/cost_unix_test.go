//go:build unix

package fetch

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkFetch is the processor time that a page takes here, by its size and
// by how its connection comes: kept, kept and encrypted, opened for it; and of a
// page that comes gzipped, whose size is that after inflating.
func BenchmarkFetch(b *testing.B) {
	plain, secure := startBenchServer(b, "plain"), startBenchServer(b, "tls")
	trust := func(cfg *Config) { cfg.InsecureSkipVerify = true }
	for _, size := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("kept/%dKB", size), func(b *testing.B) {
			perPage(b, fetchLoop(b, fmt.Sprintf("http://%s/%d", plain, size<<10), size<<10, nil))
		})
	}
	b.Run("kept TLS/1KB", func(b *testing.B) { perPage(b, fetchLoop(b, "https://"+secure+"/1024", 1<<10, trust)) })
	b.Run("kept TLS/64KB", func(b *testing.B) { perPage(b, fetchLoop(b, "https://"+secure+"/65536", 64<<10, trust)) })
	b.Run("gzip/64KB", func(b *testing.B) { perPage(b, fetchLoop(b, "http://"+plain+"/gzip/65536", 64<<10, nil)) })
	b.Run("fresh/1KB", func(b *testing.B) {
		c := newClient(b, nil)
		var resp Response
		perPage(b, func() {
			if err := c.Do(context.Background(), &Request{URL: "http://" + plain + "/1024"}, &resp, &counter{}); err != nil {
				b.Fatal(err)
			}
			c.pool.expire(time.Now().Add(time.Hour))
		})
	})
}

// BenchmarkInFlight is the memory of a request that waits for its answer, with
// its goroutine and what the kernel does not hold.
func BenchmarkInFlight(b *testing.B) {
	const requests = 1000
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	var accepted atomic.Int64
	var mu sync.Mutex
	var held []net.Conn // that are never answered
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			held = append(held, conn)
			mu.Unlock()
			accepted.Add(1)
		}
	}()
	for round := 0; b.Loop(); round++ {
		c := newClient(b, func(cfg *Config) { cfg.ConnectTo = []string{"::" + ln.Addr().String()} })
		ctx, cancel := context.WithCancel(context.Background())
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		want := accepted.Load() + requests
		var all sync.WaitGroup
		for i := range requests {
			all.Go(func() {
				var resp Response
				c.Do(ctx, &Request{URL: fmt.Sprintf("http://h%d.example/", i)}, &resp, &counter{})
			})
		}
		for accepted.Load() < want {
			time.Sleep(time.Millisecond) // nothing else tells when the last one waits
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if round == 0 { // later ones find the memory of earlier ones
			used := after.HeapInuse + after.StackInuse - before.HeapInuse - before.StackInuse
			b.ReportMetric(float64(int64(used))/requests, "B/request")
		}
		cancel()
		mu.Lock()
		for _, conn := range held {
			conn.Close()
		}
		held = held[:0]
		mu.Unlock()
		all.Wait()
	}
}
