//go:build linux

package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/bench/web"
	"seine/extract/sink/jsonl"
	"seine/shard/shardtest"
)

// Masters are killed with -9, their replicas take over, and they come back as
// replicas. With --ack replica nothing is lost; without, what is lost is named,
// and what pages link to that were fetched afterwards is found again. In the long
// form leases of the default length are tried too, which are extended seldom: a
// lease that was lost is noticed all the same.
func TestMastersKilled(t *testing.T) {
	names := []string{"ack=replica", "ack=master"}
	for _, name := range either(names, append(names, "ack=replica, lease=1m")) {
		t.Run(name, func(t *testing.T) {
			ack, lease := "replica", time.Duration(0)
			if name == "ack=master" {
				ack = "master"
			} else if strings.Contains(name, "lease") {
				lease = time.Minute
			}
			w := build(t, setup{redis: shardtest.Config{Masters: either(3, 6), Replicas: 1}, forgets: ack == "master", fetch: []string{"--ack", ack}, lease: lease})
			w.start(3)
			for range either(2, 10) {
				w.progress(either(100, 300))
				w.killMaster()
			}
			if ack == "replica" {
				w.calm()
				w.nothingLost(w.judge())
			} else {
				w.foundAgain()
				w.judge()
			}
		})
	}
}

// killMaster kills the master of a random shard and waits until its replica has
// its place and it follows that. The replica lags: it hears nothing of the last
// writes.
func (w *world) killMaster() {
	w.t.Helper()
	slot := w.shards()[w.rng.IntN(24)].Slot
	old := w.redis.MasterOf(w.t, slot)
	next := w.partner(old)
	next.Stop(w.t)
	old.Do(w.t, "client", "kill", "type", "replica")
	w.progress(50)
	old.Kill(w.t)
	w.blows++
	next.Cont(w.t)
	w.redis.MasterOf(w.t, slot)
	old.Restart(w.t)
	old.WaitRole(w.t, "slave")
	w.redis.WaitWhole(w.t)
}

// partner is the other node of a pair.
func (w *world) partner(n *shardtest.Node) *shardtest.Node {
	if m := n.Index - w.setup.redis.Masters; m >= 0 {
		return w.redis.Nodes[m]
	}
	return w.redis.Replicas(n.Index)[0]
}

// All of Redis is gone at once and started again. With an append-only file
// that is synced before each answer nothing is lost.
func TestRedisGone(t *testing.T) {
	w := build(t, setup{redis: shardtest.Config{Masters: 6, AOF: "always"}})
	w.start(3)
	for range either(2, 5) {
		w.progress(either(150, 300))
		w.killRedis()
		w.startRedis()
	}
	w.calm()
	w.nothingLost(w.judge())
}

// All of Redis loses power at once, and with it what an append-only file that
// is synced each second had not synced. What is lost is named, what pages link to
// that were fetched afterwards is found again, and the crawl ends in order.
func TestRedisPowerCut(t *testing.T) {
	w := build(t, setup{redis: shardtest.Config{Masters: 6, AOF: "everysec"}, delay: 100 * time.Millisecond, forgets: true})
	w.start(3)
	cut := int64(0)
	for range either(2, 5) {
		stop := w.watchFiles()
		w.progress(either(300, 600))
		w.killRedis()
		cut += w.cutFiles(stop())
		w.startRedis()
	}
	w.note("bytes cut off", cut)
	w.foundAgain()
	if v := w.judge(); cut == 0 {
		t.Errorf("nothing was cut off: the test shows nothing\n%s", v.Report)
	}
}

// foundAgain ends the blows and waits for the end of the crawl. It fails if a URL
// has no record though a page that was fetched after the last blow links to it.
func (w *world) foundAgain() {
	w.t.Helper()
	after := time.Now().Add(3 * time.Second) // a fetcher asks every shard each second at least
	w.until("fetchers to have seen what happened", func() bool { return time.Now().After(after) })
	w.calm()
	w.waitAll()
	recorded, linked, pages := map[string]bool{}, map[string]string{}, 0
	for r, err := range jsonl.Records(w.outs()...) {
		if err != nil {
			w.t.Fatal(err)
		}
		recorded[w.web.Canonical(r.URL)] = true
		if r.FetchedAt.After(after) {
			pages++
			w.web.Leads(r.URL, func(u string) {
				if host(u) == host(r.URL) { // others are out of scope
					linked[u] = r.URL
				}
			})
		}
	}
	lost, orphans := []string(nil), 0
	for e := range w.web.Expect(web.Plan{}) {
		from, ok := linked[e.URL]
		switch {
		case recorded[e.URL]:
		case ok:
			lost = append(lost, e.URL+" from "+from)
		default:
			orphans++
		}
	}
	w.note("pages fetched afterwards", pages)
	w.note("missing though linked from them", len(lost))
	w.note("missing and linked from none", orphans)
	if len(lost) > 0 {
		w.t.Errorf("%d URLs were not found again though pages fetched after the last blow link to them, such as %q", len(lost), lost[:min(5, len(lost))])
	}
	if pages == 0 {
		w.t.Error("no page was fetched after the last blow: the test shows nothing")
	}
}

// host is that of a URL.
func host(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// killRedis kills every node.
func (w *world) killRedis() {
	var wg sync.WaitGroup
	for _, n := range w.redis.Nodes {
		wg.Go(func() { n.Kill(w.t) })
	}
	wg.Wait()
	w.blows++
}

// startRedis starts every node again.
func (w *world) startRedis() {
	w.t.Helper()
	for _, n := range w.redis.Nodes {
		n.Restart(w.t)
	}
	w.redis.WaitWhole(w.t)
}

// unsynced is the age of what an append-only file may lose that is synced each
// second.
const unsynced = time.Second

// sizes are the sizes of files at one time.
type sizes struct {
	at time.Time
	of map[string]int64
}

// watchFiles looks at the append-only files all the time, until stop is called,
// which returns their sizes as of a second before.
func (w *world) watchFiles() (stop func() map[string]int64) {
	quit, done := make(chan struct{}), make(chan struct{})
	var seen []sizes
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			seen = append(seen, sizes{time.Now(), w.appendOnly()})
			select {
			case <-tick.C:
			case <-quit:
				return
			}
		}
	}()
	return func() map[string]int64 {
		close(quit)
		<-done
		last := seen[0]
		for _, s := range seen {
			if time.Since(s.at) >= unsynced {
				last = s
			}
		}
		return last.of
	}
}

// appendOnly are the sizes of the append-only files that grow.
func (w *world) appendOnly() map[string]int64 {
	of := map[string]int64{}
	for _, n := range w.redis.Nodes {
		files, _ := filepath.Glob(filepath.Join(n.Dir, "appendonlydir", "*.incr.aof"))
		for _, f := range files {
			if info, err := os.Stat(f); err == nil {
				of[f] = info.Size()
			}
		}
	}
	return of
}

// cutFiles cuts files back to these sizes and returns how many bytes that were.
func (w *world) cutFiles(to map[string]int64) (cut int64) {
	w.t.Helper()
	for name, size := range w.appendOnly() {
		keep, known := to[name]
		if !known || keep >= size {
			continue
		}
		if err := os.Truncate(name, keep); err != nil {
			w.t.Fatal(err)
		}
		cut += size - keep
	}
	return cut
}
