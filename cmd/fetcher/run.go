package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/cmd/internal/boot"
	"seine/cmd/internal/metric"
	"seine/cmd/internal/web"
	"seine/extract/sink"
	"seine/fetch/crawl"
	"seine/fetch/fetcher"
	"seine/frontier"
	"seine/frontier/ask"
)

// Run crawls until there is nothing left, or a signal.
func (g *grammar) Run(env *boot.Env) (err error) {
	if err := g.check(env); err != nil {
		return err
	}
	fields, err := sink.ParseFields(g.Fields)
	if err != nil {
		return boot.Usage("fields: %w", err)
	}
	rules, err := boot.FieldRules(g.Common.Config)
	if err != nil {
		return err
	}
	walls, err := boot.WallRules(g.Common.Config)
	if err != nil {
		return err
	}
	var current atomic.Pointer[view]
	stop, err := g.monitor(env, &current)
	if err != nil {
		return err
	}
	defer stop()
	f, err := g.open(env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out, err := g.openOutputs(env, fields, f.Frontier().Settings().MemoryHigh)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	over, err := g.openOverflow(env)
	if err != nil {
		return err
	}
	var c *crawl.Crawler
	defer func() { err = errors.Join(err, over.close(c)) }()
	if err := boot.CheckAgent(f.Frontier().Settings()); err != nil {
		return err
	}
	ends, err := g.EndsWhenDone(f.Frontier().Settings())
	if err != nil {
		return err
	}
	if !ends && slices.Contains(env.Given, "give-up") {
		env.Log.Warn("--give-up has no effect without --exit-when-done: a crawl that does not end never gives a site up")
	}
	g.warn(env, f.Frontier().Settings())

	screen := boot.NewScreen(env.Err, env.Log)
	_ = f.SetSeeding(env.Stop, g.SeedFlags.Any()) // an error has no other reader before there is a crawler
	c, err = f.Crawler(crawl.Config{
		Sink: out, Exchanges: out.wire, Overflow: over.keeper(),
		Concurrency: g.Concurrency, Memory: boot.Memory(), SinkPages: g.OutPending, SinkWait: g.OutPendingTime, MaxLinks: g.MaxLinks, MaxText: int(g.MaxText), MaxTries: g.Attempts, MaxRedirects: g.redirects(),
		ExitWhenDone: ends, GiveUp: g.GiveUp, IdleTimeout: g.IdleTimeout, Fields: fields, Rules: rules, Walls: walls, RetryCodes: g.RetryCodes,
		Report: func(p crawl.Progress) { screen.Show(p); out.warnDrops() }, ReportEvery: screen.Every(),
	})
	if err != nil {
		return err
	}
	ended := "with an error"
	defer func() { err = errors.Join(err, f.WithdrawAs(ended)) }()
	seeds, err := g.beginSeeding(env, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seeds.end()) }()
	current.Store(newView(g, f, c, out))
	defer stop() // before what it shows is closed
	leave, err := g.page(env, f)
	if err != nil {
		return err
	}
	defer leave()
	defer seeds.onFault(c.Stop)()
	err = g.crawl(env, c)
	last := c.Progress()
	ended = g.howEnded(env, &last, err)
	screen.Summary(last, ended)
	if lost := out.dropped(); lost != "" {
		env.Log.Warn("records were lost, as --out-drop allows", "lost", lost)
	}
	g.report(env, f, ended)
	if err == nil && env.Stop.Err() == nil {
		err = allFailed(&last)
	}
	return err
}

// howEnded is how a run ended.
func (g *grammar) howEnded(env *boot.Env, p *crawl.Progress, err error) string {
	cut := errors.Is(err, errGrace) || errors.Is(err, errOpen)
	switch {
	case cut && env.Stop.Err() != nil:
		return "by a signal, and --grace ran out"
	case cut:
		return "--max-time reached, and --grace ran out"
	case err != nil:
		return "with an error"
	case env.Stop.Err() != nil:
		return "by a signal"
	}
	return cmp.Or(p.Ended, "--max-time reached")
}

// reportTime bounds how long a report is waited for, listMost the lines of each of
// its lists.
const (
	reportTime = 10 * time.Second
	listMost   = 5
)

// report shows what became of a crawl that is this process's alone, once that has left
// it: of all its runs, while the summary is of this one.
func (g *grammar) report(env *boot.Env, f *fetcher.Fetcher, ended string) {
	if !g.Embedded {
		return
	}
	ctx, cancel := context.WithTimeout(env.Abort, reportTime)
	defer cancel()
	err := f.WithdrawAs(ended)
	var r *ask.Summary
	if err == nil {
		r, err = ask.Report(ctx, f.Frontier())
	}
	if err != nil {
		env.Log.Warn("no report of the whole crawl", "err", err)
		return
	}
	r.Crawl = cmp.Or(g.State, "embedded")
	fmt.Fprintln(env.Err)
	w := tabwriter.NewWriter(env.Err, 0, 0, 2, ' ', 0)
	boot.PrintReport(w, r, listMost)
	w.Flush()
}

// allFailed is an error when this process tried every URL of the crawl, for its
// seeds led to no others, and got no page: a run that a script should not take
// for a success.
func allFailed(p *crawl.Progress) error {
	tried := p.Done + p.Dead
	if tried == 0 || p.Classes[2]+p.Unchanged > 0 || tried < uint64(p.Known) {
		return nil
	}
	var why []string
	for class, name := range map[int]string{3: "3xx", 4: "4xx", 5: "5xx"} {
		if n := p.Classes[class]; n > 0 {
			why = append(why, fmt.Sprintf("%s %d", name, n))
		}
	}
	for cause, n := range p.Causes {
		why = append(why, fmt.Sprintf("%s %d", cause, n))
	}
	slices.Sort(why)
	return fmt.Errorf("fetcher: every seed failed, there is no page among %s (%s); their records say more", boot.Number(int64(tried), "URL"), strings.Join(why, ", "))
}

// crawl runs the crawler between signals and time limits.
func (g *grammar) crawl(env *boot.Env, c *crawl.Crawler) error {
	ctx, cut := context.WithCancelCause(env.Abort)
	defer cut(nil)
	end := func() {
		c.Stop()
		env.Log.Info("stopping: requests under way end, the rest goes back; a second signal aborts", "requests", c.Progress().Requests, "grace", g.Grace)
		time.AfterFunc(g.Grace, func() {
			if c.Progress().Requests > 0 {
				cut(errGrace)
			} else {
				cut(errOpen)
			}
		})
	}
	defer context.AfterFunc(env.Stop, end)()
	if g.MaxTime > 0 {
		defer time.AfterFunc(g.MaxTime, end).Stop()
	}
	err := c.Run(ctx)
	if n := c.Progress().Returned; n > 0 {
		env.Log.Warn("pages went back and are fetched again, for Redis did not take new URLs of theirs; give it memory, or the replicas that --ack asks for", "pages", n)
	}
	if cause := context.Cause(ctx); cause == errGrace || cause == errOpen {
		return fmt.Errorf("%w; %s", cause, g.cutURLs())
	}
	return err
}

var (
	errGrace = errors.New("fetcher: requests were cut because --grace ran out")
	errOpen  = errors.New("fetcher: fetched pages were left open because --grace ran out before their records, candidates or outcomes were taken")
)

// cutURLs is what becomes of URLs whose requests were cut.
func (g *grammar) cutURLs() string {
	switch {
	case !g.Embedded:
		return "their URLs come back when their leases end"
	case g.State != "":
		return "their URLs are fetched when the crawl goes on from --state"
	}
	return "their URLs, and all that was queued, end with this process, for there is no --state"
}

// warn logs what its operator should know before a crawl starts.
func (g *grammar) warn(env *boot.Env, s *frontier.Settings) {
	if s.UserAgent == "" && g.Contact == "" {
		env.Log.Warn("no --contact: operators of sites cannot reach you, and many block crawlers that hide")
	}
	if s.Robots == "ignore" {
		env.Log.Warn("robots.txt is ignored, as the crawl's settings say")
	}
	g.WarnProxy(os.Environ(), env.Log)
	boot.WarnKey(g.SignKey, env.Log)
	if g.InsecureSkipVerify {
		env.Log.Warn("certificates are NOT verified (--insecure-skip-verify)")
	}
}

// seedAlone is how long a fetcher of a fleet seeds before it crawls too: seeds of
// a shard that does not answer keep nobody waiting.
const seedAlone = 10 * time.Second

// seeding is what --seed and --file name on its way to the shards.
type seeding struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once it ended
}

// beginSeeding seeds, and returns when that has ended or, in a fleet, has taken
// long: then it goes on beside the crawl, which does not end before it.
func (g *grammar) beginSeeding(env *boot.Env, f *fetcher.Fetcher) (*seeding, error) {
	own := *env
	s := &seeding{ended: make(chan struct{})}
	own.Stop, s.cancel = context.WithCancel(env.Stop)
	go func() {
		s.err = errors.Join(g.seed(&own, f), f.SetSeeding(own.Stop, false))
		close(s.ended)
	}()
	long := time.NewTimer(seedAlone)
	defer long.Stop()
	if g.Embedded {
		long.Stop() // a crawl in this process ends with its seeds unless it has them first
	}
	select {
	case <-s.ended:
		return s, s.takeError()
	case <-long.C:
		env.Log.Info("seeding takes long and goes on beside the crawl")
		return s, nil
	}
}

// onFault has stop called if the seeding fails, until the result is called.
func (s *seeding) onFault(stop func()) func() {
	quit := make(chan struct{})
	go func() {
		select {
		case <-s.ended:
			if s.err != nil {
				stop()
			}
		case <-quit:
		}
	}()
	return func() { close(quit) }
}

// end stops it, and returns what is wrong with it unless that was returned.
func (s *seeding) end() error {
	s.cancel()
	<-s.ended
	return s.takeError()
}

func (s *seeding) takeError() error {
	err := s.err
	s.err = nil
	return err
}

// seed admits what --seed and --file name before the crawl starts, and fails
// when it has no work then.
func (g *grammar) seed(env *boot.Env, f *fetcher.Fetcher) error {
	if g.SeedFlags.Any() {
		counts, err := g.SeedFlags.Admit(env, f.Frontier(), "")
		env.Log.Info("seeded", "admitted", counts.Admitted, "seen", counts.Seen, "capped", counts.Capped, "bad", counts.Bad)
		if err != nil {
			return err
		}
	}
	return g.somethingToDo(env, f)
}

// somethingToDo fails when a crawl in one process has no work and is given none.
func (g *grammar) somethingToDo(env *boot.Env, f *fetcher.Fetcher) error {
	if !g.Embedded {
		return nil // others may seed it
	}
	stats, err := f.Frontier().Stats(env.Stop)
	if err != nil {
		return err
	}
	var known int64
	for _, s := range stats {
		if s.Queued+s.Waiting+s.Recrawls+s.Open > 0 {
			return nil
		}
		known += s.Known
	}
	if known > 0 && g.SeedFlags.Any() {
		return nil // what the seeds name was fetched before
	}
	return boot.Usage("nothing to crawl: give --seed URL or --file FILE, or --state DIR of a crawl that has work left")
}

// joined is two notes in one.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// page serves a page for people at the address of --web.
func (g *grammar) page(env *boot.Env, f *fetcher.Fetcher) (stop func(), err error) {
	if g.Web == "" {
		return func() {}, nil
	}
	token, err := g.Token()
	if err != nil {
		return nil, err
	}
	_, stop, err = web.Start(web.Config{Frontier: f.Frontier(), Addr: g.Web, Flag: "web", Changes: g.AllowChanges, Token: token, Hosts: g.WebHost, Log: env.Log})
	return stop, err
}

// view is what /metrics and /healthz show of a fetcher that has opened its crawl.
type view struct {
	ready func(context.Context) error
	note  func() string
	write func(io.Writer)
}

func newView(g *grammar, f *fetcher.Fetcher, c *crawl.Crawler, out *outputs) *view {
	return &view{
		ready: func(ctx context.Context) error { return errors.Join(c.Ready(ctx), out.Err()) },
		note:  func() string { return joined(c.Paused(), out.dropped()) },
		write: func(w io.Writer) {
			f.WriteMetrics(w)
			c.WriteMetrics(w)
			out.writeMetrics(w)
			g.writeDisks(w, out)
		},
	}
}

// errStarting is why a fetcher is not ready that has not opened its crawl.
var errStarting = errors.New("fetcher: starting: the crawl is not open yet; where Redis does not answer, it waits for that")

// monitor serves metrics and health at --metrics-addr, from before the crawl is
// opened, for that may wait for Redis. stop may be called twice.
func (g *grammar) monitor(env *boot.Env, current *atomic.Pointer[view]) (stop func(), err error) {
	if g.MetricsAddr == "" {
		return func() {}, nil
	}
	m := boot.Monitor{Addr: g.MetricsAddr, Pprof: g.Pprof, Ready: func(ctx context.Context) error {
		if v := current.Load(); v != nil {
			return v.ready(ctx)
		}
		return errStarting
	}, Note: func() string {
		if v := current.Load(); v != nil {
			return v.note()
		}
		return ""
	}, Write: func(page io.Writer) {
		metric.Page(page, g.Crawl, func(w io.Writer) {
			boot.WriteBuild(w, "fetcher")
			env.Metrics.WritePrometheus(w)
			metrics.WriteProcessMetrics(w)
			if v := current.Load(); v != nil {
				v.write(w)
			}
		})
	}}
	addr, stop, err := m.Start()
	if err != nil {
		return nil, err
	}
	env.Log.Info("serving /metrics and /healthz", "addr", addr)
	return sync.OnceFunc(stop), nil
}
