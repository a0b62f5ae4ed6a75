package frontiertest

import (
	"fmt"
	"time"

	"seine/frontier"
)

// deadLetter makes dead letters of n new URLs of a site.
func (k *kit) deadLetter(site, prefix, cause string, n int) {
	k.Helper()
	k.fill(site, prefix, 1, n)
	v := k.visitURLs(site, n)
	outcomes := all(v, frontier.Dead)
	for i := range outcomes {
		outcomes[i].Cause, outcomes[i].Text, outcomes[i].Tries = cause, fmt.Sprint("text ", i), uint8(i%2)
	}
	k.settle(v, &frontier.Release{}, outcomes...)
	k.advance(claimed)
}

// deadLetters reads dead letters of the shard of a site.
func (k *kit) deadLetters(site, cause string, offset, count int64) []frontier.DeadLetter {
	k.Helper()
	dead, err := k.f.DeadLetters(k.ctx, k.shard(site), cause, offset, count)
	k.must(err)
	return dead
}

// deadLetters: dead letters are kept by cause, read from the oldest on, and can be
// dropped once.
func deadLetters(k *kit) {
	const site = "a.example"
	k.deadLetter(site, "p", "status-4xx", 5)
	k.deadLetter(site, "q", "timeout", 1)
	counts, err := k.f.DeadCounts(k.ctx, k.shard(site))
	k.must(err)
	same(k, "causes", len(counts), 2)
	same(k, "4xx", counts["status-4xx"], 5)
	same(k, "timeouts", counts["timeout"], 1)
	names := func(dead []frontier.DeadLetter) (out []string) {
		for _, d := range dead {
			out = append(out, d.URL[len("https://a.example/"):]+" "+d.Text)
		}
		return out
	}
	sameList(k, "first two", names(k.deadLetters(site, "status-4xx", 0, 2)), "p0 text 0", "p1 text 1")
	sameList(k, "from the third", names(k.deadLetters(site, "status-4xx", 3, 99)), "p3 text 3", "p4 text 4")
	same(k, "past the end", len(k.deadLetters(site, "status-4xx", 5, 9)), 0)
	same(k, "unknown cause", len(k.deadLetters(site, "dns", 0, 9)), 0)
	middle := k.deadLetters(site, "status-4xx", 1, 2)
	for _, want := range []int{2, 0} {
		n, err := k.f.DropDead(k.ctx, k.shard(site), middle)
		k.must(err)
		same(k, "dropped", n, want)
	}
	same(k, "dropped, counted", k.stats().Forgotten, 2)
	same(k, "and their site keeps it", k.state(site).Dropped.By, frontier.DropDead)
	k.advance(2 * 24 * time.Hour)
	k.tick(site, frontier.TickRequest{Want: 1})
	same(k, "for good", k.state(site).Dropped.By, frontier.DropDead)
	for i, want := range []uint8{0, 1, 0} {
		same(k, "attempts", k.deadLetters(site, "status-4xx", int64(i), 1)[0].Attempts, want)
	}
	sameList(k, "left", names(k.deadLetters(site, "status-4xx", 0, 9)), "p0 text 0", "p3 text 3", "p4 text 4")
	k.notDue(site)
	sameList(k, "a dead URL is known", k.admit(k.url(site, "p0")), frontier.Seen)
}

// deadRetried: dead letters return once, to the end of their queues, with a clean
// slate.
func deadRetried(k *kit) {
	const site = "a.example"
	k.deadLetter(site, "p", "timeout", 3)
	k.fill(site, "new", 1, 1)
	admits := k.stats().Admits
	dead := k.deadLetters(site, "timeout", 0, 2)
	for _, want := range []int{2, 0, 0} {
		n, err := k.f.RetryDead(k.ctx, k.shard(site), dead)
		k.must(err)
		same(k, "retried", n, want)
	}
	s := k.stats()
	same(k, "retried", s.RetriedDead, 2)
	same(k, "queued", s.Queued, 3)
	same(k, "a retry raises the counter", s.Admits > admits, true)
	same(k, "left", len(k.deadLetters(site, "timeout", 0, 9)), 1)
	v := k.visitURLs(site, 9)
	sameList(k, "queue", paths(v), "new0", "p0", "p1")
	k.finish(v)
	n, err := k.f.RetryDead(k.ctx, k.shard(site), dead)
	k.must(err)
	same(k, "late copy", n, 0)
	n, err = k.f.RetryDead(k.ctx, k.shard(site), k.deadLetters(site, "timeout", 0, 9))
	k.must(err)
	same(k, "the last", n, 1)
	k.advance(claimed)
	sameList(k, "makes the site due", paths(k.visitURLs(site, 9)), "p2")
}

// deadBound: beyond the bound the oldest dead letters are dropped and counted.
func deadBound(k *kit) {
	if k.b.MaxDead == 0 {
		k.Skip("the bound of this backend's dead letters is too high to test")
	}
	const site = "a.example"
	k.deadLetter(site, "p", "timeout", k.b.MaxDead)
	k.deadLetter(site, "q", "timeout", 2)
	k.deadLetter(site, "r", "dns", 1)
	counts, err := k.f.DeadCounts(k.ctx, k.shard(site))
	k.must(err)
	same(k, "kept", counts["timeout"], int64(k.b.MaxDead))
	same(k, "of another cause", counts["dns"], 1)
	same(k, "oldest", k.deadLetters(site, "timeout", 0, 1)[0].URL, "https://a.example/p2")
	same(k, "newest", k.deadLetters(site, "timeout", int64(k.b.MaxDead)-1, 1)[0].URL, "https://a.example/q1")
	s := k.stats()
	same(k, "dropped", s.Dropped, 2)
	same(k, "dead", s.Dead, int64(k.b.MaxDead)+3)
}
