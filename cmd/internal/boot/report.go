package boot

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"seine/frontier/ask"
)

// PrintReport writes what became of a crawl for people, in cells that tabs part, with
// at most so many lines of each list.
func PrintReport(w io.Writer, r *ask.Summary, most int) {
	for _, text := range r.Unread {
		fmt.Fprintf(w, "MISSING\t%s\n", text)
	}
	fmt.Fprintf(w, "crawl\t%s: %s\n", r.Crawl, r.Ended)
	if !r.Began.IsZero() {
		fmt.Fprintf(w, "began\t%s, %s ago\n", r.Began.Format(time.RFC3339), time.Since(r.Began).Round(time.Second))
	}
	fetchers := "-"
	if len(r.Fetchers) > 0 {
		fetchers = Counted(r.Fetchers)
	}
	fmt.Fprintf(w, "fetchers\t%s\n", fetchers)
	if r.Shards == 0 {
		return
	}
	if r.Unread != nil {
		fmt.Fprintf(w, "what follows\tis of the other %s alone\n", Number(int64(r.Shards), "shard"))
	}
	t := &r.Total
	fmt.Fprintf(w, "URLs\t%d known, %d done, %d dead, %d retries; %d queued, %d waiting, %d in flight\n", t.Known, max(0, t.Done-t.Recrawled), t.Dead, t.Retried, t.Queued, t.Waiting, t.Open)
	if t.Recrawled > 0 {
		fmt.Fprintf(w, "recrawled\t%s; the counts of pages and seeds are of first fetches\n", Number(t.Recrawled, "time"))
	}
	fmt.Fprintf(w, "links\t%d found, %d of them duplicates\n", r.Links.Found, r.Links.Duplicates)
	whole := "all of them listed"
	if n := len(r.Seeds.List); !r.Seeds.Whole || n > most {
		whole = fmt.Sprintf("the first %d listed", min(n, most))
	}
	settled := fmt.Sprintf("%d settled", r.Seeds.Total)
	if r.Seeds.Left > 0 {
		settled += fmt.Sprintf(", %d not yet", r.Seeds.Left)
	}
	fmt.Fprintf(w, "seeds\t%s; %s\n", settled, whole)
	for _, list := range []struct {
		name   string
		counts []ask.Count
	}{
		{"seeds", r.Seeds.Outcomes}, {"status", r.Codes}, {"media", r.Media}, {"dead of", r.Causes},
		{"retried for", r.Retries}, {"walls of", r.Walls}, {"pages refused for", r.Withheld}, {"sites by last answer", r.Sites}, {"refused links", r.Links.Refused},
	} {
		printCounts(w, list.name, list.counts, most)
	}
	for i, s := range r.Seeds.List[:min(len(r.Seeds.List), most)] {
		fmt.Fprintf(w, "%s\t%s %s\n", head("seed", i), s.Outcome, s.URL)
	}
	for _, list := range []struct {
		name string
		tops []ask.Top
	}{{"largest sites", r.Largest}, {"most dead", r.Deadest}} {
		for i, top := range list.tops[:min(len(list.tops), most)] {
			text := fmt.Sprintf("%d %s", top.Count, top.Site)
			if top.Short > 0 {
				text += fmt.Sprintf(" (or up to %d more)", top.Short)
			}
			fmt.Fprintf(w, "%s\t%s\n", head(list.name, i), text)
		}
	}
}

// head is the name of a list at its first line.
func head(name string, i int) string {
	if i > 0 {
		return "  "
	}
	return name
}

func printCounts(w io.Writer, name string, counts []ask.Count, most int) {
	for i, c := range counts[:min(len(counts), most)] {
		text := fmt.Sprintf("%d %s", c.URLs, c.Name)
		if c.Bytes > 0 {
			text += fmt.Sprintf(", %d bytes", c.Bytes)
		}
		fmt.Fprintf(w, "%s\t%s\n", head(name, i), text)
	}
}

// Counted is the names of counts, most first: "3 politeness, 1 cpu".
func Counted(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", counts[name], cmp.Or(name, "unknown"))
	}
	return strings.Join(names, ", ")
}
