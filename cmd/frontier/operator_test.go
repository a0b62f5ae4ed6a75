package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"seine/cmd/internal/boot"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

// built is the program, built once for the tests that run it as a process.
var built = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(builds, "frontier")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s", out)
	}
	return path, nil
})

func program(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// operator is a person at a terminal with some servers.
type operator struct {
	t    *testing.T
	addr string
	in   string
}

func newOperator(t *testing.T, s *shardtest.Server) *operator {
	return &operator{t: t, addr: strings.Join(s.Addrs, ",")}
}

// run runs the program and returns its exit code and what it wrote.
func (d *operator) run(args ...string) (code int, out, errs string) {
	d.t.Helper()
	var o, e bytes.Buffer
	app := boot.App{Name: "frontier", About: about, Grammar: &cli{}, In: strings.NewReader(d.in), Out: &o, Err: &e, Environ: []string{"SEINE_REDIS=" + d.addr}}
	code = app.Run(d.t.Context(), d.t.Context(), args)
	if strings.Contains(e.String(), "goroutine") {
		d.t.Fatalf("%v: %s", args, &e)
	}
	return code, o.String(), e.String()
}

// ok runs the program, which must succeed and write each of want.
func (d *operator) ok(command string, want ...string) string {
	d.t.Helper()
	code, out, errs := d.run(strings.Fields(command)...)
	if code != 0 {
		d.t.Fatalf("%s: code %d: %s", command, code, errs)
	}
	squeezed := strings.Join(strings.Fields(out), " ")
	for _, w := range want {
		if !strings.Contains(squeezed, w) {
			d.t.Errorf("%s: no %q in\n%s", command, w, out)
		}
	}
	return out
}

// refused runs the program, which must end with a code and one line that has want.
func (d *operator) refused(code int, command, want string) {
	d.t.Helper()
	got, out, errs := d.run(strings.Fields(command)...)
	for strings.Contains(strings.SplitN(errs, "\n", 2)[0], "level=WARN") {
		_, errs, _ = strings.Cut(errs, "\n") // what the test servers could do better
	}
	if got != code || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, want) {
		d.t.Errorf("%s: code %d, stdout %q, stderr %q; want code %d and %q", command, got, out, errs, code, want)
	}
}

// json runs the program with --json and reads its answer into v.
func (d *operator) json(v any, command string) {
	d.t.Helper()
	out := d.ok(command + " --json")
	if err := json.Unmarshal([]byte(out), v); err != nil {
		d.t.Fatalf("%s: %v in %s", command, err, out)
	}
}

// open opens a crawl beside the program.
func (d *operator) open(crawl string) *redis.Frontier {
	d.t.Helper()
	client, err := shard.Open(d.t.Context(), shard.Config{Addrs: strings.Split(d.addr, ",")})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { client.Close() })
	f, err := redis.Open(d.t.Context(), client, crawl, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return f
}
