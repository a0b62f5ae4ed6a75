//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/bench/web"
	"seine/frontier"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

// bin is where the programs under test are, built once.
var bin string

func TestMain(m *testing.M) {
	shardtest.SideBySide(4)
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chaos")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	bin = dir
	if testing.Short() {
		return m.Run()
	}
	if err := beginResults(); err != nil {
		panic(err)
	}
	if out, err := exec.Command("go", "build", "-o", dir+"/", "seine/cmd/fetcher", "seine/cmd/frontier").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// long says whether the long form was asked for.
func long() bool { return os.Getenv("SEINE_CHAOS") == "long" }

// either is short or full, as the form is.
func either[T any](short, full T) T {
	if long() {
		return full
	}
	return short
}

// patience bounds every wait: what takes longer hangs.
const patience = 90 * time.Second

// setup describes a world. The zero value of a field is the default it names.
type setup struct {
	web      web.Config       // default 40 even sites of gentle pages
	pages    int              // of the web, default 3,000 or 20,000
	redis    shardtest.Config // default six masters, in the long form with a replica each
	embedded bool             // no Redis
	delay    time.Duration    // of each site until the last blow, default 200 ms
	lease    time.Duration    // default 5 s
	forgets  bool             // Redis may lose what it acknowledged, and so its clocks of sites
	fetch    []string         // more flags of fetchers
	trigger  *trigger         // looks at what is asked of the web
}

// world is one crawl and all it runs on.
type world struct {
	t        *testing.T
	setup    setup
	seed     uint64
	rng      *rand.Rand
	web      *web.Web
	server   *web.Server
	redis    *shardtest.Server
	via      string // addresses of Redis as fetchers see them
	plain    string // as the kit itself does
	front    *redis.Frontier
	dir      string
	records  string // directory of the records
	fetchers []*fetcher
	pids     sync.Map // of the fetchers by name, for goroutines of the web
	began    time.Time
	blows    int
	loosened time.Time // when the last blow was over
	rows     []row     // of the table, beside the usual ones
}

// row is one line of the table of counts.
type row struct {
	name  string
	value any
}

// seedOf is the seed of this run.
func seedOf(t *testing.T) uint64 {
	if s := os.Getenv("SEINE_CHAOS_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal("SEINE_CHAOS_SEED: ", err)
		}
		return n
	}
	return uint64(time.Now().UnixNano()) % 1_000_000
}

// build makes a web and a crawl of it, seeded but without fetchers. In the short form
// scenarios run side by side; the long form compares rates and runs one at a time.
func build(t *testing.T, s setup) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, takes long: make check runs it")
	}
	if !long() {
		t.Parallel()
	}
	w := &world{t: t, seed: seedOf(t), dir: t.TempDir(), began: time.Now()}
	w.records = w.dir
	w.rng = rand.New(rand.NewPCG(w.seed, 1))
	t.Logf("seed %d (SEINE_CHAOS_SEED=%d repeats it)", w.seed, w.seed)
	w.fill(&s)
	w.serve()
	if s.embedded {
		return w
	}
	w.redis = shardtest.Start(t, w.setup.redis)
	if w.via = strings.Join(w.redis.Addrs, ","); len(w.redis.Watch) > 0 {
		w.via = w.redis.SentinelURL()
	}
	w.plain = w.via
	w.frontier("create", "--shards", "24", "--plan-urls", "200k", "--delay", w.setup.delay.String(), "--lease", w.setup.lease.String())
	args := []string{"seed"}
	for _, u := range w.web.Seeds() {
		args = append(args, "--seed", u)
	}
	w.frontier(args...)
	w.open()
	return w
}

// fill puts in the defaults.
func (w *world) fill(s *setup) {
	if s.pages == 0 {
		s.pages = either(3000, 20_000)
	}
	if s.web.Sites == 0 {
		s.web = web.Config{Sites: 40, Exponent: 3, Links: 20, New: 0.3, Features: web.Gentle, CrawlDelay: 10 * time.Millisecond}
	}
	s.web.Seed, s.web.Pages = w.seed, s.pages
	if s.redis.Masters == 0 && s.redis.Sentinels == 0 {
		s.redis.Masters = 6
	}
	if long() && s.redis.Replicas == 0 && s.redis.Sentinels == 0 && s.redis.Through == nil {
		s.redis.Replicas = 1
		if s.redis.NodeTimeout == 0 {
			s.redis.NodeTimeout = 15 * time.Second // none is to take over by itself
		}
	}
	if s.delay == 0 {
		s.delay = 200 * time.Millisecond
	}
	if s.lease == 0 {
		s.lease = 5 * time.Second
	}
	w.setup = *s
}

func (w *world) serve() {
	var err error
	if w.web, err = web.New(w.setup.web); err != nil {
		w.t.Fatal(err)
	}
	ln, err := listen(w.setup.trigger)
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = w.web.Serve(ln)
	w.t.Cleanup(func() { w.server.Close() })
}

// addrs are the servers as the kit itself sees them.
func (w *world) addrs() []string {
	if strings.Contains(w.plain, "://") {
		return []string{w.plain}
	}
	return w.redis.Addrs
}

// open opens the crawl for the test's own looks at it.
func (w *world) open() {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	client, err := shard.Open(ctx, shard.Config{Addrs: w.addrs()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { client.Close() })
	if w.front, err = redis.Open(ctx, client, "seine", nil); err != nil {
		w.t.Fatal(err)
	}
}

// frontier runs the command of that name on the crawl and returns what it says.
func (w *world) frontier(args ...string) string {
	w.t.Helper()
	out, err := w.tryFrontier(args...)
	if err != nil {
		w.t.Fatalf("frontier %s: %v\n%s", args[0], err, out)
	}
	return out
}

func (w *world) tryFrontier(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	args = append(args, "--redis", w.plain)
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "frontier"), args...)
	cmd.Env = environment()
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, ctx.Err())
}

// stats are the counters of all shards, added up.
func (w *world) stats() frontier.ShardStats { return frontier.Total(w.shards()) }

func (w *world) shards() []frontier.ShardStats {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	stats, err := w.front.Stats(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return stats
}

// until waits for a condition.
func (w *world) until(what string, met func() bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !met(); <-tick.C {
		if time.Now().After(end) {
			w.t.Fatalf("after %s still waiting for %s", patience, what)
		}
	}
}

// progress waits until the web was asked for n more URLs: what stands between
// blows, so that a slow machine is not beaten faster than a quick one.
func (w *world) progress(n int) {
	w.t.Helper()
	from := len(w.web.Log())
	w.until(fmt.Sprint(n, " more requests"), func() bool { return len(w.web.Log()) >= from+n })
}

// calm ends the blows: there must still be something to crawl. From here on
// sites are asked as fast as they answer, to come to the end.
func (w *world) calm() {
	w.t.Helper()
	if s := w.stats(); s.Queued+s.Waiting+s.Open == 0 {
		w.t.Fatalf("the web did not outlast the last blow: %+v", s)
	}
	w.loosened = time.Now()
	w.frontier("set", "--delay", "0s")
}
