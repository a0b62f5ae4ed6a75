package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"seine/cmd/internal/boot"
	"seine/frontier/memory"
)

// ofCheck names what a check of a crawl in Redis takes, beside flags that begin
// with redis.
var ofCheck = []string{"urls", "repair", "crawl", "json", "config", "print-config", "log-level", "log-format"}

// fits refuses flags that mean nothing here: those of Redis to a directory, and
// those of a crawl to Redis, which has them. The file and the environment may
// serve other programs too.
func (c *checkCmd) fits(env *boot.Env) error {
	for _, name := range env.Said {
		redis := strings.HasPrefix(name, "redis")
		switch {
		case c.State != "" && (redis || name == "crawl" || name == "urls"):
			return boot.Usage("--%s is for a crawl in Redis, --state for one in a directory: leave one of them out", name)
		case c.State == "" && !redis && !slices.Contains(ofCheck, name):
			return boot.Usage("--%s is for --state with a damaged crawl file; a crawl in Redis has its own", name)
		}
	}
	return c.CrawlFlags.Check()
}

// stateReport is the answer for a directory.
type stateReport struct {
	*memory.Checked
	Repaired *memory.Repaired `json:"repaired,omitempty"`
}

// state checks a directory and repairs it if asked to and needed.
func (c *checkCmd) state(env *boot.Env, g *cli) error {
	cfg := memory.Config{Dir: c.State, Layout: c.ToLayout(), Settings: c.ToSettings(), Logger: env.Log}
	found, err := memory.Check(cfg)
	if err != nil {
		return err
	}
	report := stateReport{Checked: found}
	if c.Repair && !found.Sound() {
		report.Repaired, err = memory.Repair(cfg)
		if errors.Is(err, memory.ErrCrawlFile) {
			err = fmt.Errorf("%w; say what it held as fetcher was told: --limit-by (site when it was not given), and --strip-params, --sort-query and settings such as --delay where they were", err)
		}
		if err != nil {
			return err
		}
		if now, err := memory.Check(memory.Config{Dir: c.State}); err != nil {
			return err
		} else if !now.Sound() {
			return fmt.Errorf("check: %s is damaged still after its repair: the disk may be failing", c.State)
		}
	}
	if err := g.answer(env, report, func(w io.Writer) { report.show(w) }); err != nil {
		return err
	}
	if !found.Sound() && !c.Repair {
		return fmt.Errorf("check: %s is damaged; --repair saves what is left", c.State)
	}
	return nil
}

func (r *stateReport) show(w io.Writer) {
	row(w, "FILE", "BYTES")
	for _, f := range r.Files {
		row(w, f.Name, f.Bytes)
	}
	fmt.Fprintln(w)
	showShards(w, r.Shards)
	for _, d := range r.Damage {
		if d.Torn {
			fmt.Fprintf(w, "note: %s; a crash cut it off, and the next start drops it\n", d)
		} else {
			fmt.Fprintln(w, d)
		}
	}
	for _, text := range r.Faults {
		fmt.Fprintln(w, text)
	}
	if more := r.Faulty - int64(len(r.Faults)); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	if r.Repaired == nil {
		return
	}
	fmt.Fprintf(w, "\nrepaired; the files as they were are in %s; %d URLs are known again; what is left:\n", r.Repaired.Aside, r.Repaired.Again)
	showShards(w, r.Repaired.Shards)
}

func showShards(w io.Writer, list []memory.Saved) {
	row(w, "SHARD", "KNOWN", "QUEUED", "WAITING", "OPEN", "DONE", "DEAD")
	for k, s := range list {
		row(w, k, s.Known, s.Queued, s.Waiting, s.Open, s.Done, s.Dead)
	}
}
