package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"seine/bench/load"
	"seine/frontier/plan"
)

// planned is a crawl that is planned from unit costs and then run.
type planned struct {
	name  string
	what  string
	asked plan.Asked
	args  []string // of the crawl
	each  int      // seeds of a site, 0: as many as it has pages
	fresh int      // links of a page to pages that are new, below its own
	known int      // links of a page to its site's first
	kb    int      // of a page
	own   bool     // a new link's name is long, and not the seeds' names
	split bool     // the fetcher and nginx have a processor each, as has Redis
	https bool     // of real text, packed; a connection serves four requests
}

// plannedRows are held up by sites, by a fetcher's processor and by Redis.
func plannedRows() []planned {
	base := plan.Default()
	base.TLS, base.Jitter, base.Latency, base.Room, base.Load, base.Own, base.Cores = 0, 0, 0.001, 0, 1, 1, 1
	base.Fetchers, base.Link, base.Cached = 1, 1e12, 1
	polite := base
	polite.Cores, polite.Masters, polite.Links, polite.New, polite.Page = 2, 6, 3, 0, 4<<10
	for r := range 5000 {
		polite.Sizes = append(polite.Sizes, math.Round(40*math.Pow(float64(r+1), -0.3)))
	}
	busy := base
	busy.Embedded, busy.Exponent, busy.Sites, busy.Pages, busy.Delay, busy.PerSite = true, 0, 200, 200_000, 0, 4
	busy.Links, busy.New, busy.Page = 60, 0.05, 16<<10
	secure := busy
	secure.Pages, secure.TLS, secure.Fresh, secure.Resumed, secure.NameKnown, secure.IssuerKnown = 20_000, 1, 1.0/eachConnection, 0, 1, 1
	queue := base
	queue.Fetchers, queue.Cores = 3, 1.0/3
	queue.Masters, queue.Exponent, queue.Sites, queue.Pages, queue.Delay, queue.PerSite = 1, 0, 200, 60_000, 0, 4
	queue.Links, queue.New, queue.Page = 120, 1, 4<<10
	return []planned{
		{name: "polite", what: "5,000 sites of 3 to 40 pages at a delay of 1 s, six masters", asked: polite, known: 3, kb: 4, args: []string{"--delay", "1s"}},
		{name: "processor", what: "embedded on one processor, 200 sites without delay, 16 KB and 60 links a page, of which 3 are new", asked: busy, each: 1,
			fresh: 3, known: 57, kb: 16, split: true, args: []string{"--delay", "0s", "--per-site", "4"}},
		{name: "https", what: "the same over https, 100 KB a page as gzip, four requests a connection, P-256 under P-384", asked: secure, each: 1,
			fresh: 3, known: 57, kb: 100, split: true, https: true, args: []string{"--delay", "0s", "--per-site", "4"}},
		{name: "redis", what: "three fetchers, one master, 200 sites without delay, 120 new links a page", asked: queue, each: 1,
			fresh: 120, own: true, kb: 4, split: true, args: []string{"--delay", "0s", "--per-site", "4"}},
	}
}

// eachConnection is how many requests a connection of an https crawl serves.
const eachConnection = 4

// holdPlans plans each crawl by the unit costs of a file, runs it, and tells how
// far the plan was off.
func holdPlans(o options, units, pattern string) error {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("-rows: %w", err)
	}
	f, err := os.Open(units)
	if err != nil {
		return err
	}
	defer f.Close()
	costs, err := plan.ReadUnits(units, f)
	if err != nil {
		return err
	}
	out, done, err := load.Tee(o.out)
	if err != nil {
		return err
	}
	defer done()
	io.WriteString(out, load.Head("make bench-plan", true))
	fmt.Fprintf(out, "units: measured before, on %s\n", costs.Machine)
	for _, row := range plannedRows() {
		if !match.MatchString(row.name) {
			continue
		}
		for range o.rounds {
			if err := row.hold(o, costs, out); err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
		}
	}
	return nil
}

func (p *planned) hold(o options, costs *plan.Units, out io.Writer) error {
	dir, err := os.MkdirTemp("", "planned")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		return err
	}
	page, err := p.page()
	if err != nil {
		return err
	}
	for _, name := range []string{"index.html", "page.html"} {
		if err := os.WriteFile(filepath.Join(root, name), page, 0o600); err != nil {
			return err
		}
	}
	a := p.asked
	a.Complete()
	a.Page = float64(len(page))
	a.Wire = a.Page
	var way load.Way
	if p.https {
		if way, err = secureWay(dir, int(a.Sites), a.Encoding, a.Chain); err != nil {
			return err
		}
		packed, err := load.Pack(a.Encoding, page)
		if err != nil {
			return err
		}
		a.Wire = float64(len(packed))
	} else {
		a.Fresh = a.Sites / a.Pages
	}
	server, err := load.Wide(dir, root, 1, way)
	if err != nil {
		return err
	}
	defer server.Stop()
	if a.Embedded {
		a.Queued = max(1, float64(p.fresh)*a.Pages)
	}
	want, err := plan.New(a, costs)
	if err != nil {
		return err
	}
	got, err := p.run(o, want, server, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s: %s; %.0f pages; held up by %s\n", p.name, p.what, a.Pages, want.Bound)
	fmt.Fprintf(out, "  %-24s %12s %12s %8s\n", "", "planned", "measured", "ratio")
	line := func(what string, planned, measured float64) {
		fmt.Fprintf(out, "  %-24s %12.1f %12.1f %8.2f\n", what, planned, measured, measured/planned)
	}
	line("seconds", want.Seconds, got.seconds)
	line("fetchers, processor s", want.Fetchers.Spent, got.fetcher/1e6)
	line("a fetcher, MB", want.Fetchers.Memory/1e6, got.memory/1e6)
	if want.Redis != nil {
		line("Redis, processor s", want.Redis.Spent, got.redis/1e6)
		line("Redis, MB", want.Redis.Memory*want.Redis.Masters/1e6, got.redisMemory/1e6)
	}
	return nil
}

// secureWay serves https.
func secureWay(dir string, sites int, coding, kind string) (load.Way, error) {
	chain, err := load.NewChain(dir, kind)
	for i := 0; i < sites && err == nil; i++ {
		err = chain.Add(load.Address(i).String())
	}
	return load.Way{Coding: coding, Chain: chain, Each: eachConnection}, err
}

// page links to pages of its site below itself, which nobody has linked to
// before, and to its site's first pages.
func (p *planned) page() ([]byte, error) {
	var b strings.Builder
	b.WriteString("<!doctype html><title>A page of a crawl that was planned</title>\n")
	for i := range p.fresh {
		name := ""
		if p.own {
			name = fmt.Sprintf("%x-", uint64(i+1)*0x9e3779b97f4a7c15)
		}
		fmt.Fprintf(&b, "<a href=%s%d/>%d</a>\n", name, i, i)
	}
	for i := range p.known {
		fmt.Fprintf(&b, "<a href=/%s/p%d>%d</a>\n", path, i, i)
	}
	const words = "<p>Words that lead nowhere.\n"
	if p.https { // decoding takes longer where lines differ
		text, err := os.ReadFile(filepath.Join(load.PythonDoc, "library/http.client.html"))
		if err != nil {
			return nil, err
		}
		text = bytes.ReplaceAll(text, []byte("href="), []byte("data="))
		b.Write(text[:min(len(text), p.kb<<10-b.Len())])
		return []byte(b.String()), nil
	}
	b.WriteString(strings.Repeat(words, max(0, p.kb<<10-b.Len())/len(words)))
	return []byte(b.String()), nil
}

// took is what a planned crawl came to: seconds, microseconds, bytes.
type took struct{ seconds, fetcher, memory, redis, redisMemory float64 }

const plannedMost = 4 * time.Minute

// run crawls to the end.
func (p *planned) run(o options, want *plan.Plan, server *load.Server, dir string) (got took, err error) {
	pages := int(want.Asked.Pages)
	seeds := filepath.Join(dir, "seeds")
	if err := os.WriteFile(seeds, []byte(p.seeds(int(want.Asked.Sites), server)), 0o600); err != nil {
		return got, err
	}
	args := []string{o.fetcher, "--allow-net", "127.0.0.0/8", "--per-address", "0", "--out", filepath.Join(dir, "records"), "--exit-when-done", "--log-level", "error",
		"--concurrency", fmt.Sprint(want.Fetchers.Workers)}
	if p.https {
		args = append(args, "--ca", filepath.Join(dir, "roots.pem"))
	}
	settings := append([]string{"--jitter", "0", "--max-pages", strconv.Itoa(pages)}, p.args...)
	var masters load.Masters
	before := 0.0
	if p.asked.Embedded {
		args = append(append(args, "--embedded", "--file", seeds), settings...)
	} else {
		if masters, err = load.FindMasters(o.redis); err != nil {
			return got, err
		}
		if err := masters.Forget(); err != nil { // or it would count to the first crawl alone
			return got, err
		}
		before = masters.Memory()
		c := &crawl{options: o, name: fmt.Sprintf("planned-%d-%d", os.Getpid(), time.Now().UnixNano())}
		known := fmt.Sprint(pages * max(1, p.fresh))
		if err := c.command("create", append(settings, "--shards", fmt.Sprint(want.Redis.Shards), "--plan-urls", known)...); err != nil {
			return got, err
		}
		defer func() { err = errors.Join(err, c.command("delete", c.name, "--yes")) }()
		if err := c.command("seed", "--file", seeds); err != nil {
			return got, err
		}
		args = append(args, "--redis", o.redis, "--crawl", c.name)
	}
	if p.split {
		unpin, err := p.pin(server.Pid(), masters)
		defer unpin()
		if err != nil {
			return got, err
		}
		args = append([]string{"taskset", "-c", "0"}, args...)
	}
	spent, err := masters.Used()
	if err != nil {
		return got, err
	}
	most := watchMemory(masters)
	if err := got.by(args, int(want.Fetchers.Count)); err != nil {
		return got, err
	}
	after, err := masters.Used()
	got.redis = float64(after.Minus(spent).All().Microseconds())
	got.redisMemory = most() - before
	return got, err
}

// watchMemory looks every second what masters hold until it is asked for the most.
func watchMemory(masters load.Masters) (stop func() float64) {
	var most float64
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for t := time.NewTicker(time.Second); ; {
			most = max(most, masters.Memory())
			select {
			case <-t.C:
			case <-over:
				return
			}
		}
	}()
	return func() float64 {
		close(over)
		<-done
		return max(most, masters.Memory())
	}
}

// by runs so many fetchers to their end.
func (t *took) by(args []string, fleet int) error {
	out := slices.Index(args, "--out") + 1
	var all []*load.Program
	defer func() {
		for _, p := range all {
			p.Stop()
		}
	}()
	for i := range fleet {
		each := slices.Clone(args)
		each[out] += fmt.Sprint(i)
		p, err := load.Run(0, each[0], each[1:]...)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	for _, p := range all {
		got, err := p.Wait(plannedMost)
		if err != nil {
			return err
		}
		t.seconds = max(t.seconds, got.Wall.Seconds())
		t.fetcher += float64(got.Used.All().Microseconds())
		t.memory = max(t.memory, got.Peak)
	}
	return nil
}

// pin leaves the first processor to the fetcher: what the crawl is not held up by
// shares it.
func (p *planned) pin(server int, masters load.Masters) (unpin func(), err error) {
	last := fmt.Sprint(runtime.NumCPU() - 1)
	to := map[int]string{server: last}
	if len(masters) > 0 {
		to[server] = "0"
	}
	for _, m := range masters {
		to[m.Pid] = last
	}
	for pid, processor := range to {
		if out, e := exec.Command("taskset", "-a", "-p", "-c", processor, fmt.Sprint(pid)).CombinedOutput(); e != nil {
			err = errors.Join(err, fmt.Errorf("taskset: %w: %s", e, out))
		}
	}
	return func() {
		for _, m := range masters {
			exec.Command("taskset", "-a", "-p", "-c", "0-"+last, fmt.Sprint(m.Pid)).Run() //nolint:errcheck // at worst the next row is slower
		}
	}, err
}

// path makes URLs as long as those whose memory is measured, 92 bytes.
const path = "articles/mountain-lake/travel-and-outdoor-guide-to-the-silver-river"

// seeds are a site's pages, or so many of them.
func (p *planned) seeds(sites int, server *load.Server) string {
	var b strings.Builder
	for i := range sites {
		n := p.each
		if n == 0 {
			n = int(p.asked.Sizes[i])
		}
		for j := range n {
			dir := path
			if p.own {
				dir = "new"
			}
			fmt.Fprintln(&b, server.URL(i, fmt.Sprintf("/%s/p%d", dir, j)))
		}
	}
	return b.String()
}
