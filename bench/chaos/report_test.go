//go:build linux

package chaos

import (
	"encoding/json"
	"maps"
	"strconv"

	"seine/extract/sink/jsonl"
	"seine/frontier/ask"
)

// reported fails unless the report of the crawl has each URL that has records once,
// under the status that they have.
func (w *world) reported() {
	w.t.Helper()
	statusOf := map[string]int{}
	for r, err := range jsonl.Records(w.outs()...) {
		if err != nil {
			w.t.Fatal(err)
		}
		statusOf[r.URL] = r.Status
	}
	want, got := map[string]int64{}, map[string]int64{}
	for _, status := range statusOf {
		if status > 0 {
			want[strconv.Itoa(status)]++
		}
	}
	var r ask.Summary
	if err := json.Unmarshal([]byte(w.frontier("report", "--json")), &r); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range r.Codes {
		got[c.Name] = c.URLs
	}
	if len(want) == 0 || !maps.Equal(got, want) {
		w.t.Errorf("the report has %v, the records %v", got, want)
	}
	if n := int64(len(statusOf)); r.Total.Done+r.Total.Dead != n {
		w.t.Errorf("%d done and %d dead, and records of %d URLs", r.Total.Done, r.Total.Dead, n)
	}
	if r.Ended != "finished: nothing is left" {
		w.t.Errorf("it ended so: %s", r.Ended)
	}
}
