//go:build unix

package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// serverEnv makes this test binary the server of a benchmark, so that its CPU
// is another process's.
const serverEnv = "SEINE_FETCH_BENCH_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(serverEnv); kind != "" {
		benchServer(kind)
		return
	}
	os.Exit(m.Run())
}

// docPage is a page of Debian's package python3.11-doc: 103 KB, 15 as gzip.
const docPage = "/usr/share/doc/python3.11/html/library/http.client.html"

// benchServer serves pages of /<bytes>, and /gzip/<bytes>, and docPage as /doc and
// in codings, until its standard input ends.
func benchServer(kind string) {
	if kind == "names" {
		fmt.Println(serveNames())
		io.Copy(io.Discard, os.Stdin)
		return
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	if kind == "tls" {
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{selfSigned("127.0.0.1")}})
	}
	if kind == "own" {
		ln = tls.NewListener(ln, &tls.Config{GetCertificate: ownCertificate(selfSigned(manyNames("issuer")...))})
	}
	if dir, ok := strings.CutPrefix(kind, "chains:"); ok {
		ln = tls.NewListener(ln, readChains(dir))
	}
	pages := make(map[string][]byte)
	for _, n := range []int{1 << 10, 16 << 10, 45056, 64 << 10, 256 << 10} {
		pages[fmt.Sprintf("/%d", n)] = page(n)
		pages[fmt.Sprintf("/gzip/%d", n)] = fasthttp.AppendGzipBytes(nil, page(n))
	}
	if p, err := os.ReadFile(docPage); err == nil {
		pages["/doc"], pages["/gzip/doc"] = p, fasthttp.AppendGzipBytes(nil, p)
		pages["/br/doc"], pages["/zstd/doc"] = fasthttp.AppendBrotliBytes(nil, p), fasthttp.AppendZstdBytes(nil, p)
	}
	srv := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("text/html; charset=utf-8")
		ctx.Response.Header.Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		ctx.Response.Header.Set("Etag", `"0123456789abcdef"`)
		ctx.Response.Header.Set("Cache-Control", "max-age=600")
		if coding, _, coded := strings.Cut(string(ctx.Path()[1:]), "/"); coded {
			ctx.Response.Header.Set("Content-Encoding", coding)
		}
		ctx.SetBody(pages[string(ctx.Path())])
	}}
	go srv.Serve(ln)
	fmt.Println(ln.Addr())
	io.Copy(io.Discard, os.Stdin)
}

// ownCertificate gives each name a certificate of its own, of the size that they have on
// the web, and one beside it.
func ownCertificate(beside tls.Certificate) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		own := selfSigned(manyNames(hello.ServerName)...)
		own.Certificate = append(own.Certificate, beside.Certificate...)
		return &own, nil
	}
}

func manyNames(name string) (all []string) {
	for i := range 20 {
		all = append(all, fmt.Sprintf("%s.%d.of-many-names.example", name, i))
	}
	return append(all, name)
}

// startBenchServer runs the server as a process and returns its address.
func startBenchServer(b testing.TB, kind string) string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"="+kind)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); cmd.Wait() })
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

// cpu is the time this process computed so far.
func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkKeepAlive compares CPU per page with a bare fasthttp loop over one
// kept connection each; the two take turns so that a busy machine hits both.
func BenchmarkKeepAlive(b *testing.B) {
	addr := startBenchServer(b, "plain")
	for _, size := range []int{1024, 45056} {
		url := fmt.Sprintf("http://%s/%d", addr, size)
		bare := bareLoop(b, addr, url, size)
		ours := fetchLoop(b, url, size, nil)
		b.Run(fmt.Sprintf("bare/%d", size), func(b *testing.B) { perPage(b, bare) })
		b.Run(fmt.Sprintf("fetch/%d", size), func(b *testing.B) { perPage(b, ours) })
		b.Run(fmt.Sprintf("ratio/%d", size), func(b *testing.B) {
			var spent [2]time.Duration
			for b.Loop() {
				for i, f := range [...]func(){bare, ours} {
					from := cpu()
					for range 200 {
						f()
					}
					spent[i] += cpu() - from
				}
			}
			b.ReportMetric(float64(spent[1])/float64(spent[0]), "fetch/bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func perPage(b *testing.B, f func()) {
	b.ReportAllocs()
	from := cpu()
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64((cpu()-from).Nanoseconds())/float64(b.N), "cpu-ns/page")
}

func bareLoop(b *testing.B, addr, url string, size int) func() {
	hc := &fasthttp.HostClient{Addr: addr, MaxIdemponentCallAttempts: 1, ReadBufferSize: 16 << 10,
		ReadTimeout: 20 * time.Second, WriteTimeout: 20 * time.Second, DisablePathNormalizing: true}
	b.Cleanup(hc.CloseIdleConnections)
	var req fasthttp.Request
	var resp fasthttp.Response
	resp.KeepBodyBuffer = true
	return func() {
		req.Reset()
		req.SetRequestURI(url)
		if err := hc.Do(&req, &resp); err != nil || len(resp.Body()) != size {
			b.Fatal(err, len(resp.Body()))
		}
	}
}

func fetchLoop(b *testing.B, url string, size int, change func(*Config)) func() {
	c := newClient(b, change)
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	req := &Request{URL: url}
	var resp Response
	return func() {
		var h counter
		if err := c.Do(ctx, req, &resp, &h); err != nil || h.n != int64(size) {
			b.Fatal(err, h.n)
		}
	}
}

// BenchmarkIdleHosts is what a host with one idle connection costs: here, and
// as one fasthttp.HostClient a host, whose cleaner is a goroutine each.
func BenchmarkIdleHosts(b *testing.B) {
	const hosts = 4000
	measure := func(b *testing.B, visit func(i int), drop func()) {
		var before, after runtime.MemStats
		for round := 0; b.Loop(); round++ {
			runtime.GC()
			runtime.ReadMemStats(&before)
			running := runtime.NumGoroutine()
			for i := range hosts {
				visit(i)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if round == 0 { // later ones find the memory of earlier ones
				used := after.HeapInuse + after.StackInuse - before.HeapInuse - before.StackInuse
				b.ReportMetric(float64(int64(used))/hosts, "B/host")
				b.ReportMetric(float64(runtime.NumGoroutine()-running)/hosts, "goroutines/host")
			}
			drop()
		}
	}
	addr := startBenchServer(b, "plain")
	b.Run("hostclient", func(b *testing.B) {
		all := make([]*fasthttp.HostClient, hosts)
		measure(b, func(i int) {
			all[i] = &fasthttp.HostClient{Addr: addr, ReadBufferSize: 16 << 10, MaxIdleConnDuration: time.Second}
			if code, _, err := all[i].Get(nil, fmt.Sprintf("http://h%d.example/1024", i)); err != nil || code != 200 {
				b.Fatal(code, err)
			}
		}, func() {
			for i := range all {
				all[i].CloseIdleConnections()
				all[i] = nil
			}
		})
	})
	for _, scheme := range []string{"http", "https"} {
		b.Run("pool/"+scheme, func(b *testing.B) {
			if scheme == "https" {
				addr = startBenchServer(b, "tls")
			}
			c := newClient(b, func(cfg *Config) { cfg.ConnectTo, cfg.InsecureSkipVerify = []string{"::" + addr}, true })
			var resp Response
			measure(b, func(i int) {
				if err := c.Do(context.Background(), &Request{URL: fmt.Sprintf("%s://h%d.example/1024", scheme, i)}, &resp, &counter{}); err != nil {
					b.Fatal(err)
				}
			}, func() { c.pool.expire(time.Now().Add(time.Hour)) })
		})
	}
}
