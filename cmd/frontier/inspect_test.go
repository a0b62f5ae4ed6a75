package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const samplePage = `<html lang=en><head><title>A &amp; B</title><base href="/dir/"><meta charset=windows-1251>
<link rel=canonical href="/c"><meta name=robots content=noindex></head>
<a href="x">1</a><a href="x">again</a><a rel=nofollow href="y">2</a><a href="mailto:q">3</a><img src="i.png"></html>`

func TestInspectLinks(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, in: samplePage}
	code, out, errs := d.run("inspect", "links", "--base", "http://a.example/p/q", "--content-type", "text/html", "--header", "Link: </next>; rel=next")
	if code != 0 {
		t.Fatal(errs)
	}
	var got []string
	for line := range strings.Lines(out) {
		var l link
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		url := "null"
		if l.URL != nil {
			url = *l.URL
		}
		got = append(got, fmt.Sprintf("%s %s %s %v", l.Kind, l.Raw, url, l.Follow))
	}
	for _, want := range []string{
		"header /next http://a.example/next true", "canonical /c http://a.example/c true", "a x http://a.example/dir/x true",
		"a y http://a.example/dir/y false", "a mailto:q null false", "img i.png http://a.example/dir/i.png false",
	} {
		n := 0
		for _, g := range got {
			if g == want || strings.TrimSuffix(g, "true") == strings.TrimSuffix(want, "false") {
				n++
			}
		}
		if n == 0 {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if n := strings.Count(out, `"raw":"x"`); n != 2 {
		t.Errorf("a link that stands twice is printed %d times", n)
	}
}

func TestInspectCharsetAndPage(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, in: samplePage}
	if out := d.ok("inspect charset --content-type text/html"); out != "windows-1251\tmeta\n" {
		t.Errorf("%q", out)
	}
	if out := d.ok("inspect charset --content-type text/html;charset=utf-8"); out != "utf-8\theader\n" {
		t.Errorf("%q", out)
	}
	if out := d.ok("inspect charset --json --content-type text/html"); out != `{"by":"meta","charset":"windows-1251"}`+"\n" {
		t.Errorf("%q", out)
	}
	file := filepath.Join(t.TempDir(), "page")
	if err := os.WriteFile(file, []byte(samplePage), 0o600); err != nil {
		t.Fatal(err)
	}
	d.ok("inspect page --base http://a.example/ --content-type text/html "+file, `title "A & B"`, "noindex true", "http://a.example/dir/x")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("X-Robots-Tag", "nofollow")
		fmt.Fprint(w, samplePage)
	}))
	defer server.Close()
	d.ok("inspect page --allow-net 127.0.0.0/8 "+server.URL+"/x", "status 200", "nofollow true", server.URL+"/dir/x")
	d.refused(1, "inspect page "+server.URL+"/x", "guard")
}

func TestInspectFields(t *testing.T) {
	t.Parallel()
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`fields:
  - name: title
    css: title
  - name: picture
    css: img
    attr: src
    type: url
  - {name: price, css: a, type: number, all: true, site: a.example}
  - {name: when, css: title, type: time}
`)
	d := &operator{t: t, in: samplePage}
	want := `{"name":"title","at":"` + rules + `:2","from":"css title","values":["A & B"]}
{"name":"picture","at":"` + rules + `:4","from":"css img, attribute src","values":["http://www.a.example/dir/i.png"]}
{"name":"price","at":"` + rules + `:8","from":"css a","values":[1,2,3],"error":"\"again\" holds no number"}
{"name":"when","at":"` + rules + `:9","from":"css title","error":"\"A & B\" is no time, or month and day may be taken for each other"}
`
	if out := d.ok("inspect fields --base http://www.a.example/ --rules " + rules); out != want {
		t.Errorf("got %s, want %s", out, want)
	}
	write("fields:\n- name: a\n  css: h1\n  required: true\n")
	if code, _, errs := d.run("inspect", "fields", "--rules", rules); code != 1 || !strings.Contains(errs, "required fields are missing: a") {
		t.Error(code, errs)
	}
	write("fields:\n- name: a\n  css: 'h['\n")
	if code, _, errs := d.run("inspect", "fields", "--rules", rules); code != 2 || !strings.Contains(errs, rules+":2: rule of") {
		t.Error(code, errs)
	}
	write("fields:\n- name: a\n  css: h\n  site: b.example\n")
	if code, _, errs := d.run("inspect", "fields", "--rules", rules); code != 2 || !strings.Contains(errs, "has no rules for localhost") {
		t.Error(code, errs)
	}
}

func TestInspectSitemap(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, in: `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://a.example/1</loc><lastmod>2024-01-02</lastmod><priority>0.5</priority></url><url><loc>http://a.example/2</loc></url></urlset>`}
	out := d.ok("inspect sitemap --url http://a.example/sitemap.xml")
	want := `{"kind":"loc","url":"http://a.example/1","raw":"http://a.example/1","lastmod":"2024-01-02","priority":0.5}` + "\n" +
		`{"kind":"loc","url":"http://a.example/2","raw":"http://a.example/2"}` + "\n"
	if out != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
}

func TestInspectSitemapThatIsNone(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, in: samplePage}
	code, out, errs := d.run("inspect", "sitemap", "--url", "http://a.example/")
	if code != 0 || out != "" || !strings.Contains(errs, "no locations") {
		t.Error(code, out, errs)
	}
}

// TestInspectRobotsDelay: a delay beyond the cap is printed with what is honoured.
func TestInspectRobotsDelay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte("User-agent: *\nCrawl-delay: 900\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &operator{t: t}
	for args, want := range map[string]string{
		"":                       "delay\t15m0s\thonoured\t10m0s\n",
		"--max-crawl-delay 1m ":  "delay\t15m0s\thonoured\t1m0s\n",
		"--max-crawl-delay 15m ": "delay\t15m0s\n",
		"--json ":                `{"delay":"15m0s","honoured":"10m0s","sitemaps":null}` + "\n",
	} {
		if out := d.ok("inspect robots " + args + "--file " + file); out != want {
			t.Errorf("%s: %q", args, out)
		}
	}
	if code, out, errs := d.run("inspect", "robots", "--agent", "(x)", "--file", file); code != 2 || out != "" || !strings.Contains(errs, "product") {
		t.Error(code, out, errs)
	}
}

func TestInspectRobots(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "robots.txt")
	text := "User-agent: *\nDisallow: /private\n\nUser-agent: seine\nDisallow: /no\nCrawl-delay: 3\nSitemap: http://a.example/s.xml\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &operator{t: t, in: "http://a.example/no?x\nhttp://a.example/private\n/no\n\nhttp://a.example?no\n"}
	if out := d.ok("inspect robots --file " + file); out != "0\n1\n0\n1\n" {
		t.Errorf("%q", out)
	}
	d.in = "http://a.example/private/x\n"
	if out := d.ok("inspect robots --agent other --explain --file " + file); out != "0\t*\tDisallow: /private\t2\n" {
		t.Errorf("%q", out)
	}
	if out := d.ok("inspect robots --json --explain --file " + file); out != `{"allowed":true,"group":"seine","line":0,"rule":"","url":"http://a.example/private/x"}`+"\n" {
		t.Errorf("%q", out)
	}
	d.in = ""
	if out := d.ok("inspect robots --json --file " + file); out != `{"delay":"3s","sitemaps":["http://a.example/s.xml"]}`+"\n" {
		t.Errorf("%q", out)
	}
	if out := d.ok("inspect robots --file " + file); out != "delay\t3s\nsitemap\thttp://a.example/s.xml\n" {
		t.Errorf("%q", out)
	}
}

// TestInspectUsage: lines that say what may be done with pages are shown, and which count for
// a URL.
func TestInspectUsage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "robots.txt")
	text := "User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /open/ train-ai=y\nContent-Signal: search=yes\nLicense: https://a.example/l.xml\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &operator{t: t, in: "/x\n"}
	const said = `{"search":{"says":"yes","by":"robots.txt Content-Signal: search=yes"},"ai_train":{"says":"no","by":"robots.txt Content-Usage: train-ai=n"},"rsl":"https://a.example/l.xml"}`
	if out := d.ok("inspect robots --explain --file " + file); out != "1\t*\t\t0\t"+said+"\n" {
		t.Errorf("%q", out)
	}
	if out := d.ok("inspect robots --json --file " + file); out != `{"allowed":true,"preferences":`+said+`,"url":"/x"}`+"\n" {
		t.Errorf("%q", out)
	}
	d.in = ""
	const lines = "delay\t0s\ncontent-usage\t\ttrain-ai=n\t2\ncontent-usage\t/open/\ttrain-ai=y\t3\ncontent-signal\t\tsearch=yes\t4\nlicense\t\thttps://a.example/l.xml\t5\n"
	if out := d.ok("inspect robots --file " + file); out != lines {
		t.Errorf("%q", out)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(page, []byte("<meta name=robots content=noai><link rel=license href=/l>"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.ok("inspect page --header content-usage:search=n "+page, `{"search":{"says":"no","by":"Content-Usage: search=n"},"ai_train":{"says":"no","by":"meta robots: noai"},"license":"/l"}`)
}

// TestInspectWall: the verdict on a saved answer, by rules of one's own too.
func TestInspectWall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	moved := file("moved", "HTTP/1.1 302 Found\r\nlocation: /a\r\ncf-mitigated: challenge\r\n\r\nHTTP/2 403 \r\nServer: cloudflare\r\nContent-Encoding: gzip\r\n\r\n")
	body := file("body", "<title>Just a moment...</title>")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("<title>Just a moment...</title>"))
	z.Close()
	coded := file("coded", packed.String())
	own := file("own", "HTTP/1.1 200 OK\nX-Gate: on\n")
	rules := file("rules.yaml", "wall_rules:\n- {vendor: gate, header: ['x-gate: on']}\n")
	d := &operator{t: t, in: "nothing"}
	for args, want := range map[string]string{
		"--head " + moved + " " + body:                      "cloudflare\tcertain\n",
		"--head " + moved + " " + coded:                     "cloudflare\tcertain\n",
		"--head " + moved:                                   "cloudflare\thint\n",
		"--json --head " + moved + " " + body:               `{"status":403,"vendor":"cloudflare","sure":"certain"}` + "\n",
		"--head " + own:                                     "\tnone\n",
		"--json --head " + own:                              `{"status":200,"sure":"none"}` + "\n",
		"--head " + own + " --rules " + rules + " " + coded: "gate\tlikely\n",
	} {
		if out := d.ok("inspect wall " + args); out != want {
			t.Errorf("%s: %q, want %q", args, out, want)
		}
	}
	for _, bad := range [][]string{{"--head", body}, {"--head", file("bad", "HTTP/1.1 x\n")}, {"--head", own, "--rules", file("bad.yaml", "wall_rules:\n- {vendor: X}\n")}, nil} {
		if code, out, errs := d.run(append([]string{"inspect", "wall"}, bad...)...); code != 2 || out != "" {
			t.Error(bad, code, out, errs)
		}
	}
}
