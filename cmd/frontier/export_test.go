package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"seine/frontier"
	"seine/shard/shardtest"
)

// exportSeeds are what the crawls of these tests begin with: some sites, one with more
// URLs than one call reads.
func exportSeeds() string {
	var b strings.Builder
	for i := range 450 {
		fmt.Fprintf(&b, `{"url":"https://big.example/%d","depth":%d,"priority":%d,"meta":{"n":%d,"text":"Grüße # \"x\""}}`+"\n", i, i%5, i/10%4, i)
	}
	for i := range 12 {
		fmt.Fprintf(&b, `{"url":"https://s%d.example/","depth":2,"seed":false,"meta":{"site":%d}}`+"\n", i, i)
		fmt.Fprintf(&b, `{"url":"https://s%d.example/sitemap.xml","sitemap":true,"sitemap_of":"other.example"}`+"\n", i)
	}
	return b.String() + `{"url":"https://me:secret@auth.example/in","depth":7}` + "\n"
}

// exported is an element of an export.
type exported struct {
	URL       string          `json:"url"`
	Priority  uint8           `json:"priority"`
	Depth     uint32          `json:"depth"`
	Seed      *bool           `json:"seed"`
	Meta      json.RawMessage `json:"meta"`
	Sitemap   bool            `json:"sitemap"`
	SitemapOf string          `json:"sitemap_of"`
	Attempts  uint8           `json:"attempts"`
	Cause     string          `json:"cause"`
	Error     string          `json:"error"`
}

// kept is what another crawl has of it too.
func (e exported) kept() string {
	return fmt.Sprint(e.Depth, e.Seed == nil || *e.Seed, string(e.Meta), e.Sitemap, e.SitemapOf)
}

func readExport(t *testing.T, name string) (list []exported) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		var e exported
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		list = append(list, e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// byURL fails where a URL comes twice.
func byURL(t *testing.T, list []exported) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, e := range list {
		if _, twice := m[e.URL]; twice {
			t.Errorf("%s comes twice", e.URL)
		}
		m[e.URL] = e.kept()
	}
	return m
}

// stir leases what is due, and makes of the first URLs of sites a dead letter of every
// third, a retry of every third, and keeps the others leased.
func stir(t *testing.T, f frontier.Frontier) (dead, waiting int) {
	t.Helper()
	n := 0
	for k := range f.Shards() {
		reply, err := f.Tick(t.Context(), k, frontier.TickRequest{Want: 100})
		if err != nil {
			t.Fatal(err)
		}
		visits, err := f.Visit(t.Context(), k, reply.Due, frontier.VisitLimits{URLs: 1})
		if err != nil {
			t.Fatal(err)
		}
		var settle []frontier.Settlement
		for _, v := range visits {
			o := frontier.Outcome{Index: 1, Kind: frontier.Dead, Cause: "timeout", Text: `too "slow"`, Tries: 1}
			switch n++; n % 3 {
			case 0:
				dead++
			case 1:
				o = frontier.Outcome{Index: 1, Kind: frontier.Retry, NotBefore: time.Hour, Cause: "timeout"}
				waiting++
			default:
				continue
			}
			settle = append(settle, frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{o}, Release: &frontier.Release{}})
		}
		if _, err := f.Settle(t.Context(), k, settle); err != nil {
			t.Fatal(err)
		}
	}
	if dead == 0 || waiting == 0 || n < 14 {
		t.Fatal("too little was leased: ", n)
	}
	return dead, waiting
}

// checkExport holds the export of a stirred crawl against what it began with.
func checkExport(t *testing.T, name string, dead, waiting int) map[string]string {
	t.Helper()
	list := readExport(t, name)
	got, want := byURL(t, list), map[string]string{}
	for line := range strings.Lines(exportSeeds()) {
		var e exported
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		want[strings.Replace(e.URL, "me:secret@", "", 1)] = e.kept()
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d URLs, want %d: %v", len(got), len(want), got)
	}
	tried := 0
	for _, e := range list {
		if e.Cause != "" {
			dead--
			if e.Cause != "timeout" || e.Error != `too "slow"` || e.Attempts != 1 {
				t.Errorf("%+v", e)
			}
		} else if e.Attempts == 1 {
			tried++
		}
	}
	if dead != 0 || tried != waiting {
		t.Errorf("%d dead letters missing; %d retries, want %d", dead, tried, waiting)
	}
	var order []string
	for _, e := range list {
		if strings.HasPrefix(e.URL, "https://big.example/") && e.Priority == 3 && e.Cause == "" && e.Attempts == 0 {
			order = append(order, fmt.Sprintf("%09s", strings.TrimPrefix(e.URL, "https://big.example/")))
		}
	}
	if len(order) < 100 || !slices.IsSorted(order) {
		t.Errorf("a queue of %d in another order: %v", len(order), order)
	}
	return got
}

// TestExportGoesToOtherShards: what a crawl in Redis has left, waiting, leased and
// dead, and its settings, make another of other shards, which exports the same.
func TestExportGoesToOtherShards(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.One(t))
	dir := t.TempDir()
	d.in = exportSeeds()
	d.ok("seed --shards 2 --plan-urls 10k --max-depth 9 --deny /x --delay 2s --file -", "admitted 475")
	dead, waiting := stir(t, d.open("seine"))
	first := filepath.Join(dir, "first.zst")
	d.ok("export "+first, fmt.Sprint("waiting ", waiting), fmt.Sprint("dead ", dead))
	want := checkExport(t, first, dead, waiting)
	for _, name := range []string{first, filepath.Join(dir, "first.yaml")} {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
			t.Error(name, err)
		}
	}

	d.ok("create --crawl grown --shards 5 --config "+filepath.Join(dir, "first.yaml"), "5 shards, filters for 10000 URLs")
	d.ok("seed --crawl grown --file "+first, "admitted 475", "bad 0")
	if was, is := d.open("seine"), d.open("grown"); fmt.Sprint(was.Settings().Masked()) != fmt.Sprint(is.Settings().Masked()) {
		t.Errorf("settings %+v, were %+v", is.Settings(), was.Settings())
	}
	second := filepath.Join(dir, "second.zst")
	d.ok("export --crawl grown "+second, "queued 475")
	if got := byURL(t, readExport(t, second)); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}

	d.refused(2, "export --credentials "+first, first+" is there; take another name, or replace it with --force")
	d.ok("export --force --credentials "+first, fmt.Sprint("dead ", dead))
	if !slices.ContainsFunc(readExport(t, first), func(e exported) bool { return e.URL == "https://me:secret@auth.example/in" }) {
		t.Error("no credentials, though asked for")
	}
	d.refused(2, "export "+filepath.Join(dir, "x"), "must end with .zst")

	// With as many shards the filters bring what is known and done with.
	d.ok("dead drop --yes", fmt.Sprint("dropped ", dead))
	left := filepath.Join(dir, "second.zst")
	d.ok("export --force "+left, "dead 0")
	var gone string
	for url := range maps.Keys(want) {
		if _, there := byURL(t, readExport(t, left))[url]; !there && url != "https://auth.example/in" {
			gone = url
		}
	}
	d.ok("seed --crawl same --shards 2 --config " + filepath.Join(dir, "second.yaml") + " --file " + left)
	d.ok("bloom dump " + filepath.Join(dir, "filters"))
	d.ok("bloom load --crawl same --force " + filepath.Join(dir, "filters"))
	d.ok("seed --crawl same --seed "+gone, "admitted 0", "seen 1")
	if list, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(list) != 5 {
		t.Error(list, err)
	}
}

// TestExportOfState: a directory's crawl, which a process has open, goes into Redis.
// Secrets of its settings stay out, or come when asked for.
func TestExportOfState(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.One(t))
	dir := t.TempDir()
	state, file, config := filepath.Join(dir, "state"), filepath.Join(dir, "x.zst"), filepath.Join(dir, "x.yaml")
	rules := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte("sites:\n- {match: s1.example, delay: 3s, auth: \"me:hidden\", headers: {X-Key: hidden}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.in = exportSeeds()
	d.ok("seed --state "+state+" --config "+rules+" --strip-params --file -", "admitted 475")
	f := open(t, state)
	defer f.Close()
	dead, waiting := stir(t, f)
	if err := f.Serve(); err != nil {
		t.Fatal(err)
	}
	d.ok("export --state "+state+" "+file, fmt.Sprint("waiting ", waiting), fmt.Sprint("dead ", dead))
	checkExport(t, file, dead, waiting)
	text, err := os.ReadFile(config)
	if err != nil || strings.Contains(string(text), "hidden") {
		t.Error(string(text), err)
	}
	d.refused(2, "create --shards 3 --config "+config, "in the place of a secret")

	d.ok("export --force --credentials --state "+state+" "+file, fmt.Sprint("dead ", dead))
	d.ok("seed --shards 3 --config "+config+" --file "+file, "admitted 475", "bad 0")
	grown := d.open("seine")
	if s := grown.Settings(); !grown.Layout().StripParams || len(s.Sites) != 1 || s.Sites[0].Auth != "me:hidden" || s.Sites[0].Headers["X-Key"] != "hidden" || *s.Sites[0].Delay != 3*time.Second {
		t.Errorf("%+v", s)
	}
	d.refused(2, "export "+file+" --config "+config, "is there")
	d.ok("export --force "+file, "queued 475")
}
