package redis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/frontiertest"
	"seine/shard"
)

// urlOf is the i-th URL of a site, about 92 bytes, in the order in which a
// crawl meets them: pages of one section together.
func urlOf(site string, i int) string {
	r := rand.New(rand.NewPCG(uint64(i), uint64(len(site))))
	section := rand.New(rand.NewPCG(uint64(i/12), 7))
	w := func(r *rand.Rand) string { return frontiertest.Words[r.IntN(len(frontiertest.Words))] }
	return fmt.Sprintf("https://www.%s/%s/%s/%s-%s-%s-%s-%s-%d.html", site, w(section), w(section), w(r), w(r), w(r), w(r), w(r), 100000+7*i)
}

func benchCandidate(site string, i int) frontier.Candidate {
	url := urlOf(site, i)
	return frontier.Candidate{URL: url, Site: site, Fingerprint: canon.FingerprintOf([]byte(site), []byte(url)), Priority: 2, Depth: uint32(2 + i/5000)}
}

func siteName(i int) string {
	return frontiertest.Words[i%len(frontiertest.Words)] + "-" + strconv.Itoa(i) + ".example"
}

// cpu is the processor time of the server.
func (s *stand) cpu() time.Duration {
	var sum float64
	for line := range strings.Lines(s.do("INFO", "cpu").(string)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			sum += v
		}
	}
	return time.Duration(sum * float64(time.Second))
}

// benchStand is a crawl with a filter of the size of a shard's.
func benchStand(b *testing.B) *stand {
	s := one(b)
	s.do("DEL", s.keys[0].Filter(0))
	s.do("BF.RESERVE", s.keys[0].Filter(0), "0.000001", 4_000_000, "EXPANSION", 2)
	return s
}

// seeded is how many sites of a benchmark have URLs from the start.
const seeded = 3000

// web is what a benchmark crawls: sites that have as many URLs as were asked for.
type web struct {
	own  int   // links of a page to its own site, of 12
	far  int   // sites that the others lead to when they are new
	next []int // URLs of each site
}

func (w *web) fresh(site int) frontier.Candidate {
	w.next[site]++
	return benchCandidate(siteName(site), w.next[site])
}

// page makes the 12 candidates of a page of a site, of which 6 are new: own of
// them lead to its own site, the others each to another.
func (w *web) page(dst []frontier.Candidate, site int) []frontier.Candidate {
	for i := range 12 {
		target, known := site, i%2 == 0
		if i >= w.own {
			target = rand.IntN(w.far)
			if known {
				target = rand.IntN(seeded)
			}
		}
		if known {
			dst = append(dst, benchCandidate(siteName(target), 1+rand.IntN(w.next[target])))
		} else {
			dst = append(dst, w.fresh(target))
		}
	}
	return dst
}

// BenchmarkPage is what a page costs the server: 12 candidates of which 6 are
// new, 8 pages a call, and its share of a visit of 8 URLs. Eight visits go on at
// a time.
func BenchmarkPage(b *testing.B) {
	b.Run("10 of 12 own", func(b *testing.B) { benchPage(b, benchStand(b), 10, seeded) })
	b.Run("12 sites with work", func(b *testing.B) { benchPage(b, benchStand(b), 0, seeded) })
	b.Run("12 sites, the new URLs of new sites", func(b *testing.B) { benchPage(b, benchStand(b), 0, 1_000_000) })
	b.Run("10 of 12 own, below the memory marks", func(b *testing.B) { benchPage(b, benchMarks(b, 99), 10, seeded) })
	b.Run("10 of 12 own, above the memory marks", func(b *testing.B) { benchPage(b, benchMarks(b, 1), 10, seeded) })
}

// benchMarks is a crawl whose marks weigh each call and turn nothing away.
func benchMarks(b *testing.B, high int) *stand {
	s := benchStand(b)
	s.settings.Store(&frontier.Settings{MemoryHigh: high})
	s.do("CONFIG", "SET", "maxmemory", 25*s.used())
	s.longest[0].Store(math.MaxUint32)
	return s
}

func benchPage(b *testing.B, s *stand, own, far int) {
	w := &web{own: own, far: far, next: make([]int, max(seeded, far))}
	number := make(map[string]int)
	for site := range seeded {
		number[siteName(site)] = site
		var batch []frontier.Candidate
		for range 20 {
			batch = append(batch, w.fresh(site))
		}
		s.admit(batch...)
	}
	verdicts := make([]frontier.Verdict, 96)
	var admit, acquire, settle time.Duration
	pages, fresh := 0, s.stat("known")
	var batches [8][]frontier.Candidate
	b.ReportAllocs()
	for b.Loop() {
		start := s.cpu()
		visits := s.visit(frontier.VisitLimits{URLs: 8}, s.tick(frontier.TickRequest{Want: 8}).Due...)
		leased := s.cpu()
		acquire += leased - start
		if len(visits) != 8 {
			b.Fatal("granted ", len(visits))
		}
		for i := range batches {
			batches[i] = batches[i][:0]
			for _, v := range visits {
				batches[i] = w.page(batches[i], number[v.Site])
			}
		}
		start = s.cpu()
		for _, batch := range batches {
			if err := s.Admit(b.Context(), 0, batch, verdicts[:len(batch)]); err != nil {
				b.Fatal(err)
			}
		}
		admitted := s.cpu()
		admit += admitted - start
		var list []frontier.Settlement
		for _, v := range visits {
			st := all(v, frontier.Done)
			st.Release = &frontier.Release{Delay: time.Second}
			list = append(list, st)
		}
		start = s.cpu()
		s.settle(list...)
		settle += s.cpu() - start
		pages += 64
	}
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(pages) }
	b.ReportMetric(per(admit), "admit-us/page")
	b.ReportMetric(per(acquire), "visit-us/page")
	b.ReportMetric(per(settle), "settle-us/page")
	b.ReportMetric(per(admit+acquire+settle), "us/page")
	b.ReportMetric(float64(s.stat("known")-fresh)/float64(pages), "new/page")
}

// used is the memory that the server uses.
func (s *stand) used() int64 {
	for line := range strings.Lines(s.do("INFO", "memory").(string)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}

// BenchmarkEntryBytes is the memory of a queued entry of a URL of 92 bytes, in
// long lists of one site, by the size of list nodes: -2 is 8 KB, the server's
// default, -3 is 16 KB. With referrer each entry keeps the page of its site that
// linked to it and to the eleven before or after. Short lists are of 200 entries:
// only what lies between the first and the last node is compressed.
func BenchmarkEntryBytes(b *testing.B) {
	for _, size := range []string{"-2", "-3", "-3 referrer"} {
		b.Run("nodes "+size, func(b *testing.B) {
			size, referrer := strings.CutSuffix(size, " referrer")
			for b.Loop() {
				s := benchStand(b)
				s.do("CONFIG", "SET", "list-max-listpack-size", size)
				const n = 300_000
				s.admit(benchCandidate("coffee-shop.example", n)) // what scripts themselves take
				before, length := s.used(), 0
				for i := 0; i < n; i += 500 {
					var batch []frontier.Candidate
					for x := range 500 {
						c := benchCandidate("coffee-shop.example", i+x)
						if referrer {
							c.Referrer = urlOf("coffee-shop.example", (i+x)/12)
						}
						length += len(c.URL)
						batch = append(batch, c)
					}
					s.admit(batch...)
				}
				b.ReportMetric(float64(s.used()-before)/n, "bytes/entry")
				b.ReportMetric(float64(length)/n, "bytes/URL")
			}
		})
	}
	b.Run("short", func(b *testing.B) { // queues that are hardly compressed
		for b.Loop() {
			s := benchStand(b)
			s.do("CONFIG", "SET", "list-max-listpack-size", "-3")
			const sites, each = 1500, 200
			s.admit(benchCandidate(siteName(sites), 0))
			before := s.used()
			for i := range sites * each / 100 { // the sites by turns, as a crawl meets them
				var batch []frontier.Candidate
				for x := range 100 {
					batch = append(batch, benchCandidate(siteName(i%sites), i/sites*100+x))
				}
				s.admit(batch...)
			}
			b.ReportMetric(float64(s.used()-before)/(sites*each), "bytes/entry")
		}
	})
}

// BenchmarkRecrawlBytes is the memory of a URL of 93 bytes that waits to be fetched
// again, with an ETag of 20 bytes and a Last-Modified.
func BenchmarkRecrawlBytes(b *testing.B) {
	for b.Loop() {
		s := benchStand(b)
		const n, sites = 100_000, 100
		before := s.used()
		for i := 0; i < n; i += 500 {
			site := siteName(i / 500 % sites)
			var batch []frontier.Candidate
			for x := range 500 {
				batch = append(batch, benchCandidate(site, i+x))
			}
			s.admit(batch...)
			s.pass(0, time.Second)
			due := s.tick(frontier.TickRequest{Want: 1}).Due
			for _, v := range s.visit(frontier.VisitLimits{URLs: 500}, due...) {
				st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
				for x, it := range v.Items {
					next := frontier.Next{Entry: it.Entry, Key: batch[x].Fingerprint.Key}
					next.Last = frontier.Fetched{Interval: time.Hour, At: 1_800_000_000, Modified: 1_700_000_000, ETag: `"0123456789abcdef01"`, Digest: batch[x].Fingerprint.Key}
					st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index, Kind: frontier.Recrawl, NotBefore: 1000 * time.Hour, Next: &next})
				}
				s.settle(st)
			}
		}
		if got := s.stat("recrawls"); got != n {
			b.Fatalf("%d of %d wait", got, n)
		}
		b.ReportMetric(float64(s.used()-before)/n, "bytes/URL")
	}
}

// BenchmarkSiteBytes is the memory of a site with one queued URL.
func BenchmarkSiteBytes(b *testing.B) {
	for b.Loop() {
		s := benchStand(b)
		const n = 100_000
		before := s.used()
		for i := 0; i < n; i += 500 {
			var batch []frontier.Candidate
			for x := range 500 {
				batch = append(batch, benchCandidate(siteName(i+x), 1))
			}
			s.admit(batch...)
		}
		b.ReportMetric(float64(s.used()-before)/n, "bytes/site")
	}
}

// BenchmarkCookieBytes is what the cookies of a site take in memory, 100 bytes of them
// and as many as there may be, beyond a site without.
func BenchmarkCookieBytes(b *testing.B) {
	const n = 20_000
	settled := func(b *testing.B, cookies *string) float64 {
		s := benchStand(b)
		for site := range n {
			s.admit(benchCandidate(siteName(site), 1))
		}
		for done := 0; done < n; {
			visits := s.visit(frontier.VisitLimits{URLs: 1}, s.tick(frontier.TickRequest{Want: 100}).Due...)
			for _, v := range visits {
				st := all(v, frontier.Done)
				st.Cookies = cookies
				s.settle(st)
			}
			done += len(visits)
		}
		return float64(s.used())
	}
	for b.Loop() {
		off := settled(b, nil)
		for _, size := range []int{100, frontier.MaxCookies} {
			kept := strings.Repeat("x", size)
			b.ReportMetric((settled(b, &kept)-off)/n, fmt.Sprintf("bytes/site-of-%d", size))
		}
	}
}

// BenchmarkAdmissionBuild is what the caller spends on a call of 96 candidates.
func BenchmarkAdmissionBuild(b *testing.B) {
	f := attach(new(shard.Client), "crawl", frontier.Layout{Shards: 1}.Complete(), epoch)
	a := newAdmission()
	batch := make([]frontier.Candidate, 0, 96)
	for page := range 8 {
		for i := range 12 {
			site := siteName(page)
			if i >= 10 {
				site = siteName(100 + 2*page + i)
			}
			batch = append(batch, benchCandidate(site, 12*page+i))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		a.build(f, 0, batch, a.unique(batch), 1, 0)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/96, "ns/URL")
}
