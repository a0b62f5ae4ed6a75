//go:build unix

package fetch

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serveNames answers questions after 5 ms: of a hundred names, that whose number
// ends in 11 fails and that in 22 is unknown. It knows A alone.
func serveNames() string {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	pc.(*net.UDPConn).SetReadBuffer(8 << 20)
	go func() {
		for {
			buf := make([]byte, 512)
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			time.AfterFunc(5*time.Millisecond, func() { pc.WriteTo(nameAnswer(buf[:n]), from) })
		}
	}()
	return pc.LocalAddr().String()
}

// nameAnswer makes the answer of a question: its header and question with flags
// set, and an address.
func nameAnswer(q []byte) []byte {
	end := 12
	for q[end] != 0 {
		end += int(q[end]) + 1
	}
	label := q[13 : 13+int(q[12])]
	qtype := q[end+2]
	a := append([]byte(nil), q[:end+5]...)
	a[2], a[3] = 0x81, 0x80
	copy(a[4:12], []byte{0, 1, 0, 0, 0, 0, 0, 0})
	switch last := string(label[max(0, len(label)-2):]); {
	case last == "11":
		a[3] |= 2
	case last == "22":
		a[3] |= 3
	case qtype == 1:
		a[7] = 1
		a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 127, 0, 0, 1)
	}
	return a
}

// BenchmarkNames resolves 300,000 names by a server in another process, a thousand
// at a time.
func BenchmarkNames(b *testing.B) {
	const names, workers = 300_000, 1000
	server := startBenchServer(b, "names")
	for b.Loop() {
		c := newClient(b, func(cfg *Config) { cfg.DNS = []string{server}; cfg.PerAddress = 0 })
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var next, found, none, failed, other atomic.Int64
		from, began := cpu(), time.Now()
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for i := next.Add(1); i <= names; i = next.Add(1) {
					_, err := c.Prepare(b.Context(), fmt.Sprintf("http://n%d.example/", i), "")
					switch class(err) {
					case "":
						found.Add(1)
					case ClassNoName:
						none.Add(1)
					case ClassDNS:
						failed.Add(1)
					default:
						other.Add(1)
					}
				}
			})
		}
		wg.Wait()
		took, spent := time.Since(began), cpu()-from
		runtime.GC()
		runtime.ReadMemStats(&after)
		if none.Load() != names/100 || failed.Load() != names/100 || other.Load() > 0 {
			b.Errorf("%d found, %d unknown, %d failed, %d otherwise", found.Load(), none.Load(), failed.Load(), other.Load())
		}
		b.ReportMetric(names/took.Seconds(), "names/s")
		b.ReportMetric(float64(spent.Nanoseconds())/names, "cpu-ns/name")
		b.ReportMetric(float64(int64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse))/float64(c.dialer.names.lru.Len()), "B/kept")
		b.ReportMetric(float64(after.Sys)/(1<<20), "MB-sys")
	}
	b.ReportMetric(0, "ns/op")
}
