package redis

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"seine/bloom"
	"seine/frontier"
	"seine/frontier/canon"
	"seine/shard"
	"seine/shard/shardtest"
)

// lab is a crawl of one shard that is probed.
type lab struct {
	*Frontier
	*Prober
	t   testing.TB
	log bytes.Buffer
}

func newLab(t testing.TB, client *shard.Client, layout frontier.Layout) *lab {
	t.Helper()
	f, err := OpenOrCreate(t.Context(), client, "probed", layout, frontier.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Frontier: f, t: t}
	l.Prober = f.NewProber(slog.New(slog.NewTextHandler(&l.log, nil)))
	t.Cleanup(func() { l.filters.Close() })
	return l
}

// do runs a plain command on the shard's master.
func (l *lab) do(args ...any) any {
	l.t.Helper()
	reply, err := l.client.Do(l.t.Context(), 0, l.keys[0].Meta(), args...)
	if err != nil {
		l.t.Fatal(args, err)
	}
	return reply
}

// pass lets claims pass.
func (l *lab) pass() { l.do("DEL", l.keys[0].Probing()) }

// rounds probes n times, with time between.
func (l *lab) rounds(n int) {
	l.t.Helper()
	for range n {
		l.pass()
		if err := l.Round(l.t.Context(), false); err != nil {
			l.t.Fatal(err)
		}
	}
}

// live is what the crawl says of filter 0.
func (l *lab) live() FilterState {
	l.t.Helper()
	list, err := l.Filters(l.t.Context(), 0)
	if err != nil {
		l.t.Fatal(err)
	}
	return list[0]
}

func (l *lab) metrics() string {
	var out bytes.Buffer
	l.WriteMetrics(&out)
	return out.String()
}

// hits says how many of the fingerprints from .. to-1, never admitted, filter 0
// holds for known.
func (l *lab) hits(from, to int) (n int64) {
	l.t.Helper()
	for from < to {
		args := []any{"BF.MEXISTS", l.keys[0].Filter(0)}
		for ; from < to && len(args) < 2000; from++ {
			fp := canon.FingerprintOf([]byte("never.example"), fmt.Appendf(nil, "%d", from))
			args = append(args, fp.Append(nil))
		}
		for _, v := range l.do(args...).([]any) {
			n += v.(int64)
		}
	}
	return n
}

// What is measured and what is said to be lost is held against an exact set: of
// URLs that are all new, those that are called seen are the lost ones.
func TestProberTellsTheTruth(t *testing.T) {
	t.Parallel()
	const rate, urls, batch, asked, more = 1e-3, 40_000, 500, 20_000, 400
	l := newLab(t, connect(t), frontier.Layout{Shards: 1, PlanURLs: 10_000, ErrorRate: rate})
	known := map[canon.Fingerprint]bool{} // the exact set
	lost, expected := 0, 0.0
	verdicts := make([]frontier.Verdict, batch)
	for from := 0; from < urls; from += batch {
		expected += batch * float64(l.hits(asked/batch*from, asked/batch*from+asked)) / asked
		list := candidates("a.example", from, from+batch)
		if err := l.Admit(t.Context(), 0, list, verdicts); err != nil {
			t.Fatal(err)
		}
		for i, v := range verdicts {
			if known[list[i].Fingerprint] || v != frontier.Admitted && v != frontier.Seen {
				t.Fatalf("%v of %s", v, list[i].URL)
			}
			known[list[i].Fingerprint] = true
			if v == frontier.Seen {
				lost++
			}
		}
		l.rounds(5)
	}
	l.rounds(more) // some 340 hits, so that chance hides no error
	s := l.live()
	t.Logf("%d layers; measured %v; lost %d, expected by an exact set %.1f, by probing %v", s.Layers, s.Live.Probe, lost, expected, s.Live.Lost)
	truth := bloom.Probe{N: 400_000, Hits: l.hits(10_000_000, 10_400_000)}
	// What is asked is another in each run; beyond these bounds it is once in 1e8.
	if truth.Hits == 0 || s.Live.Low > 1.3*truth.Rate() || s.Live.High < truth.Rate()/1.3 {
		t.Errorf("measured %v, the truth is %v", s.Live.Probe, truth)
	}
	if est := s.Live.Lost; est.Low > 1.5*expected || est.High < expected/1.3 || est.URLs > 1.75*expected {
		t.Errorf("lost by probing %v, the truth is %g", est, expected)
	}
	if chance := 5 * math.Sqrt(float64(lost+1)); float64(lost)+chance < s.Live.Lost.Low || float64(lost)-chance > s.Live.Lost.High {
		t.Errorf("lost by probing %v, the exact set says %d", s.Live.Lost, lost)
	}
	if lost == 0 || s.Over || s.Live.All.N != (urls/batch*5+more)*probes || s.Layers < 3 {
		t.Errorf("%d lost, %+v", lost, s)
	}
}

// Filters that err too often are reported: once in the log, and wherever people look.
func TestProberAlarm(t *testing.T) {
	t.Parallel()
	l := newLab(t, connect(t), small(1))
	l.rounds(3)
	if s := l.live(); s.Over || l.log.Len() > 0 || !strings.Contains(l.metrics(), "seine_bloom_over{shard=\"0\"} 0\n") {
		t.Errorf("%+v\n%s%s", s, &l.log, l.metrics())
	}
	sound := l.do("DUMP", l.keys[0].Filter(0))
	l.do("DEL", l.keys[0].Filter(0))
	l.do("BF.RESERVE", l.keys[0].Filter(0), "0.1", 1000)
	for i := range 1000 {
		l.do("BF.ADD", l.keys[0].Filter(0), fmt.Sprint("x", i))
	}
	l.rounds(3)
	s := l.live()
	if !s.Over || s.Live.Low <= 1e-3 || !strings.Contains(l.metrics(), "seine_bloom_over{shard=\"0\"} 1\n") {
		t.Errorf("%+v\n%s", s, l.metrics())
	}
	if n := strings.Count(l.log.String(), "level=WARN"); n != 1 || !strings.Contains(l.log.String(), "shard=0") {
		t.Errorf("logged %d times:\n%s", n, &l.log)
	}
	if r, err := l.Report(t.Context()); err != nil || len(r.Over) != 1 {
		t.Errorf("report: %v, %v", r.Over, err)
	}
	l.do("DEL", l.keys[0].Filter(0))
	l.do("RESTORE", l.keys[0].Filter(0), 0, sound)
	l.rounds(3)
	if s := l.live(); s.Over || strings.Count(l.log.String(), "any more") != 1 {
		t.Errorf("%+v\n%s", s, &l.log)
	}
}

// A fleet probes a shard once a second, and all know what one found.
func TestProbersShare(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		client, err := shard.Open(t.Context(), shard.Config{Addrs: shardtest.Start(t, shardtest.Config{Kind: kind}).Addrs})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		probersShare(t, client)
	})
}

func probersShare(t *testing.T, client *shard.Client) {
	t.Helper()
	a, b := newLab(t, client, small(1)), newLab(t, client, small(1))
	claim := a.keys[0].Probing()
	for busy, most := range map[bool]time.Duration{false: probeTime, true: probeBusy} {
		a.pass()
		began := time.Now()
		if err := a.Round(t.Context(), busy); err != nil {
			t.Fatal(err)
		}
		ms := a.do("PTTL", claim).(int64)
		if ms == -2 && time.Since(began) > probeTime { // it ended already
			continue
		}
		if ms <= 0 || ms > most.Milliseconds() || busy && ms <= probeTime.Milliseconds() {
			t.Errorf("busy %v: claimed for %d ms", busy, ms)
		}
	}
	a.do("SET", claim, "somebody")
	for _, l := range []*lab{a, b} {
		if err := l.Round(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if s := l.live(); s.Live.All.N != 2*probes {
			t.Errorf("claimed by another, and probed: %+v", s.Live)
		}
	}
	if x, y := a.metrics(), b.metrics(); x != y || !strings.Contains(x, "seine_bloom_probes{shard=\"0\"} 2000\n") {
		t.Errorf("one knows\n%s\nthe other\n%s", x, y)
	}
	// What was measured before somebody else's result came in counts for nothing.
	stored, records, err := a.records(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	b.rounds(1)
	set, err := a.f.FilterSet(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := a.probe(t.Context(), set, 0, stored, records[0]); err != nil {
			t.Fatal(err)
		}
	}
	if s := a.live(); s.Live.All.N != 3*probes {
		t.Errorf("a late result counts: %+v", s.Live)
	}
	if _, err := Delete(t.Context(), client, "probed"); err != nil {
		t.Fatal(err)
	}
	if left := a.do("KEYS", "probed*").([]any); len(left) > 0 {
		t.Errorf("left after the crawl was deleted: %v", left)
	}
}

// Filters of a shard that were not probed yet are known all the same, and in
// time each is probed.
func TestProberOfManyFilters(t *testing.T) {
	t.Parallel()
	s := open(t, shardtest.One(t), 1, 3)
	s.layout.ErrorRate, s.plan.ErrorRate = 1e-3, 1e-3
	p := s.NewProber(slog.New(slog.NewTextHandler(io.Discard, nil)))
	defer p.filters.Close()
	for range 100 {
		s.do("DEL", s.keys[0].Probing())
		if err := p.Round(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		asked := 0
		for _, r := range p.at(0).records {
			if r.Capacity != 20_000 {
				t.Fatalf("unknown: %+v", r)
			}
			if r.All.N > 0 {
				asked++
			}
		}
		if asked == 3 {
			return
		}
	}
	t.Error("some filter was never probed")
}
