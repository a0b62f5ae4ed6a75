package jsonl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/extract/sink"
	"seine/extract/sink/jsonl"
	"seine/extract/sink/sinktest"
)

// TestDuckDB: the queries that extract/sink/README.md shows run on files that this package wrote,
// compressed or not.
func TestDuckDB(t *testing.T) {
	python := sinktest.Python(t)
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(readme), "```sql\n")
	queries, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		t.Fatal("README has no queries")
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	page := func(url, site string, status int, bytes int64, more func(*sink.Record)) *sink.Record {
		at = at.Add(time.Second)
		r := &sink.Record{URL: url, Site: site, Status: status, Bytes: bytes, FetchedAt: at}
		if more != nil {
			more(r)
		}
		return r
	}
	records := []*sink.Record{
		page("https://b.example/", "b.example", 0, 0, func(r *sink.Record) { r.Error = &sink.Error{Class: "dns", Text: "no \"server\"\n"} }),
		page("https://a.example/", "a.example", 200, 10, func(r *sink.Record) { r.Title = "ümläut, 'quoted'" }),
		page("https://a.example/old", "a.example", 301, 0, func(r *sink.Record) { r.Location = "https://a.example/new" }),
		page("https://a.example/new", "a.example", 200, 7, func(r *sink.Record) { r.From = "https://a.example/old" }),
		page("https://a.example/", "a.example", 200, 12, nil), // once more
		page("https://a.example/", "a.example", 0, 0, func(r *sink.Record) { r.Error = &sink.Error{Class: "timeout", Text: "late"} }),
		page("https://a.example/new", "a.example", 304, 0, func(r *sink.Record) { r.Unchanged = true }),
	}
	const want = "a.example|3|2|19\nb.example|1|0|0\nhttps://a.example/old|301|https://a.example/new|200\n"
	for _, name := range []string{"pages.jsonl", "pages.jsonl.gz", "pages.jsonl.zst"} {
		path := filepath.Join(t.TempDir(), name)
		s, err := jsonl.Open(jsonl.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			s.Write(r, func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(queries, "'pages.jsonl'") {
			t.Fatal("the queries are not about pages.jsonl")
		}
		cmd := exec.Command(python, "-c", `
import duckdb, sys
for query in sys.stdin.read().split(";"):
    if query.strip():
        result = duckdb.sql(query)
        for row in result.fetchall() if result else ():
            print(*row, sep="|")
`)
		cmd.Stdin = strings.NewReader(strings.ReplaceAll(queries, "'pages.jsonl'", "'"+path+"'"))
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, out, want)
		}
	}
}
