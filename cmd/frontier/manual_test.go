package main

import (
	"path/filepath"
	"testing"

	"seine/cmd/internal/manual"
)

// The tables of cmd/README.md are those of --help, and every flag has an example.
func TestManual(t *testing.T) {
	t.Parallel()
	tables, err := manual.Tables("frontier", new(cli))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"redis", "run", "crawl"} { // the fetcher has these flags too
		delete(tables, group)
	}
	manual.Compare(t, filepath.Join("..", "README.md"), "frontier", tables)
}
