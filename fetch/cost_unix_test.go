//go:build unix

package fetch

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
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

// BenchmarkServedAs is the processor time that a real page takes here, by how it is
// served, by turns.
func BenchmarkServedAs(b *testing.B) {
	info, err := os.Stat(docPage)
	if err != nil {
		b.Skip("SKIPPED: needs Debian's package python3.11-doc")
	}
	ways := []string{"http", "https"}
	base := map[string]string{"http": "http://" + startBenchServer(b, "plain"), "https": "https://" + startBenchServer(b, "tls")}
	var names []string
	var loops []func()
	for _, way := range ways {
		for _, path := range []string{"/doc", "/gzip/doc", "/br/doc", "/zstd/doc"} {
			coding, _, _ := strings.Cut(path[1:], "/")
			names = append(names, way+"-"+strings.Replace(coding, "doc", "plain", 1))
			loops = append(loops, fetchLoop(b, base[way]+path, int(info.Size()), func(cfg *Config) { cfg.InsecureSkipVerify = true }))
		}
	}
	spent := make([]time.Duration, len(loops))
	const turn = 50
	for b.Loop() {
		for i, fetch := range loops {
			from := cpu()
			for range turn {
				fetch()
			}
			spent[i] += cpu() - from
		}
	}
	for i, name := range names {
		b.ReportMetric(float64(spent[i].Nanoseconds())/1e3/float64(turn*b.N), name+"-us/page")
	}
	b.ReportMetric(0, "ns/op")
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
