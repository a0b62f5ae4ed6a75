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
	t.Parallel()
	server := shardtest.One(t)
	d := newOperator(t, server)
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
	if text := fmt.Sprint(list[0].Repaired, list[1].Repaired); !strings.Contains(text, "stands where the ready rule wants it") || list[0].Faulted+list[1].Faulted != 0 {
		t.Errorf("%+v", list)
	}
	server.Nodes[0].Do(t, "DEL", ready[0])
	d.ok("check --repair", "repaired: seine:{")
	d.ok("check --urls")
	// What cannot be repaired is left, with what to do.
	for _, key := range server.Nodes[0].Do(t, "KEYS", "seine:*:filter:0").([]any) {
		server.Nodes[0].Do(t, "DEL", key)
	}
	if code, out, errs := d.run("check", "--repair"); code != 1 || !strings.Contains(out, "frontier bloom load") || !strings.Contains(errs, "could not be repaired") {
		t.Error(code, out, errs)
	}
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

func TestCheckState(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, addr: "127.0.0.1:1"} // Redis is not asked
	dir := kept(t)
	d.refused(3, "check --state "+t.TempDir(), "no such crawl in this directory")
	d.refused(3, "check --state "+dir+"/nowhere", "no such crawl in this directory")
	d.refused(2, "check --urls --state "+dir, "--urls is for a crawl in Redis")
	d.refused(2, "check --redis h:1 --state "+dir, "--redis is for a crawl in Redis")
	d.refused(2, "check --repair --state "+dir, "put back from a copy")
	d.ok("check --state "+dir, ".log", "0 50 50 0 0 0")
	var c memory.Checked
	if d.json(&c, "check --state "+dir); len(c.Shards) != 1 || c.Shards[0].Known != 50 {
		t.Errorf("%+v", c)
	}

	log, err := filepath.Glob(filepath.Join(dir, "store", "*.log"))
	if err != nil || len(log) != 1 {
		t.Fatal(log, err)
	}
	b, err := os.ReadFile(log[0])
	if err != nil {
		t.Fatal(err)
	}
	b[500] ^= 1
	if err := os.WriteFile(log[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	d.refused(1, "check --state "+dir, log[0]+" is damaged: its checksum is wrong; put a copy of the whole of "+dir+" back")
}
