// Command broad measures crawls of very many sites: what the sites' delays
// allow, what of it a fetcher reaches by its defaults, and what that costs it
// and Redis.
//
// Each shape of a crawl is there over http and over https, with certificates of a root of
// our own under P-384, which fetchers verify.
//
// A web server listens on one port of all addresses of 127.0.0.0/8, so that
// http://127.a.b.c:port/ are as many sites as one likes, each with connections of
// its own. A row is one such crawl for a fixed time; its rates and costs are
// those of the second half, when the start is over. Every row is printed as a
// line of a Go benchmark, so that benchstat compares two files of them.
//
// Whether a site was asked too early is judged by what its server saw. nginx
// logs a request when it comes to it, which is later than it came: probes that
// this program sends tell how late each worker was at that time, and a gap counts
// as too short only if that cannot explain it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"seine/bench/load"
)

type options struct {
	fetcher, frontier string
	redis             string
	rounds            int
	out, keep         string
	args              []string // further ones for fetchers
}

func main() {
	var o options
	var pattern, units string
	var long, list bool
	flag.StringVar(&o.fetcher, "fetcher", "bin/fetcher", "the fetcher to measure")
	flag.StringVar(&o.frontier, "frontier", "bin/frontier", "the program that creates and deletes its crawls")
	flag.StringVar(&o.redis, "redis", "", "addresses of a cluster's masters on this machine; rows that need them are refused without")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of every row; long ones have one")
	flag.StringVar(&o.out, "out", "", "file for the result besides stdout")
	flag.StringVar(&o.keep, "keep", "", "directory for logs and records of the last crawl")
	flag.StringVar(&pattern, "rows", "", "regular expression of the rows to run")
	flag.StringVar(&units, "plan", "", "file of unit costs: plan crawls from them and run these, instead of the rows; -rows chooses")
	flag.BoolVar(&long, "long", false, "rows that take many minutes too")
	flag.BoolVar(&list, "list", false, "name the rows and end")
	flag.Parse()
	o.args = flag.Args()
	if units != "" {
		if err := holdPlans(o, units, pattern); err != nil {
			fmt.Fprintln(os.Stderr, "broad:", err)
			os.Exit(1)
		}
		return
	}
	chosen, err := choose(pattern, long)
	if i := slices.IndexFunc(chosen, func(r row) bool { return r.masters }); err == nil && !list && i >= 0 && o.redis == "" {
		err = fmt.Errorf("%s needs -redis", chosen[i].name)
	}
	if err == nil && list {
		for _, r := range chosen {
			fmt.Printf("%-32s %s\n", r.name, r.what())
		}
		return
	}
	if err == nil {
		err = run(o, chosen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "broad:", err)
		os.Exit(1)
	}
}

func choose(pattern string, long bool) ([]row, error) {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-rows: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
		return !match.MatchString(r.name) || r.long && !long
	})
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-rows %q matches none; -list -long names all", pattern)
	}
	return chosen, nil
}

func run(o options, chosen []row) error {
	out, done, err := load.Tee(o.out)
	if err != nil {
		return err
	}
	defer done()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	io.WriteString(out, load.Head("make bench-broad", o.redis != ""))
	fmt.Fprintf(out, "web: 1 KB pages by one server on the same cores; delay 1s, jitter 0, other flags by default%s; second half of each crawl\n\n", extra(o.args))
	all := make(map[string][]result)
	for round := range o.rounds {
		for _, r := range chosen {
			if r.long && round > 0 {
				continue
			}
			got, err := measure(o, r, stop)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			fmt.Fprintln(out, got.line(r.name))
			all[r.name] = append(all[r.name], got)
		}
	}
	for _, r := range chosen {
		if got := all[r.name]; len(got) > 0 {
			fmt.Fprintf(out, "\n%s: %s; median of %d\n%s", r.name, r.what(), len(got), medians(got))
		}
	}
	return nil
}

func extra(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return " but " + strings.Join(args, " ")
}

// result is what one crawl came to.
type result struct {
	values []value
	bounds string // what it was limited by, with how many seconds of it
}

type value struct {
	unit string
	v    float64
}

func (r *result) add(unit string, v float64) { r.values = append(r.values, value{unit, v}) }

// line is one of a Go benchmark, and what the crawl was limited by.
func (r *result) line(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "BenchmarkBroad/%s 1", name)
	for _, v := range r.values {
		fmt.Fprintf(&b, " %.4g %s", v.v, v.unit)
	}
	fmt.Fprintf(&b, "\n# limited by %s", r.bounds)
	return b.String()
}

// medians is a table, one value a line.
func medians(got []result) string {
	var b strings.Builder
	for i, v := range got[0].values {
		var all []float64
		for _, r := range got {
			all = append(all, r.values[i].v)
		}
		fmt.Fprintf(&b, "  %-20s %12.4g\n", v.unit, load.Median(all))
	}
	return b.String()
}

const delay = time.Second
