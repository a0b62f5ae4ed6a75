//go:build unix

package fetch

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkFetch is the processor time that a page takes here, by its size and
// by how its connection comes: kept, kept and encrypted, opened for it, bound to one of
// fourteen addresses; and of a
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
	bound := func(cfg *Config) { cfg.Bind = []string{"127.0.0.0/28"} }
	b.Run("kept bound/1KB", func(b *testing.B) { perPage(b, fetchLoop(b, "http://"+plain+"/1024", 1<<10, bound)) })
	for name, change := range map[string]func(*Config){"fresh/1KB": nil, "fresh bound/1KB": bound} {
		b.Run(name, func(b *testing.B) {
			c := newClient(b, change)
			var resp Response
			perPage(b, func() {
				if err := c.Do(context.Background(), &Request{URL: "http://" + plain + "/1024"}, &resp, &counter{}); err != nil {
					b.Fatal(err)
				}
				c.pool.expire(time.Now().Add(time.Hour))
			})
		})
	}
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
	const addressUse = 50
	for b.Loop() {
		for i, fetch := range loops {
			from := cpu()
			for range addressUse {
				fetch()
			}
			spent[i] += cpu() - from
		}
	}
	for i, name := range names {
		b.ReportMetric(float64(spent[i].Nanoseconds())/1e3/float64(addressUse*b.N), name+"-us/page")
	}
	b.ReportMetric(0, "ns/op")
}

// TestIdleBytes: what the books say of an idle connection is what it takes of the heap,
// whatever the size of the records that it has read.
func TestIdleBytes(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	const hosts = 300
	for _, scheme := range []string{"http", "https"} {
		addr := startBenchServer(t, map[string]string{"http": "plain", "https": "own"}[scheme])
		for _, size := range []int{1 << 10, 16 << 10, 256 << 10} {
			for _, resumed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s,%dKB,resumed=%v", scheme, size>>10, resumed), func(t *testing.T) {
					c := newClient(t, func(cfg *Config) { cfg.ConnectTo, cfg.InsecureSkipVerify = []string{"::" + addr}, true })
					visit := func(from, to int) {
						for n := from; n < to; n++ {
							var resp Response
							if err := c.Do(t.Context(), &Request{URL: fmt.Sprintf("%s://h%d.example/%d", scheme, n, size)}, &resp, &counter{}); err != nil {
								t.Fatal(err)
							}
						}
					}
					if resumed {
						visit(0, hosts)
						c.pool.expire(time.Now().Add(time.Hour))
					}
					visit(hosts, hosts+1) // pools of buffers are filled
					before, booked := heapBytes(), c.idleBytes()
					visit(0, hosts)
					got, books := (heapBytes()-before)/hosts, (c.idleBytes()-booked)/hosts
					t.Logf("%d bytes, the books say %d", got, books)
					if st := c.Stats(); st.Idle != hosts+1 || scheme == "https" && (st.Resumed >= hosts) != resumed {
						t.Fatalf("%+v", st)
					}
					if got > books*11/10 || got < books*6/10 {
						t.Errorf("%d bytes, the books say %d", got, books)
					}
				})
			}
		}
	}
}

// idleBytes is what the books say that idle connections and sessions take.
func (c *Client) idleBytes() int64 { return c.pool.bytes + c.secure.sessions.Bytes() }

// heapBytes is what lives in the heap.
func heapBytes() int64 {
	var s runtime.MemStats
	for range 3 { // what finalizers let go of too
		runtime.GC()
	}
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// sitesEnv is how many sites TestReturns visits.
const sitesEnv = "SEINE_FETCH_SITES"

// TestReturns: where a fetcher goes back to each of very many sites, in any order, at
// least 95% of the connections are resumed or reused, in a KB of memory for each site.
func TestReturns(t *testing.T) {
	sites, err := strconv.Atoi(cmp.Or(os.Getenv(sitesEnv), "1000"))
	if err != nil {
		t.Fatal(sitesEnv, err)
	}
	dir := t.TempDir()
	roots := writeChains(t, dir)
	addr := startBenchServer(t, "chains:"+dir)
	before := heapBytes()
	c := newClient(t, func(cfg *Config) {
		cfg.CAFile, cfg.ConnectTo, cfg.Memory = roots, []string{"*.example::" + addr}, int64(sites)*1000
	})
	const workers = 4
	round := func(seed uint64) (spent time.Duration) {
		order, from := rand.New(rand.NewPCG(seed, 0)).Perm(sites), cpu()
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				var resp Response
				for i := w; i < sites; i += workers {
					if err := c.Do(t.Context(), &Request{URL: fmt.Sprintf("https://n%d.p256.example/1024", order[i])}, &resp, &counter{}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		return cpu() - from
	}
	first := round(1)
	met := c.Stats()
	second := round(2)
	heap := heapBytes() - before
	st := c.Stats()
	resumed, reused := float64(st.Resumed-met.Resumed)/float64(sites), float64(st.Reused-met.Reused)/float64(sites)
	t.Logf("%d sites: %.1f%% resumed, %.1f%% reused; %d idle connections; sessions %d bytes a site; heap %d bytes a site; %d us a page at first, %d on return",
		sites, 100*resumed, 100*reused, st.Idle, c.secure.sessions.Bytes()/int64(sites), heap/int64(sites), first.Microseconds()/int64(sites), second.Microseconds()/int64(sites))
	if resumed+reused < 0.95 || met.Resumed > uint64(sites)/100 {
		t.Errorf("%+v", st)
	}
	if !raceEnabled && sites >= 10_000 && heap > int64(sites)*1000 {
		t.Errorf("%d bytes of the heap for %d sites", heap, sites)
	}
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
