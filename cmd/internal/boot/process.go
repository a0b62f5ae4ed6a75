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
	Sitemap []string `group:"input" sep:"none" placeholder:"URL" help:"Sitemap, feed or llms.txt to start from, of any content type. Scope and rules apply to the pages in it. Repeatable."`
	File    []string `group:"input" sep:"none" placeholder:"FILE" help:"File with a URL or a JSON element of the feed on each line. # begins a comment. It may be gzip or zstd; - is stdin. Repeatable."`
}

// Any reports whether there is anything to start from.
func (s *SeedFlags) Any() bool { return len(s.Seed)+len(s.Sitemap)+len(s.File) > 0 }

// ProcessFlags belong to one fetcher process, not to the crawl.
type ProcessFlags struct {
	Out         []string `group:"output" sep:"none" placeholder:"OUTPUT" help:"Where records go. FILE: JSON lines, appended; FILE.gz and FILE.zst are compressed; - is stdout, the default with --embedded. warc:DIR/PREFIX: WARC files; a final .zst means zstd instead of gzip. postgres://USER@HOST/DB?table=NAME: rows of a table. redis: or redis://HOST?key=NAME: a list for consumers (CRAWL:items). kafka://HOST:PORT,…/TOPIC: messages with the site as key. A page is settled when all outputs have its record. Repeatable."`
	OutDrop     []string `group:"output" placeholder:"NAME" help:"Outputs that may lose records when they are slow or broken. Without it the crawl waits. A name is the part before the first colon, or jsonl."`
	MaxText     Size     `least:"1" group:"output" default:"1M" placeholder:"BYTES" help:"Most bytes of the text of a page, and of the value of a field, in a record. text_truncated says that there was more (${default})."`
	KeepSecrets bool     `group:"output" help:"Write the values of Authorization, Proxy-Authorization, Cookie, Set-Cookie and the headers of site rules and requests too."`
	Fields      []string `group:"output" placeholder:"NAME" help:"More fields of records: body, links_out, headers, text, simhash, ip, protocol. In the YAML file the list may also hold rules that extract fields from pages."`

	OutPending     int           `least:"1" group:"output" default:"1000" placeholder:"N" help:"Most fetched pages that wait for outputs. At this number no new request starts. After a crash Seine fetches them again (${default})."`
	OutPendingTime time.Duration `least:"1ms" group:"output" default:"5s" placeholder:"D" help:"Longest time that a fetched page waits for outputs before no new request starts (${default})."`

	RotateSize Size          `group:"output" placeholder:"BYTES" help:"Start a new file after this many bytes, such as 1G (never)."`
	RotateTime time.Duration `least:"0s" group:"output" placeholder:"D" help:"Start a new file after this time (never)."`

	OnRotate     string `group:"output" placeholder:"'COMMAND {}'" help:"Run this command for every finished file until it succeeds; {} stands for the file. Use it to copy files to object storage. Words are split at spaces, without a shell."`
	OnRotateJobs int    `least:"1" group:"output" default:"2" placeholder:"N" help:"Number of --on-rotate commands that run at once (${default})."`

	Overflow string `group:"output" placeholder:"DIR" help:"When Redis is full, write new URLs to files in DIR and go on. frontier seed --file DIR/* queues them later."`

	Embedded     bool          `group:"run" help:"Crawl in this process alone, without Redis. Needs --seed, --file or a --state with work."`
	State        string        `group:"run" placeholder:"DIR" help:"With --embedded: keep the crawl in this directory. The next start resumes it."`
	Concurrency  int           `least:"0" group:"run" placeholder:"N" help:"Workers: fetches at once. 0 means 1,024 per processor, but fewer if open files or a sixteenth of memory (64 KB each) do not suffice (0)."`
	MaxTime      time.Duration `least:"0s" group:"run" placeholder:"D" help:"Stop gracefully after this time (never)."`
	ExitWhenDone *bool         `group:"run" negatable:"" help:"Exit when no URL is left (yes with --embedded, else no; refused with --recrawl)."`
	IdleTimeout  time.Duration `least:"0s" group:"run" placeholder:"D" help:"Exit after this time without work (never)."`
	Grace        time.Duration `least:"0s" group:"run" default:"30s" placeholder:"D" help:"Time that open fetches have to end after a first signal (${default})."`
	MetricsAddr  string        `group:"run" placeholder:"[HOST:]PORT" help:"Serve /metrics and /healthz at this address. A port alone means loopback (off)."`
	Pprof        bool          `group:"run" help:"Also serve profiles at --metrics-addr under /debug/pprof."`
	Web          string        `group:"run" placeholder:"[HOST:]PORT" help:"With --embedded: serve the web page of frontier web at this address. A port alone means loopback (off)."`
	WebFlags
}

// WebFlags say who may do what on a page for people.
type WebFlags struct {
	AllowChanges bool     `group:"run" help:"Let people with the token pause, resume, block, retry and change settings on the web page."`
	WebHost      []string `group:"run" placeholder:"NAME" help:"Name that a proxy serves the web page under. The page refuses other names. Reading under it needs the token. Repeatable."`
	WebTokenFile string   `group:"run" placeholder:"FILE" help:"File with the token that changes need. Reading needs it too if the address of the web page is not loopback."`
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
		bad("web: only with --embedded; `frontier web` serves the page of a fleet")
	case p.Web == "" && (p.AllowChanges || p.WebTokenFile != "" || len(p.WebHost) > 0):
		bad("allow-changes, web-host and web-token-file are of the page that --web serves, which is missing")
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

// EndsWhenDone reports whether the process ends when nothing is left of a crawl with
// these settings. One with recrawls always has something left.
func (p *ProcessFlags) EndsWhenDone(s *frontier.Settings) (bool, error) {
	asked := p.ExitWhenDone != nil && *p.ExitWhenDone
	switch {
	case len(s.Recrawl) > 0 && asked:
		return false, Usage("exit-when-done: the crawl has --recrawl and is never done; leave it out, and end with --max-time, --max-pages, --idle-timeout or a signal")
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
