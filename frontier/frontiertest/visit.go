package frontiertest

import (
	"fmt"
	"time"

	"seine/frontier"
)

// visitTicketExact: only a ticket with the class and score under which the site
// stands is good.
func visitTicketExact(k *kit) {
	k.fill("a.example", "p", 2, 1)
	t := k.ticket("a.example")
	for _, wrong := range []frontier.Ticket{
		{Site: "a.example", Class: 1, Score: t.Score},
		{Site: "a.example", Class: 2, Score: "1.5"},
		{Site: "b.example", Class: 2, Score: t.Score},
	} {
		if v, err := k.f.Visit(k.ctx, k.shard("a.example"), []frontier.Ticket{wrong}, frontier.VisitLimits{URLs: 9}); err != nil || len(v) > 0 {
			k.Fatalf("%+v: %v, %v", wrong, v, err)
		}
	}
	k.fill("a.example", "better", 0, 1) // moves the site to another class
	same(k, "visits after the site moved", len(k.visit(frontier.VisitLimits{URLs: 9}, t)), 0)
	sameList(k, "its new ticket", paths(k.visitURLs("a.example", 9)), "better0", "p0")
}

// visitLateCopy: a ticket that was used stays used.
func visitLateCopy(k *kit) {
	k.fill("a.example", "p", 1, 4)
	t := k.ticket("a.example")
	limits := frontier.VisitLimits{URLs: 1}
	v := k.visit(limits, t)
	same(k, "granted", len(v), 1)
	same(k, "twice", len(k.visit(limits, t)), 0)
	k.finish(v[0])
	same(k, "after it was settled", len(k.visit(limits, t)), 0)
	k.advance(claimed)
	same(k, "when the site is due again", len(k.visit(limits, t)), 0)
	again := k.visitURLs("a.example", 1)
	same(k, "while it is leased again", len(k.visit(limits, t)), 0)
	k.finish(again)
	s := k.stats()
	same(k, "done", s.Done, 2)
	same(k, "queued", s.Queued, 2)
}

// visitLimits: a visit is bounded by URLs and by what the delay lets happen.
func visitLimits(k *kit) {
	k.fill("a.example", "p", 1, 30)
	acquire := func(limits frontier.VisitLimits, delay time.Duration) int {
		v := k.visit(limits, k.ticket("a.example"))[0]
		k.settle(v, &frontier.Release{Delay: delay}, all(v, frontier.Requeue)...)
		k.advance(claimed)
		return len(v.Items)
	}
	limits := frontier.VisitLimits{URLs: 8, Span: 4 * time.Second, Delay: time.Second}
	same(k, "by the delay of the crawl", acquire(limits, 0), 4)
	same(k, "again", acquire(limits, 2*time.Second), 4)
	same(k, "by the site's delay", acquire(limits, 100*time.Second), 2)
	same(k, "at least one", acquire(limits, time.Millisecond), 1)
	same(k, "by URLs", acquire(limits, time.Millisecond), 8)
	limits.URLs = 100
	same(k, "by what is there", acquire(limits, 0), 30)
	limits = frontier.VisitLimits{URLs: 3, Undelayed: 9, Span: 4 * time.Second}
	same(k, "without a delay", acquire(limits, time.Second), 9)
	same(k, "more by the site's delay", acquire(limits, 0), 3)
	limits.Undelayed = 2
	same(k, "without a delay, never fewer", acquire(limits, 0), 3)
	limits.Undelayed, limits.Delay = 9, time.Second
	same(k, "by URLs, with the delay of the crawl", acquire(limits, 0), 3)
}

// visitClasses: within a site the best class goes first, and every eighth visit
// starts with the last.
func visitClasses(k *kit) {
	k.fill("a.example", "low", 3, 10)
	k.fill("a.example", "high", 0, 40)
	var low []int
	for i := range 16 {
		v := k.visitURLs("a.example", 1)
		if v.Items[0].Priority == 3 {
			low = append(low, i%8)
		}
		k.finish(v)
		k.advance(claimed)
	}
	sameList(k, "visits to the last class", low, 7, 7)
	v := k.visitURLs("a.example", 100)
	same(k, "URLs of the rest", len(v.Items), 34)
	for i, it := range v.Items {
		want := uint8(0)
		if i >= 26 {
			want = 3
		}
		same(k, fmt.Sprint("class of item ", i), it.Priority, want)
	}
	k.finish(v)

	// Of a large visit the last class gets an eighth first.
	k.fill("b.example", "low", 2, 10)
	k.fill("b.example", "high", 1, 10)
	for range 7 {
		v := k.visitURLs("b.example", 1)
		k.settle(v, &frontier.Release{}, all(v, frontier.Requeue)...)
		k.advance(claimed)
	}
	sameList(k, "eighth visit", paths(k.visitURLs("b.example", 17))[:4], "low0", "low1", "high0", "high1")
}

// visitCarries: what a candidate says of itself stays with it through all that
// can happen.
func visitCarries(k *kit) {
	c := k.url("a.example", "x?a=1&b=%2F")
	c.Priority, c.Depth, c.Redirects, c.Seed, c.Meta = 1, 70_000, 3, true, `{"from":"feed","note":"ä\t\n"}`
	c.Sitemap, c.SitemapOf, c.Trail = true, "www.example.com", c.Trail.AddHop(k.url("a.example", "from").Fingerprint)
	c.Request = request("PUT", "body \xff#,")
	c.Fingerprint = c.Request.Fingerprint(c.Fingerprint)
	c.Referrer, c.From = "https://www.example.com/list", "http://elsewhere.example/moved"
	plain := k.url("a.example", "plain")
	k.admit(c, plain)
	want := frontier.Entry{URL: c.URL, Priority: 1, Depth: 70_000, Redirects: 3, Trail: c.Trail, Seed: true, Meta: c.Meta, Sitemap: true, SitemapOf: c.SitemapOf, Referrer: c.Referrer, From: c.From, Request: c.Request}
	v := k.visitURLs("a.example", 9)
	same(k, "items", len(v.Items), 2)
	same(k, "shard", v.Shard, k.shard("a.example"))
	same(k, "first", v.First, true)
	same(k, "plain", v.Items[1].Entry, frontier.Entry{URL: plain.URL, Priority: 1})
	same(k, "leased", v.Items[0].Entry, want)
	k.settle(v, &frontier.Release{}, all(v, frontier.Requeue)...)
	k.advance(claimed)
	v = k.visitURLs("a.example", 1)
	same(k, "requeued", v.Items[0].Entry, want)
	same(k, "first once more", v.First, false)
	k.settle(v, &frontier.Release{}, all(v, frontier.Retry)...)
	k.advance(claimed)
	v = k.visitURLs("a.example", 9)
	same(k, "plain is first", v.Items[0].URL, plain.URL)
	want.Priority, want.Attempts = 2, 1
	same(k, "retried", v.Items[1].Entry, want)
	k.settle(v, &frontier.Release{}, frontier.Outcome{Index: v.Items[1].Index, Kind: frontier.Dead, Cause: "timeout", Text: "no answer\n\tin time"})
	dead, err := k.f.DeadLetters(k.ctx, k.shard("a.example"), "timeout", 0, 9)
	k.must(err)
	same(k, "dead letters", len(dead), 1)
	same(k, "dead", dead[0].Entry, want)
	same(k, "site", dead[0].Site, "a.example")
	same(k, "cause", dead[0].Cause, "timeout")
	same(k, "text, on one line", dead[0].Text, "no answer in time")
	n, err := k.f.RetryDead(k.ctx, k.shard("a.example"), dead)
	k.must(err)
	same(k, "retried", n, 1)
	k.advance(claimed)
	want.Attempts = 0
	same(k, "alive", k.visitURLs("a.example", 9).Items[0].Entry, want)
}
