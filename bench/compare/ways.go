package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"seine/bench/load"
)

// way is how a web is served.
type way struct {
	name   string
	coding string
	chain  string // kind of the certificates: "" is http
	fresh  bool   // each page takes a connection of its own
	resume bool   // which resumes a session
	first  bool   // each page is the first contact with its site, and the issuer is known
	rivals bool   // others are measured too
}

var ways = []way{
	{name: "http plain"},
	{name: "http gzip", coding: "gzip", rivals: true},
	{name: "http br", coding: "br"},
	{name: "http zstd", coding: "zstd"},
	{name: "https kept", coding: "gzip", chain: "p384", rivals: true},
	{name: "https fresh p384", coding: "gzip", chain: "p384", fresh: true},
	{name: "https fresh p256", coding: "gzip", chain: "p256", fresh: true},
	{name: "https fresh rsa2048", coding: "gzip", chain: "rsa2048", fresh: true},
	{name: "https resumed p384", coding: "gzip", chain: "p384", fresh: true, resume: true},
	{name: "https first p384", coding: "gzip", chain: "p384", fresh: true, first: true},
	{name: "https first p256", coding: "gzip", chain: "p256", fresh: true, first: true},
	{name: "https first rsa2048", coding: "gzip", chain: "rsa2048", fresh: true, first: true},
}

// How many sites a web has, by its way: whole ones whose connections are kept, whole ones
// whose are not, and those of which one page is asked for.
const keptSites, freshSites, firstSites = 32, 16, 4000

// firstWorkers is how many of the first contacts are made at once: so many chains are
// verified before the issuer is known.
const firstWorkers = 64

// runWays measures the ways that match by turns, so that what else the machine does
// falls on all of them.
func runWays(o options, match *regexp.Regexp, dir string) error {
	out, done, err := load.Tee(o.out)
	if err != nil {
		return err
	}
	defer done()
	root, what := o.web.root, "as they are"
	if o.web.sized {
		root = filepath.Join(dir, "sized")
		mean, median, err := load.Sized(root)
		if err != nil {
			return err
		}
		what = fmt.Sprintf("of the web's sizes: mean %.0f KB, median %.0f KB", mean/1e3, median/1e3)
	}
	var all []*runner
	for _, w := range ways {
		if !match.MatchString(w.name) {
			continue
		}
		r, err := serveWay(o, w, filepath.Join(dir, strings.ReplaceAll(w.name, " ", "-")), root)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		defer r.server.Stop()
		all = append(all, r)
	}
	if len(all) == 0 {
		return fmt.Errorf("-ways %q matches none", match)
	}
	io.WriteString(out, load.Head(o.command, o.redis != ""))
	fmt.Fprintf(out, "web: pages of python3.11-doc %s; by nginx (one worker) on the same cores, delay 0, %d requests a site at once\n", what, perSite)
	fmt.Fprintf(out, "sites: %d of 526 pages where connections are kept, else %d; %d of a page where each is the first contact\n", all[0].wholeSites(false), all[0].wholeSites(true), firstSites)
	fmt.Fprintf(out, "https: gzip, a root of our own with --ca; p384: P-256 leaf under P-384, p256: all P-256, rsa2048: RSA-2048 under RSA-4096\n\n")
	rounds := make([][][]measure, len(all))
	for range o.rounds {
		for i, r := range all {
			one, err := r.wayRound()
			if err != nil {
				return fmt.Errorf("%s: %w", r.way.name, err)
			}
			for _, m := range one {
				fmt.Fprintf(out, "BenchmarkWay/%s/%s/%s 1 %s\n", o.web.name, strings.ReplaceAll(r.way.name, " ", "_"), strings.ReplaceAll(m.name, " ", "_"), m)
			}
			rounds[i] = append(rounds[i], one)
		}
	}
	fmt.Fprintf(out, "\nmedian of %d rounds; microseconds of processor time a page; pages/s/processor: of the cluster and Redis together\n%-20s %8s %10s %9s %8s %12s %18s\n", o.rounds, "", "floor", "embedded", "/ floor", "cluster", "Redis", "pages/s/processor")
	for i, r := range all {
		of := func(name string, get func(measure) float64) float64 { return load.Median(values(rounds[i], name, get)) }
		cpu, redis := func(m measure) float64 { return m.cpu }, func(m measure) float64 { return m.redis }
		perProcessor := 0.0
		if all := of(cluster, cpu) + of(cluster, redis); all > 0 {
			perProcessor = 1e6 / all
		}
		fmt.Fprintf(out, "%-20s %8.0f %10.0f %9.2f %8.0f %12.1f %18.0f\n", r.way.name, of(floor, cpu), of(embedded, cpu), of(embedded, cpu)/of(floor, cpu),
			of(cluster, cpu), of(cluster, redis), perProcessor)
		if r.way.rivals {
			for _, v := range r.rivals {
				fmt.Fprintf(out, "  %-18s %8s %10.0f    %.0f pages/s where embedded has %.0f\n", v.name, "", of(v.name, cpu), of(v.name, rateOf), of(embedded, rateOf))
			}
		}
	}
	return nil
}

func rateOf(m measure) float64 { return m.rate }

// serveWay starts a server of all sites.
func serveWay(o options, w way, dir, root string) (*runner, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if !w.rivals {
		o.rivals = nil
	}
	r := &runner{options: o, dir: dir, way: w}
	r.web.sites = r.wholeSites(w.fresh)
	if w.first {
		r.web.sites = firstSites
	}
	served := load.Way{Coding: w.coding, Resume: w.resume}
	if w.fresh {
		served.Each = 1
	}
	var err error
	if o.redis != "" {
		if r.masters, err = load.FindMasters(o.redis); err != nil {
			return nil, err
		}
	}
	host := address
	if w.first {
		host = func(i int) string { return load.Address(i).String() }
	}
	o = r.options
	if w.chain != "" {
		if served.Chain, err = load.NewChain(dir, w.chain); err != nil {
			return nil, err
		}
		for i := range o.web.sites {
			if err := served.Chain.Add(host(i)); err != nil {
				return nil, err
			}
		}
		r.roots = served.Chain.Roots()
	}
	if w.first {
		r.server, err = load.Wide(dir, root, 1, served)
	} else {
		r.server, err = load.Start(dir, sitesOf(o.web.sites, root), served)
	}
	if err != nil {
		return nil, err
	}
	if w.first {
		r.pages = 1
		return r, r.list(root)
	}
	return r, r.learn()
}

// wholeSites is how many sites are crawled whole.
func (r *runner) wholeSites(fresh bool) int {
	switch {
	case r.options.asked > 0:
		return r.options.asked
	case fresh:
		return freshSites
	}
	return keptSites
}

// list takes the pages of a directory for the paths.
func (r *runner) list(root string) error {
	return filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".html") {
			r.paths = append(r.paths, strings.TrimPrefix(name, root))
		}
		return err
	})
}

// wayRound measures the floor, the fetcher and others once.
func (r *runner) wayRound() ([]measure, error) {
	steps := []func() (measure, error){
		func() (measure, error) { return r.loop(floor, func([]byte, string) error { return nil }) },
		func() (measure, error) { return r.whole(embedded, "--embedded") },
	}
	if r.redis != "" {
		steps = append(steps, r.cluster)
	}
	for _, v := range r.rivals {
		steps = append(steps, func() (measure, error) { return r.rival(v) })
	}
	return inTurn(steps)
}
