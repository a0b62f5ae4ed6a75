package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"seine/frontier"
)

// TestRequests: requests that are no plain GET are seeded, listed, explained and exported.
// Their headers leave the crawl only with --credentials, and then another crawl has all.
func TestRequests(t *testing.T) {
	d, f, dir := newOperatorByState(t)
	at := " --state " + dir
	d.in = `{"url":"https://a.example/in","request":{"method":"POST","header":[["X-Token","secret"],["Content-Type","x/y"]],"body":"q=1"}}
{"url":"https://a.example/in","request":{"method":"POST","header":[["X-Token","secret"]],"body":"q=2"}}
{"url":"https://a.example/get","request":{"header":[["X-Token","secret"]]}}
{"url":"https://a.example/bad","request":{"method":"TRACE","header":[["X-Token","secret"]]}}
`
	code, out, errs := d.run(strings.Fields("seed --file -" + at)...)
	if squeezed := strings.Join(strings.Fields(out), " "); code != 1 || !strings.Contains(squeezed, "admitted 3") || !strings.Contains(errs, "TRACE") || strings.Contains(out+errs, "secret") {
		t.Error(code, out, errs)
	}
	d.ok("why https://a.example/in"+at, "not known: nobody seeded it", "a POST of the URL is queued, waiting or dead, too")
	d.ok("why https://a.example/get"+at, "queued")

	read := func(flags string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "x.zst")
		d.ok("export "+file+flags+at, "queued 3")
		packed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		z, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		text, err := z.DecodeAll(packed, nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := read(""); strings.Contains(text, "secret") || !strings.Contains(text, `"request":{"method":"POST","header":[["Content-Type","x/y"]],"body":"q=1"}`) || strings.Count(text, "request") != 2 {
		t.Error(text)
	}
	all := read(" --credentials")
	if strings.Count(all, "secret") != 3 {
		t.Error(all)
	}
	other := " --state " + filepath.Join(t.TempDir(), "other")
	d.in = all
	d.ok("seed --file -"+other, "admitted 3")
	d.in = all
	d.ok("seed --file -"+at, "admitted 0", "seen 3")

	k := frontier.ShardOf(f, "a.example")
	reply, err := f.Tick(t.Context(), k, frontier.TickRequest{Want: 1})
	if err != nil {
		t.Fatal(err)
	}
	visits, err := f.Visit(t.Context(), k, reply.Due, frontier.VisitLimits{URLs: 1})
	if err != nil || len(visits) != 1 {
		t.Fatal(visits, err)
	}
	dead := frontier.Outcome{Index: 1, Kind: frontier.Dead, Cause: "timeout", Text: "late", Tries: 1}
	if _, err := f.Settle(t.Context(), k, []frontier.Settlement{{Lease: visits[0].Lease, Outcomes: []frontier.Outcome{dead}, Release: &frontier.Release{}}}); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{d.ok("dead list"+at, `POST "https://a.example/in"`), d.ok("dead list --json"+at, `"method":"POST","url":"https://a.example/in"`)} {
		if strings.Contains(out, "secret") {
			t.Error(out)
		}
	}
}
