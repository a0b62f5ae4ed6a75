package frontiertest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"seine/frontier"
)

// sitePause: a paused site is not leased; with work it is among the paused and does not keep
// a crawl from its end.
func sitePause(k *kit) {
	yes, no := true, false
	k.fill("a.example", "p", 1, 3)
	t := k.ticket("a.example")
	for range 2 {
		k.alter("a.example", frontier.SiteChange{Paused: &yes})
	}
	same(k, "visits of an old ticket", len(k.visit(frontier.VisitLimits{URLs: 9}, t)), 0)
	k.advance(claimed)
	k.notDue("a.example")
	s := k.stats()
	same(k, "paused and ready", s.PausedReady, 1)
	same(k, "ready", s.Ready, 0)
	k.fill("a.example", "new", 0, 1)
	k.notDue("a.example")
	same(k, "paused with new work", k.stats().PausedReady, 1)
	for range 2 {
		k.alter("a.example", frontier.SiteChange{Paused: &no})
	}
	same(k, "paused no more", k.stats().PausedReady, 0)
	v := k.visitURLs("a.example", 2)
	sameList(k, "resumed", paths(v), "new0", "p0")

	k.alter("a.example", frontier.SiteChange{Paused: &yes})
	same(k, "paused while leased", k.stats().PausedReady, 0)
	k.finish(v)
	same(k, "paused when settled", k.stats().PausedReady, 1)
	k.advance(claimed)
	k.notDue("a.example")
	k.alter("a.example", frontier.SiteChange{Paused: &no})
	k.finish(k.visitURLs("a.example", 9))

	k.alter("b.example", frontier.SiteChange{Paused: &yes}) // before it is known
	k.fill("b.example", "p", 1, 1)
	k.notDue("b.example")
	same(k, "paused from the start", k.stats().PausedReady, 1)
	k.alter("b.example", frontier.SiteChange{Paused: &no})
	same(k, "leased", len(k.visitURLs("b.example", 9).Items), 1)
}

// siteBlock: a blocked site loses its queue and visits and takes nothing; what
// it lost stays known.
func siteBlock(k *kit) {
	yes, no := true, false
	k.fill("a.example", "p", 1, 4)
	k.fill("a.example", "q", 3, 4)
	v := k.visitURLs("a.example", 3)
	k.settle(v, nil, frontier.Outcome{Index: v.Items[0].Index, Kind: frontier.Retry, NotBefore: time.Second})
	for range 2 {
		k.alter("a.example", frontier.SiteChange{Blocked: &yes})
	}
	s := k.stats()
	same(k, "queued", s.Queued, 0)
	same(k, "waiting", s.Waiting, 0)
	same(k, "leases", s.Leases, 0)
	same(k, "open", s.Open, 0)
	same(k, "ready", s.Ready, 0)
	same(k, "paused and ready", s.PausedReady, 0)
	sameList(k, "outcomes", k.settle(v, &frontier.Release{}, all(v, frontier.Requeue)...), false, false, false)
	sameList(k, "gone", k.tick("a.example", frontier.TickRequest{Extend: []frontier.Lease{v.Lease}}).Gone, v.Lease)
	sameList(k, "new", k.admit(k.url("a.example", "new")), frontier.Capped)
	done, err := k.f.Finished(k.ctx)
	k.must(err)
	same(k, "finished", done, true)
	k.advance(lease)
	k.notDue("a.example")
	k.alter("a.example", frontier.SiteChange{Blocked: &no})
	k.notDue("a.example")
	sameList(k, "unblocked", k.admit(k.url("a.example", "new"), k.url("a.example", "p0")), frontier.Admitted, frontier.Seen)
	sameList(k, "queue", paths(k.visitURLs("a.example", 9)), "new")
}

// siteOverride: settings of a site come with its visits.
func siteOverride(k *kit) {
	text := `{"delay":"3s"}`
	k.fill("a.example", "p", 1, 3)
	k.alter("a.example", frontier.SiteChange{Override: &text})
	v := k.visitURLs("a.example", 1)
	same(k, "override", v.Override, text)
	k.finish(v)
	k.advance(claimed)
	v = k.visitURLs("a.example", 1)
	same(k, "override stays", v.Override, text)
	none := ""
	k.alter("a.example", frontier.SiteChange{Override: &none})
	k.finish(v)
	k.advance(claimed)
	same(k, "override taken away", k.visitURLs("a.example", 1).Override, "")
}

// crawlPause: while the crawl is paused no site is named; what is leased can end.
func crawlPause(k *kit) {
	k.fill("a.example", "p", 1, 3)
	v := k.visitURLs("a.example", 1)
	k.fill("b.example", "p", 1, 1)
	rev := k.tick("a.example", frontier.TickRequest{}).Rev
	k.must(k.f.Pause(k.ctx, -1, true))
	reply := k.tick("a.example", frontier.TickRequest{Want: 9, Extend: []frontier.Lease{v.Lease}})
	same(k, "paused", reply.Paused, true)
	same(k, "revision is another", reply.Rev == rev, false)
	same(k, "due", len(reply.Due), 0)
	same(k, "gone", len(reply.Gone), 0)
	same(k, "due anywhere", len(k.due(9)), 0)
	k.finish(v)
	k.fill("a.example", "new", 1, 1)
	same(k, "in stats", k.stats().Paused, true)
	shards, err := k.f.PausedShards(k.ctx)
	k.must(err)
	same(k, "paused shards", len(shards), k.f.Shards())
	k.must(k.f.Pause(k.ctx, -1, false))
	k.advance(claimed)
	same(k, "paused no more", k.tick("a.example", frontier.TickRequest{}).Paused, false)
	same(k, "due then", len(k.due(9)), 2)

	k.advance(claimed)
	k.must(k.f.Pause(k.ctx, k.shard("a.example"), true))
	k.notDue("a.example")
	shards, err = k.f.PausedShards(k.ctx)
	k.must(err)
	sameList(k, "one shard paused", shards, k.shard("a.example"))
	k.must(k.f.Pause(k.ctx, k.shard("a.example"), false))
	k.ticket("a.example")
}

// crawlSettings: settings change under a new revision.
func crawlSettings(k *kit) {
	rev := k.tick("a.example", frontier.TickRequest{}).Rev
	old := k.f.Settings().MaxDepth
	before, after, err := k.f.Set(k.ctx, func(s *frontier.Settings) error { s.MaxDepth = old + 7; return nil })
	k.must(err)
	same(k, "before", before.MaxDepth, old)
	same(k, "after", after.MaxDepth, old+7)
	same(k, "revision is another", k.tick("a.example", frontier.TickRequest{}).Rev == rev, false)
	s, err := k.f.Refresh(k.ctx)
	k.must(err)
	same(k, "read again", s.MaxDepth, old+7)
	same(k, "as last read", k.f.Settings().MaxDepth, old+7)
	no := errors.New("no")
	if _, _, err := k.f.Set(k.ctx, func(s *frontier.Settings) error { s.MaxDepth = 99; return no }); !errors.Is(err, no) {
		k.Fatalf("refused change: %v", err)
	}
	same(k, "unchanged", k.f.Settings().MaxDepth, old+7)
}

// crawlRules: rules of an origin are kept for their time.
func crawlRules(k *kit) {
	shard := k.shard("a.example")
	ask := func(origins ...string) []frontier.OriginRules {
		var list []frontier.OriginRules
		for _, o := range origins {
			list = append(list, frontier.OriginRules{Site: "a.example", Origin: o})
		}
		k.must(k.f.Rules(k.ctx, shard, list))
		return list
	}
	keep := func(origin string, rules []byte, ttl time.Duration) {
		k.must(k.f.SetRules(k.ctx, shard, []frontier.OriginRules{{Site: "a.example", Origin: origin, Rules: rules, TTL: ttl}}))
	}
	same(k, "unknown", ask("https://a.example")[0].TTL, 0)
	long := bytes.Repeat([]byte("disallow\x00\xff\n"), 1000)
	for _, text := range [][]byte{[]byte("first"), []byte("\x00second\n\xff"), long, {}} {
		keep("https://a.example", text, time.Hour)
		got := ask("http://a.example", "https://a.example")
		same(k, "another origin", got[0].TTL, 0)
		same(k, "rules", bytes.Equal(got[1].Rules, text), true)
		same(k, "time left", got[1].TTL > 59*time.Minute && got[1].TTL <= time.Hour, true)
	}
	keep("https://a.example", nil, 0)
	same(k, "rules that hold for no time change nothing", ask("https://a.example")[0].TTL > 0, true)
	keep("http://a.example", []byte("soon over"), time.Second)
	k.advance(2 * time.Second)
	same(k, "rules that are too old", ask("http://a.example")[0].TTL, 0)
	same(k, "others of the site", ask("https://a.example")[0].TTL > 0, true)
}

// crawlRulesBounded: a site with any number of origins takes bounded memory, and
// the rules of the last ones are there.
func crawlRulesBounded(k *kit) {
	shard, rules := k.shard("a.example"), make([]byte, 8<<10)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range rules {
		rules[i] = byte(random.Uint32()) // nothing that can be packed
	}
	list := make([]frontier.OriginRules, 200)
	for i := range list {
		list[i] = frontier.OriginRules{Site: "a.example", Origin: fmt.Sprintf("https://%d.a.example", i), Rules: rules, TTL: time.Hour}
	}
	k.must(k.f.SetRules(k.ctx, shard, list))
	for i := range list {
		list[i].Rules, list[i].TTL = nil, 0
	}
	k.must(k.f.Rules(k.ctx, shard, list))
	kept := 0
	for i := range list {
		kept += len(list[i].Rules)
	}
	same(k, "at most half a megabyte is kept", kept <= 512<<10, true)
	same(k, "the last are there", list[len(list)-1].TTL > 0, true)
}

// crawlGauges: gauges say what is there at each step.
func crawlGauges(k *kit) {
	step := func(what string, want frontier.ShardStats) {
		k.Helper()
		got := k.stats()
		got.Admits = 0
		same(k, what, got, want)
	}
	step("empty", frontier.ShardStats{})
	k.fill("a.example", "p", 1, 4)
	k.fill("b.example", "p", 2, 1)
	step("admitted", frontier.ShardStats{Ready: 2, Queued: 5, Known: 5})
	v := k.visitURLs("a.example", 3)
	step("leased", frontier.ShardStats{Ready: 1, Leases: 1, Queued: 2, Open: 3, Known: 5})
	k.settle(v, nil, frontier.Outcome{Index: v.Items[0].Index})
	step("one done", frontier.ShardStats{Ready: 1, Leases: 1, Queued: 2, Open: 2, Known: 5, Done: 1})
	k.settle(v, nil, frontier.Outcome{Index: v.Items[1].Index, Kind: frontier.Retry, NotBefore: time.Second})
	step("one to retry", frontier.ShardStats{Ready: 1, Leases: 1, Queued: 2, Waiting: 1, Open: 1, Known: 5, Done: 1, Retried: 1})
	k.settle(v, &frontier.Release{}, frontier.Outcome{Index: v.Items[2].Index, Kind: frontier.Dead, Cause: "dns"})
	step("one dead", frontier.ShardStats{Ready: 2, Queued: 2, Waiting: 1, Known: 5, Done: 1, Retried: 1, Dead: 1})
	k.advance(claimed)
	v = k.visitURLs("a.example", 9)
	step("leased again", frontier.ShardStats{Ready: 1, Leases: 1, Queued: 1, Open: 2, Known: 5, Done: 1, Retried: 1, Dead: 1})
	k.reap(k.expire("a.example", v.Token))
	step("reaped", frontier.ShardStats{Ready: 2, Queued: 3, Known: 5, Done: 1, Retried: 1, Dead: 1, Lost: 2})
}

// crawlFinished: a crawl ends when nothing is ready or leased; retries keep it
// alive.
func crawlFinished(k *kit) {
	finished := func(what string, want bool) {
		k.Helper()
		got, err := k.f.Finished(k.ctx)
		k.must(err)
		same(k, what, got, want)
	}
	finished("empty", true)
	k.fill("a.example", "p", 1, 1)
	finished("queued", false)
	v := k.visitURLs("a.example", 9)
	finished("leased", false)
	k.settle(v, &frontier.Release{}, frontier.Outcome{Index: v.Items[0].Index, Kind: frontier.Retry, NotBefore: time.Hour})
	finished("waiting", false)
	k.advance(2 * time.Hour)
	v = k.visitURLs("a.example", 9)
	k.settle(v, &frontier.Release{})
	finished("freed with an open page", false)
	k.settle(v, nil, all(v, frontier.Done)...)
	finished("done", true)
	yes := true
	k.alter("b.example", frontier.SiteChange{Paused: &yes})
	k.fill("b.example", "p", 1, 1)
	finished("a paused site", true)
}

// crawlMembers: who is at work is listed, by kind and start, and a seeder at
// work keeps the crawl from its end.
func crawlMembers(k *kit) {
	start := time.Now().UTC().Truncate(time.Second)
	members := []frontier.Member{
		{ID: "f1", Kind: frontier.KindFetcher, Version: "v1", Host: "h", PID: 7, Started: start, Rate: 1.5, Pages: 3, Visits: 2},
		{ID: "f0", Kind: frontier.KindFetcher, Started: start.Add(time.Second)},
		{ID: "s", Kind: frontier.KindSeeder, Started: start},
	}
	list := func(want ...string) []frontier.Member {
		k.Helper()
		got, err := k.f.Members(k.ctx)
		k.must(err)
		var ids []string
		for _, m := range got {
			ids = append(ids, m.ID)
		}
		sameList(k, "members", ids, want...)
		return got
	}
	list()
	for range 2 {
		for _, m := range members {
			_, err := k.f.Announce(k.ctx, m)
			k.must(err)
		}
	}
	got := list("f1", "f0", "s")[0]
	same(k, "how its tokens begin", got.Tokens != "", true)
	got.Seen, got.Tokens = time.Time{}, ""
	same(k, "details", got, members[0])
	done, err := k.f.Finished(k.ctx)
	k.must(err)
	same(k, "finished with a seeder", done, false)
	for range 2 {
		k.must(k.f.Leave(k.ctx, members[2]))
	}
	live, err := k.f.Announce(k.ctx, frontier.Member{ID: "f0", Kind: frontier.KindFetcher, Started: members[1].Started, Seeding: true})
	k.must(err)
	same(k, "at work", live, frontier.Present{Programs: 2})
	for _, m := range []frontier.Member{{Crowded: true, Room: true}, {Room: true}, {}} {
		m.ID, m.Kind, m.Started = "f0", frontier.KindFetcher, members[1].Started
		live, err := k.f.Announce(k.ctx, m)
		k.must(err)
		want := frontier.Present{Programs: 2}
		if m.Crowded {
			want.Crowded = 1
		}
		if m.Room {
			want.Room = 1
		}
		same(k, "what it says of itself", live, want)
	}
	_, err = k.f.Announce(k.ctx, frontier.Member{ID: "f0", Kind: frontier.KindFetcher, Started: members[1].Started, Seeding: true})
	k.must(err)
	done, err = k.f.Finished(k.ctx)
	k.must(err)
	same(k, "finished while a fetcher seeds", done, false)
	_, err = k.f.Announce(k.ctx, members[1])
	k.must(err)
	list("f1", "f0")
	done, err = k.f.Finished(k.ctx)
	k.must(err)
	same(k, "finished without", done, true)
	crawlRuns(k, members)
	if _, err := k.f.Announce(k.ctx, frontier.Member{Kind: frontier.KindFetcher}); err == nil {
		k.Fatal("a member without an id was announced")
	}
}

// crawlPages: the page limit is handed out once, what is released can be had
// again, and a late copy of a claim changes nothing.
func crawlPages(k *kit) {
	grant := func(seq, settled, want, limit int64) frontier.PageGrant {
		k.Helper()
		var g frontier.PageGrant
		for range 2 {
			var err error
			g, err = k.f.ClaimPages(k.ctx, frontier.PageClaim{Limit: limit, Fetcher: "f1", Seq: seq, Settled: settled, Want: want})
			k.must(err)
		}
		return g
	}
	_, err := k.f.Announce(k.ctx, frontier.Member{ID: "f1", Kind: frontier.KindFetcher})
	k.must(err)
	k.fill("a.example", "p", 1, 3)
	k.finish(k.visitURLs("a.example", 9)) // before anybody asked
	g := grant(1, 0, 4, 10)
	same(k, "granted", g.Granted > 0 && g.Granted <= 4, true)
	same(k, "left", g.Left, 10-3-g.Granted)
	seq := int64(1)
	for ; g.Granted < 7; seq++ {
		g = grant(seq+1, 0, 100, 10)
	}
	same(k, "all of it", g, frontier.PageGrant{Granted: 7})
	k.fill("a.example", "q", 1, 2)
	k.advance(time.Minute)
	k.finish(k.visitURLs("a.example", 2))
	same(k, "pages returned", grant(seq+1, 2, 2, 10), frontier.PageGrant{Granted: 2, Left: 5})
	same(k, "a late copy", grant(seq, 0, 100, 10), frontier.PageGrant{Granted: 2, Left: 5})
	same(k, "a lower limit", grant(seq+2, 2, 50, 4), frontier.PageGrant{Granted: 2})
	g = grant(seq+3, 2, 50, 100)
	same(k, "a higher limit", g.Granted > 2 && g.Granted+g.Left == 97, true)
}

// crawlRuns: runs of fetchers stay on record, those that end with how they did; the last
// of them. Of members f1 and f0 are at work.
func crawlRuns(k *kit, members []frontier.Member) {
	runs := func() (list []string) {
		k.Helper()
		got, err := k.f.Runs(k.ctx)
		k.must(err)
		for i, r := range got {
			list = append(list, r.ID+" "+r.Ended)
			if i > 0 && r.Seen.After(got[i-1].Seen) {
				k.Errorf("%s was heard of after %s", r.ID, got[i-1].ID)
			}
		}
		return list
	}
	begun := runs()
	slices.Sort(begun)
	sameList(k, "runs that go on", begun, "f0 ", "f1 ")
	k.advance(time.Second)
	ends := members[0]
	ends.Ended, ends.Pages = "by a signal", 9
	for range 2 {
		k.must(k.f.Leave(k.ctx, ends))
	}
	sameList(k, "one ended", runs(), "f1 by a signal", "f0 ")
	got, err := k.f.Runs(k.ctx)
	k.must(err)
	same(k, "what is known of it", fmt.Sprint(got[0].Kind, got[0].Version, got[0].Host, got[0].Pages), "fetcherv1h9")
	for i := range frontier.RunsKept {
		id := fmt.Sprintf("g%d", i)
		k.must(k.f.Leave(k.ctx, frontier.Member{ID: id, Kind: frontier.KindFetcher, Ended: "finished"}))
	}
	list := runs()
	same(k, "as many as are kept", len(list), frontier.RunsKept)
	same(k, "the oldest go", slices.Contains(list, "f0 ") || slices.Contains(list, "f1 by a signal"), false)
}
