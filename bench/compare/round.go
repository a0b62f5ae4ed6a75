package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"seine/bench/nginx"
)

// measure is one crawl.
type measure struct {
	rate  float64 // pages a second
	cpu   float64 // microseconds of this program's processor time a page
	redis float64 // and of all masters'
}

// round is every candidate once.
type round struct {
	wrk                   float64
	bare, embedded, fleet measure
	rivals                []measure
}

func (r round) String() string {
	return fmt.Sprintf("wrk %.0f, bare loop %.0f, embedded %.0f, cluster %.0f pages/s", r.wrk, r.bare.rate, r.embedded.rate, r.fleet.rate)
}

type runner struct {
	options
	dir   string
	web   *nginx.Server
	sites int
	urls  [][]string // with status 200, by site
	pages int
	count int // crawls so far
}

// learn crawls once to know the URLs that the others fetch.
func (r *runner) learn() error {
	if _, err := r.crawl("--embedded"); err != nil {
		return err
	}
	f, err := os.Open(r.file("pages.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	r.urls = make([][]string, r.sites)
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
		r.pages++
		for i := range r.urls {
			if page.Status == 200 && strings.HasPrefix(page.URL, r.web.URL(i, "/")) {
				r.urls[i] = append(r.urls[i], page.URL)
			}
		}
	}
	return lines.Err()
}

func (r *runner) round() (round, error) {
	var one round
	var err error
	if one.wrk, err = r.wrk(); err != nil {
		return one, err
	}
	if one.bare, err = r.bare(); err != nil {
		return one, err
	}
	if one.embedded, err = r.crawl("--embedded"); err != nil {
		return one, err
	}
	for _, rival := range r.rivals {
		m, err := r.rival(rival)
		if err != nil {
			return one, err
		}
		one.rivals = append(one.rivals, m)
	}
	if r.redis == "" {
		return one, nil
	}
	r.count++
	before, err := r.redisCPU()
	if err != nil {
		return one, err
	}
	name := fmt.Sprintf("compare-%d-%d", os.Getpid(), r.count)
	one.fleet, err = r.crawl("--redis", r.redis, "--crawl", name, "--shards", strconv.Itoa(len(strings.Split(r.redis, ","))), "--plan-urls", "1M", "--exit-when-done")
	if err != nil {
		return one, err
	}
	after, err := r.redisCPU()
	one.fleet.redis = (after - before).Seconds() * 1e6 / float64(r.pages)
	return one, err
}

// crawl runs the fetcher once over all sites.
func (r *runner) crawl(args ...string) (measure, error) {
	out := r.file("pages.jsonl")
	os.Remove(out)
	args = append(args, "--delay", "0s", "--allow-net", "127.0.0.0/8", "--out", out, "--log-level", "error")
	for i := range r.sites {
		args = append(args, "--seed", r.web.URL(i, "/index.html"))
	}
	o, err := timed(r.fetcher, args)
	if err != nil {
		return measure{}, err
	}
	records, err := os.ReadFile(out)
	if err != nil {
		return measure{}, err
	}
	pages := float64(bytes.Count(records, []byte("\n")))
	if r.pages > 0 && int(pages) != r.pages {
		return measure{}, fmt.Errorf("a crawl found %.0f pages, the first one %d", pages, r.pages)
	}
	return o.measure(pages), nil
}

// outcome is what a crawler printed, and the time that it and its processors took.
type outcome struct {
	out, log   string
	wall, used time.Duration
}

func (o *outcome) measure(pages float64) measure {
	return measure{rate: pages / o.wall.Seconds(), cpu: o.used.Seconds() * 1e6 / pages}
}

// timed runs a crawler.
func timed(name string, args []string) (*outcome, error) {
	cmd := exec.Command(name, args...)
	var text bytes.Buffer
	cmd.Stderr = &text
	start := time.Now()
	out, err := cmd.Output()
	wall := time.Since(start)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, text.String())
	}
	return &outcome{string(out), text.String(), wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// rival runs another crawler once over all sites. It counts if it found the same
// pages, but for a few: what is a page and what a link differs a little.
func (r *runner) rival(v rival) (measure, error) {
	args := append(slices.Clone(v.command[1:]), r.file("rival.jsonl"))
	for i := range r.sites {
		args = append(args, r.web.URL(i, "/index.html"))
	}
	os.Remove(r.file("rival.jsonl"))
	o, err := timed(v.command[0], args)
	if err != nil {
		return measure{}, err
	}
	pages, err := strconv.ParseFloat(strings.TrimSpace(o.out), 64)
	if err != nil || math.Abs(pages-float64(r.pages)) > float64(r.pages)/50 {
		return measure{}, fmt.Errorf("%s found %q pages, not %d: %s", v.name, o.out, r.pages, o.log)
	}
	return o.measure(pages), nil
}

// bare fetches every URL once, a goroutine a site, with nothing but fasthttp.
func (r *runner) bare() (measure, error) {
	errs := make(chan error, r.sites)
	pages := 0
	usedBefore, start := cpuTime(), time.Now()
	var wg sync.WaitGroup
	for i, urls := range r.urls {
		pages += len(urls)
		wg.Go(func() {
			host := strings.TrimPrefix(r.web.URL(i, ""), "http://")
			client := &fasthttp.HostClient{Addr: host, ReadBufferSize: 32 << 10}
			req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			for _, u := range urls {
				req.SetRequestURI(u)
				if err := client.Do(req, resp); err != nil {
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
	return measure{rate: float64(pages) / wall.Seconds(), cpu: used.Seconds() * 1e6 / float64(pages)}, nil
}

func cpuTime() time.Duration {
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// wrk asks one host for the same files over as many connections as there are
// sites; 0 without wrk.
func (r *runner) wrk() (float64, error) {
	bin, err := exec.LookPath("wrk")
	if err != nil {
		return 0, nil
	}
	var paths strings.Builder
	paths.WriteString("local p={\n")
	for _, u := range r.urls[0] {
		fmt.Fprintf(&paths, "%q,\n", strings.TrimPrefix(u, r.web.URL(0, "")))
	}
	paths.WriteString("}\nlocal i=0\nrequest=function() i=i%#p+1 return wrk.format('GET',p[i]) end\n")
	script := r.file("paths.lua")
	if err := os.WriteFile(script, []byte(paths.String()), 0o600); err != nil {
		return 0, err
	}
	out, err := exec.Command(bin, "-t", "1", "-c", strconv.Itoa(r.sites), "-d", "2s", "-s", script, r.web.URL(0, "/")).Output()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, "Requests/sec:"); ok {
			return strconv.ParseFloat(strings.TrimSpace(rest), 64)
		}
	}
	return 0, fmt.Errorf("wrk printed no rate: %s", out)
}

// redisCPU is the processor time that all masters have used.
func (r *runner) redisCPU() (time.Duration, error) {
	var total time.Duration
	for addr := range strings.SplitSeq(r.redis, ",") {
		host, port, _ := strings.Cut(addr, ":")
		out, err := exec.Command("redis-cli", "-h", host, "-p", port, "info", "cpu").Output()
		if err != nil {
			return 0, fmt.Errorf("redis-cli: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name == "used_cpu_sys" || name == "used_cpu_user" {
				s, err := strconv.ParseFloat(value, 64)
				if err != nil {
					return 0, err
				}
				total += time.Duration(s * float64(time.Second))
			}
		}
	}
	return total, nil
}
