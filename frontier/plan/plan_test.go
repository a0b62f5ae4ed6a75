package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// about says whether two numbers differ by less than a part in so many.
func about(got, want, parts float64) bool { return math.Abs(got-want) <= math.Abs(want)/parts }

func TestSizes(t *testing.T) {
	for _, c := range []struct{ pages, sites, exponent, largest float64 }{
		{1000, 10, 0, 100},
		{1000, 1000, 0.8, 1},
		{1e9, 5e7, 0.8, 0}, // whatever it comes to
		{1e6, 10, 1, 1e6 / 2.929},
	} {
		a := Asked{Pages: c.pages, Sites: c.sites, Exponent: c.exponent}
		s := newSizes(&a)
		if !about(s.total(), c.pages, 100) {
			t.Errorf("%+v: %.0f pages", c, s.total())
		}
		if got := s.above(0); got != c.sites {
			t.Errorf("%+v: %.0f sites", c, got)
		}
		if c.largest > 0 && !about(s.largest, c.largest, 4) {
			t.Errorf("%+v: the largest has %.0f", c, s.largest)
		}
	}
	a := Asked{Sizes: []float64{5, 1, 100, 5}}
	s := newSizes(&a)
	for pages, want := range map[float64]float64{0: 4, 1: 3, 4.9: 3, 5: 1, 99: 1, 100: 0} {
		if got := s.above(pages); got != want {
			t.Errorf("%.0f sites have more than %.1f pages, not %.0f", got, pages, want)
		}
	}
	if !about(s.total(), 111, 100) {
		t.Errorf("%.1f pages of 111", s.total())
	}
}

// A crawl of equal sites takes its pages by the delay or by the rate; one of
// unequal sites waits for the largest in the end.
func TestTake(t *testing.T) {
	equal := newSizes(&Asked{Pages: 100_000, Sites: 1000})
	for _, c := range []struct{ interval, rate, want float64 }{
		{1, math.Inf(1), 100}, {1, 1000, 100}, {1, 500, 200}, {0.5, 100, 1000}, {0, 100, 1000},
	} {
		if got := equal.take(c.interval, c.rate); !about(got.seconds, c.want, 200) {
			t.Errorf("%+v: %.2f s", c, got.seconds)
		}
	}
	s := newSizes(&Asked{Sizes: append(make([]float64, 0, 101), append([]float64{1000}, fill(100, 10)...)...)})
	got := s.take(1, 50) // ten pages of 101 sites at 50/s, then one site alone
	if want := 10*101.0/50 + 990; !about(got.seconds, want, 100) {
		t.Errorf("%.1f s, not %.1f", got.seconds, want)
	}
	if len(got.curve) != 4 || !about(got.curve[0].Seconds, 20, 10) || !about(got.curve[3].Seconds, got.seconds, 1000) {
		t.Errorf("%+v", got.curve)
	}
	rate, possible := equal.rateFor(1, 200)
	if !possible || !about(rate, 500, 100) {
		t.Errorf("%.0f pages/s end it in 200 s", rate)
	}
	if _, possible := equal.rateFor(1, 99); possible {
		t.Error("100 pages at one a second are done in 99 s")
	}
}

func fill(n int, v float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// bench is a file of benchmarks in which all that plans need costs one: a
// microsecond, a byte.
func bench(t *testing.T, a Asked, but ...string) *Units {
	t.Helper()
	var text bytes.Buffer
	_, err := newCosts(&Units{}, &a)
	if !errors.Is(err, ErrMissing) {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(err.Error(), "missing: ")
	list, _, _ = strings.Cut(list, "; ")
	fmt.Fprintln(&text, "cpu: a slide rule")
line:
	for item := range strings.SplitSeq(list, ", ") {
		for _, b := range but {
			if strings.Contains(item, b) {
				continue line
			}
		}
		part := strings.Split(item, " ")
		v := 1
		if strings.Contains(part[2], "ns/") {
			v = 1000
		}
		fmt.Fprintf(&text, "pkg: seine/%s\n%s-8 1 %d %s\n", part[0], part[1], v, part[2])
	}
	u, err := ReadUnits("test", &text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// small is a crawl whose numbers can be checked in one's head.
func small() Asked {
	a := Default()
	a.Pages, a.Sites, a.Exponent, a.Links, a.New, a.Cached = 100_000, 1000, 0, 10, 0.1, 0.5
	a.Page, a.Wire, a.Fresh, a.TLS, a.Jitter, a.Latency, a.Load = 4096, 4096, 0, 0, 0, 0.5, 1
	a.Fetchers, a.Cores, a.Masters = 1, 1, 1
	return a
}

func TestPlan(t *testing.T) {
	a := small()
	u := bench(t, a)
	p, err := New(a, u)
	if err != nil {
		t.Fatal(err)
	}
	// Fetch 1, scanning and digest of three further KB 3 each, ten links, page,
	// record; of Redis's client leasing 2, a new link (and 0.01 of them for a site:
	// its seed), 8.99 known ones of which half are asked for, and 0.01 rules. The
	// robots.txt of a site: 0.01.
	if want := 1 + 3 + 3 + 10 + 1 + 1 + 0.01 + 2 + 1.01 + 8.99*0.5 + 0.01; !about(p.Page, want, 1000) {
		t.Errorf("%.3f us a page, not %.3f: %+v", p.Page, want, p.Parts)
	}
	if want := 2 + 1.01 + 8.99*0.5 + 0.01; !about(p.Redis.Page, want, 1000) {
		t.Errorf("%.3f us a page of Redis, not %.3f", p.Redis.Page, want)
	}
	if !about(p.Seconds, 100, 100) || p.Bound != "politeness: sites x delay" || !about(p.Peak, 1000, 100) {
		t.Errorf("%.1f s, %s, %.1f pages/s", p.Seconds, p.Bound, p.Peak)
	}
	// Each of the 100 seconds costs another us of Redis and of the fetcher.
	if spent := p.Page*0.1 + 100e-6; !about(p.Fetchers.Spent, spent, 1e5) || !about(p.Redis.Spent, p.Redis.Page*0.1+100e-6, 1e5) {
		t.Errorf("%.5f s of the fetcher, %.5f s of Redis", p.Fetchers.Spent, p.Redis.Spent)
	}
	if f := p.Fetchers; !about(f.InFlight, 500, 100) || f.Workers != 600 || !about(f.Memory, 1+garbage*(f.Workers+f.Connections+a.Sites), 100) {
		t.Errorf("%+v", f)
	}
	if r := p.Redis; r.Masters != 1 || r.Shards != 1 || len(r.Kinds) != 5 {
		t.Errorf("%+v", r)
	}
	if len(p.Breaks) != 0 || len(p.Watch) == 0 || !strings.Contains(p.Commands[0], "--shards 1 --plan-urls 101000") {
		t.Errorf("%q %q %q", p.Breaks, p.Watch, p.Commands)
	}
	if p.Machine != "a slide rule" || p.Disk != 100_000 || p.Traffic != 100_000*4096 {
		t.Errorf("%s, %.0f, %.0f", p.Machine, p.Disk, p.Traffic)
	}
	text, err := json.Marshal(p)
	if err != nil || !bytes.Contains(text, []byte(`"fetcher_us_a_page"`)) {
		t.Errorf("%s %v", text, err)
	}
}

// A connection costs by what the fetcher knows of the site: nothing at first contact but
// perhaps its issuer, later its name, or a session.
func TestConnections(t *testing.T) {
	p := Plan{Asked: Asked{Pages: 100, Sites: 1, TLS: 0.5, Fresh: 0.1, Resumed: 0.5, NameKnown: 0.8, IssuerKnown: 0.9, Embedded: true}}
	p.fetcherCost(&costs{fresh: 10, chain: 1000, issuerKnown: 500, nameKnown: 200, resumed: 100}, 0)
	const verified = 0.9*500 + 0.1*1000
	for _, part := range p.Parts {
		want := 0.0
		switch part.Name {
		case "connections":
			want = 0.1 * (0.5*10 + 0.5*(0.5*100+0.5*(0.8*200+0.2*verified)))
		case "robots.txt":
			want = 0.01 * (0.5*10 + 0.5*verified)
		}
		if !about(part.Cost, want, 1e6) {
			t.Errorf("%s costs %.4f, not %.4f", part.Name, part.Cost, want)
		}
	}
}

// Pages that are smaller on the wire are unpacked, at the cost of their encoding.
func TestEncodings(t *testing.T) {
	u := &Units{values: map[unit][]float64{
		{"fetch", "Codings/page", "gzip6-ns/KB"}: {1000}, {"fetch", "Codings/page", "br5-ns/KB"}: {2000}, {"fetch", "Codings/page", "zstd3-ns/KB"}: {3000},
	}}
	for encoding, us := range map[string]float64{"gzip": 1, "br": 2, "zstd": 3} {
		a := small()
		a.Encoding = encoding
		c, err := newCosts(u, &a)
		if !errors.Is(err, ErrMissing) || strings.Contains(err.Error(), "Codings") {
			t.Fatal(err)
		}
		a.Complete()
		for _, wire := range []float64{a.Page, a.Page / 4} {
			a.Wire = wire
			p, want := Plan{Asked: a}, 0.0
			if wire < a.Page {
				want = us * a.Page / 1024
			}
			if p.fetcherCost(c, 0); !about(p.Parts[2].Cost, want, 1e6) {
				t.Errorf("%s, %.0f bytes on the wire: %+v, not %.1f", encoding, wire, p.Parts[2], want)
			}
		}
	}
	a := small()
	a.Encoding, a.Chain, a.NameKnown = "snappy", "dsa", 2
	if err := a.Validate(); err == nil || !strings.Contains(err.Error(), "snappy") || !strings.Contains(err.Error(), "dsa") || !strings.Contains(err.Error(), "known names") {
		t.Error(err)
	}
}

// A slow crawl makes a call for each visit and each page, a fast one shares them.
func TestCalls(t *testing.T) {
	c := costs{visitCall: pair{2, 1}, settleCall: pair{4, 3}}
	for _, e := range []struct {
		pages, rate float64
		shards      int
		want        float64
	}{
		{1000, 10, 1, 2 + 4},             // a page of each site
		{8000, 10, 1, 2.0/8 + 4},         // eight a visit
		{8000, 500, 1, 2.0/8 + 4},        // one page while a call waits
		{8000, 5000, 1, 2.0/10 + 4.0/10}, // ten pages
		{8000, 5000, 10, 2.0/8 + 4},
	} {
		p := Plan{Asked: Asked{Pages: e.pages, Sites: 1000}, Fetchers: Fetchers{Count: 1}, pace: []stretch{{e.pages, e.rate}}}
		p.Redis = &Redis{Shards: e.shards}
		if got := p.calls(&c).redis / e.pages; !about(got, e.want, 1000) {
			t.Errorf("%+v: %.3f us a page", e, got)
		}
	}
}

// What holds a crawl up is named: machines when they are too few, Redis, the
// largest sites.
func TestBounds(t *testing.T) {
	u := bench(t, small())
	for _, c := range []struct {
		change  func(*Asked)
		bound   string
		seconds float64
	}{
		{func(a *Asked) { a.Delay, a.Latency, a.Cores = 0, 0, 0.01 }, "fetchers' processors", 0},
		{func(a *Asked) { a.Delay, a.Latency, a.Cores, a.Masters, a.Link = 0, 0, 100, 1, 1e15 }, "Redis", 0},
		{func(a *Asked) { a.Link = 8 * 4096 }, "network", 100_000},
		{func(a *Asked) { a.Sizes = append(fill(1000, 10), 90_000) }, "politeness of the largest sites", 90_000},
	} {
		a := small()
		c.change(&a)
		p, err := New(a, u)
		if err != nil {
			t.Fatal(err)
		}
		if p.Bound != c.bound || c.seconds > 0 && !about(p.Seconds, c.seconds, 50) {
			t.Errorf("bound by %s, not %s; %.1f s", p.Bound, c.bound, p.Seconds)
		}
	}
}

// A plan ends in the days that it was given, with as few machines as that takes;
// one that cannot says what can, and that is true.
func TestDays(t *testing.T) {
	a := small()
	u := bench(t, a)
	a.Pages, a.Fetchers, a.Masters, a.Days = 1e9, 0, 0, 12
	a.Sites = 1e6
	p, err := New(a, u)
	if err != nil {
		t.Fatal(err)
	}
	if p.Why != "" || p.Seconds > 12*86400*1.01 || !about(p.Mean, 1e9/12/86400, 50) {
		t.Errorf("%q, %.1f s, %.0f pages/s", p.Why, p.Seconds, p.Mean)
	}
	a.Masters = 6
	if p, err = New(a, u); err != nil || p.Bound != "the days that were asked for" {
		t.Errorf("bound by %s, %v", p.Bound, err)
	}
	a.Sites, a.Exponent, a.Days, a.Masters = 1e6, 0.8, 1, 0
	if p, err = New(a, u); err != nil || p.Why == "" {
		t.Fatalf("%+v %v", p, err)
	}
	if _, err := fmt.Sscanf(p.Nearest, "--days %g", &a.Days); err != nil {
		t.Fatal(p.Nearest, err)
	}
	if p, err = New(a, u); err != nil || p.Why != "" {
		t.Errorf("in %g days: %q %v", a.Days, p.Why, err)
	}
	a.Fetchers, a.Cores, a.Load, a.Days = 1, 0.01, 0.01, 200
	if p, err = New(a, u); err != nil || !strings.Contains(p.Why, "processors") {
		t.Errorf("%q %v", p.Why, err)
	}
}

// A plan names what would break.
func TestBreaks(t *testing.T) {
	a := small()
	u := bench(t, a)
	a.Masters, a.Pages, a.Known, a.Sites, a.Queued, a.Files, a.Memory, a.MasterMemory = 1, 1e9, 1e10, 10, 9e9, 100, 1e6, 1e6
	p, err := New(a, u)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"queue", "a master needs", "stands still"} {
		if !strings.Contains(strings.Join(p.Breaks, "\n"), want) {
			t.Errorf("nothing of %q in %q", want, p.Breaks)
		}
	}
	var out bytes.Buffer
	p.Write(&out)
	if !strings.Contains(out.String(), "BREAKS") {
		t.Error(out.String())
	}
}

// A unit that is missing is named, and units of a mode that is not asked for are
// not needed.
func TestMissing(t *testing.T) {
	a := small()
	_, err := New(a, bench(t, a, "URL/seen/own=0%", "InFlight"))
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "frontier/redis BenchmarkURL/seen/own=0% redis-us/URL") || !strings.Contains(err.Error(), "fetch BenchmarkInFlight B/request") {
		t.Error(err)
	}
	a.Embedded, a.Masters = true, 0
	p, err := New(a, bench(t, a))
	if err != nil {
		t.Fatal(err)
	}
	// GOGC is 40 there: so much more than is kept.
	if f := p.Fetchers; !about(f.Memory, 1+1.4*(f.Workers+f.Connections+p.leased()+p.Asked.Queued+a.Sites), 100) {
		t.Errorf("a fetcher that holds the crawl takes %.1f bytes: %+v", f.Memory, f)
	}
	if _, err := ReadUnits("empty", strings.NewReader("PASS\n")); err == nil {
		t.Error("an empty file has units")
	}
}

// measured are the units that the program brings along.
func measured() (*Units, error) {
	const name = "../../cmd/frontier/units.txt"
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadUnits(name, f)
}

// The units that the program brings along are enough for every plan.
func TestMeasured(t *testing.T) {
	u, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	for _, embedded := range []bool{false, true} {
		for _, records := range []string{"plain", "gzip", "zstd"} {
			a := small()
			a.Masters, a.Embedded, a.Records = 0, embedded, records
			if _, err := New(a, u); err != nil {
				t.Error(err)
			}
		}
	}
}

// URLs that wait for a recrawl take memory, by the units that the program
// brings along.
func TestAgain(t *testing.T) {
	u, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	for _, embedded := range []bool{false, true} {
		memory := func(recrawls float64) float64 {
			a := small()
			a.Masters, a.Embedded, a.Recrawls = 0, embedded, recrawls
			p, err := New(a, u)
			if err != nil {
				t.Fatal(err)
			}
			if embedded {
				return p.Fetchers.Memory / embeddedGarbage
			}
			return p.Redis.Memory * p.Redis.Masters / (1 + a.Room)
		}
		if per := (memory(1e6) - memory(0)) / 1e6; per < 150 || per > 400 {
			t.Errorf("embedded %v: %.0f bytes a URL that waits for a recrawl", embedded, per)
		}
	}
}

// Contents of pages that are remembered take memory and, in Redis, time, by the units
// that the program brings along; a lower rate of errors takes more.
func TestDuplicates(t *testing.T) {
	u, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	planned := func(embedded bool, rule string, rate float64) *Plan {
		a := small()
		a.Embedded, a.Duplicates, a.Rate, a.Known, a.Queued = embedded, rule, rate, 2e6, 1e4
		if a.Digest = "sha256"; embedded {
			a.Masters = 0
		}
		p, err := New(a, u)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	off, mark := planned(false, "off", 1e-6), planned(false, "mark", 1e-6)
	of := func(p *Plan) (bytes float64) {
		for _, k := range p.Redis.Kinds {
			if k.Name == "contents" {
				bytes = k.Cost
			}
		}
		return bytes
	}
	if per := of(mark) / 2e6; of(off) != 0 || per < 7.5 || per > 9.5 || mark.Redis.Page < off.Redis.Page+1 || mark.Page <= off.Page {
		t.Errorf("%.1f bytes a page without, %.1f with; Redis %.1f and %.1f us", of(off)/2e6, per, off.Redis.Page, mark.Redis.Page)
	}
	if ratio := of(planned(false, "mark", 1e-9)) / of(mark); !about(ratio, 1.5, 100) {
		t.Errorf("at a thousandth of the rate %.2f times the memory", ratio)
	}
	if run := strings.Join(mark.Commands, " "); !strings.Contains(run, "--digest sha256 --duplicates mark") {
		t.Error(run)
	}
	more := planned(true, "skip", 1e-6).Fetchers.Memory - planned(true, "off", 1e-6).Fetchers.Memory
	if per := more / embeddedGarbage / 100_000; per < 32 || per > 60 {
		t.Errorf("embedded %.1f bytes a page", per)
	}
	a := small()
	if a.Duplicates = "skip"; a.Validate() == nil {
		t.Error("xxh3 is enough to skip pages")
	}
	if a.Duplicates = "some"; a.Validate() == nil {
		t.Error("any rule is taken")
	}
}

// The ends of a queue are not compressed: in many short queues URLs take more than in
// few long ones.
func TestQueues(t *testing.T) {
	u, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	for sites, want := range map[float64]float64{1e6: 73, 1e4: 43, 10: 27} {
		a := small()
		a.Pages, a.Sites, a.Exponent, a.Known, a.Queued = 1e7, sites, 0, 2e7, 1e7
		p, err := New(a, u)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Redis.Kinds[1].Cost / a.Queued; !about(got, want, 5) {
			t.Errorf("%.0f bytes a URL queued on %.0f sites, not %.0f", got, sites, want)
		}
	}
}

func TestValidate(t *testing.T) {
	u := bench(t, small())
	for _, change := range []func(*Asked){
		func(a *Asked) { a.Pages = 0 },
		func(a *Asked) { a.Sites = 1e9 },
		func(a *Asked) { a.Known = 5 },
		func(a *Asked) { a.New = math.NaN() },
		func(a *Asked) { a.Load = 2 },
		func(a *Asked) { a.Embedded = true },
	} {
		a := small()
		change(&a)
		if p, err := New(a, u); err == nil {
			t.Errorf("%+v", p)
		}
	}
}

// Several results of a benchmark count by their median.
func TestMedian(t *testing.T) {
	u, err := ReadUnits("test", strings.NewReader("pkg: seine/fetch\nBenchmarkX-2 1 5 B/request\nBenchmarkX-2 1 1 B/request\nBenchmarkX-2 1 2 B/request\nBenchmarkY/a=1-2 1 3 ns/op\n"))
	if err != nil {
		t.Fatal(err)
	}
	l := lookup{units: u}
	if x, y := l.get("fetch", "X", "B/request"), l.get("fetch", "Y/a=1", "ns/op"); x != 2 || y != 3 || l.err() != nil {
		t.Error(x, y, l.err())
	}
}
