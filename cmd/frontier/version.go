package main

import (
	"fmt"
	"io"
	"runtime"

	"seine/cmd/internal/boot"
)

type versionCmd struct{}

// Run prints what runs.
func (c *versionCmd) Run(env *boot.Env, g *cli) error {
	return g.answer(env, map[string]any{"program": "frontier", "version": boot.Version(), "go": runtime.Version()}, func(w io.Writer) {
		fmt.Fprintf(w, "frontier %s\n", boot.Version())
	})
}
