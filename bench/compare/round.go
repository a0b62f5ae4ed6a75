package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"seine/bench/load"
	"seine/extract/sink"
)

// Names of what is measured.
const (
	bare     = "bare loop"
	floor    = "floor"
	embedded = "embedded"
	cluster  = "cluster"
)

// measure is one crawl.
type measure struct {
	name  string
	rate  float64 // pages a second
	cpu   float64 // microseconds of this program's processor time a page
	redis float64 // and of all masters'
}

func (m measure) String() string {
	text := fmt.Sprintf("%.1f pages/s", m.rate)
	if m.cpu > 0 {
		text += fmt.Sprintf(" %.2f us/page", m.cpu)
	}
	if m.redis > 0 {
		text += fmt.Sprintf(" %.2f redis-us/page", m.redis)
	}
	return text
}

type runner struct {
	options
	dir     string
	masters load.Masters
	server  *load.Server
	way     way
	roots   string   // file of the certificates to trust, "" for http
	paths   []string // of each site, with status 200
	pages   int      // of each site, whatever their status
}

// learn crawls a site to know the URLs that the others fetch, and asks the rivals
// for the same pages of two.
func (r *runner) learn() error {
	_, pages, err := r.crawl(1, "--embedded")
	if err != nil {
		return err
	}
	r.pages = pages
	f, err := os.Open(r.file("pages.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var page struct {
			URL    string
			Status int
		}
		if err := json.Unmarshal(lines.Bytes(), &page); err != nil {
			return err
		}
		if path, ok := strings.CutPrefix(page.URL, r.server.URL(0, "")); ok && page.Status == 200 {
			r.paths = append(r.paths, path)
		}
	}
	for _, v := range r.rivals {
		if err := r.finds(v); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (r *runner) round() ([]measure, error) {
	steps := []func() (measure, error){
		r.wrk,
		func() (measure, error) { return r.loop(bare, func([]byte, string) error { return nil }) },
		r.floor,
		func() (measure, error) { return r.whole(embedded, "--embedded") },
	}
	for _, v := range r.rivals {
		steps = append(steps, func() (measure, error) { return r.rival(v) })
	}
	if r.redis != "" {
		steps = append(steps, r.cluster)
	}
	return inTurn(steps)
}

// inTurn takes all measures that there are.
func inTurn(steps []func() (measure, error)) ([]measure, error) {
	var all []measure
	for _, step := range steps {
		m, err := step()
		if err != nil {
			return nil, err
		}
		if m.rate > 0 {
			all = append(all, m)
		}
	}
	return all, nil
}

// cluster is the fetcher on Redis.
func (r *runner) cluster() (measure, error) {
	before, err := r.masters.Used()
	if err != nil {
		return measure{}, err
	}
	m, err := r.whole(cluster, r.onRedis()...)
	if err != nil {
		return m, err
	}
	after, err := r.masters.Used()
	m.redis = after.Minus(before).All().Seconds() * 1e6 / float64(r.pages*r.web.sites)
	return m, err
}

// onRedis are the flags of a further crawl on Redis.
func (r *runner) onRedis() []string {
	name := fmt.Sprintf("compare-%d", time.Now().UnixNano())
	return []string{"--redis", r.redis, "--crawl", name, "--shards", strconv.Itoa(len(strings.Split(r.redis, ","))), "--plan-urls", "1M", "--exit-when-done"}
}

// whole crawls all sites to the end.
func (r *runner) whole(name string, args ...string) (measure, error) {
	o, pages, err := r.crawl(r.web.sites, args...)
	if err != nil {
		return measure{}, err
	}
	if want := r.pages * r.web.sites; pages != want {
		return measure{}, fmt.Errorf("%s: %d pages, not %d", name, pages, want)
	}
	return measured(name, o, float64(pages)), nil
}

// crawl runs the fetcher once over some sites and counts its records.
func (r *runner) crawl(sites int, args ...string) (*load.Outcome, int, error) {
	out := r.file("pages.jsonl")
	os.Remove(out)
	seeds := r.file("seeds")
	if err := os.WriteFile(seeds, []byte(strings.Join(r.seeds(sites), "\n")+"\n"), 0o600); err != nil {
		return nil, 0, err
	}
	args = append(args, "--delay", "0s", "--per-site", strconv.Itoa(perSite), "--allow-net", "127.0.0.0/8", "--per-address", "0", "--out", out, "--file", seeds, "--log-level", "error")
	if r.roots != "" {
		args = append(args, "--ca", r.roots)
	}
	if r.way.first { // links lead nowhere
		args = append(args, "--robots", "ignore", "--allow", "^none:", "--concurrency", strconv.Itoa(firstWorkers))
	}
	o, err := timed(r.fetcher, args, 10*time.Minute)
	if err != nil {
		return nil, 0, err
	}
	pages, err := r.lines(out, 0, func([]byte) bool { return true })
	return o, pages, err
}

// seeds are the first pages of some sites.
func (r *runner) seeds(sites int) []string {
	var all []string
	for i := range sites {
		path := "/index.html"
		if r.way.first {
			path = r.pathsOf(i)[0]
		}
		all = append(all, r.server.URL(i, path))
	}
	return all
}

// lines counts those of a file from a place on.
func (r *runner) lines(name string, from int64, count func(line []byte) bool) (int, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	n := 0
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if count(line) {
			n++
		}
	}
}

// timed runs a crawler and cuts it off when its time is over.
func timed(name string, args []string, most time.Duration) (*load.Outcome, error) {
	p, err := load.Run(0, name, args...)
	if err != nil {
		return nil, err
	}
	return p.Wait(most)
}

// measured is what a crawl of so many pages came to.
func measured(name string, o *load.Outcome, pages float64) measure {
	return measure{name: name, rate: pages / o.Wall.Seconds(), cpu: o.Used.All().Seconds() * 1e6 / pages}
}

// finds lets another crawler show that it finds the same pages, but for a few:
// what is a page and what a link differs a little.
func (r *runner) finds(v rival) error {
	const sites = 2
	o, err := r.start(v, sites, 5*time.Minute)
	if err != nil {
		return err
	}
	pages, err := strconv.ParseFloat(strings.TrimSpace(o.Out), 64)
	if want := float64(r.pages * sites); err != nil || math.Abs(pages-want) > want/50 {
		return fmt.Errorf("%s found %q pages, not %.0f: %s", v.name, o.Out, want, o.Log)
	}
	return nil
}

func (r *runner) start(v rival, sites int, most time.Duration) (*load.Outcome, error) {
	args := append(slices.Clone(v.command), r.file("rival.jsonl"))
	os.Remove(r.file("rival.jsonl"))
	return timed("env", append(append([]string{"SSL_CERT_FILE=" + r.roots}, args...), r.seeds(sites)...), most)
}

// rivalTime is how long another crawler has.
const rivalTime = 25 * time.Second

// rival runs another crawler over all sites for a while. Its pages are those that
// nginx was asked for.
func (r *runner) rival(v rival) (measure, error) {
	log := r.server.Log()
	before, err := os.Stat(log)
	if err != nil {
		return measure{}, err
	}
	o, err := r.start(v, r.web.sites, rivalTime)
	if err != nil {
		return measure{}, err
	}
	pages, err := r.lines(log, before.Size(), func(line []byte) bool { return !bytes.Contains(line, []byte("robots.txt")) })
	if err == nil && pages == 0 {
		err = fmt.Errorf("%s asked for nothing: %s", v.name, o.Log)
	}
	return measured(v.name, o, float64(pages)), err
}

// floor is the bare loop, and what no crawler can leave out.
func (r *runner) floor() (measure, error) {
	f, err := os.Create(r.file("floor.jsonl"))
	if err != nil {
		return measure{}, err
	}
	defer f.Close()
	var mu sync.Mutex
	out := bufio.NewWriterSize(f, 1<<20)
	var line []byte
	tags := 0
	m, err := r.loop(floor, func(body []byte, url string) error {
		n := 0
		for i := bytes.IndexByte(body, '<'); i >= 0; n++ {
			next := bytes.IndexByte(body[i+1:], '<')
			if next < 0 {
				break
			}
			i += 1 + next
		}
		record := sink.Record{V: 1, URL: url, Status: 200, FetchedAt: time.Now(), ContentType: "text/html", Bytes: int64(len(body)), Links: n}
		mu.Lock()
		defer mu.Unlock()
		tags += n
		line = append(record.AppendJSON(line[:0], 0), '\n')
		_, err := out.Write(line)
		return err
	})
	if err == nil && tags == 0 {
		err = errors.New("floor: pages without tags")
	}
	return m, errors.Join(err, out.Flush())
}

// pathsOf are those of a site's pages that are asked for.
func (r *runner) pathsOf(site int) []string {
	if r.way.first {
		i := site % len(r.paths)
		return r.paths[i : i+1]
	}
	return r.paths
}

// atOnce is how many sites a loop asks at once.
const atOnce = 480

// loop fetches every URL once, a goroutine a site, with nothing but fasthttp, and
// hands each body on, unpacked.
func (r *runner) loop(name string, body func(body []byte, url string) error) (measure, error) {
	tlsConfig, err := r.tls()
	if err != nil {
		return measure{}, err
	}
	errs := make(chan error, r.web.sites)
	room := make(chan struct{}, atOnce)
	usedBefore, start := cpuTime(), time.Now()
	var wg sync.WaitGroup
	pages := 0.0
	for i := range r.web.sites {
		room <- struct{}{}
		paths := r.pathsOf(i)
		pages += float64(len(paths))
		wg.Go(func() {
			defer func() { <-room }()
			host := strings.TrimPrefix(r.server.URL(i, ""), r.server.Scheme()+"://")
			client := &fasthttp.HostClient{Addr: host, IsTLS: tlsConfig != nil, TLSConfig: tlsConfig, ReadBufferSize: 32 << 10,
				Dial: func(addr string) (net.Conn, error) { return fasthttp.DialTimeout(addr, time.Minute) }}
			defer client.CloseIdleConnections()
			req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			for _, path := range paths {
				u := r.server.URL(i, path)
				req.SetRequestURI(u)
				err := client.Do(req, resp)
				var text []byte
				if err == nil {
					text, err = resp.BodyUncompressed()
				}
				if err == nil {
					err = body(text, u)
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	wall, used := time.Since(start), cpuTime()-usedBefore
	select {
	case err := <-errs:
		return measure{}, err
	default:
	}
	return measure{name: name, rate: pages / wall.Seconds(), cpu: used.Seconds() * 1e6 / pages}, nil
}

// tls is how the loop verifies servers, nil for http.
func (r *runner) tls() (*tls.Config, error) {
	if r.roots == "" {
		return nil, nil
	}
	text, err := os.ReadFile(r.roots)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(0)}, nil
}

func cpuTime() time.Duration {
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// wrk asks one host for the same files over 64 connections; 0 without wrk.
func (r *runner) wrk() (measure, error) {
	bin, err := exec.LookPath("wrk")
	if err != nil {
		return measure{}, nil
	}
	var paths strings.Builder
	paths.WriteString("local p={\n")
	for _, u := range r.paths {
		fmt.Fprintf(&paths, "%q,\n", u)
	}
	paths.WriteString("}\nlocal i=0\nrequest=function() i=i%#p+1 return wrk.format('GET',p[i]) end\n")
	script := r.file("paths.lua")
	if err := os.WriteFile(script, []byte(paths.String()), 0o600); err != nil {
		return measure{}, err
	}
	out, err := exec.Command(bin, "-t", "1", "-c", "64", "-d", "2s", "-s", script, r.server.URL(0, "/")).Output()
	if err != nil {
		return measure{}, fmt.Errorf("wrk: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, "Requests/sec:"); ok {
			rate, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			return measure{name: "wrk, one host", rate: rate}, err
		}
	}
	return measure{}, fmt.Errorf("wrk printed no rate: %s", out)
}
