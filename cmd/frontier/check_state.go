package main

import (
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier/memory"
)

// state checks a directory.
func (c *checkCmd) state(env *boot.Env, g *cli) error {
	if err := g.fits(env); err != nil {
		return err
	}
	if c.Repair {
		return boot.Usage("--repair is for a crawl in Redis; one in a directory whose files are damaged is put back from a copy, or begun anew")
	}
	found, err := memory.Check(g.State)
	if err != nil {
		return err
	}
	if err := g.answer(env, found, func(w io.Writer) { printChecked(w, found) }); err != nil {
		return err
	}
	if found.Faulty > 0 {
		return fmt.Errorf("check: %d faults in %s", found.Faulty, g.State)
	}
	return nil
}

func printChecked(w io.Writer, r *memory.Checked) {
	row(w, "FILE", "BYTES")
	for _, f := range r.Files {
		row(w, f.Name, f.Bytes)
	}
	fmt.Fprintln(w)
	row(w, "SHARD", "KNOWN", "QUEUED", "WAITING", "RECRAWLS", "DONE", "DEAD")
	for k, s := range r.Shards {
		row(w, k, s.Known, s.Queued, s.Waiting, s.Recrawls, s.Done, s.Dead)
	}
	for _, text := range r.Faults {
		fmt.Fprintln(w, text)
	}
	if more := r.Faulty - int64(len(r.Faults)); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}
