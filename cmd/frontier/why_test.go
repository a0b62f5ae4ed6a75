package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/fetch/robots"
	"seine/frontier"
	"seine/frontier/ask"
	"seine/frontier/memory"
	"seine/shard/shardtest"
)

// whyBackend is a crawl as fetchers have it.
type whyBackend interface {
	frontier.Operated
	frontier.Queue
}

// newOperatorByState is an operator without Redis, and a crawl in a directory that this process has
// open.
func newOperatorByState(t *testing.T) (d *operator, f *memory.Frontier, dir string) {
	dir = filepath.Join(t.TempDir(), "state")
	f, err := memory.New(memory.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Serve(); err != nil {
		t.Fatal(err)
	}
	return &operator{t: t, addr: "127.0.0.1:1"}, f, dir
}

// TestWhy: each state of a URL is found and printed, on Redis and in a directory that
// another process has open.
func TestWhy(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		d := newOperator(t, shardtest.One(t))
		d.ok("create --shards 2 --plan-urls 10k")
		testWhy(t, d, d.open("seine"), "")
	})
	t.Run("state", func(t *testing.T) {
		d, f, dir := newOperatorByState(t)
		testWhy(t, d, f, " --state "+dir)
	})
}

func testWhy(t *testing.T, d *operator, f whyBackend, at string) {
	ctx := t.Context()
	why := func(url, state string, says ...string) *ask.Answer {
		t.Helper()
		a := &ask.Answer{}
		d.json(a, "why "+url+at)
		if a.State != state {
			t.Errorf("%s is %s, want %s: %s", url, a.State, state, a.Why)
		}
		out := d.ok("why "+url+at, says...)
		if first, _, _ := strings.Cut(out, "\n"); first[:12] != a.Why[:12] {
			t.Errorf("%s: the first line is %q, the conclusion %q", url, first, a.Why)
		}
		if strings.Contains(out, "secret") {
			t.Errorf("credentials in %s", out)
		}
		return a
	}
	d.ok("set --deny /x/ --skip-ext pdf --max-per-site 6"+at, "deny")
	why("mailto:x@a.example", ask.StateInvalid, "not crawled: not crawlable")
	a := why("http://user:secret@a.example/x/1", ask.StateRefused, "not fetched: a link to it is refused by --deny /x/")
	if a.URL != "http://a.example/x/1" || a.Site != "a.example" || a.Known.Yes {
		t.Errorf("%+v", a)
	}
	why("http://a.example/a.pdf", ask.StateRefused, "--skip-ext pdf", "seed is fetched all the same")
	why("http://a.example/1", ask.StateUndiscovered, "nobody seeded it", "nothing of its site is queued")
	why("http://192.168.1.1/", ask.StateUndiscovered, "nobody seeded it", "its address is not public: only fetchers whose --allow-net names it")
	why("http://b.example/1 --from http://a.example/", ask.StateRefused, "a link to it on http://a.example/ is refused by --scope site")

	d.ok("seed --seed http://user:secret@a.example/0 --seed http://a.example/1 --seed http://a.example/2 --seed http://a.example/3"+at, "admitted 4")
	why("http://user:secret@a.example/0", ask.StateQueued, "it is the next of its site", "its site is due now", "admitted")
	why("http://a.example/1", ask.StateQueued, "not fetched yet: 1 URL of its site is before it, 1s (setting)")
	a = why("http://a.example/%33", ask.StateQueued, "3 URLs of its site are before it, 3s at a delay of 1s (setting)", "class 0, 3 before it")
	if a.Queued.Before != 3 || a.Clock.Queued != 4 || a.Clock.Admitted != 4 || a.Clock.Cap != 6 {
		t.Errorf("%+v %+v", a.Queued, a.Clock)
	}

	k := frontier.ShardOf(f, "a.example")
	rules := robots.Parse([]byte("User-agent: *\nDisallow: /2\nCrawl-delay: 3\nContent-Signal: /1 ai-train=no"), "seine")
	kept := []frontier.OriginRules{{Site: "a.example", Origin: "http://a.example", Rules: rules.AppendKept(nil, "seine", time.Now().Add(-time.Hour)), TTL: 2 * time.Hour}}
	if err := f.SetRules(ctx, k, kept); err != nil {
		t.Fatal(err)
	}
	a = why("http://a.example/2", ask.StateQueued, `robots.txt has "Disallow: /2" in line 2`, `disallows it: "Disallow: /2", line 2, group *; delay 3s; read 1h0m`)
	if a.Robots.Allowed || a.Robots.Age < ask.Span(59*time.Minute) {
		t.Errorf("%+v", a.Robots)
	}
	if a = why("http://a.example/1", ask.StateQueued, `says {"ai_train":{"says":"no"`); a.Robots.Refuses != "" || a.Robots.Preferences == nil {
		t.Errorf("%+v", a.Robots)
	}
	d.ok("set --purpose ai-train"+at, "purpose")
	why("http://a.example/1", ask.StateQueued, "but then it would be given up, for robots.txt refuses it for ai_train: robots.txt Content-Signal: ai-train=no")
	d.ok("pause a.example --reason rude"+at, "paused")
	why("http://a.example/1", ask.StateQueued, "not fetched: site a.example is paused since", "rude")
	d.ok("resume a.example"+at, "resumed")
	d.ok("pause"+at, "paused")
	why("http://a.example/1", ask.StateQueued, "the crawl is paused")
	d.ok("resume"+at, "resumed")

	member := frontier.NewMember(frontier.KindFetcher, "1")
	member.Host, member.PID = "host.example", 4711
	if _, err := f.Announce(ctx, member); err != nil {
		t.Fatal(err)
	}
	v := lease(t, f, "a.example", 3)
	why("http://a.example/1", ask.StateLeased, "process 4711 on host.example", "for another")
	why("http://a.example/3", ask.StateQueued, "other URLs of its site are being fetched")
	outcomes := []frontier.Outcome{
		{Index: 1, Kind: frontier.Done},
		{Index: 2, Kind: frontier.Retry, NotBefore: time.Hour, Cause: "status"},
		{Index: 3, Kind: frontier.Dead, Cause: "timeout", Text: "fetch: timeout: too slow"},
	}
	free := &frontier.Release{Delay: 7 * time.Second, Remain: time.Minute, Why: "adaptive", Failures: 2}
	if _, err := f.Settle(ctx, k, []frontier.Settlement{{Lease: v.Lease, Outcomes: outcomes, Release: free}}); err != nil {
		t.Fatal(err)
	}
	why("http://a.example/0", ask.StateDone, "fetched: it is known")
	d.ok("set --recrawl /0$=24h..72h --recrawl /1$=1h"+at, "recrawl")
	why("http://a.example/0", ask.StateDone, "fetched: it is known", "nothing of its site waits for a recrawl: it was fetched before that rule")
	why("http://a.example/1", ask.StateWaiting, "attempt 1 failed, it is tried again in", "failed 2 times in a row")
	why("http://a.example/2", ask.StateDead, "given up: timeout: too slow")
	why("http://a.example/3", ask.StateQueued, "delay 7s (adaptive)", "its site is due in")
	d.ok("seed --seed http://a.example/4 --seed http://a.example/5"+at, "admitted 2")
	why("http://a.example/6", ask.StateCapped, "site a.example has 6 URLs of the 6 that it may have")

	d.ok("seed --seed http://c.example/1 --seed http://c.example/2"+at, "admitted 2")
	v = lease(t, f, "c.example", 1)
	free = &frontier.Release{Delay: time.Second, Why: "setting"}
	if _, err := f.Settle(ctx, frontier.ShardOf(f, "c.example"), []frontier.Settlement{{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1}}, Release: free}}); err != nil {
		t.Fatal(err)
	}
	d.ok("set --site c.example --delay 9s"+at, "9s")
	lease(t, f, "c.example", 1)
	why("http://c.example/2", ask.StateLeased, "delay 1s (setting)", "the settings have a delay of 9s for its site by now")

	var many []string
	for i := range 1200 {
		many = append(many, "http://many.example/"+strings.Repeat("p", i%40)+"/"+time.Duration(i).String())
	}
	d.ok("set --max-per-site 0"+at, "max-per-site")
	d.in = strings.Join(many, "\n")
	d.ok("seed --file -"+at, "admitted 1200")
	if a := why(many[999], ask.StateQueued); a.Queued.Before != 999 {
		t.Errorf("%+v", a.Queued)
	}
	why(many[1100], ask.StateKnown, "known, and not among what was looked at", "not among the next 1000 of 1200 queued")
	d.ok("block many.example --reason trap"+at, "blocked")
	why(many[3], ask.StateBlocked, "not fetched: site many.example is blocked since", "trap")
	d.ok("unblock many.example"+at, "unblocked")
	why(many[3], ask.StateDropped, "fetched, or dropped: it is known and nowhere, and `frontier block` dropped URLs of many.example, last at 20")

	_, _, err := f.Set(ctx, func(s *frontier.Settings) error {
		s.SetSite("bound.example", func(r *frontier.SiteRule) { r.Bind = []string{"192.0.2.7", "2001:db8::/64"} })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d.ok("seed --seed http://bound.example/1 --seed http://bound.example/2"+at, "admitted 2")
	v = lease(t, f, "bound.example", 1)
	free = &frontier.Release{Delay: time.Second, Remain: 5 * time.Second, Why: "bind"}
	if _, err := f.Settle(ctx, frontier.ShardOf(f, "bound.example"), []frontier.Settlement{{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1, Kind: frontier.Requeue}}, Release: free}}); err != nil {
		t.Fatal(err)
	}
	why("http://bound.example/2", ask.StateQueued, "delay 1s (bind)", "the rule of its site has requests leave from 192.0.2.7, 2001:db8::/64: fetchers whose machine lacks these addresses leave it to others (bind)")
	if code, _, errs := d.run(strings.Fields("why http://b.example/ --from nothing" + at)...); code == 0 || !strings.Contains(errs, "the page") {
		t.Error(code, errs)
	}
}

// lease leases URLs of a site, which is due.
func lease(t *testing.T, f whyBackend, site string, urls int) frontier.Visit {
	t.Helper()
	k := frontier.ShardOf(f, site)
	reply, err := f.Tick(t.Context(), k, frontier.TickRequest{Want: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, ticket := range reply.Due {
		if ticket.Site != site {
			continue
		}
		visits, err := f.Visit(t.Context(), k, []frontier.Ticket{ticket}, frontier.VisitLimits{URLs: urls})
		if err != nil || len(visits) != 1 {
			t.Fatal(visits, err)
		}
		return visits[0]
	}
	t.Fatalf("%s is not due", site)
	panic("unreachable")
}
