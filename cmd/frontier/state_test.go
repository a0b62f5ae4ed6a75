package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/memory"
)

// TestVerbsOnState: each verb works on a directory as on Redis, whether a process
// has it open or not, and in a path that is too long for a socket.
func TestVerbsOnState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		live bool
		dir  string
	}{{"at rest", false, "state"}, {"live", true, "state"}, {"long path", true, strings.Repeat("long/", 30) + "state"}} {
		t.Run(c.name, func(t *testing.T) {
			d := &operator{t: t, addr: "127.0.0.1:1"} // Redis is not asked
			dir := filepath.Join(t.TempDir(), c.dir)
			d.refused(3, "stats --state "+dir, "no such crawl in this directory")
			d.ok("seed --state "+dir+" --delay 2s --seed http://a.example/ --seed http://b.example/ --seed http://b.example/2", "admitted 3")
			f := open(t, dir)
			giveUp(t, f, "http://b.example/")
			if c.live {
				if err := f.Serve(); err != nil {
					t.Fatal(err)
				}
				if st, err := os.Stat(filepath.Join(dir, "socket")); err != nil || st.Mode().Perm() != 0o600 {
					t.Fatal(st.Mode(), err)
				}
				defer func() {
					if err := f.Close(); err != nil {
						t.Error(err)
					}
					if _, err := os.Lstat(filepath.Join(dir, "socket")); !os.IsNotExist(err) {
						t.Error("the socket is left: ", err)
					}
				}()
			} else if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			verbsOn(t, d, dir)
			if c.live && f.Settings().Delay != 3*time.Second {
				t.Errorf("the live crawl has delay %v", f.Settings().Delay)
			}
		})
	}
}

func verbsOn(t *testing.T, d *operator, dir string) {
	at := " --state " + dir
	d.ok("stats"+at, dir+", ready, 1 shard", "known URLs 3", "timeout 1")
	d.ok("list"+at, "ready 1")
	d.ok("set"+at+" --delay 3s", "delay 2s 3s")
	d.refused(3, "seed"+at+" --delay 5s --seed http://c.example/", "frontier set --state "+dir+" --delay")
	d.refused(3, "seed"+at+" --limit-by host --seed http://c.example/", "limit-by")
	d.ok("seed"+at+" --seed http://c.example/ --seed http://a.example/", "admitted 1", "seen 1")
	d.ok("pause"+at, "paused the crawl")
	d.ok("stats"+at, "paused")
	d.ok("resume"+at, "resumed the crawl")
	d.ok("pause"+at+" --shard 0", "paused shard 0")
	d.ok("block"+at+" --list", "shard 0 paused")
	d.ok("resume"+at+" --shard 0", "resumed shard 0")
	d.ok("pause"+at+" a.example --reason slow", "paused site a.example")
	d.ok("block"+at+" c.example --reason rude", "blocked c.example", "dropped 1 URL")
	var stops []frontier.Stop
	if d.json(&stops, "block --list"+at); len(stops) != 2 || stops[0].Reason != "slow" || !stops[1].Blocked || stops[1].Reason != "rude" || stops[1].Since.IsZero() {
		t.Errorf("%+v", stops)
	}
	d.ok("unblock"+at+" c.example", "unblocked c.example")
	d.ok("dead count"+at, "timeout 1")
	d.ok("dead list"+at, "http://b.example/", "too slow")
	d.ok("dead retry"+at, "retried 1")
	d.ok("dead drop --yes"+at, "dropped 0")
	d.ok("set"+at+" --site a.example --delay 7s", "delay 3s 7s")
	d.refused(2, "dead list --cause feed"+at, "--state: this verb is for crawls in Redis")
	d.refused(2, "bloom info"+at, "--state: this verb is for crawls in Redis")
	d.refused(2, "stats --crawl x"+at, "--crawl is for a crawl in Redis")
	var r frontier.Report
	if d.json(&r, "stats"+at); r.Total.Known != 4 || r.Total.RetriedDead != 1 || r.Total.Blocked != 1 || r.Paused != 1 || r.Blocked != 0 || r.Settings.Delay != 3*time.Second {
		t.Errorf("%+v", r)
	}
}

func open(t *testing.T, dir string) *memory.Frontier {
	t.Helper()
	f, err := memory.New(memory.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// giveUp makes a URL of a crawl, the first of its site, a dead letter.
func giveUp(t *testing.T, f *memory.Frontier, url string) {
	t.Helper()
	reply, err := f.Tick(t.Context(), 0, frontier.TickRequest{Want: 10})
	if err != nil {
		t.Fatal(err)
	}
	visits, err := f.Visit(t.Context(), 0, reply.Due, frontier.VisitLimits{URLs: 1})
	if err != nil {
		t.Fatal(err)
	}
	var settle []frontier.Settlement
	for _, v := range visits {
		o := frontier.Outcome{Index: 1, Kind: frontier.Requeue}
		if v.Items[0].URL == url {
			o.Kind, o.Cause, o.Text = frontier.Dead, "timeout", "too slow"
		}
		settle = append(settle, frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{o}, Release: &frontier.Release{}})
	}
	if settled, err := f.Settle(t.Context(), 0, settle); err != nil {
		t.Fatal(fmt.Sprint(settled), err)
	}
}

// TestDroppedAreCounted: stats has how many dead letters were dropped, in Redis as
// in a directory, which reports it when it is opened anew.
func TestDroppedAreCounted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	d := &operator{t: t, addr: "127.0.0.1:1"}
	d.ok("seed --state " + dir + " --seed http://a.example/ --seed http://b.example/")
	f := open(t, dir)
	giveUp(t, f, "http://a.example/")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d.ok("dead drop --yes --state "+dir, "dropped 1")
	d.ok("stats --state "+dir, "dead 1, 0 retried, 1 dropped")
}

// TestNewDirectoryIsTold: a name of a directory that was mistyped shows.
func TestNewDirectoryIsLogged(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, addr: "127.0.0.1:1"}
	dir := filepath.Join(t.TempDir(), "state")
	for _, begins := range []bool{true, false} {
		code, _, errs := d.run("seed", "--state", dir, "--seed", "http://a.example/")
		if code != 0 || strings.Contains(errs, "a new crawl begins") != begins {
			t.Errorf("code %d: %s", code, errs)
		}
	}
}
