//go:build unix

package redis

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard"
	"seine/shard/shardtest"
)

// costs adds up processor time of the server and of this process over calls.
type costs struct {
	s              *stand
	server, client time.Duration
	n              int
}

// of counts what do takes, for n URLs.
func (c *costs) of(n int, do func()) {
	server, client := c.s.cpu(), ownCPU()
	do()
	c.client += ownCPU() - client
	c.server += c.s.cpu() - server
	c.n += n
}

func (c *costs) report(b *testing.B, per string) {
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(max(c.n, 1)) }
	b.ReportMetric(each(c.server), "redis-us/"+per)
	b.ReportMetric(each(c.client), "client-us/"+per)
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkURL is what the admission of a URL costs Redis and its caller, in
// calls of the links of 8 pages, 12 each: new or seen, by the share of a page's
// links that lead to its own site, the others each to another; and of a new URL
// that is the first of its site.
func BenchmarkURL(b *testing.B) {
	const pages, links = 8, 12
	for _, kind := range []string{"new", "seen"} {
		for _, own := range []int{12, 6, 0} {
			b.Run(fmt.Sprintf("%s/own=%d%%", kind, 100*own/links), func(b *testing.B) {
				s := benchStand(b)
				w := &web{next: make([]int, seeded)}
				for site := range seeded {
					s.admit(w.fresh(site))
				}
				c, page := costs{s: s}, 0
				for b.Loop() {
					calls := make([][]frontier.Candidate, 20)
					for i := range calls {
						for range pages {
							page++
							for l := range links {
								site := page % seeded
								if l >= own {
									site = (page*links + l) * 7 % seeded
								}
								calls[i] = append(calls[i], w.fresh(site))
							}
						}
					}
					admit := func() {
						for _, batch := range calls {
							s.admit(batch...)
						}
					}
					if kind == "seen" {
						admit()
					}
					c.of(len(calls)*pages*links, admit)
				}
				c.report(b, "URL")
			})
		}
	}
	b.Run("first of its site", func(b *testing.B) {
		s := benchStand(b)
		c, site := costs{s: s}, 0
		for b.Loop() {
			calls := make([][]frontier.Candidate, 20)
			for i := range calls {
				for range pages * links {
					site++
					calls[i] = append(calls[i], benchCandidate(siteName(site), 1))
				}
			}
			c.of(len(calls)*pages*links, func() {
				for _, batch := range calls {
					s.admit(batch...)
				}
			})
		}
		c.report(b, "URL")
	})
}

// BenchmarkLease is what leasing and settling an URL costs, with 1 and with 8 of
// them a visit, 64 visits a call; with calls of their own for each, at once and now
// and then, when the caches of processors hold other things; and what putting one
// off for a retry costs.
func BenchmarkLease(b *testing.B) {
	for _, k := range []int{1, 8} {
		b.Run(fmt.Sprintf("%d a visit", k), func(b *testing.B) { benchAcquire(b, k, 64, 0, frontier.Done) })
	}
	b.Run("1 a call", func(b *testing.B) { benchAcquire(b, 1, 1, 0, frontier.Done) })
	b.Run("1 a call seldom", func(b *testing.B) { benchAcquire(b, 1, 1, 2*time.Millisecond, frontier.Done) })
	b.Run("retry", func(b *testing.B) { benchAcquire(b, 8, 64, 0, frontier.Retry) })
}

// benchAcquire leases and settles sites of k URLs, so many of them a call, with a pause
// before each.
func benchAcquire(b *testing.B, k, call int, pause time.Duration, kind frontier.Kind) {
	sites := max(128, 8*call)
	s := benchStand(b)
	acquire, settle := costs{s: s}, costs{s: s}
	next := make([]int, sites)
	for b.Loop() {
		for site := range sites { // as many as are leased, in calls of 96
			var batch []frontier.Candidate
			for range k {
				next[site]++
				batch = append(batch, benchCandidate(siteName(site), next[site]))
			}
			s.admit(batch...)
		}
		s.pass(0, time.Minute)
		var visits []frontier.Visit
		acquire.of(sites*k, func() {
			for range sites / call {
				time.Sleep(pause)
				visits = append(visits, s.visit(frontier.VisitLimits{URLs: k}, s.tick(frontier.TickRequest{Want: call}).Due...)...)
			}
		})
		if len(visits) != sites {
			b.Fatalf("%d visits, not %d", len(visits), sites)
		}
		settle.of(sites*k, func() {
			for i := 0; i < len(visits); i += call {
				var list []frontier.Settlement
				for _, v := range visits[i : i+call] {
					st := all(v, kind)
					for o := range st.Outcomes {
						st.Outcomes[o].NotBefore = time.Hour
						st.Outcomes[o].Facts = &frontier.Facts{Status: 200, Media: "html", Bytes: 4711, Links: 60, Known: 20, Refused: [frontier.Reasons]uint32{1: 12, 5: 2}}
					}
					list = append(list, st)
				}
				time.Sleep(pause)
				s.settle(list...)
			}
		})
	}
	each := func(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(n) }
	b.ReportMetric(each(acquire.server, acquire.n), "visit-redis-us/URL")
	b.ReportMetric(each(acquire.client, acquire.n), "visit-client-us/URL")
	b.ReportMetric(each(settle.server, settle.n), "settle-redis-us/URL")
	b.ReportMetric(each(settle.client, settle.n), "settle-client-us/URL")
}

// BenchmarkLeaseBytes is what a visit of 8 URLs takes in Redis while it is out,
// beside its URLs, which leave their queue for it.
func BenchmarkLeaseBytes(b *testing.B) {
	for b.Loop() {
		s := benchStand(b)
		const n = 20_000
		for site := range n {
			var batch []frontier.Candidate
			for i := range 8 {
				batch = append(batch, benchCandidate(siteName(site), i))
			}
			s.admit(batch...)
		}
		before, leased := s.used(), 0
		for leased < n {
			leased += len(s.visit(frontier.VisitLimits{URLs: 8}, s.tick(frontier.TickRequest{Want: 100}).Due...))
		}
		b.ReportMetric(float64(s.used()-before)/n, "bytes/lease")
	}
}

// BenchmarkRules is what robots.txt rules of 200 bytes cost: kept, and asked for
// in vain and stored once, in calls of 64 origins.
func BenchmarkRules(b *testing.B) {
	rules := bytes.Repeat([]byte("x"), 200)
	s := benchStand(b)
	c, n, before := costs{s: s}, 0, s.used()
	for b.Loop() {
		calls := make([][]frontier.OriginRules, 16)
		for i := range calls {
			for range 64 {
				n++
				site := siteName(n)
				calls[i] = append(calls[i], frontier.OriginRules{Site: site, Origin: "https://www." + site})
			}
		}
		c.of(16*64, func() {
			for _, batch := range calls {
				if err := s.Rules(b.Context(), 0, batch); err != nil {
					b.Fatal(err)
				}
				for i := range batch {
					batch[i].Rules, batch[i].TTL = rules, 24*time.Hour
				}
				if err := s.SetRules(b.Context(), 0, batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.ReportMetric(float64(s.used()-before)/float64(n), "bytes/site")
	c.report(b, "site")
}

// BenchmarkDuplicates is what contents of pages that are new cost, in calls of 64, and
// what the filter takes of memory that remembers them, a page that it is made for.
func BenchmarkDuplicates(b *testing.B) {
	const planned, each = 1_000_000, 64
	client, err := shard.Open(b.Context(), shard.Config{Addrs: shardtest.One(b).Addrs})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close() })
	f, err := Create(b.Context(), client, "crawl", frontier.Layout{Shards: 1, PlanURLs: planned, ErrorRate: 1e-6}, frontier.DefaultSettings())
	if err != nil {
		b.Fatal(err)
	}
	s := as(b, f)
	answers := make([]bool, each)
	ask := func(list []frontier.Content) {
		if err := f.Duplicates(b.Context(), 0, list, answers); err != nil {
			b.Fatal(err)
		}
	}
	before := s.used()
	ask(contentsOf("a.example", 0, each)) // makes the filter
	bytes := s.used() - before
	c, n := costs{s: s}, each
	for b.Loop() {
		list := contentsOf("a.example", n, n+16*each)
		n += 16 * each
		c.of(16*each, func() {
			for i := 0; i < len(list); i += each {
				ask(list[i : i+each])
			}
		})
	}
	b.ReportMetric(float64(bytes)/planned, "bytes/page")
	c.report(b, "page")
}

// BenchmarkTick is what a tick costs Redis: of a fetcher that has nothing, on a shard
// where nothing is due, and of one that extends as many leases as a call takes.
func BenchmarkTick(b *testing.B) {
	for _, leases := range []int{0, tickMost} {
		b.Run(fmt.Sprintf("%d leases", leases), func(b *testing.B) {
			s := benchStand(b)
			var held []frontier.Lease
			for site := range leases {
				s.admit(benchCandidate(siteName(site), 1))
			}
			for len(held) < leases {
				for _, v := range s.visit(frontier.VisitLimits{URLs: 1}, s.tick(frontier.TickRequest{Want: 100}).Due...) {
					held = append(held, v.Lease)
				}
			}
			c := costs{s: s}
			for b.Loop() {
				c.of(200, func() {
					for range 200 {
						s.tick(frontier.TickRequest{Want: 1, MaxExpired: 10, Extend: held})
					}
				})
			}
			c.report(b, "tick")
		})
	}
}
