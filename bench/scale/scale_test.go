//go:build linux

package scale

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/bench/load"
	"seine/bloom"
	"seine/frontier"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

var (
	urls      = flag.Int64("urls", 60_000, "URLs to be known in the end")
	masters   = flag.Int("masters", 3, "masters of the cluster, with a shard each; 1 is a single server")
	replica   = flag.Bool("replica", false, "give the single server a replica, and three sentinels that watch both")
	crawlS    = flag.Duration("crawl", 2*time.Second, "how long a fetcher works on it")
	timeout   = flag.Duration("node-timeout", 2*time.Second, "of the cluster")
	spare     = flag.Int64("spare", 1<<30, "bytes of memory that stay available; growing stops there")
	rounds    = flag.Int("rounds", 3, "rounds of a measurement")
	checkURLs = flag.Int64("check-urls", 20_000_000, "check each URL where no more than these are queued")
	outFile   = flag.String("out", "", "file that results are added to")
)

// bin is where the programs under test are, built once.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "scale")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	bin = dir
	if out, err := exec.Command("go", "build", "-o", dir+"/", "seine/cmd/fetcher", "seine/cmd/frontier").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// bench is a crawl that is measured.
type bench struct {
	*stand
	dir     string
	out     io.Writer
	control *stand // a crawl of constant size on a server of its own
	met     bloom.Probe
}

// say adds a line to the results.
func (b *bench) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	b.t.Log(text)
	fmt.Fprintln(b.out, text)
}

// perSite is how many URLs there are for each site.
const perSite = 200

// TestScale grows the crawl that the flags ask for, measures it on the way, and tries
// on it what operators do.
func TestScale(t *testing.T) { scale(t, *masters, *replica) }

// TestScaleWithReplica is TestScale on one server with a replica.
func TestScaleWithReplica(t *testing.T) { scale(t, 1, true) }

func scale(t *testing.T, masters int, replica bool) {
	b := &bench{dir: t.TempDir(), out: io.Discard}
	if *outFile != "" {
		f, err := os.OpenFile(*outFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b.out = f
	}
	server, err := load.Wide(b.dir, root(t, b.dir), 1, load.Way{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)

	config := shardtest.Config{NodeTimeout: *timeout, StartTimeout: 10 * time.Minute, Directives: directives}
	args, servers := fmt.Sprintf("--urls %d --masters %d", *urls, masters), fmt.Sprintf("%d masters", masters)
	switch {
	case masters > 1:
		config.Masters = masters
	case replica:
		config.Replicas, config.Sentinels = 1, 3
		args, servers = args+" --replica", "one server with a replica, watched by three sentinels"
	default:
		servers = "one server"
	}
	b.stand = open(t, config, *urls, masters, server.Port)
	b.control = open(t, shardtest.Config{Directives: directives}, max(*urls/200, 20_000), 1, server.Port)
	if err := b.control.grow(t.Context(), max(*urls/200, 20_000)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(b.out, load.Head("scripts/bench-scale "+args, true))
	b.say("%s, %d sites with sizes by rank^-%g; persistence off while it grows\n", servers, b.sites, exponent)
	b.steps()
	for _, try := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"a fetcher", b.fetch}, {"frontier check", b.check}, {"restarts", b.restarts}, {"a slot moved", b.move}, {"a master killed", b.failover},
	} {
		began := time.Now()
		err := try.do(t.Context())
		b.say("  (%s: %.0f s, load %s)", try.name, time.Since(began).Seconds(), load.Busy())
		if err != nil {
			b.say("%s: %v", try.name, err)
			t.Error(try.name, ": ", err)
		}
	}
}

// directives are those of deploy/redis.conf that memory and moves depend on.
var directives = []string{"list-max-listpack-size -3", "lazyfree-lazy-user-del yes", "lazyfree-lazy-server-del yes", "lazyfree-lazy-expire yes",
	"replica-lazy-flush yes", "repl-diskless-sync yes", "client-output-buffer-limit replica 1gb 512mb 60", "repl-backlog-size 64mb", "cluster-replica-validity-factor 0"}

// open makes servers and an empty crawl on them, with room for the URLs of measurements
// too.
func open(t *testing.T, config shardtest.Config, urls int64, shards, port int) *stand {
	s := &stand{t: t, server: shardtest.Start(t, config), sites: int(max(urls/perSite, 100))}
	client, err := shard.Open(t.Context(), shard.Config{Addrs: s.addrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s.client = client
	if s.f, err = redis.Create(t.Context(), client, "seine", frontier.Layout{Shards: shards, PlanURLs: urls + urls/20}, frontier.DefaultSettings()); err != nil {
		t.Fatal(err)
	}
	s.crawl = &crawl{parts: partsOf(s.f, s.sites, port), spare: *spare}
	if err := s.parts[0].sound(); err != nil {
		t.Fatal(err)
	}
	return s
}

// steps grows the crawl, and measures each step.
func (b *bench) steps() {
	calls := int(min(max(*urls/100_000, 1), 40))
	for _, share := range []int64{200, 20, 4, 2, 1} {
		began, before := time.Now(), b.total()
		cpu := b.cpu()
		err := b.grow(b.t.Context(), *urls/share)
		after := b.total()
		if err != nil && !errors.Is(err, errFull) {
			b.t.Fatal(err)
		}
		grown, took := float64(after.Known-before.Known), time.Since(began)
		b.say("%.4g million known, %.4g million queued, after %.0f s; Redis %.2f us for each new URL and its share of visits; %s available, load %s",
			float64(after.Known)/1e6, float64(after.Queued)/1e6, took.Seconds(), (b.cpu()-cpu)/max(grown, 1), plainBytes(load.Available()), load.Busy())
		for _, measure := range []func() error{
			func() error { return b.memory(b.t.Context()) },
			func() error { return b.wrong(b.t.Context(), int(min(*urls/10, 5_000_000))/len(b.parts)) },
			func() error { return b.costs(b.t.Context(), *rounds, calls) },
		} {
			if err := measure(); err != nil {
				b.t.Fatal(err)
			}
		}
		b.say("")
		if err != nil {
			b.say("growing stopped here: %v (%s)", err, plainBytes(float64(*spare)))
			return
		}
	}
}

// total are the counters of the crawl.
func (b *bench) total() frontier.ShardStats {
	stats, err := b.f.Stats(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return frontier.Total(stats)
}

// cpu is the processor time of all servers that have shards, us.
func (b *bench) cpu() (us float64) {
	for _, n := range b.serving() {
		u, err := usedBy(b.t.Context(), n)
		if err != nil {
			b.t.Fatal(err)
		}
		us += u.us
	}
	return us
}

// root is a directory of what nginx serves: a page of 4 KB with 12 links, 2 of
// which are new where nobody was.
func root(t *testing.T, dir string) string {
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("<!doctype html><title>page</title><p>")
	for i := range 12 {
		link := fmt.Sprintf("/section/page-%d.html", i)
		if i < 2 {
			link = fmt.Sprintf("next-%d.html", i)
		}
		fmt.Fprintf(&page, `<p>%s<a href="%s">%d</a>`, strings.Repeat("some words of text ", 16), link, i)
	}
	for _, name := range []string{"index.html", "page.html"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(page.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
