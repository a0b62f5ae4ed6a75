package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seine/frontier"
	"seine/frontier/audit"
	"seine/frontier/memory"
	"seine/shard/shardtest"
)

func TestCheckAndRepair(t *testing.T) {
	server := shardtest.One(t)
	d := sit(t, server)
	d.ok("seed --shards 2 --seed http://a.example/ --seed http://b.example/")
	d.ok("check --urls --repair")
	ready := server.Nodes[0].Do(t, "KEYS", "seine:*:ready:0").([]any)
	if len(ready) == 0 {
		t.Fatal("nothing is ready")
	}
	server.Nodes[0].Do(t, "DEL", ready[0])
	code, out, errs := d.run("check")
	if code != 1 || !strings.Contains(out, fmt.Sprint(ready[0], ": ")) || !strings.Contains(out, "does not stand there") || !strings.Contains(errs, "--repair") {
		t.Error(code, out, errs)
	}
	var list []audit.Report
	d.json(&list, "check --repair")
	if text := fmt.Sprint(list[0].Mended, list[1].Mended); !strings.Contains(text, "stands where the ready rule wants it") || list[0].Faulted+list[1].Faulted != 0 {
		t.Errorf("%+v", list)
	}
	server.Nodes[0].Do(t, "DEL", ready[0])
	d.ok("check --repair", "mended: seine:{")
	d.ok("check --urls")
	// What cannot be mended is left, with what to do.
	for _, key := range server.Nodes[0].Do(t, "KEYS", "seine:*:filter:0").([]any) {
		server.Nodes[0].Do(t, "DEL", key)
	}
	if code, out, errs := d.run("check", "--repair"); code != 1 || !strings.Contains(out, "frontier bloom load") || !strings.Contains(errs, "could not be mended") {
		t.Error(code, out, errs)
	}
	d.refused(2, "check --limit-by host", "--limit-by is for --state")
}

// kept makes a crawl in a directory, with work left.
func kept(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "state")
	f, err := memory.New(memory.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	maker := frontier.NewMaker(f.Layout())
	for i := range 50 {
		c, err := maker.Make(fmt.Sprintf("http://a.example/page/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Admit(t.Context(), 0, []frontier.Candidate{c}, make([]frontier.Verdict, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// change changes a file of a directory.
func change(t *testing.T, path string, how func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, how(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte { b[at] ^= 1; return b }
}

func TestCheckState(t *testing.T) {
	d := &desk{t: t, addr: "127.0.0.1:1"} // Redis is not asked
	dir := kept(t)
	d.refused(1, "check --state "+t.TempDir(), "no crawl in this directory")
	d.refused(1, "check --state "+dir+"/nowhere", "no such file")
	d.refused(2, "check --urls --state "+dir, "--urls is for a crawl in Redis")
	d.refused(2, "check --redis h:1 --state "+dir, "--redis is for a crawl in Redis")
	d.ok("check --state "+dir, "0.1.log", "0 50 50 0 0 0 0")
	d.ok("check --repair --state "+dir, "0 50 50 0 0 0 0")
	if _, err := os.Stat(filepath.Join(dir, "damaged")); err == nil {
		t.Error("a sound crawl was repaired")
	}

	open, err := memory.New(memory.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	d.refused(1, "check --state "+dir, "in use by another process")
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}

	// A torn end is no fault, and stays as it is.
	log := filepath.Join(dir, "0.1.log")
	change(t, log, func(b []byte) []byte { return append(b, "torn"...) })
	d.ok("check --state "+dir, "its end is torn")
	change(t, log, func(b []byte) []byte { return b[:len(b)-4] })

	change(t, log, flip(500))
	code, out, errs := d.run("check", "--state", dir)
	if code != 1 || !strings.Contains(out, "0.1.log: ") || !strings.Contains(out, "bytes from ") || !strings.Contains(errs, "--repair saves") {
		t.Error(code, out, errs)
	}
	var report stateReport
	d.json(&report, "check --repair --state "+dir)
	if r := report.Repaired; r == nil || len(r.Damage) != 1 || r.Shards[0].Queued != 49 || r.Aside != filepath.Join(dir, "damaged") {
		t.Errorf("%+v", report)
	}
	if _, err := os.Stat(filepath.Join(dir, "damaged", "0.1.log")); err != nil {
		t.Error(err)
	}
	d.ok("check --state "+dir, "0 49 49 0 0 0 0")
}

func TestCheckStateWithoutItsCrawlFile(t *testing.T) {
	d := &desk{t: t, addr: "127.0.0.1:1"}
	for name, hurt := range map[string]func(dir string){
		"changed": func(dir string) { change(t, filepath.Join(dir, "crawl"), flip(30)) },
		"missing": func(dir string) { os.Remove(filepath.Join(dir, "crawl")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := kept(t)
			hurt(dir)
			if code, out, errs := d.run("check", "--state", dir); code != 1 || !strings.Contains(out, "crawl: ") {
				t.Error(code, out, errs)
			}
			d.refused(1, "check --repair --state "+dir, "say what it held as fetcher was told: --limit-by")
			d.ok("check --repair --limit-by host --delay 7s --state "+dir, "repaired", "0 50 50 0 0 0 0")
			d.ok("check --state "+dir, "0 50 50 0 0 0 0")
			f, err := memory.New(memory.Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if s := f.Settings(); f.Layout().LimitBy != "host" || s.Delay.Seconds() != 7 {
				t.Errorf("%+v %+v", f.Layout(), s)
			}
		})
	}
}
