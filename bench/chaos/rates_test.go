//go:build linux

package chaos

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"seine/bench/load"
	"seine/bench/web"
	"seine/shard/shardtest"
)

// even is a web of sites of one size, which are all asked as often as their delay
// allows.
var even = web.Config{Sites: 60, Exponent: 1000, Links: 20, New: 0.3, Features: web.Spellings}

// rates compares how often hosts are asked while something goes on with how
// often they were before. That says something of a crawl that only politeness
// holds back: while the machine has more than half of its processors idle.
type rates struct {
	w      *world
	usual  map[string]float64 // requests a second of each host
	begun  time.Time
	hosts  map[string]bool // looked at since
	before cpu             // at that time

	got      int     // requests
	expected float64 // as usual
	used     cpu     // meanwhile
}

// measureRates finds out for so long what is usual.
func (w *world) measureRates(d time.Duration) *rates {
	w.t.Helper()
	r := &rates{w: w, usual: map[string]float64{}}
	from, before := time.Now(), w.cpu()
	<-time.After(d)
	for _, q := range w.since(from) {
		r.usual[q.Host] += 1 / d.Seconds()
	}
	w.note("usual rate", fmt.Sprintf("%d requests in %v, %v", len(w.since(from)), d, w.cpu().since(before)))
	return r
}

// since are the requests after a time.
func (w *world) since(from time.Time) (after []web.Request) {
	for _, q := range w.web.Log() {
		if q.At.After(from) {
			after = append(after, q)
		}
	}
	return after
}

// start begins to look at these hosts.
func (r *rates) start(hosts map[string]bool) {
	r.w.t.Helper()
	r.begun, r.hosts, r.before = time.Now(), hosts, r.w.cpu()
}

// stop ends that.
func (r *rates) stop() {
	r.w.t.Helper()
	d, now := time.Since(r.begun), r.w.cpu()
	for _, q := range r.w.since(r.begun) {
		if r.hosts[q.Host] {
			r.got++
		}
	}
	for host := range r.hosts {
		r.expected += r.usual[host] * d.Seconds()
	}
	r.used.add(now.since(r.before))
}

// judge notes which part of the usual rate was kept since the last time. In the
// long form, where the machine was idle enough, it may not be less than least.
func (r *rates) judge(name string, least float64) {
	r.w.t.Helper()
	if r.expected == 0 {
		return
	}
	kept := float64(r.got) / r.expected
	verdict := "not judged in the short form"
	switch {
	case long() && r.used.share() > 0.5:
		verdict = "not judged: processors were the bound"
	case long():
		verdict = fmt.Sprintf("of %v wanted", share(least))
		if kept < least {
			r.w.t.Errorf("%s: %v, wanted %v", name, share(kept), share(least))
		}
	}
	r.w.note(name, fmt.Sprintf("%v (%d of %.0f requests, %v; %s)", share(kept), r.got, r.expected, r.used, verdict))
	r.got, r.expected, r.used = 0, 0, cpu{}
}

// hostsBeside are the hosts whose shards are at none of these nodes.
func (w *world) hostsBeside(nodes ...*shardtest.Node) map[string]bool {
	w.t.Helper()
	shards := w.shards()
	there := map[string]bool{}
	for _, n := range nodes {
		there[n.Addr] = true
	}
	hosts := map[string]bool{}
	for k := range w.web.Sites() {
		if host := w.web.Host(k); !there[shards[w.front.ShardOf(host)].Master] {
			hosts[host] = true
		}
	}
	return hosts
}

// cpu is what the machine's processors did, in ticks: all there was, what they
// worked for whomever, and for this test and all that it started.
type cpu struct{ all, busy, own float64 }

// cpu reads /proc/stat.
func (w *world) cpu() (c cpu) {
	w.t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		w.t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line)[1:] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		if i >= 8 { // guests count as users already
			break
		}
		c.all += n
		if i != 3 && i != 4 { // idle, waiting for a disk
			c.busy += n
		}
	}
	pids := []int{os.Getpid()} // its time has that of children that ended, such as redis-cli
	for _, f := range w.fetchers {
		pids = append(pids, f.cmd.Process.Pid)
	}
	for _, n := range w.redis.Nodes {
		pids = append(pids, n.Pid())
	}
	for _, pid := range pids {
		t, _ := load.Own(pid) // one that has ended uses nothing
		c.own += float64(t.All() / load.Tick)
	}
	return c
}

func (c cpu) since(before cpu) cpu {
	return cpu{c.all - before.all, c.busy - before.busy, c.own - before.own}
}

func (c *cpu) add(d cpu) { c.all, c.busy, c.own = c.all+d.all, c.busy+d.busy, c.own+d.own }

// share is how much of the processors was busy.
func (c cpu) share() share { return share(c.busy / c.all) }

func (c cpu) String() string {
	return fmt.Sprintf("processors %v busy, %v with this crawl", c.share(), share(c.own/c.all))
}

// share is a part of one.
type share float64

func (s share) String() string { return fmt.Sprintf("%.0f%%", 100*float64(s)) }
