package boot

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"seine/frontier"
)

// SeedFlags name URLs to start from.
type SeedFlags struct {
	Seed    []string `group:"input" sep:"none" placeholder:"URL" help:"URL to start from. Repeatable."`
	Sitemap []string `group:"input" sep:"none" placeholder:"URL" help:"Sitemap or feed to start from, read whatever its type; scope and rules bind the pages in it. Repeatable."`
	File    []string `group:"input" sep:"none" placeholder:"FILE" help:"File of URLs, one a line, or JSON objects as in a feed; # for comments, gzip or zstd by content; - is stdin. Repeatable."`
}

// Any reports whether there is anything to start from.
func (s *SeedFlags) Any() bool { return len(s.Seed)+len(s.Sitemap)+len(s.File) > 0 }

// ProcessFlags belong to one fetcher process, not to the crawl.
type ProcessFlags struct {
	Out         []string `group:"output" sep:"none" placeholder:"OUTPUT" help:"Where records go; a page is settled when all outputs have it. A file: one JSON line each, added to what is there; .gz and .zst are compressed. - is stdout, the default with --embedded; a fleet fetcher needs one. warc:DIR/PREFIX: WARC files; .zst behind it for zstd instead of gzip. postgres://USER@HOST/DB?table=NAME: rows of a table. redis: or redis://HOST?key=NAME: a list that consumers pop, CRAWL:items. kafka://HOST:PORT,…/TOPIC: messages, keyed by site. Repeatable."`
	OutDrop     []string `group:"output" placeholder:"NAME" help:"Outputs that may lose records when they are slow or broken, instead of holding the crawl; a name is what stands before the first colon, or jsonl."`
	KeepSecrets bool     `group:"output" help:"Write the values of Authorization, Proxy-Authorization, Cookie and Set-Cookie too."`
	Fields      []string `group:"output" placeholder:"NAME" help:"More fields of records: body, links_out, headers, text, simhash. In the YAML file, rules may stand between them that make fields of pages."`

	OutPending     int           `least:"1" group:"output" default:"1000" placeholder:"N" help:"Fetched pages that may wait for outputs; at so many no request starts. After a crash they are fetched again (${default})."`
	OutPendingTime time.Duration `least:"1ms" group:"output" default:"5s" placeholder:"D" help:"How long a fetched page may wait for outputs before no request starts (${default})."`

	RotateSize Size          `group:"output" placeholder:"BYTES" help:"Begin a new file after so much, such as 1G."`
	RotateTime time.Duration `least:"0s" group:"output" placeholder:"D" help:"Begin a new file after so long."`

	OnRotate     string `group:"output" placeholder:"'COMMAND {}'" help:"Run this for every finished file of the outputs until it succeeds, {} being the file, as to bring files to object storage. Words are split at spaces; no shell."`
	OnRotateJobs int    `least:"1" group:"output" default:"2" placeholder:"N" help:"Commands of --on-rotate that run side by side (${default})."`

	Overflow string `group:"output" placeholder:"DIR" help:"When Redis is full, write the candidates (new URLs) that find no room to files there and go on; frontier seed --file DIR/* takes them back."`

	Embedded     bool          `group:"run" help:"Crawl in this process alone, without Redis; needs --seed, --file, or a --state with work."`
	State        string        `group:"run" placeholder:"DIR" help:"With --embedded: keep the crawl here and go on with it later."`
	Concurrency  int           `least:"0" group:"run" placeholder:"N" help:"Fetches at once (0: 1,024 a processor, fewer where files or a sixteenth of the memory, 64 KB each, do not allow that)."`
	MaxTime      time.Duration `least:"0s" group:"run" placeholder:"D" help:"Stop in order after so long."`
	ExitWhenDone *bool         `group:"run" negatable:"" help:"End when nothing is left (with --embedded yes, else no; with --recrawl never)."`
	IdleTimeout  time.Duration `least:"0s" group:"run" placeholder:"D" help:"End after so long without work."`
	Grace        time.Duration `least:"0s" group:"run" default:"30s" placeholder:"D" help:"On a first signal, time for open fetches to end (${default})."`
	MetricsAddr  string        `group:"run" placeholder:"[HOST:]PORT" help:"Serve /metrics and /healthz there; loopback when only a port is given."`
	Pprof        bool          `group:"run" help:"Serve profiles under /debug/pprof there too."`
	Web          string        `group:"run" placeholder:"[HOST:]PORT" help:"With --embedded: serve a page for people there while it runs, as frontier web does; loopback when only a port is given."`
	WebFlags
}

// WebFlags say who may do what on a page for people.
type WebFlags struct {
	AllowChanges bool   `group:"run" help:"Let whoever has the token pause, resume, block, retry and set on the page."`
	WebTokenFile string `group:"run" placeholder:"FILE" help:"File with the token that changes need, and reading too where the page's address is not loopback."`
}

// Token reads the token; "" when there is no file.
func (w *WebFlags) Token() (string, error) {
	if w.WebTokenFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(w.WebTokenFile)
	if err != nil {
		return "", fmt.Errorf("web-token-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// webFlag is the flag that fetchers have for their page.
const webFlag = "web"

// maxConcurrency is above what one machine has ports for.
const maxConcurrency = 100_000

// Check joins all faults that can be seen without a crawl. (Under the name
// Validate kong would call it before --print-config could show them.)
func (p *ProcessFlags) Check() error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !p.Embedded && len(p.Out) == 0 {
		bad("out: a fetcher of a fleet needs --out FILE for its records")
	}
	if p.State != "" && !p.Embedded {
		bad("state: only with --embedded")
	}
	if p.Concurrency > maxConcurrency {
		bad("concurrency is %d, must be at most %d", p.Concurrency, maxConcurrency)
	}
	if p.Pprof && p.MetricsAddr == "" {
		bad("pprof: profiles are served on --metrics-addr, which is missing")
	}
	switch {
	case p.Web != "" && !p.Embedded:
		bad("web: only with --embedded; the crawl of a fleet is shown by `frontier web`")
	case p.Web == "" && (p.AllowChanges || p.WebTokenFile != ""):
		bad("allow-changes and web-token-file are of the page that --web serves, which is missing")
	case p.Web != "":
		if _, err := ListenAddr(webFlag, p.Web); err != nil {
			faults = append(faults, err)
		}
	}
	if p.MetricsAddr != "" {
		if _, err := ListenAddr(metricsFlag, p.MetricsAddr); err != nil {
			faults = append(faults, err)
		}
	}
	return usage(faults...)
}

// EndsWhenDone says whether the process ends when nothing is left of a crawl with
// these settings. One whose pages are fetched again always has something left.
func (p *ProcessFlags) EndsWhenDone(s *frontier.Settings) (bool, error) {
	asked := p.ExitWhenDone != nil && *p.ExitWhenDone
	switch {
	case len(s.Recrawl) > 0 && asked:
		return false, Usage("exit-when-done: the crawl fetches pages again, as its --recrawl says, and is never done; leave it out, and end with --max-time, --max-pages, --idle-timeout or a signal")
	case len(s.Recrawl) > 0:
		return false, nil
	case p.ExitWhenDone != nil:
		return asked, nil
	}
	return p.Embedded, nil
}

// Count is a number that may end in k, M or G (thousands).
type Count int64

// UnmarshalText reads a count.
func (c *Count) UnmarshalText(text []byte) error {
	v, err := scaled(string(text), string(text), 1000, "count such as 1000, 10k or 2M")
	*c = Count(v)
	return err
}

// String is the number in full.
func (c Count) String() string { return strconv.FormatInt(int64(c), 10) }

// Size is a number of bytes that may end in k, M, G, T (1024 each) and B.
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := scaled(string(text), strings.TrimSuffix(strings.TrimSuffix(string(text), "B"), "i"), 1024, "size such as 4096, 10k, 32MB or 2GiB")
	*s = Size(v)
	return err
}

// String is the number in full.
func (s Size) String() string { return strconv.FormatInt(int64(s), 10) }

// scaled reads a number that may end in a letter for powers of unit: text without
// what stands behind that in given. kind is what it should be.
func scaled(given, text string, unit float64, kind string) (int64, error) {
	factor := 1.0
	number := text
	if text != "" {
		if at := strings.IndexByte("kmgt", text[len(text)-1]|0x20); at >= 0 {
			number = text[:len(text)-1]
			for range at + 1 {
				factor *= unit
			}
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if v *= factor; err != nil || v < 0 || v > 1<<53 || v != float64(int64(v)) {
		return 0, fmt.Errorf("%q is no %s", given, kind)
	}
	return int64(v), nil
}
