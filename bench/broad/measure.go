package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"seine/bench/load"
)

// crawl is a row while it runs.
type crawl struct {
	options
	row
	dir     string
	name    string // in Redis
	origin  origin
	masters load.Masters
	fleet   []*fetcher
	samples []sample
	memory  float64 // of all masters in the end, bytes
}

// sample is what all fetchers and masters had come to at a time.
type sample struct {
	at             time.Time
	fetchers       load.Times
	redis, web     time.Duration
	rss, peak      float64 // bytes of all fetchers, and the most of one so far
	files, sockets int     // of the fetcher that has most
	bounds         []string
	metrics        map[string]float64 // sums over all fetchers
}

// measure runs one row.
func measure(o options, r row, stop <-chan os.Signal) (result, error) {
	dir, err := os.MkdirTemp("", "broad")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	if o.keep != "" {
		dir = o.keep
		if err := os.RemoveAll(dir); err != nil {
			return result{}, err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return result{}, err
		}
	}
	c := &crawl{options: o, row: r, dir: dir, name: fmt.Sprintf("broad-%d-%d", os.Getpid(), time.Now().Unix())}
	if c.origin, err = serve(dir, &r); err != nil {
		return result{}, err
	}
	err = c.run(stop)
	hits, e := c.origin.stop()
	if err = errors.Join(err, e); err != nil {
		return result{}, err
	}
	return c.judge(hits), nil
}

// run starts the fleet, watches it for the row's time, and ends it.
func (c *crawl) run(stop <-chan os.Signal) (err error) {
	if err := c.prepare(); err != nil {
		return err
	}
	if c.row.masters {
		defer func() { err = errors.Join(err, c.command("delete", c.name, "--yes")) }()
	}
	defer func() {
		for _, f := range c.fleet {
			f.stop()
		}
	}()
	if err := c.start(); err != nil {
		return err
	}
	return c.watch(stop)
}

// prepare writes the seeds and, on Redis, creates and seeds the crawl.
func (c *crawl) prepare() error {
	if err := os.WriteFile(c.seeds(), []byte(c.row.seeds(c.origin.port())), 0o600); err != nil {
		return err
	}
	if !c.row.masters {
		return nil
	}
	var err error
	if c.masters, err = load.FindMasters(c.redis); err != nil {
		return err
	}
	plan := max(1_000_000, 2*c.sites*c.pages)
	if err := c.command("create", append(c.polite(), "--shards", fmt.Sprint(len(c.masters)), "--plan-urls", fmt.Sprint(plan))...); err != nil {
		return err
	}
	return c.command("seed", "--file", c.seeds())
}

func (c *crawl) seeds() string { return filepath.Join(c.dir, "seeds") }

// polite are the settings of the crawl.
func (c *crawl) polite() []string {
	args := []string{"--jitter", "0"}
	if !slices.Contains(c.row.args, "--delay") {
		args = append(args, "--delay", delay.String())
	}
	for i := 0; i+1 < len(c.row.args); i += 2 {
		if c.row.args[i] == "--delay" {
			args = append(args, c.row.args[i:i+2]...)
		}
	}
	return args
}

// command runs frontier on the crawl.
func (c *crawl) command(name string, args ...string) error {
	args = append([]string{name, "--redis", c.redis, "--crawl", c.name}, args...)
	if out, err := exec.Command(c.frontier, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("frontier %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (c *crawl) start() error {
	for i := range c.row.fleet() {
		args := []string{"--allow-net", "127.0.0.0/8", "--out", filepath.Join(c.dir, fmt.Sprintf("records-%d", i))}
		if c.row.https {
			args = append(args, "--ca", filepath.Join(c.dir, "roots.pem"))
		}
		if c.row.masters {
			args = append(args, "--redis", c.redis, "--crawl", c.name)
		} else {
			args = append(append(args, "--embedded", "--file", c.seeds()), c.polite()...)
		}
		for i := 0; i+1 < len(c.row.args); i += 2 {
			if c.row.args[i] != "--delay" {
				args = append(args, c.row.args[i:i+2]...)
			}
		}
		f, err := startFetcher(c.fetcher, append(args, c.options.args...), c.row.files)
		if err != nil {
			return err
		}
		c.fleet = append(c.fleet, f)
	}
	return nil
}

// watch takes a sample a second until the time is over or a fetcher has ended.
func (c *crawl) watch(stop <-chan os.Signal) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	end := time.After(c.span)
	for {
		select {
		case <-stop:
			return errors.New("interrupted")
		case <-end:
			return c.enough()
		case <-tick.C:
		}
		s, err := c.sample()
		for _, f := range c.fleet {
			if err := f.Err(); err != nil {
				return err
			}
		}
		if err != nil {
			return c.enough() // the crawl is done
		}
		c.samples = append(c.samples, s)
	}
}

// enough ends the samples, if there are enough to judge from.
func (c *crawl) enough() error {
	if len(c.samples) < 4 {
		return fmt.Errorf("the crawl was over after %d seconds: too short to be judged", len(c.samples))
	}
	c.memory = c.masters.Memory()
	return nil
}

// sample fails when a process has ended.
func (c *crawl) sample() (sample, error) {
	s := sample{at: time.Now(), metrics: make(map[string]float64)}
	for _, f := range c.fleet {
		t, err := load.Used(f.Pid())
		if err != nil {
			return s, err
		}
		s.fetchers = s.fetchers.Plus(t)
		s.rss += load.Memory(f.Pid(), "VmRSS")
		s.peak = max(s.peak, load.Memory(f.Pid(), "VmHWM"))
		all, sockets := load.Files(f.Pid())
		s.files, s.sockets = max(s.files, all), max(s.sockets, sockets)
		metrics, err := f.readMetrics()
		if err != nil {
			s.bounds = append(s.bounds, "(no answer)")
		}
		for name, v := range metrics {
			if bound, ok := strings.CutPrefix(name, `seine_crawl_limited_by{bound="`); ok && v == 1 {
				s.bounds = append(s.bounds, strings.TrimSuffix(bound, `"}`))
			}
			s.metrics[name] += v
		}
	}
	redis, err := c.masters.Used()
	if err != nil {
		return s, err
	}
	s.redis = redis.All()
	if pid := c.origin.pid(); pid != 0 {
		t, err := load.Used(pid)
		if err != nil {
			return s, err
		}
		s.web = t.All()
	}
	return s, nil
}

// half is the first sample of the second half, and the last one.
func (c *crawl) half() (from, to sample) {
	to = c.samples[len(c.samples)-1]
	begin := c.samples[0].at
	i := slices.IndexFunc(c.samples, func(s sample) bool { return s.at.Sub(begin) >= to.at.Sub(begin)/2 })
	return c.samples[i], to
}

// judge makes a result of what the samples say and what the server saw.
func (c *crawl) judge(hits []hit) result {
	var got result
	from, to := c.half()
	pages, requests := 0.0, 0.0
	for _, h := range hits {
		if h.at.Before(from.at) || !h.at.Before(to.at) {
			continue
		}
		requests++
		if h.page {
			pages++
		}
	}
	seconds := to.at.Sub(from.at).Seconds()
	got.add("pages/s", pages/seconds)
	got.add("requests/s", requests/seconds)
	g := judge(hits, delay)
	if allowed := c.allowed(); allowed > 0 {
		end := to.at.Add(-2 * delay) // what comes after tells what a request of before is divided over
		got.add("of-allowed", asked(hits, from.at, end)/end.Sub(from.at).Seconds()/allowed)
	}
	c.costs(&got, pages)
	if c.sites > 1 {
		got.add("short-gaps", float64(g.short))
		got.add("unjudged-gaps", float64(g.unknown))
		got.add("least-gap-ms", float64(g.least.Microseconds())/1e3)
	}
	got.bounds = c.bounds(from.at)
	return got
}

// costs is what the pages of the second half took, and the most of what was
// in use.
func (c *crawl) costs(got *result, pages float64) {
	from, to := c.half()
	a := func(t time.Duration) float64 { return float64(t.Microseconds()) / max(pages, 1) }
	cpu := to.fetchers.Minus(from.fetchers)
	got.add("us/page", a(cpu.All()))
	got.add("user-us/page", a(cpu.User))
	got.add("kernel-us/page", a(cpu.Kernel))
	if c.row.masters {
		got.add("redis-us/page", a(to.redis-from.redis))
	}
	if c.origin.pid() != 0 {
		got.add("web-us/page", a(to.web-from.web))
	}
	const connections = "seine_fetch_connections_total"
	got.add("connects/page", (to.metrics[connections]-from.metrics[connections])/max(pages, 1))
	var files, sockets int
	for _, s := range c.samples {
		files, sockets = max(files, s.files), max(sockets, s.sockets)
	}
	got.add("peak-MB", to.peak/1e6)
	got.add("growth-MB", (to.rss-from.rss)/1e6)
	got.add("files", float64(files))
	got.add("sockets", float64(sockets))
	got.add("leased", to.metrics["seine_crawl_visits_active"])
	if c.row.masters {
		got.add("redis-MB", c.memory/1e6)
	}
	for _, what := range []string{"retry", "dead"} {
		got.add(what, sum(to.metrics, `seine_crawl_outcomes_total{kind="`+what))
	}
}

func sum(metrics map[string]float64, prefix string) float64 {
	total := 0.0
	for name, v := range metrics {
		if strings.HasPrefix(name, prefix) {
			total += v
		}
	}
	return total
}

// bounds is what limited fetchers since a time, as their metrics have it.
func (c *crawl) bounds(since time.Time) string {
	seconds := make(map[string]int)
	for _, s := range c.samples {
		if s.at.Before(since) {
			continue
		}
		for _, b := range s.bounds {
			seconds[b]++
		}
	}
	var all []string
	for _, b := range slices.SortedFunc(maps.Keys(seconds), func(a, b string) int { return seconds[b] - seconds[a] }) {
		all = append(all, fmt.Sprintf("%s %d s", b, seconds[b]))
	}
	return strings.Join(all, ", ")
}
