package frontier

import (
	"maps"
	"testing"
)

// TestSumOfRefetch: a URL that is recrawled counts once as a page and as a seed.
func TestSumOfRefetch(t *testing.T) {
	counts := map[string]int64{}
	for _, again := range []bool{false, true, true} {
		st := Settlement{Outcomes: []Outcome{{Kind: Recrawl, Facts: &Facts{Status: 200, Media: "html", Bytes: 7, Seed: "http://a.example/", Refetched: again}}}}
		st.EachCounter(func(kind, name, detail string, n int64) {
			if n > 0 {
				counts[CounterName(kind, name, detail)] += n
			}
		})
	}
	if want := map[string]int64{"page:200:html": 1, "bytes:200:html": 7, "seed:200": 1}; !maps.Equal(counts, want) {
		t.Errorf("%v, want %v", counts, want)
	}
}
