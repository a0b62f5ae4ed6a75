package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWebOfState: the page shows a crawl in a directory, at rest and through the
// socket of the process that has it open, and changes it there.
func TestWebOfState(t *testing.T) {
	t.Parallel()
	for _, live := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "state")
		d := &operator{t: t, addr: "127.0.0.1:1"} // Redis is not asked
		d.ok("seed --state " + dir + " --seed http://a.example/ --seed http://b.example/")
		f := open(t, dir)
		giveUp(t, f, "http://b.example/")
		if live {
			if err := f.Serve(); err != nil {
				t.Fatal(err)
			}
			defer f.Close()
		} else if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		at := "http://" + d.serve("web", "--state", dir, "--listen", "127.0.0.1:0") + "/"
		for path, want := range map[string]string{
			"":                              "<!doctype html>",
			"api/now":                       `"known":2`,
			"api/why?url=http://a.example/": "not fetched yet: it is the next of its site",
			"api/why?url=http://b.example/": "given up: timeout: too slow",
			"api/sites":                     `"site":"a.example"`,
			"api/dead?cause=timeout":        "too slow",
			"api/stopped":                   "[]",
		} {
			for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // the first reading may be under way
				code, text := page(t, at+path)
				if code == 200 && strings.Contains(text, want) {
					break
				}
				if time.Now().After(end) {
					t.Errorf("live %v, %s: %d %s", live, path, code, text)
					break
				}
			}
		}
	}
}
