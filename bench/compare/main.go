// Command compare measures whole crawls of real documentation on one machine
// with nginx beside them, in turn and for several rounds:
//
//   - a bare fasthttp GET loop over the same URLs, which is what asking costs;
//   - the floor: that loop, one pass over each page that hops from "<" to "<",
//     and a record written of it, which is the least that a crawler can do;
//   - fetcher --embedded, and fetcher on a Redis Cluster;
//   - other crawlers, from the same seeds and by the same rules.
//
// Every site is the same documentation at an address of its own. The fetchers
// crawl all of it. Others are cut off after a while and their pages counted by
// nginx's log; before that they have to show on two sites that they find the
// same pages.
//
// With -ways it measures one web in each way that the web is served: packed, over https
// on a kept connection, and over https with a new connection a page. The floor then
// fetches, verifies and unpacks a page and looks for nothing.
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
	"regexp"
	"slices"
	"strings"

	"seine/bench/load"
)

type options struct {
	fetcher string
	redis   string
	rounds  int
	out     string
	web     web
	asked   int // sites, 0: as many as it takes
	rivals  []rival
	command string // that the results name
	profile bool
	keep    string // directory for the profiles themselves
}

// web is documentation that many sites serve.
type web struct {
	name, root string
	sites      int  // so many that a crawl takes 20 s and more
	sized      bool // pages have the sizes of the web's
}

var webs = []web{{"postgresql", load.PostgresDoc, 480, false}, {"python", load.PythonDoc, 480, false}, {"sized", load.PythonDoc, 480, true}}

// perSite is how many requests a site gets at once, from everybody.
const perSite = 4

// rival is another crawler: a command that gets a file for its records and the
// seeds, and prints how many pages it found.
type rival struct {
	name    string
	command []string
}

func main() {
	o := options{web: webs[0]}
	flag.StringVar(&o.fetcher, "fetcher", "bin/fetcher", "the fetcher to measure")
	flag.StringVar(&o.redis, "redis", "", "addresses of the cluster's masters; none: that part is left out")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds")
	flag.StringVar(&o.out, "out", "", "file for the result besides stdout")
	flag.BoolVar(&o.profile, "profile", false, "tell what the fetcher's time goes to, instead of measuring rates")
	flag.StringVar(&o.keep, "keep", "", "with -profile: directory that the profiles are left in, for go tool pprof")
	flag.StringVar(&o.command, "command", "make bench-crawl", "the command that the results name")
	served := flag.String("ways", "", "measure instead each way of serving whose name matches this regular expression")
	sites := flag.Int("sites", 0, "sites, at least 2; 0: so many that a crawl takes 20 s and more")
	flag.Func("web", "what is crawled: postgresql (14 KB a page) python (96 KB, 310 links), or sized, with -ways: pages of the web's sizes", func(text string) error {
		i := slices.IndexFunc(webs, func(w web) bool { return w.name == text })
		if i < 0 {
			return errors.New("want postgresql, python or sized")
		}
		o.web = webs[i]
		return nil
	})
	flag.Func("rival", "another crawler to measure, as NAME=COMMAND; may be repeated", func(text string) error {
		name, command, ok := strings.Cut(text, "=")
		if !ok || command == "" {
			return errors.New("want NAME=COMMAND")
		}
		o.rivals = append(o.rivals, rival{name, strings.Fields(command)})
		return nil
	})
	flag.Parse()
	match, err := regexp.Compile(*served)
	if *sites != 0 {
		o.asked = max(2, *sites)
		o.web.sites = o.asked
	}
	dir, e := os.MkdirTemp("", "compare")
	if err = errors.Join(err, e); err == nil {
		if *served != "" {
			err = runWays(o, match, dir)
		} else {
			err = run(o, dir)
		}
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// address is that of a site, and sitesOf are so many of them.
func address(i int) string { return fmt.Sprintf("127.2.%d.%d", i/250, 1+i%250) }

func sitesOf(n int, root string) (sites []load.Site) {
	for i := range n {
		sites = append(sites, load.Site{Host: address(i), Root: root})
	}
	return sites
}

func run(o options, dir string) error {
	server, err := load.Start(dir, sitesOf(o.web.sites, o.web.root), load.Way{})
	if err != nil {
		return err
	}
	defer server.Stop()
	r := &runner{options: o, dir: dir, server: server}
	if o.redis != "" {
		if r.masters, err = load.FindMasters(o.redis); err != nil {
			return err
		}
	}
	if err := r.learn(); err != nil {
		return err
	}
	if o.profile {
		io.WriteString(os.Stdout, load.Head("make profile", o.redis != ""))
		if err := r.profile(os.Stdout, embedded, "--embedded"); err != nil || o.redis == "" {
			return err
		}
		return r.profile(os.Stdout, cluster, r.onRedis()...)
	}
	out, done, err := load.Tee(o.out)
	if err != nil {
		return err
	}
	defer done()
	io.WriteString(out, load.Head(o.command, o.redis != ""))
	fmt.Fprintf(out, "web: %d sites of %d pages of %s by nginx (one worker) on the same cores, delay 0, %d requests a site at once\n\n", o.web.sites, len(r.paths), o.web.name, perSite)
	var rounds [][]measure
	for range o.rounds {
		one, err := r.round()
		if err != nil {
			return err
		}
		for _, m := range one {
			fmt.Fprintf(out, "BenchmarkCrawl/%s/%s 1 %s\n", o.web.name, strings.ReplaceAll(m.name, " ", "_"), m)
		}
		rounds = append(rounds, one)
	}
	summary(out, rounds)
	return nil
}

// summary prints medians over all rounds, and of the ratios of each round.
func summary(w io.Writer, rounds [][]measure) {
	of := func(name string, get func(measure) float64) []float64 { return values(rounds, name, get) }
	ratio := func(a, b []float64) float64 {
		var v []float64
		for i := range min(len(a), len(b)) {
			v = append(v, a[i]/max(b[i], 1e-9))
		}
		return load.Median(v)
	}
	rate, cpu := rateOf, func(m measure) float64 { return m.cpu }
	fmt.Fprintf(w, "\nmedian of %d rounds\n%-20s %10s %14s %16s %14s %12s\n", len(rounds), "", "pages/s", "CPU us/page", "Redis us/page", "CPU / floor", "embedded is")
	for _, m := range rounds[0] {
		embedded := ratio(of(embedded, rate), of(m.name, rate))
		fmt.Fprintf(w, "%-20s %10.0f %14.1f %16.1f %14.2f %10.2f x\n", m.name, load.Median(of(m.name, rate)), load.Median(of(m.name, cpu)),
			load.Median(of(m.name, func(m measure) float64 { return m.redis })), ratio(of(m.name, cpu), of(floor, cpu)), embedded)
	}
	if spider := of("spider-rs", rate); len(spider) > 0 {
		fmt.Fprintf(w, "\nembedded %.2f x spider-rs, cluster %.2f x\n", ratio(of(embedded, rate), spider), ratio(of(cluster, rate), spider))
	}
}

// values are those of a crawl in each round.
func values(rounds [][]measure, name string, get func(measure) float64) (v []float64) {
	for _, r := range rounds {
		for _, m := range r {
			if m.name == name {
				v = append(v, get(m))
			}
		}
	}
	return v
}

func (r *runner) file(name string) string { return filepath.Join(r.dir, name) }
