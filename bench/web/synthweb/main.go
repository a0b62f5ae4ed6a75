// Command synthweb serves a synthetic web, lists its seeds, and judges a crawl
// of it by its answer key.
//
//	synthweb seeds --sites 50 > seeds.txt
//	synthweb serve --sites 50 --pages 100000 --listen 127.0.0.1:8080 --log requests.tsv
//	fetcher --embedded --file seeds.txt --connect-to '*.example:80:127.0.0.1:8080' --allow-net 127.0.0.0/8 --per-address 0 --out pages.jsonl
//	synthweb verify --sites 50 --pages 100000 --log requests.tsv pages.jsonl
//
// The flags that describe the web must be the same for all three.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"seine/bench/web"
	"seine/extract/sink/jsonl"

	"github.com/alecthomas/kong"
)

// webFlags describe the web.
type webFlags struct {
	Seed       uint64        `help:"Another seed is another web." default:"1"`
	Sites      int           `help:"Number of sites." default:"20"`
	Pages      int           `help:"Pages over all sites." default:"1000"`
	Links      int           `help:"Links a page." default:"62"`
	New        float64       `help:"Share of the links that is new." default:"0.1"`
	Exponent   float64       `help:"Of the power law of site sizes." default:"1.8"`
	URLBytes   int           `help:"Average length of URLs; 0 is some 40."`
	Features   string        `help:"Names separated by commas: gentle, all, none, spellings, redirects, missing, robots, nofollow, charsets, encodings, sizes, failures, slow, traps." default:"gentle"`
	Agent      string        `help:"Robots token that robots.txt files name." default:"seine"`
	CrawlDelay time.Duration `help:"Crawl delay of the sites that ask for one." default:"200ms"`
}

// web makes the web. What stands for a default in a Config is refused: nobody
// asks for no sites and means 20.
func (f *webFlags) web() (*web.Web, error) {
	if f.Sites < 1 || f.Pages < 1 || f.Links < 1 {
		return nil, errors.New("--sites, --pages and --links must be at least 1")
	}
	if f.New == 0 || f.Exponent == 0 || f.CrawlDelay == 0 {
		return nil, errors.New("--new, --exponent and --crawl-delay must be more than 0")
	}
	features, err := web.ParseFeatures(f.Features)
	if err != nil {
		return nil, err
	}
	return web.New(web.Config{Seed: f.Seed, Sites: f.Sites, Pages: f.Pages, Links: f.Links, New: f.New, Exponent: f.Exponent, URLBytes: f.URLBytes,
		Features: features, Agent: f.Agent, CrawlDelay: f.CrawlDelay})
}

type seedsCmd struct {
	webFlags
}

// Run prints the URLs of all roots.
func (c *seedsCmd) Run() error {
	w, err := c.web()
	if err != nil {
		return err
	}
	for _, u := range w.Seeds() {
		fmt.Println(u)
	}
	return nil
}

type serveCmd struct {
	webFlags
	Listen string `help:"Address; a port alone is of 127.0.0.1, 0 takes a free one." default:"127.0.0.1:0"`
	Log    string `help:"File for the log of requests, written at the end." type:"path"`
}

// Run serves until a signal, then writes the log.
func (c *serveCmd) Run(ctx context.Context) (err error) {
	w, err := c.web()
	if err != nil {
		return err
	}
	var log *os.File
	if c.Log != "" { // what cannot be written is not to be found out in the end
		if log, err = os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, log.Close()) }()
	}
	s, err := w.Listen(c.Listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "serving %d sites: --connect-to '%s' --allow-net 127.0.0.0/8 --per-address 0\n", w.Sites(), s.ConnectTo())
	<-ctx.Done()
	err = s.Close()
	if log == nil {
		return err
	}
	if st, e := log.Stat(); e == nil && st.Mode().IsRegular() { // the log of the last time stood until now
		err = errors.Join(err, log.Truncate(0))
	}
	return errors.Join(err, web.WriteLog(log, w.Log()))
}

type verifyCmd struct {
	webFlags
	Log            string        `help:"Log of requests." required:"" type:"existingfile"`
	Records        []string      `arg:"" optional:"" help:"Files of records." type:"existingfile"`
	Site           []int         `help:"Sites whose roots were the seeds; default all."`
	AnyScope       bool          `help:"The crawl followed links to other sites."`
	MaxDepth       int           `help:"The crawl's depth; 0 is unlimited."`
	IgnoreRobots   bool          `help:"The crawl ignored robots.txt."`
	IgnoreNofollow bool          `help:"The crawl followed nofollow links."`
	Attempts       int           `help:"The crawl's attempts at a failing URL." default:"4"`
	MaxBody        int64         `help:"The crawl's body limit in bytes." default:"10485760"`
	Delay          time.Duration `help:"The crawl's delay of a site."`
	Slack          time.Duration `help:"By how much a request may come early."`
}

// errFaults makes the exit status say that something was found.
var errFaults = errors.New("the crawl differs from the key")

// Run prints what differs.
func (c *verifyCmd) Run() error {
	if c.Attempts < 1 || c.MaxBody < 1 {
		return errors.New("--attempts and --max-body must be at least 1")
	}
	w, err := c.web()
	if err != nil {
		return err
	}
	f, err := os.Open(c.Log)
	if err != nil {
		return err
	}
	defer f.Close()
	log, err := web.ReadLog(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return err
	}
	plan := web.Plan{Sites: c.Site, AnyScope: c.AnyScope, MaxDepth: c.MaxDepth, IgnoreRobots: c.IgnoreRobots,
		IgnoreNofollow: c.IgnoreNofollow, Attempts: c.Attempts, MaxBody: c.MaxBody, Delay: c.Delay, Slack: c.Slack}
	records := jsonl.Records(c.Records...)
	if len(c.Records) == 0 {
		records = nil
	}
	report, err := w.Verify(plan, log, records)
	if err != nil {
		return err
	}
	fmt.Print(report)
	if !report.OK() {
		return errFaults
	}
	return nil
}

func main() {
	var cli struct {
		Serve  serveCmd  `cmd:"" help:"Serve the web until a signal."`
		Seeds  seedsCmd  `cmd:"" help:"Print the URLs a crawl starts from."`
		Verify verifyCmd `cmd:"" help:"Compare a crawl with the key."`
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parsed := kong.Parse(&cli, kong.Name("synthweb"), kong.Description("A synthetic web with an answer key."), kong.BindTo(ctx, (*context.Context)(nil)))
	parsed.FatalIfErrorf(parsed.Run())
}
