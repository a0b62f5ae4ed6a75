package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"seine/bench/load"
)

// profileTime is how long a crawl is watched, after profileAfter.
const profileTime, profileAfter = 10 * time.Second, 3 * time.Second

// parts are what a fetcher's time goes to, by the innermost function of a stack
// that one of these begins the name of.
var parts = []struct{ part, function string }{
	{"collection", "runtime.gc"}, {"collection", "runtime.bgsweep"}, {"collection", "runtime.bgscavenge"},
	{"inflate", "seine/extract/inflate"}, {"inflate", "github.com/klauspost/compress/"}, {"inflate", "github.com/molecule-man/go-brrr"},
	{"digest", "github.com/zeebo/xxh3"}, {"digest", "crypto/"}, {"digest", "seine/fetch/crawl.(*digest)"},
	{"record", "seine/extract/sink"},
	{"resolve", "seine/frontier/canon"}, {"resolve", "github.com/nlnwa/whatwg-url"},
	{"known", "seine/fetch/crawl.(*known"},
	{"scan", "seine/extract"}, {"scan", "github.com/tdewolff/parse"},
	{"frontier in memory", "seine/frontier/memory"},
	{"Redis client", "github.com/redis/go-redis"}, {"Redis client", "seine/shard"}, {"Redis client", "seine/frontier/redis"},
	{"read", "seine/fetch."}, {"read", "github.com/valyala/fasthttp"},
	{"admit", "seine/fetch/crawl.(*admi"}, {"admit", "seine/fetch/crawl.(*Crawler).admit"},
	{"scheduling", "seine/fetch/crawl"}, {"scheduling", "runtime.schedule"}, {"scheduling", "runtime.findRunnable"}, {"scheduling", "runtime.mcall"},
}

// profile crawls for a while and tells what the fetcher's time goes to, and on
// Redis that of the masters.
func (r *runner) profile(w io.Writer, name string, args ...string) error {
	port, err := load.FreePort()
	if err != nil {
		return err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	seeds := r.file("seeds")
	if err := os.WriteFile(seeds, []byte(strings.Join(r.seeds(r.web.sites), "\n")+"\n"), 0o600); err != nil {
		return err
	}
	args = append(args, "--delay", "0s", "--per-site", strconv.Itoa(perSite), "--allow-net", "127.0.0.0/8", "--per-address", "0", "--out", r.file("profile.jsonl"),
		"--file", seeds, "--log-level", "error", "--metrics-addr", addr, "--pprof")
	p, err := load.Run(0, r.fetcher, args...)
	if err != nil {
		return err
	}
	defer p.Stop()
	time.Sleep(profileAfter) // until the start is over
	var before, after usage
	if name == cluster {
		if before, err = r.usage(); err != nil {
			return err
		}
	}
	file := filepath.Join(cmp.Or(r.keep, r.dir), "profile-"+name+"-"+r.web.name)
	pages, err := r.takeProfile(addr, file)
	if err != nil {
		return errors.Join(fmt.Errorf("profile: %w", err), p.Err())
	}
	if name == cluster {
		if after, err = r.usage(); err != nil {
			return err
		}
	}
	if err := showParts(w, r.fetcher, file, fmt.Sprintf("%s, %s", name, r.web.name), pages); err != nil || name != cluster {
		return err
	}
	took, calls, err := r.byScript()
	if err == nil {
		showScripts(w, usage{after.cpu - before.cpu, after.calls - before.calls}, took, calls, pages)
	}
	return err
}

// takeProfile writes a profile of the fetcher at addr to a file, and returns how
// many pages were asked for meanwhile.
func (r *runner) takeProfile(addr, file string) (pages int, err error) {
	log := r.server.Log()
	before, err := os.Stat(log)
	if err != nil {
		return 0, err
	}
	answer, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", addr, profileTime.Seconds()))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	taken, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	if pages, err = r.lines(log, before.Size(), func([]byte) bool { return true }); err != nil {
		return 0, err
	}
	return pages, os.WriteFile(file, taken, 0o600)
}

// showParts prints what a page took of a fetcher's time, by part.
func showParts(w io.Writer, fetcher, file, title string, pages int) error {
	traces, err := exec.Command("go", "tool", "pprof", "-traces", fetcher, file).Output()
	if err != nil {
		return fmt.Errorf("go tool pprof: %w", err)
	}
	spent, all := shareOut(string(traces))
	fmt.Fprintf(w, "%s: %d pages in %v, %.1f us of the fetcher each\n", title, pages, profileTime, perPage(all, pages))
	for _, part := range byTime(spent) {
		fmt.Fprintf(w, "  %-20s %8.2f us/page %5.1f%%\n", part, perPage(spent[part], pages), 100*float64(spent[part])/float64(max(all, 1)))
	}
	return nil
}

// byTime is the names that time is spent on, what takes most first.
func byTime(spent map[string]time.Duration) []string {
	return slices.SortedFunc(maps.Keys(spent), func(a, b string) int { return cmp.Compare(spent[b], spent[a]) })
}

func perPage(d time.Duration, pages int) float64 {
	return float64(d.Nanoseconds()) / 1e3 / float64(max(pages, 1))
}

// shareOut adds up the samples of go tool pprof -traces by part. A sample begins
// after a line of dashes with its time and its innermost function; those that
// called it follow.
func shareOut(traces string) (spent map[string]time.Duration, all time.Duration) {
	spent = make(map[string]time.Duration)
	var took time.Duration
	part, within := "", false
	end := func() {
		if took > 0 {
			if part == "" {
				part = "other"
			}
			spent[part] += took
			all += took
		}
		took, part = 0, ""
	}
	for line := range strings.Lines(traces) {
		if strings.HasPrefix(line, "-----------+") {
			end()
			within = true
			continue
		}
		field := strings.Fields(line)
		if !within || len(field) == 0 {
			continue
		}
		if d, err := time.ParseDuration(field[0]); err == nil && took == 0 && len(field) > 1 {
			took, field = d, field[1:]
		}
		if part == "" {
			part = partOf(field[0])
		}
	}
	end()
	return spent, all
}

func partOf(function string) string {
	for _, p := range parts {
		if strings.HasPrefix(function, p.function) {
			return p.part
		}
	}
	return ""
}
