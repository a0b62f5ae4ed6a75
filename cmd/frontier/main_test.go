package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/audit"
	"seine/frontier/redis"
	"seine/shard/shardtest"
)

// builds is a directory for programs that tests build.
var builds string

func TestMain(m *testing.M) {
	shardtest.SideBySide(4)
	dir, err := os.MkdirTemp("", "frontier")
	if err != nil {
		panic(err)
	}
	builds = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func TestLifeOfACrawl(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.One(t))
	d.refused(3, "stats", "no such crawl")
	d.refused(2, "create", "--shards")
	d.refused(2, "seed", "nothing to seed")
	d.ok("create --shards 2 --plan-urls 10k --delay 250ms --deny x,y", "created seine: 2 shards, filters for 10000 URLs")
	d.refused(3, "create --shards 2", "exists")
	d.refused(3, "seed --shards 3 --seed http://a.example/", "shards: the crawl has 2, this program 3; leave --shards out")
	d.refused(3, "seed --crawl other --seed http://a.example/", "other; there is seine; --create makes a new one")
	d.refused(2, "seed http://a.example/", "name URLs with --seed")
	d.refused(3, "seed --delay 1s --seed http://a.example/", `the crawl has "250ms", given "1s"`)

	d.ok("set --delay 2s --deny z", "delay", "250ms", "2s", "x,y", "z")
	d.ok("set --delay 2s", "nothing changed")
	d.refused(2, "set --memory-high 100", "memory-high is 100")
	if _, out, errs := d.run("set", "--memory-high", "85"); !strings.Contains(out, "memory-high") || !strings.Contains(errs, "maxmemory") {
		t.Error(out, errs)
	}
	d.ok("stats", "MEMORY", "has no maxmemory")
	d.ok("set --memory-low 70", "70")
	d.refused(1, "set --memory-high 60", "memory-low is 70")
	d.ok("set --memory-high 0 --memory-low 0", "85", "70")
	d.refused(2, "set --shards 3", "shards: the crawl has 2, this program 3; shards, limit-by")
	d.refused(2, "set --strip-params", "the crawl has false, this program true; shards")
	config := filepath.Join(t.TempDir(), "crawl.yaml")
	if err := os.WriteFile(config, []byte("shards: 2\nlimit-by: site\nstrip-params: false\ndelay: 3s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.ok("set --config "+config, "delay 2s 3s")
	d.ok("set --config "+config+" --delay 2s", "delay 3s 2s")
	d.refused(2, "set --allow (", "missing closing )")
	d.refused(2, "set --scope x", "scope is")
	d.refused(2, "set --user-agent /1.0", "give the name with --robots-agent")
	d.ok("set --user-agent /1.0 --robots-agent mj12bot --max-crawl-delay 90s", "mj12bot", "10m0s", "1m30s")
	d.refused(2, "set --robots-agent=", "give the name with --robots-agent")
	d.ok("set --user-agent= --robots-agent= --max-crawl-delay 10m", "mj12bot")
	d.refused(2, "stats --crawl a:b", "no name for a crawl")
	d.refused(2, "block --reason x http://", "site")
	var changed struct {
		Changes  []frontier.Change
		Settings frontier.Settings
	}
	d.json(&changed, "set --scope any")
	if len(changed.Changes) != 1 || changed.Changes[0] != (frontier.Change{Flag: "scope", Before: "site", After: "any"}) || changed.Settings.Delay != 2*time.Second {
		t.Errorf("%+v", changed)
	}

	d.ok("seed --seed http://a.example/ --seed http://b.example/", "admitted 2")
	d.ok("seed --seed http://a.example/", "seen 1")
	d.ok("seed --refetch --seed http://a.example/", "admitted 1")
	var report frontier.Report
	d.json(&report, "stats")
	if report.Total.Known < 2 || report.Total.Queued != 3 || report.Total.Ready != 2 || report.State != "ready" {
		t.Errorf("%+v", report.Total)
	}
	d.ok("stats", "queued", "no fetcher is live")
	d.ok("list", "seine", "ready", "2")

	d.refused(2, "set --site a.example", "nothing to set; give --delay, --per-site, --max-per-site")
	d.refused(2, "set --site a.example --delay 5s --deny x", "--deny is of the whole crawl")
	d.refused(2, "set --site http:// --delay 5s", "site")
	d.ok("set --site www.a.example --delay 5s", "SETTING OF a.example BEFORE AFTER delay 2s 5s per-site 1 1")
	d.ok("set --site a.example --per-site 3 --max-per-site 9", "delay 5s 5s per-site 1 3 max-per-site 0 9")
	if s := d.open("seine").Settings(); len(s.Sites) != 1 || s.DelayOf("a.example") != 5*time.Second || s.CapOf("a.example") != 9 || s.Delay != 2*time.Second {
		t.Errorf("%+v", s)
	}
	d.ok("set --site a.example --delay 0s", "delay 5s 0s per-site 3 3 max-per-site 9 9")
	d.refused(2, "set --reset", "--site")
	d.ok("set --site a.example --reset --delay 4s", "delay 0s 4s per-site 3 1 max-per-site 9 0")
	d.ok("set --site a.example --reset", "delay 4s 2s per-site 1 1 max-per-site 0 0")
	if s := d.open("seine").Settings(); len(s.Sites) != 0 {
		t.Errorf("%+v", s.Sites)
	}
	d.ok("shards", "127.0.0.1:", "%")
	var checks []audit.Report
	if d.json(&checks, "check --urls"); len(checks) != 2 || checks[0].Faulted+checks[1].Faulted != 0 {
		t.Errorf("%+v", checks)
	}
	d.refused(2, "delete seine", "--yes")
	d.ok("delete seine --yes", "deleted seine")
	d.refused(3, "stats", "no such crawl")
	d.ok("list")
}

// TestSeedMakesTheCrawl: the first seeds need no plan. Beside other crawls a name may be
// misspelt, so that is asked for.
func TestSeedMakesTheCrawl(t *testing.T) {
	t.Parallel()
	for masters, shards := range map[int]int{0: 6, 4: 8} {
		d := newOperator(t, shardtest.Start(t, shardtest.Config{Masters: masters}))
		urls := filepath.Join(t.TempDir(), "urls.txt")
		if err := os.WriteFile(urls, []byte("http://a.example/\nhttp://b.example/\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := d.run("seed", "--file", urls)
		if code != 0 || !strings.Contains(errs, fmt.Sprintf("shards=%d plan_urls=10000000 error_rate=1e-06", shards)) || !strings.Contains(strings.Join(strings.Fields(out), " "), "admitted 2") {
			t.Fatal(code, out, errs)
		}
		if n := d.open("seine").Shards(); n != shards {
			t.Errorf("%d masters: %d shards, want %d", masters, n, shards)
		}
		d.refused(3, "seed --crawl siene --file "+urls, "there is seine; --create makes a new one")
		d.ok("seed --crawl siene --create --plan-urls 5k --file "+urls, "admitted 2")
		d.refused(3, "seed --crawl third --file "+urls, "there are seine, siene; --create makes a new one")
		d.ok("seed --crawl siene --create --file "+urls, "seen 2")
	}
}

func TestSeedFile(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.One(t))
	d.in = "# comment\nhttp://a.example/\nnot a url\n\nhttp://b.example/\nftp://c.example/\n"
	code, out, errs := d.run("seed", "--shards", "1", "--file", "-", "--json", "--log-format", "json")
	if code != 1 || !strings.Contains(errs, "2 of 4 seeds could not be taken") {
		t.Fatal(code, errs)
	}
	var counts frontier.SeedCounts
	if err := json.Unmarshal([]byte(out), &counts); err != nil || counts.Admitted != 2 || counts.Bad != 2 {
		t.Errorf("%+v %v", counts, err)
	}
	for _, want := range []string{"stdin:3", "stdin:6"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %s in %s", want, errs)
		}
	}
	// What was admitted before it broke off is printed all the same.
	if code, out, errs := d.run("seed", "--seed", "http://d.example/", "--file", "/nowhere"); code != 1 || !strings.Contains(out, "admitted") || !strings.Contains(errs, "no such file") {
		t.Error(code, out, errs)
	}
	if done, err := d.open("seine").Finished(t.Context()); done || err != nil {
		t.Error("finished with work left", err)
	}
	if members, err := d.open("seine").Members(t.Context()); len(members) != 0 || err != nil {
		t.Errorf("seeders stay: %+v %v", members, err)
	}
}

func TestPauseAndBlock(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.One(t))
	d.ok("seed --shards 2 --seed http://www.a.example/ --seed http://b.example/")
	for _, verb := range []string{"pause", "resume"} {
		if code, out, errs := d.run(verb, ""); code != 2 || out != "" {
			t.Errorf("%s of a site without a name: code %d, %s%s", verb, code, out, errs)
		}
	}
	if out := d.ok("pause www.a.example", "paused site a.example"); strings.Contains(out, "no URL") {
		t.Error(out)
	}
	d.ok("pause typo.example", "paused site typo.example no URL of typo.example is queued")
	d.ok("pause typo.example", "no URL of typo.example is queued") // the pause itself is no URL
	d.ok("resume typo.example", "resumed site typo.example")
	d.ok("stats", "1 ready, 0 leased; 1 paused, 1 of them with URLs queued; 0 blocked")
	d.ok("resume a.example")
	d.ok("pause --shard 1", "shard 1")
	d.ok("stats", "paused in shard 1")
	d.ok("shards", "MEMORY STATE", "paused", "ready")
	d.ok("block --list", "shard 1 paused")
	d.refused(2, "pause --shard 7", "shards 0 to")
	d.refused(2, "pause --shard=-1", "shards 0 to") // and not the crawl
	d.ok("pause", "the crawl")
	d.ok("list", "paused")
	d.ok("resume")
	d.ok("resume", "the crawl was not paused")
	d.ok("resume --shard 1", "shard 1 was not paused")
	d.ok("resume a.example", "site a.example was not paused")
	d.ok("unblock b.example", "b.example was not blocked")
	var answer struct{ Changed bool }
	if d.json(&answer, "unblock b.example"); answer.Changed {
		t.Error("unblock of what was not blocked changed something")
	}
	d.ok("stats", "seine, ready")
	d.refused(2, "block b.example", "--reason")
	if code, out, errs := d.run("block", "b.example", "--reason", "they asked"); code != 0 || !strings.Contains(out, "blocked b.example\ndropped 1 URL; ") || !strings.Contains(errs, "they asked") {
		t.Error(code, out, errs)
	}
	d.ok("stats", "blocked 1 URL dropped with")
	if code, out, _ := d.run("block", "typo.example", "--reason", "they asked"); code != 0 || !strings.Contains(out, "no URL of typo.example is queued") {
		t.Error(code, out)
	}
	d.ok("unblock typo.example")
	d.ok("seed --seed http://b.example/2", "capped 1")
	d.ok("stats", "1 ready, 0 leased; 0 paused, 0 of them with URLs queued; 1 blocked")
	d.ok("pause c.example --reason slow", "c.example")
	d.ok("block --list", "b.example", "blocked", "they asked", "c.example", "paused", "slow")
	var stops []frontier.Stop
	if d.json(&stops, "block --list"); len(stops) != 2 || !stops[0].Blocked || stops[0].Reason != "they asked" || time.Since(stops[0].Since) > time.Hour {
		t.Errorf("%+v", stops)
	}
	d.refused(2, "block --list b.example", "takes no site")
	d.refused(2, "pause --reason slow", "name the site too")
	d.refused(2, "pause --shard 0 c.example", "not both")
	d.ok("unblock b.example", "unblocked b.example")
	d.ok("seed --seed http://b.example/3", "admitted 1")
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.One(t))
	d.ok("seed --shards 2 --delay 0s --seed http://a.example/1 --seed http://a.example/2 --seed http://b.example/ --seed http://usr:sesame@c.example/")
	f := d.open("seine")
	causes := map[string]string{"http://a.example/1": "dns", "http://a.example/2": "timeout", "http://b.example/": "dns", "http://c.example/": "guard"}
	deadLetterAll(t, f, causes)
	d.ok("dead count", "dns 2", "guard 1", "timeout 1")
	out := d.ok("dead list --cause dns --json")
	if strings.Count(out, "\n") != 2 || !strings.Contains(out, `"error":"no \u001b[31mluck"`) {
		t.Errorf("%s", out)
	}
	if out := d.ok("dead list"); strings.Contains(out, "\x1b") || strings.Contains(out, "sesame") || !strings.Contains(out, `"http://c.example/"`) || strings.Count(out, "\n") != 4 {
		t.Errorf("%q", out)
	}
	for _, verb := range []string{"list", "retry", "drop"} {
		d.refused(2, "dead "+verb+" --cause bogus", "guard, ")
	}
	d.ok("dead retry --cause tls", "retried 0")
	d.ok("dead retry --cause dns --site www.a.example", "retried 1")
	d.refused(2, "dead drop", "--yes")
	d.ok("dead drop --cause guard", "dropped 1")
	d.ok("dead retry --limit 1", "retried 1")
	d.ok("dead drop --yes", "dropped 1")
	d.ok("stats", "queued 2")

	// Refused elements of the feed.
	d.ok("dead count --cause feed", "feed 0")
	if err := f.Client().Redis().LPush(t.Context(), "seine:feed", "no URL", "nor\nthis").Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := f.DrainFeed(t.Context(), nil); n != 2 || err != nil || f.FeedRefused() != 2 {
		t.Fatal(n, err, f.FeedRefused())
	}
	d.ok("dead count", "feed 2")
	d.ok("dead count --cause feed --json", `"feed": 2`)
	d.ok("stats", "feed 2")
	if out := d.ok("dead list --cause feed"); strings.Count(out, "\n") != 2 || !strings.Contains(out, `"element":"no URL"`) {
		t.Errorf("%q", out)
	}
	if out := d.ok("dead list --cause feed --limit 1"); strings.Count(out, "\n") != 1 {
		t.Errorf("%q", out)
	}
	d.refused(2, "dead retry --cause feed", "push what was meant")
	d.refused(2, "dead list --cause feed --site a.example", "have no site")
	d.ok("dead drop --cause feed --limit 1", "dropped 1")
	d.ok("dead drop --cause feed", "dropped 1")
	d.ok("dead count --cause feed", "feed 0")
}

// The causes of death in extract/sink/README.md are those that can be asked for.
func TestCausesAreThoseOfTheReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "extract", "sink", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Causes of death")
	table, _, _ = strings.Cut(table, "\n##")
	var named []string
	for line := range strings.Lines(table) {
		cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if !ok || !strings.HasPrefix(cell, "`") {
			continue
		}
		for name := range strings.SplitSeq(cell, ", ") {
			if name = strings.Trim(name, "`"); name != "feed" {
				named = append(named, name)
			}
		}
	}
	slices.Sort(named)
	if all := allCauses(); !slices.Equal(named, all) {
		t.Errorf("the table has\n%v, the program\n%v", named, all)
	}
}

// deadLetterAll leases every URL and settles it as dead.
func deadLetterAll(t *testing.T, f *redis.Frontier, causes map[string]string) {
	t.Helper()
	dead := 0
	for k := range f.Shards() {
		tick, err := f.Tick(t.Context(), k, frontier.TickRequest{Want: 10})
		if err != nil {
			t.Fatal(err)
		}
		visits, err := f.Visit(t.Context(), k, tick.Due, frontier.VisitLimits{URLs: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range visits {
			s := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
			for _, item := range v.Items {
				s.Outcomes = append(s.Outcomes, frontier.Outcome{Index: item.Index, Kind: frontier.Dead, Cause: causes[item.URL], Text: "no \x1b[31mluck"})
				dead++
			}
			if _, err := f.Settle(t.Context(), k, []frontier.Settlement{s}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if dead != len(causes) {
		t.Fatalf("%d of %d URLs were leased", dead, len(causes))
	}
}

func TestMembersAreShownAndProtect(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.One(t))
	d.ok("create --shards 1")
	f := d.open("seine")
	m := frontier.NewMember(frontier.KindFetcher, "v9.9")
	m.Rate = 12.5
	member, err := frontier.Attend(t.Context(), f, func() frontier.Member { return m }, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.ok("stats", "fetcher", "v9.9", "12.5")
	d.refused(3, "delete seine --yes", "stop them first")
	if err := member.Leave(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	d.ok("delete seine --yes")
}

func TestBloomVerbs(t *testing.T) {
	t.Parallel()
	server := shardtest.One(t)
	d := newOperator(t, server)
	d.ok("seed --shards 2 --seed http://a.example/ --seed http://b.example/")
	d.ok("bloom info --probe 1000", "1 5000000 0.0% 1 18 MB - 1000", "1e-06")
	d.refused(2, "bloom info --probe -5", "probe is -5, must be at least 0")
	dir := filepath.Join(t.TempDir(), "dump")
	d.ok("bloom dump "+dir, "dumped 2 shards")
	if _, err := os.Stat(dumpName(dir, 1)); err != nil {
		t.Error(err)
	}
	d.refused(1, "bloom load "+dir, "force")
	d.ok("delete seine --yes")
	d.ok("create --shards 2")
	d.ok("bloom load "+dir, "loaded 2 shards")
	d.ok("seed --seed http://a.example/", "seen 1")
	keys := server.Nodes[0].Do(t, "KEYS", "seine:*:filter:0").([]any)
	server.Nodes[0].Do(t, "DEL", keys[0])
	for _, probe := range []string{"0", "10"} { // one is missing, the other is printed
		code, out, errs := d.run("bloom", "info", "--probe", probe)
		if code != 1 || strings.Count(out, "MISSING") != 1 || strings.Count(out, "0.0%") != 1 || !strings.Contains(out, "allowed: 1e-06") || !strings.Contains(errs, "frontier bloom load DIR --shard ") {
			t.Error(code, out, errs)
		}
	}
	for _, key := range keys {
		server.Nodes[0].Do(t, "DEL", key)
	}
	d.ok("stats", "nothing is admitted", "filter:0", "frontier bloom load")
	d.ok("shards", "filter missing")
	if code, out, errs := d.run("check", "--urls"); code != 1 || strings.Count(out, "filter:0: the filter is missing") != 2 || !strings.Contains(errs, "2 faults") {
		t.Error(code, out, errs)
	}
	d.ok("bloom load "+dir, "loaded 2 shards")
	d.ok("check --urls")
}

// Filters of one shard or all go to another cluster, whole or not at all.
func TestBloomIntoAnotherCluster(t *testing.T) {
	t.Parallel()
	from, to := newOperator(t, shardtest.One(t)), newOperator(t, shardtest.Masters(t, 2))
	var seeds []string
	for i := range 100 {
		seeds = append(seeds, fmt.Sprintf("http://s%d.example/", i))
	}
	from.in, to.in = strings.Join(seeds, "\n"), strings.Join(seeds, "\n")
	from.ok("seed --shards 2 --file -")
	to.ok("create --shards 2")
	dir := filepath.Join(t.TempDir(), "dump")
	from.ok("bloom dump --shard 1 "+dir, "dumped 1 shard to")
	if _, err := os.Stat(dumpName(dir, 0)); err == nil {
		t.Error("a shard was dumped that was not asked for")
	}
	from.refused(2, "bloom dump --shard 2 "+dir, "0 to 1")
	from.ok("bloom dump "+dir, "dumped 2 shards")
	name := dumpName(dir, 1)
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	altered := bytes.Clone(sound)
	altered[len(sound)/2] ^= 1
	for what, data := range map[string][]byte{"cut off": sound[:len(sound)-30], "checksum": altered} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{name, what, "offset"} {
			to.refused(1, "bloom load --shard 1 "+dir, want)
		}
	}
	var empty []redis.FilterState
	to.refused(1, "bloom load "+dir, "loaded shard 0; shard 1: ")
	for _, want := range []string{"loaded no shard; shard 0: ", filepath.Join(dir+"x", "shard-0000.bloom"), "`frontier bloom dump` writes it"} {
		to.refused(1, "bloom load "+dir+"x", want)
	}
	to.ok("delete seine --yes")
	to.ok("create --shards 2 --plan-urls 3000 --error-rate 0.01")
	to.refused(1, "bloom load "+dir, "plan of --shards 2 --plan-urls 3000 --error-rate 0.01; the dump loads into a crawl created with --shards 2 --plan-urls 10000000 --error-rate 1e-06")
	to.ok("delete seine --yes")
	to.ok("create --shards 2")
	if to.json(&empty, "bloom info"); empty[0].Items+empty[1].Items != 0 {
		t.Errorf("of damaged dumps came %+v", empty)
	}
	if err := os.WriteFile(name, sound, 0o600); err != nil {
		t.Fatal(err)
	}
	var before, after []redis.FilterState
	from.json(&before, "bloom info")
	to.ok("bloom load --shard 1 "+dir, "loaded 1 shard from")
	if to.json(&after, "bloom info"); after[0].Items != 0 || after[1].Info != before[1].Info {
		t.Errorf("one shard loaded: %+v, dumped: %+v", after, before)
	}
	to.ok("bloom load --shard 0 "+dir, "loaded 1 shard from")
	to.ok("seed --file -", "admitted 0", "seen 100")
}

// What fetchers found out about the filters is printed for people and for programs.
func TestBloomInfo(t *testing.T) {
	t.Parallel()
	server := shardtest.One(t)
	d := newOperator(t, server)
	d.ok("create --shards 1 --error-rate 0.001 --plan-urls 1000")
	d.ok("bloom info", "not measured", "allowed: 0.001", "log2(1/rate) = 10.0")
	p := d.open("seine").NewProber(slog.New(slog.DiscardHandler))
	if err := p.Round(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	d.ok("bloom info", "0 0 0 1000 0.0% 1", "kB - 1000 below 0.003 below 0")
	d.ok("bloom info --probe 500", "500 below 0.006")
	key := server.Nodes[0].Do(t, "KEYS", "seine:*:probes").([]any)[0]
	server.Nodes[0].Do(t, "HSET", key, "0", `{"v":1,"items":1000,"all":{"n":9000,"hits":90},"now":{"n":9000,"hits":90},"grown":1000}`)
	d.ok("bloom info", "9000 0.01 (95%: 0.008 .. 0.012) OVER", "10 (8 .. 12)")
	d.ok("stats", "FILTER OVER shard 0")
	var list []redis.FilterState
	if d.json(&list, "bloom info"); !list[0].Over || list[0].Live.N != 9000 || list[0].Live.Rate != 0.01 || list[0].Live.Lost.URLs != 10 || list[0].Promised != 0.001 {
		t.Errorf("%+v", list)
	}
}

func TestOnACluster(t *testing.T) {
	t.Parallel()
	s := shardtest.Masters(t, 3)
	d := newOperator(t, s)
	var seeds []string
	for i := range 60 {
		seeds = append(seeds, fmt.Sprintf("http://s%d.example/", i))
	}
	d.in = strings.Join(seeds, "\n")
	d.refused(3, "create --shards 6 --ack replica", "replicas")
	if code, _, errs := d.run("seed", "--crawl", "seven", "--shards", "7", "--seed", "http://a.example/"); code != 0 || !strings.Contains(errs, "7 shards do not spread evenly over 3 masters") {
		t.Error(code, errs)
	}
	d.ok("delete seven --yes")
	d.ok("seed --shards 6 --file - --feed-key elsewhere{x}", "admitted 60")
	var places []redis.Place
	d.json(&places, "shards")
	masters := map[string]int{}
	for _, p := range places {
		masters[p.Master]++
	}
	if len(places) != 6 || len(masters) != 3 {
		t.Errorf("%+v", masters)
	}
	f := d.open("seine")
	if n, err := f.FeedLen(t.Context()); n != 0 || err != nil {
		t.Error(n, err)
	}
	d.ok("list", "seine")
	d.ok("set --max-pages 10", "max-pages")
	d.ok("delete seine --yes")
	d.refused(3, "stats", "no such crawl")
}

func TestInspectCanon(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, in: "http://EXAMPLE.com/%7ea/../b#f\n../x\thttp://a.example/p/q/\nmailto:x\n"}
	out := d.ok("inspect canon")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || lines[0] != "http://example.com/b\thttp://example.com/b" || lines[1] != "http://a.example/p/x\thttp://a.example/p/x" || !strings.HasPrefix(lines[2], "ERR\t") {
		t.Errorf("%q", lines)
	}
}

func TestInspectCanonJSON(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, in: "http://a.example/?a=1&b\nmailto:x\n"}
	want := `{"url":"http://a.example/?a=1&b","key":"http://a.example/?a=1&b"}` + "\n" + `{"error":"canon: not crawlable: scheme is not http or https"}` + "\n"
	if out := d.ok("inspect canon --json"); out != want {
		t.Errorf("%s", out)
	}
}

func TestServersThatAreNotFit(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.Start(t, shardtest.Config{NoBloom: true}))
	d.refused(3, "create --shards 1", "RedisBloom")
	d.addr = "127.0.0.1:1"
	d.refused(1, "stats", "127.0.0.1:1")
}

// What is missing on the command line is named, and where it is explained.
func TestMissingWords(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, addr: "127.0.0.1:1"}
	for command, want := range map[string]string{
		"export": "argument <file.zst> is missing; --help", "why": "argument <url> is missing; --help",
		"dead": `"count", "retry", "drop"; --help lists them all`,
	} {
		d.refused(2, command, want)
	}
}
