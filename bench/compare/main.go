// Command compare measures whole crawls of real documentation: a bare fasthttp
// GET loop over the same URLs, fetcher --embedded, and fetcher on a Redis
// Cluster, in turn and for several rounds, on one machine with nginx beside
// them. It prints medians and the ratios of each round.
//
// Other crawlers may be measured beside them: they crawl the same sites from the
// same seeds, by the same rules, once a round.
//
// wrk, where it is installed, tells whether the bare loop is a fair measure.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"seine/bench/machine"
	"seine/bench/nginx"
)

type options struct {
	fetcher string
	redis   string
	rounds  int
	out     string
	rivals  []rival
}

// rival is another crawler: a command that gets a file for its records and the
// seeds, and prints how many pages it found.
type rival struct {
	name    string
	command []string
}

func main() {
	var o options
	flag.StringVar(&o.fetcher, "fetcher", "bin/fetcher", "the fetcher to measure")
	flag.StringVar(&o.redis, "redis", "", "addresses of the cluster's masters; none: that part is left out")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds")
	flag.StringVar(&o.out, "out", "", "file for the result besides stdout")
	flag.Func("rival", "another crawler to measure, as NAME=COMMAND; may be repeated", func(text string) error {
		name, command, ok := strings.Cut(text, "=")
		if !ok || command == "" {
			return errors.New("want NAME=COMMAND")
		}
		o.rivals = append(o.rivals, rival{name, strings.Fields(command)})
		return nil
	})
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var sites []nginx.Site
	for i := 2; i <= 5; i++ {
		sites = append(sites, nginx.Site{Host: fmt.Sprintf("127.0.0.%d", i), Root: nginx.PostgresDoc},
			nginx.Site{Host: fmt.Sprintf("127.0.1.%d", i), Root: nginx.PythonDoc})
	}
	web, err := nginx.Start(dir, sites)
	if err != nil {
		return err
	}
	defer web.Stop()
	r := &runner{options: o, dir: dir, web: web, sites: len(sites)}
	if err := r.learn(); err != nil {
		return err
	}
	out := io.Writer(os.Stdout)
	if o.out != "" {
		f, err := os.Create(o.out)
		if err != nil {
			return err
		}
		defer f.Close()
		out = io.MultiWriter(out, f)
	}
	header(out, o)
	var rounds []round
	for i := range o.rounds {
		one, err := r.round()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "round %d: %s\n", i+1, one)
		rounds = append(rounds, one)
	}
	summary(out, o.rivals, rounds)
	return nil
}

// header says what was measured where.
func header(w io.Writer, o options) {
	io.WriteString(w, machine.Head("make bench-crawl", o.redis != ""))
	fmt.Fprintf(w, "sites: 4 x postgresql-doc-15 and 4 x python3.11-doc by nginx (one worker) on the same cores, delay 0, one request a site at a time\n\n")
}

// summary prints medians over all rounds.
func summary(w io.Writer, rivals []rival, rounds []round) {
	median := func(of func(round) float64) float64 {
		var v []float64
		for _, r := range rounds {
			v = append(v, of(r))
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	fmt.Fprintf(w, "\nmedian of %d rounds\n", len(rounds))
	row := func(name, unit string, of func(round) float64) {
		if v := median(of); v > 0 {
			fmt.Fprintf(w, "  %-44s %8.2f %s\n", name, v, unit)
		}
	}
	row("wrk, one host", "pages/s", func(r round) float64 { return r.wrk })
	row("bare fasthttp loop", "pages/s", func(r round) float64 { return r.bare.rate })
	row("bare loop / wrk (0.7 at least to count)", "", func(r round) float64 { return ratio(r.bare.rate, r.wrk) })
	row("fetcher --embedded", "pages/s", func(r round) float64 { return r.embedded.rate })
	row("embedded / bare loop", "", func(r round) float64 { return ratio(r.embedded.rate, r.bare.rate) })
	row("fetcher CPU, embedded", "us/page", func(r round) float64 { return r.embedded.cpu })
	row("bare loop CPU", "us/page", func(r round) float64 { return r.bare.cpu })
	row("fetcher on the cluster", "pages/s", func(r round) float64 { return r.fleet.rate })
	row("cluster / bare loop", "", func(r round) float64 { return ratio(r.fleet.rate, r.bare.rate) })
	row("fetcher CPU, cluster", "us/page", func(r round) float64 { return r.fleet.cpu })
	row("Redis CPU, all masters", "us/page", func(r round) float64 { return r.fleet.redis })
	for i, rival := range rivals {
		row(rival.name, "pages/s", func(r round) float64 { return r.rivals[i].rate })
		row("fetcher --embedded / "+rival.name, "", func(r round) float64 { return ratio(r.embedded.rate, r.rivals[i].rate) })
		row(rival.name+" CPU", "us/page", func(r round) float64 { return r.rivals[i].cpu })
	}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (r *runner) file(name string) string { return filepath.Join(r.dir, name) }
