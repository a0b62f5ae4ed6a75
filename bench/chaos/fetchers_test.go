//go:build linux

package chaos

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"seine/bench/web"
)

// Fetchers are killed with -9 again and again. Nothing is lost, and what is
// fetched twice is what the killed had leased.
func TestFetchersKilled(t *testing.T) {
	w := build(t, setup{})
	w.start(3)
	for range either(5, 20) {
		w.progress(either(100, 300))
		f := w.pick()
		f.kill()
		w.blows++
		f.start()
	}
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	w.explained(v)
	w.reported()
	if v.lost == 0 {
		t.Error("the killed had leased nothing: the test shows nothing")
	}
}

// Fetchers are asked to end. They give everything back, and those that come
// after them repeat nothing.
func TestFetchersStopped(t *testing.T) {
	const grace = 20 * time.Second
	w := build(t, setup{fetch: []string{"--grace", grace.String()}})
	w.start(3)
	slowest := time.Duration(0)
	for range either(2, 10) {
		w.progress(either(150, 300))
		for _, f := range w.fetchers {
			f.cmd.Process.Signal(syscall.SIGTERM)
		}
		asked := time.Now()
		w.waitAll()
		slowest = max(slowest, time.Since(asked))
		w.blows++
		if s := w.stats(); s.Open+s.Leases != 0 {
			t.Errorf("stopped fetchers left %d URLs of %d visits open", s.Open, s.Leases)
		}
		for _, f := range w.fetchers {
			f.start()
		}
	}
	if w.note("slowest end", slowest.Round(time.Millisecond)); slowest > grace {
		t.Errorf("a fetcher took %v to end, longer than its grace of %v", slowest, grace)
	}
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	if v.repeats != 0 || v.Doubled.Count != 0 || v.lost != 0 {
		t.Errorf("an orderly end repeats something:\n%s", v.Report)
	}
}

// TestPageLimitAfterDeath: what a killed fetcher had leased of --max-pages comes back. The
// others end with as many pages as the limit, and not before.
func TestPageLimitAfterDeath(t *testing.T) {
	limit := either(600, 3000)
	w := build(t, setup{delay: 50 * time.Millisecond})
	w.frontier("set", "--max-pages", strconv.Itoa(limit))
	w.start(3)
	w.until("a third of the pages", func() bool { return len(w.web.Log()) > limit/3 })
	w.fetchers[1].kill()
	w.blows++
	for _, f := range w.fetchers {
		if f.running() {
			f.wait()
			if !strings.Contains(f.logged(), "--max-pages reached") {
				t.Errorf("%s does not say why it ended:\n%s", f.name, f.tail())
			}
		}
	}
	s := w.stats()
	w.note("pages of the limit", fmt.Sprint(s.Pages(), " of ", limit))
	if s.Pages() != int64(limit) || s.Queued == 0 || s.Leases > 0 {
		t.Errorf("the fleet ended at %d of %d pages: %+v", s.Pages(), limit, s)
	}
	w.print(w.rows)
}

// One page kills each fetcher that asks for it. After the third it is dead with
// cause `lost`, and all others are fetched.
func TestPageThatKills(t *testing.T) {
	var w *world
	kill := &trigger{}
	w = build(t, setup{pages: 800, delay: 150 * time.Millisecond, trigger: kill, web: web.Config{Sites: 8, Exponent: 3, Links: 20, New: 0.3}})
	host, page := w.web.Host(0), w.web.Pages(0)/6+1 // the first that leads to no new page: each leads to six
	deadly := w.web.URL(0, page)
	kill.act = func(client, server *net.TCPAddr) {
		w.pids.Range(func(_, pid any) bool {
			if owns(pid.(int), client, server) {
				syscall.Kill(pid.(int), syscall.SIGKILL)
			}
			return true
		})
	}
	kill.set("GET " + strings.TrimPrefix(deadly, "http://"+host) + " HTTP/1.1\r\nHost: " + host + "\r\n")
	w.start(3)
	w.until("the third death", func() bool {
		for _, f := range w.fetchers {
			if !f.running() && f.err != nil {
				w.blows++
				f.start()
			}
		}
		return strings.Contains(w.frontier("dead", "count"), "lost")
	})
	w.calm()
	v := w.judge()
	w.explained(v)
	if w.blows != 3 {
		t.Errorf("%d fetchers died of the page, not 3", w.blows)
	}
	if out := w.frontier("dead", "list", "--cause", "lost", "--json"); strings.Count(out, "\n") != 1 || !strings.Contains(out, deadly) {
		t.Errorf("dead of cause lost, want only %s:\n%s", deadly, out)
	}
	if v.Unwritten.Count != 1 || v.Missing.Count > 0 && (v.Missing.Count > 1 || !strings.Contains(v.Missing.Examples[0], deadly)) {
		t.Errorf("other pages suffered from %s:\n%s", deadly, v.Report)
	}
}
