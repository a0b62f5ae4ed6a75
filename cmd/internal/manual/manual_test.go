package manual

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/shard/shardtest"
)

// The commands of every README run, one document after the other, on one cluster and
// a web of this process that answers for all hosts. Those that need what no test has
// are parsed: by the programs themselves, make's by make, others by the shell.
func TestCommands(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := Documents(root)
	if err != nil {
		t.Fatal(err)
	}
	first := []string{"README.md", filepath.Join("cmd", "README.md")} // they make the crawl that others ask
	docs = append(first, slices.DeleteFunc(docs, func(doc string) bool { return slices.Contains(first, doc) })...)
	servers := shardtest.Start(t, shardtest.Config{Masters: 6})
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "./cmd/fetcher", "./cmd/frontier")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	web := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	web.StartTLS()
	t.Cleanup(web.Close)
	_, port, _ := net.SplitHostPort(web.Listener.Addr().String())
	env := append(os.Environ(),
		"SEINE_REDIS="+strings.Join(servers.Addrs, ","), "SEINE_CONNECT_TO=::127.0.0.1:"+port, "SEINE_ALLOW_NET=127.0.0.0/8",
		"SEINE_INSECURE_SKIP_VERIFY=true", "SEINE_DELAY=0s", "SEINE_EXIT_WHEN_DONE=true")
	n := 0
	for _, doc := range docs {
		text, err := os.ReadFile(filepath.Join(root, doc))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		arrange(t, root, bin, dir)
		for _, block := range blocks(string(text)) {
			n++
			script, err := rewrite(block, dir, servers.Addrs)
			if err != nil {
				t.Errorf("%s: %v", doc, err)
				continue
			}
			cmd := exec.Command("bash", "-c", script)
			cmd.Dir, cmd.Env = dir, env
			began := time.Now()
			out, err := cmd.CombinedOutput()
			t.Logf("%s, block %d: %v", doc, n, time.Since(began).Round(time.Millisecond))
			if err != nil {
				t.Errorf("%s: %v\n%s", doc, err, tail(out))
			}
		}
	}
	if n < 20 {
		t.Errorf("%d blocks of commands", n)
	}
}

// tail is the end of what a block wrote, where its fault is.
func tail(out []byte) []byte {
	if len(out) > 4000 {
		return out[len(out)-4000:]
	}
	return out
}

// prelude is what every block begins with: -x shows which line failed. Ends of
// programs that run beside it are theirs: they are asked to stop, and must be there.
const prelude = `set -euo pipefail
beside=()
listens() {
	until (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; do kill -0 "$!"; sleep 0.05; done
	beside+=("$!")
}
cluster_up() {
	for port in 20100 21200 22300 23400 24500; do
		if scripts/cluster up --masters 3 --dir "$PWD/cluster" --port $port; then
			scripts/cluster down --dir "$PWD/cluster"
			return
		fi
	done
	return 1
}
set -x
`

// epilogue ends what runs beside the block.
const epilogue = `
for pid in "${beside[@]}"; do kill "$pid"; wait "$pid"; done
`

var (
	needs   = regexp.MustCompile(`\s+# needs .*$`)
	program = regexp.MustCompile(`\bbin/(fetcher|frontier)\b[^|&;]*`)
	own     = regexp.MustCompile(`\b(deploy|scripts|bench|cmd)/[\w./-]+`)
	listen  = regexp.MustCompile(`--(listen|serve) \d+`)
	serve   = regexp.MustCompile(`--(metrics-addr|web) \d+`)
)

// rewrite makes a script of a block: addresses become those of the test, and
// commands that need something become such as parse them.
func rewrite(block, dir string, addrs []string) (string, error) {
	script := prelude
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
		line = strings.TrimRight(line, "\n")
		line = strings.ReplaceAll(line, "127.0.0.1:7001,127.0.0.1:7002", strings.Join(addrs[:2], ","))
		_, port, _ := net.SplitHostPort(addrs[0])
		line = strings.ReplaceAll(line, "-p 7001", "-p "+port)
		line = serve.ReplaceAllString(line, "--$1 0")
		switch command := strings.TrimSpace(line); {
		case needs.MatchString(line):
			parsed, err := parse(needs.ReplaceAllString(line, ""), dir)
			if err != nil {
				return "", err
			}
			line = parsed
		case strings.HasPrefix(command, "make "):
			line = "make -n " + strings.TrimPrefix(command, "make ")
		case strings.HasPrefix(command, "scripts/cluster up"):
			line = "cluster_up"
		case listen.MatchString(line):
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return "", err
			}
			_, port, _ := net.SplitHostPort(l.Addr().String())
			if err := l.Close(); err != nil {
				return "", err
			}
			line = listen.ReplaceAllString(line, "--$1 "+port) + "\nlistens " + port
		}
		script += line + "\n"
	}
	return script + epilogue, nil
}

// parse is a command that parses another one. Files of the project that it names must
// be there.
func parse(line, dir string) (string, error) {
	for _, path := range own.FindAllString(line, -1) {
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			return "", fmt.Errorf("%s: %w", line, err)
		}
	}
	if strings.HasPrefix(line, "make ") {
		return "make -n " + strings.TrimPrefix(line, "make "), nil
	}
	if calls := program.FindAllString(line, -1); len(calls) > 0 {
		return strings.Join(calls, " --print-config\n") + " --print-config", nil
	}
	check := exec.Command("bash", "-n")
	check.Stdin = strings.NewReader(line)
	if out, err := check.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", line, err, out)
	}
	return ":", nil
}

// arrange makes a directory that looks like the root of the project, with the files
// that commands name.
func arrange(t *testing.T, root, bin, dir string) {
	t.Helper()
	for _, name := range []string{"bench", "cmd", "deploy", "scripts", "Makefile"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"urls.txt":     "https://example.com/\nhttps://example.org/a\n",
		"page.html":    page,
		"sitemap.xml":  sitemap,
		"robots.txt":   robots,
		"rules.yaml":   "fields:\n  - {name: title, css: h1}\nwall_rules:\n  - {vendor: acme, header: ['x-acme: block']}\n",
		"head.txt":     "HTTP/1.1 403 Forbidden\r\nx-acme: block\r\n\r\n",
		"token":        strings.Repeat("t", 32),
		"sizes.txt":    "1000\n500\n10\n",
		"bin/fetcher":  "#!/bin/sh\nexec '" + bin + "/fetcher' \"$@\"\n",
		"bin/frontier": "#!/bin/sh\n[ \"$1\" != plan ] || unset SEINE_DELAY\nexec '" + bin + "/frontier' \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	page    = "<!doctype html><title>t</title><h1>Lamp</h1><a href=/a>a</a> <a href='/docs/x?print=1'>x</a> <a rel=nofollow href=/news/1>n</a>"
	sitemap = "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>https://example.com/b</loc></url></urlset>"
	robots  = "User-agent: *\nDisallow: /private\nSitemap: https://example.com/sitemap.xml\n"
)

// answer is a small web at every host.
func answer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/robots.txt":
		io.WriteString(w, robots)
	case "/sitemap.xml":
		w.Header().Set("Content-Type", "application/xml")
		io.WriteString(w, sitemap)
	default:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, page)
	}
}

// The Go programs of the READMEs build.
func TestPrograms(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := Documents(root)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, doc := range docs {
		text, err := os.ReadFile(filepath.Join(root, doc))
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range bytes.Split(text, []byte("\n```go\n"))[1:] {
			source, _, _ := bytes.Cut(after, []byte("\n```"))
			if !bytes.HasPrefix(source, []byte("package main")) {
				continue // a part of one
			}
			n++
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, source, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("go", "vet", file)
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", doc, err, out)
			}
		}
	}
	if n == 0 {
		t.Error("no program")
	}
}
