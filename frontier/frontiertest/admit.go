package frontiertest

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"seine/frontier"
)

// admitOnce: a URL is admitted once, whoever asks how often; a repeat inside
// the batch gets the verdict of its first.
func admitOnce(k *kit) {
	a, b, c := k.url("a.example", "1"), k.url("a.example", "2"), k.url("b.example", "1")
	sameList(k, "first", k.admit(a, b, a, c), frontier.Admitted, frontier.Admitted, frontier.Admitted, frontier.Admitted)
	admits := k.stats().Admits
	sameList(k, "repeated", k.admit(a, b, c), frontier.Seen, frontier.Seen, frontier.Seen)
	sameList(k, "mixed", k.admit(a, k.url("a.example", "3")), frontier.Seen, frontier.Admitted)
	s := k.stats()
	same(k, "known", s.Known, 4)
	same(k, "queued", s.Queued, 4)
	same(k, "admissions raise the counter", s.Admits > admits, true)
	sameList(k, "queue", paths(k.visitURLs("a.example", 9)), "1", "2", "3")
	sameList(k, "while leased", k.admit(a), frontier.Seen)
}

// admitRequests: requests to one URL that differ in method or body are different, of one
// site, and each is admitted once; headers do not count. They are leased with what they
// are made of, and a settlement is of one of them.
func admitRequests(k *kit) {
	const site = "a.example"
	a, b := requestTo(site, "form", "POST", "q=1"), requestTo(site, "form", "POST", "q=2")
	plain, put := k.url(site, "form"), requestTo(site, "form", "PUT", "q=1")
	sameList(k, "first", k.admit(a, b, a, plain, put), frontier.Admitted, frontier.Admitted, frontier.Admitted, frontier.Admitted, frontier.Admitted)
	other, err := frontier.NewRequest("POST", [][2]string{{"X-Of", "another"}}, []byte("q=1"))
	k.must(err)
	same := a
	same.Request = other
	headers := plain
	headers.Request = request("GET", "")
	sameList(k, "repeated", k.admit(a, same, b, plain, headers, put), frontier.Seen, frontier.Seen, frontier.Seen, frontier.Seen, frontier.Seen, frontier.Seen)
	v := k.visitURLs(site, 9)
	var leased []frontier.Request
	for _, it := range v.Items {
		leased = append(leased, it.Request)
	}
	sameList(k, "leased", leased, a.Request, b.Request, "", put.Request)
	k.settle(v, &frontier.Release{}, frontier.Outcome{Index: v.Items[0].Index}, frontier.Outcome{Index: v.Items[1].Index, Kind: frontier.Retry},
		frontier.Outcome{Index: v.Items[2].Index}, frontier.Outcome{Index: v.Items[3].Index, Kind: frontier.Requeue})
	k.advance(claimed)
	again := k.visitURLs(site, 1)
	k.finish(again)
	k.advance(claimed)
	last := k.visitURLs(site, 9)
	sameList(k, "left", []frontier.Request{again.Items[0].Request, last.Items[0].Request}, put.Request, b.Request)
	a.Refetch, b.Refetch = "x", "x"
	sameList(k, "wanted once more", k.admit(a, b, a), frontier.Admitted, frontier.Admitted, frontier.Admitted)
	k.finish(last)
}

// admitAtOnce: of many that discover the same URLs at once, one gets
// admitted for each.
func admitAtOnce(k *kit) {
	const urls, finders = 200, 8
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range finders {
		wg.Go(func() {
			for from := 0; from < urls; from += 20 {
				for shard := range k.f.Shards() {
					var batch []frontier.Candidate
					for i := from; i < from+20; i++ {
						if c := k.url(fmt.Sprintf("s%d.example", i%7), fmt.Sprint(i)); k.f.Of(c.Fingerprint) == shard {
							batch = append(batch, c)
						}
					}
					verdicts := make([]frontier.Verdict, len(batch))
					if err := k.f.Admit(k.ctx, shard, batch, verdicts); err != nil {
						k.Error(err)
						return
					}
					for _, v := range verdicts {
						if v == frontier.Admitted {
							admitted.Add(1)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	same(k, "verdicts admitted", admitted.Load(), urls)
	same(k, "queued", k.stats().Queued, urls)
}

// admitPastPlan: a crawl gets far more URLs than it was planned for, and each is
// admitted once.
func admitPastPlan(k *kit) {
	const urls, batch = 9000, 450
	for round, want := range []frontier.Verdict{frontier.Admitted, frontier.Seen} {
		for from := 0; from < urls; from += batch {
			var list []frontier.Candidate
			for i := from; i < from+batch; i++ {
				list = append(list, k.url(fmt.Sprintf("s%d.example", i%450), fmt.Sprint(i)))
			}
			for i, v := range k.admit(list...) {
				if v != want {
					k.Fatalf("round %d, URL %d: verdict %d, want %d", round, from+i, v, want)
				}
			}
		}
	}
	same(k, "queued", k.stats().Queued, urls)
}

// admitRefetch: a known URL is queued once more for each request id.
func admitRefetch(k *kit) {
	plain := k.url("a.example", "1")
	refetch := plain
	refetch.Refetch = "monday"
	sameList(k, "plain", k.admit(plain), frontier.Admitted)
	sameList(k, "refetch", k.admit(refetch), frontier.Admitted)
	sameList(k, "refetch repeated", k.admit(refetch), frontier.Seen)
	sameList(k, "queue", paths(k.visitURLs("a.example", 9)), "1", "1")
	refetch.Refetch = "tuesday"
	sameList(k, "another request", k.admit(refetch), frontier.Admitted)

	first := k.url("b.example", "1")
	first.Refetch = "monday"
	sameList(k, "unknown", k.admit(first), frontier.Admitted)
	first.Refetch = ""
	sameList(k, "plain after it", k.admit(first), frontier.Seen)
	sameList(k, "queue of unknown", paths(k.visitURLs("b.example", 9)), "1")
}

// admitRefetchMerged: plain and refetch of one URL in a batch are one; two requests
// are two.
func admitRefetchMerged(k *kit) {
	plain := k.url("a.example", "1")
	refetch := plain
	refetch.Refetch = "monday"
	queue := func(want ...string) {
		k.Helper()
		v := k.visitURLs("a.example", 9)
		sameList(k, "queue", paths(v), want...)
		k.finish(v)
		k.advance(time.Second)
	}
	sameList(k, "new", k.admit(plain, refetch, plain), frontier.Admitted, frontier.Admitted, frontier.Admitted)
	queue("1")
	sameList(k, "repeated", k.admit(plain, refetch), frontier.Seen, frontier.Seen)
	other := plain
	other.Refetch = "tuesday"
	sameList(k, "two requests, one of them new", k.admit(plain, refetch, other, other), frontier.Seen, frontier.Seen, frontier.Admitted, frontier.Admitted)
	queue("1")
	refetch.Refetch, other.Refetch = "wednesday", "thursday"
	sameList(k, "two new requests", k.admit(refetch, plain, other), frontier.Admitted, frontier.Admitted, frontier.Admitted)
	queue("1", "1")
}

// admitCap: a site at its cap takes no more, and what was capped is not known.
func admitCap(k *kit) {
	k.changeSettings(func(s *frontier.Settings) { s.MaxPerSite = 3 })
	url := func(i int) frontier.Candidate { return k.url("a.example", fmt.Sprint(i)) }
	sameList(k, "up to the cap", k.admit(url(1), url(2)), frontier.Admitted, frontier.Admitted)
	sameList(k, "over it", k.admit(url(1), url(3), url(4)), frontier.Seen, frontier.Admitted, frontier.Capped)
	sameList(k, "another site", k.admit(k.url("b.example", "1")), frontier.Admitted)
	k.finish(k.visitURLs("a.example", 9))
	sameList(k, "when all are done", k.admit(url(4)), frontier.Capped)
	more := int64(4)
	k.alter("a.example", frontier.SiteChange{Cap: &more})
	sameList(k, "with a cap of its own", k.admit(url(4), url(5)), frontier.Admitted, frontier.Capped)
	none := int64(0)
	k.alter("a.example", frontier.SiteChange{Cap: &none})
	sameList(k, "without it", k.admit(url(5)), frontier.Capped)
	k.changeSettings(func(s *frontier.Settings) { s.MaxPerSite = 0 })
	sameList(k, "without any", k.admit(url(5)), frontier.Admitted)
}

// admitCapOfRule: the first rule that matches caps its sites.
func admitCapOfRule(k *kit) {
	k.changeSettings(func(s *frontier.Settings) {
		s.MaxPerSite = 2
		s.Sites = []frontier.SiteRule{{Match: "a.example", MaxPages: new(int64(1))}, {Match: "*.example", MaxPages: new(int64(3))}}
	})
	admitted := func(site string) (n int) {
		for i := range 5 {
			if k.admit(k.url(site, fmt.Sprint(i)))[0] == frontier.Admitted {
				n++
			}
		}
		return n
	}
	same(k, "by name", admitted("a.example"), 1)
	same(k, "by domain", admitted("b.example"), 3)
	same(k, "by none", admitted("c.test"), 2)
}

// admitListFull: beyond its bound a list takes nothing, and nothing of that is
// known.
func admitListFull(k *kit) {
	if k.b.MaxList == 0 {
		k.Skip("the bound of this backend's lists is too high to test")
	}
	k.fill("a.example", "p", 1, k.b.MaxList)
	over := k.url("a.example", "over")
	sameList(k, "over", k.admit(over), frontier.Capped)
	other := over
	other.Priority = 2
	sameList(k, "in another class", k.admit(other), frontier.Admitted)
	v := k.visitURLs("a.example", 1)
	sameList(k, "with room", k.admit(k.url("a.example", "next")), frontier.Admitted)
	k.finish(v)
}

// admitListFullOfBytes: the bound holds for bytes too, whatever the number of URLs;
// a list that has become shorter takes more.
func admitListFullOfBytes(k *kit) {
	if k.b.MaxList == 0 {
		k.Skip("the bound of this backend's lists is too high to test")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	path := func() string { // nothing to compress
		b := make([]byte, 1000)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return hex.EncodeToString(b)
	}
	admit := func() (n int) {
		for ; n < k.b.MaxList; n++ {
			if v := k.admit(k.url("a.example", path()))[0]; v != frontier.Admitted {
				same(k, "verdict of what is too much", v, frontier.Capped)
				break
			}
		}
		return n
	}
	const most, least = MaxBytes/2000 + 2, MaxBytes / 2000 / 2
	n := admit()
	same(k, fmt.Sprint("admitted ", n, ", not as the bound says"), least <= n && n <= most, true)
	other := k.url("a.example", path())
	other.Priority = 3
	sameList(k, "of another class", k.admit(other), frontier.Admitted)
	k.finish(k.visitURLs("a.example", n-2))
	more := admit()
	same(k, fmt.Sprint("then ", more, ", not as the bound says"), least <= more+2 && more+2 <= most, true)
}

// admitOrderDepth: in order depth the newest URL of a class goes first.
func admitOrderDepth(k *kit) {
	k.changeSettings(func(s *frontier.Settings) { s.Order = "depth" })
	k.admit(k.url("a.example", "1"))
	k.admit(k.url("a.example", "2"))
	best := k.url("a.example", "best")
	best.Priority = 0
	k.admit(best)
	v := k.visitURLs("a.example", 2)
	sameList(k, "first", paths(v), "best", "2")
	k.admit(k.url("a.example", "3"))
	k.settle(v, &frontier.Release{}, all(v, frontier.Requeue)...)
	k.advance(claimed)
	sameList(k, "then", paths(k.visitURLs("a.example", 9)), "best", "2", "3", "1")
}
