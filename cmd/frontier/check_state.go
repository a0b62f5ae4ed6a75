package main

import (
	"fmt"
	"io"
	"strings"

	"seine/cmd/internal/boot"
	"seine/frontier/memory"
)

// fits refuses flags that mean nothing to a directory. The file and the
// environment may serve other programs too.
func (c *checkCmd) fits(env *boot.Env) error {
	for _, name := range env.Said {
		switch {
		case c.State == "":
		case strings.HasPrefix(name, "redis") || name == "crawl" || name == "urls":
			return boot.Usage("--%s is for a crawl in Redis, --state for one in a directory: leave one of them out", name)
		case name == "repair":
			return boot.Usage("--repair mends a crawl in Redis; one in a directory whose files are damaged is put back from a copy, or begun anew")
		}
	}
	return nil
}

// state checks a directory.
func (c *checkCmd) state(g *cli, env *boot.Env) error {
	found, err := memory.Check(c.State)
	if err != nil {
		return err
	}
	if err := g.answer(env, found, func(w io.Writer) { showChecked(w, found) }); err != nil {
		return err
	}
	if found.Faulty > 0 {
		return fmt.Errorf("check: %d faults in %s", found.Faulty, c.State)
	}
	return nil
}

func showChecked(w io.Writer, r *memory.Checked) {
	row(w, "FILE", "BYTES")
	for _, f := range r.Files {
		row(w, f.Name, f.Bytes)
	}
	fmt.Fprintln(w)
	row(w, "SHARD", "KNOWN", "QUEUED", "WAITING", "DONE", "DEAD")
	for k, s := range r.Shards {
		row(w, k, s.Known, s.Queued, s.Waiting, s.Done, s.Dead)
	}
	for _, text := range r.Faults {
		fmt.Fprintln(w, text)
	}
	if more := r.Faulty - int64(len(r.Faults)); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}
