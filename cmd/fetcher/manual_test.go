package main

import (
	"path/filepath"
	"testing"

	"seine/cmd/internal/manual"
)

// The tables of cmd/README.md are those of --help, and every flag has an example.
func TestManual(t *testing.T) {
	tables, err := manual.Tables("fetcher", new(grammar))
	if err != nil {
		t.Fatal(err)
	}
	manual.Compare(t, filepath.Join("..", "README.md"), "fetcher", tables)
}
