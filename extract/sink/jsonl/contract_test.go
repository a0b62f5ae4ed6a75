package jsonl

import (
	"path/filepath"
	"testing"

	"seine/extract/sink"
	"seine/extract/sink/sinktest"
)

func TestContract(t *testing.T) {
	for _, name := range kinds {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Target {
				path := filepath.Join(t.TempDir(), name)
				return sinktest.Target{
					Open: func(t *testing.T) sink.Sink { return open(t, Config{Path: path, Fields: sink.AllFields}) },
					URLs: func(t *testing.T) []string { return urls(t, path) },
				}
			})
		})
	}
}
