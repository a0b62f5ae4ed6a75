//go:build linux

package chaos

import (
	"fmt"
	"math"
	"strings"
	"time"

	"seine/bench/web"
	"seine/extract/sink/jsonl"
)

// verdict is what became of a crawl.
type verdict struct {
	*web.Report
	repeats int   // requests beyond those of the key
	lost    int64 // URLs that came back from lost leases
	dead    int64
	early   []string
}

// judge waits for the end of the crawl, compares it with the key and prints the
// table. What no scenario may have is an error here: records that are missing or
// wrong, requests that no right crawl makes, shards in disorder.
func (w *world) judge() verdict {
	w.t.Helper()
	w.waitAll()
	if !w.loosened.IsZero() {
		w.note("seconds after the last blow", math.Round(time.Since(w.loosened).Seconds()))
	}
	plan := web.Plan{}
	report, err := w.web.Verify(plan, w.web.Log(), jsonl.Records(w.outs()...))
	if err != nil {
		w.t.Fatal(err)
	}
	v := verdict{Report: report, early: w.early()}
	for _, e := range v.early {
		w.t.Log("early: ", e)
	}
	wanted := 0
	for e := range w.web.Expect(plan) {
		wanted += e.Requests
	}
	v.repeats = report.Requests - wanted + report.Missing.Count - report.Extra.Count
	if w.front != nil {
		s := w.stats()
		v.lost, v.dead = s.Lost, s.Dead
		if s.Queued+s.Waiting+s.Open+s.Ready+s.Leases != 0 {
			w.t.Errorf("something is left at the end: %+v", s)
		}
		w.check()
	}
	w.print(w.table(v))
	if n := report.Wrong.Count + report.Extra.Count; n > 0 {
		w.t.Errorf("%d faults:\n%s", n, report)
	}
	if n := len(v.early); n > 0 && !w.setup.forgets {
		w.t.Errorf("%d requests came early, such as %s", n, v.early[0])
	}
	return v
}

// outs are the files of records.
func (w *world) outs() []string {
	var outs []string
	for _, f := range w.fetchers {
		outs = append(outs, f.out)
	}
	return outs
}

// check lets the program look at every shard and every URL.
func (w *world) check() {
	w.t.Helper()
	if out, err := w.tryFrontier("check", "--urls"); err != nil {
		w.t.Errorf("frontier check: %v\n%s", err, out)
	}
}

// nothingLost fails unless every page was fetched and has its record.
func (w *world) nothingLost(v verdict) {
	w.t.Helper()
	if v.Missing.Count+v.Unwritten.Count > 0 {
		w.t.Errorf("URLs were lost:\n%s", v.Report)
	}
}

// explained fails unless the repeats are at most the URLs of lost leases.
func (w *world) explained(v verdict) {
	w.t.Helper()
	if int64(v.repeats) > v.lost {
		w.t.Errorf("%d requests were repeated, and only %d URLs came back from lost leases:\n%s", v.repeats, v.lost, v.Report)
	}
}

// early are the requests that came sooner after the last one of their site than
// the delay, while that was in force. The web knows when a request arrived, not
// only when it came to look at it, so that a busy machine makes none early.
func (w *world) early() (all []string) {
	last := map[string]web.Request{}
	for _, r := range w.web.Log() {
		if !w.loosened.IsZero() && r.At.After(w.loosened) {
			break
		}
		if strings.HasPrefix(r.Target, "/robots") {
			continue
		}
		before, ok := last[r.Host]
		if gap := r.At.Sub(before.At); ok && gap < w.setup.delay {
			all = append(all, fmt.Sprintf("at %s %s%s came %v after %s", r.At.UTC().Format(time.TimeOnly+".000"), r.Host, r.Target, gap, before.Target))
		}
		last[r.Host] = r
	}
	return all
}

// note adds a line to the table.
func (w *world) note(name string, value any) { w.rows = append(w.rows, row{name, value}) }

// table is what was counted.
func (w *world) table(v verdict) []row {
	rows := []row{{"seed", w.seed}, {"URLs of the key", v.Expected}, {"requests", v.Requests}, {"blows", w.blows},
		{"missing", v.Missing.Count}, {"without record", v.Unwritten.Count}, {"records repeated", v.Doubled.Count},
		{"requests repeated", v.repeats}, {"URLs of lost leases", v.lost}, {"dead", v.dead}, {"early", len(v.early)}}
	return append(rows, w.rows...)
}

// print writes a table to the test's log, and as a line to the output and to the
// file of results, if there is one.
func (w *world) print(rows []row) {
	rows = append(rows, row{"seconds", math.Round(time.Since(w.began).Seconds())})
	var table, line strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&table, "%-32s%v\n", r.name, r.value)
		fmt.Fprintf(&line, ", %s %v", r.name, r.value)
	}
	w.t.Logf("\n%s", table.String())
	text := strings.TrimPrefix(w.t.Name(), "Test") + ": " + line.String()[2:] + "\n"
	fmt.Print("chaos: " + text)
	if err := addResult(text); err != nil {
		w.t.Error(err)
	}
}
