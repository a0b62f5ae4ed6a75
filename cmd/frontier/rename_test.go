//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// After scripts/rename-module another module uses the packages: the examples of
// package crawl run there.
func TestRenameModule(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, takes long: make check runs it")
	}
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "seine", "seine/x", "Example.com/x", "example.com", "example.com/a b"} {
		if out, err := exec.Command(filepath.Join(root, "scripts", "rename-module"), bad).CombinedOutput(); err == nil {
			t.Fatalf("%q was taken: %s", bad, out)
		}
	}
	checkout, outside := filepath.Join(t.TempDir(), "checkout"), t.TempDir()
	for _, name := range []string{"bench", "bloom", "cmd", "deploy", "extract", "fetch", "frontier", "scripts", "shard"} {
		if err := os.CopyFS(filepath.Join(checkout, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "README.md"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(checkout, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const path = "github.com/you/seine"
	runIn(t, checkout, "bash", filepath.Join("scripts", "rename-module"), path)
	for dir, want := range map[string]string{".": path, "deploy/check": path + "/deploy/check"} {
		if got := strings.TrimSpace(runIn(t, filepath.Join(checkout, dir), "go", "list", "-m")); got != want {
			t.Errorf("the module in %s is %s", dir, got)
		}
	}
	if left := strings.TrimSpace(runIn(t, checkout, "go", "list", "-e", "-f", "{{if .Error}}{{.Error}}{{end}}", "./...")); left != "" {
		t.Errorf("packages do not load: %s", left)
	}

	goMod, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(goMod), "module "+path, "module example.com/mine", 1) +
		fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", path, checkout)
	sum, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join(checkout, "fetch", "crawl", "example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"go.mod": []byte(text), "go.sum": sum, "example_test.go": example} {
		if err := os.WriteFile(filepath.Join(outside, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out := runIn(t, outside, "go", "test", "-v", "."); strings.Count(out, "--- PASS: Example_") != 3 {
		t.Errorf("the examples did not run: %s", out)
	}
}

// runIn runs a program of a build in dir and returns what it writes.
func runIn(t *testing.T, dir string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
