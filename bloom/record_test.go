package bloom

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The loss has the rate's exact interval, in proportion; without a hit it is below
// what the upper end of the rate allows.
func TestLostInterval(t *testing.T) {
	r := Record{}.AddProbe(Info{Items: 1000, Capacity: 100_000}, Probe{N: 10_000, Hits: 10})
	q := QualityOf(1e-2, r)
	low, high := r.All.Interval()
	if q.Lost.URLs != 1 || math.Abs(q.Lost.Low-1000*low) > 1e-9 || math.Abs(q.Lost.High-1000*high) > 1e-9 {
		t.Errorf("%+v, want 1000 times %g .. %g", q.Lost, low, high)
	}
	r = Record{}.AddProbe(Info{Items: 1000, Capacity: 100_000}, Probe{N: 10_000})
	if q := QualityOf(1e-2, r); q.Lost.URLs != 0 || q.Lost.Low != 0 || math.Abs(q.Lost.High-1000*q.High) > 1e-9 {
		t.Errorf("no hit: %+v", q.Lost)
	}
	if n := (Probe{}).losses(500); n != 0 { // nothing was asked, so nothing is known
		t.Errorf("without a probe: %v", n)
	}
}

func TestRecordWindows(t *testing.T) {
	at := func(items int64) Info { return Info{Items: items, Capacity: 100_000} }
	var r Record
	r = r.AddProbe(at(50_000), Probe{1000, 1})
	r = r.AddProbe(at(54_000), Probe{1000, 0})
	if r.Now != (Probe{2000, 1}) || r.Grown != 54_000 || r.Began != 50_000 {
		t.Errorf("first window, charged with all that came before: %+v", r)
	}
	r = r.AddProbe(at(56_000), Probe{1000, 2}) // a tenth more
	if r.Now != (Probe{1000, 2}) || r.Before != (Probe{2000, 1}) || r.Grown != 2000 || r.Ended != 27 {
		t.Errorf("second window: %+v", r)
	}
	if r.Lately() != (Probe{3000, 3}) {
		t.Errorf("the window before must help out: %+v", r.Lately())
	}
	r = r.AddProbe(at(56_000), Probe{1000, 2})
	if r.Lately() != (Probe{2000, 4}) {
		t.Errorf("the window before must go: %+v", r.Lately())
	}
	r = r.AddProbe(at(90_000), Probe{1000, 3})
	if r.Before != (Probe{}) || r.Lately() != (Probe{1000, 3}) || r.Ended != 27+4 || r.Grown != 34_000 {
		t.Errorf("after a jump: %+v", r)
	}
	r = r.AddProbe(at(10_000), Probe{1000, 0})
	if r.Lately() != (Probe{1000, 0}) || r.Grown != 0 || r.Ended != 27+4+3*34 || r.All != (Probe{6000, 8}) {
		t.Errorf("after an older state was loaded: %+v", r)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Record
	if err := json.Unmarshal(text, &back); err != nil || back != r {
		t.Errorf("%+v came back as %+v: %v", r, back, err)
	}
}

// A filter that does not grow ends no window, and each URL is charged once.
func TestRecordChargesEachURLOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Record
		info := Info{Capacity: 10_000}
		for range rapid.IntRange(1, 50).Draw(t, "probes") {
			info.Items += rapid.Int64Range(0, 3000).Draw(t, "grown")
			before := r
			r = r.AddProbe(info, Probe{N: 1, Hits: 1}) // every probe hits: all URLs are lost
			if info == before.Info && r.Began != before.Began {
				t.Fatal("a window ended without growth")
			}
		}
		lost := r.Ended + r.Now.losses(r.Grown)
		if math.Abs(lost-float64(info.Items)) > 1e-6*float64(info.Items) {
			t.Fatalf("%g URLs are charged, there are %d", lost, info.Items)
		}
	})
}

func TestJudge(t *testing.T) {
	if q := QualityOf(1e-3, Record{}); q.Over || q.High != 1 || q.Lost.High != 0 || q.Probe.String() != "not measured" {
		t.Errorf("nothing asked, nothing there: %+v", q)
	}
	info := Info{Items: 10_000, Capacity: 10_000}
	for _, c := range []struct {
		p    Probe
		over bool
	}{
		{Probe{100_000, 100}, false},
		{Probe{100_000, 200}, true},
		{Probe{1000, 5}, false}, // exceeds by the 95% interval, as one look of many may
		{Probe{100_000, 130}, false},
		{Probe{100_000, 145}, true},
		{Probe{20, 1}, false}, // an early hit
		{Probe{3, 3}, true},
		{Probe{1000, 10}, true},
		{Probe{100_000, 0}, false},
	} {
		if q := QualityOf(1e-3, Record{}.AddProbe(info, c.p)); q.Over != c.over || q.N != c.p.N {
			t.Errorf("%+v: %+v", c.p, q)
		}
	}
	// Few probes while a filter grew and many since: the rate now bounds the loss.
	r := Record{}.AddProbe(info, Probe{N: 1000}).AddProbe(Info{Items: 20_000, Capacity: 20_000}, Probe{N: 1_000_000})
	if q := QualityOf(1e-3, r); q.Lost.URLs != 0 || q.Lost.High > 0.061 || q.Lost.String() != "below 0.06" {
		t.Errorf("%+v, %v", q, q.Lost)
	}
	// Two filters of a shard add up.
	a := Record{}.AddProbe(info, Probe{10_000, 10})
	if q := QualityOf(1e-2, a, a); q.N != 20_000 || q.Hits != 20 || q.Lost.URLs != 20 || q.Lost.String() != "20 (12 .. 31)" {
		t.Errorf("%+v, %v", q, q.Lost)
	}
}

// What no probing can lead to is no record.
func TestParseRecord(t *testing.T) {
	r := Record{}.AddProbe(Info{Items: 10, Capacity: 100}, Probe{N: 1000, Hits: 3}).AddProbe(Info{Items: 90, Capacity: 100}, Probe{N: 1000, Hits: 5})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := ParseRecord(string(text)); err != nil || back != r {
		t.Errorf("%+v became %+v, %v", r, back, err)
	}
	if math.Abs(r.Ended-0.03) > 1e-9 {
		t.Errorf("%v URLs lost in the window that ended, want 0.03", r.Ended)
	}
	for _, text := range []string{"", "null", "[]", "x", `{"v":1`, `{}`, `{"v":2}`, `{"v":1,"items":-1}`, `{"v":1,"now":{"n":1,"hits":2}}`,
		`{"v":1,"before":{"n":-1,"hits":-1}}`, `{"v":1,"grown":-1}`, `{"v":1,"ended":-1}`, `{"v":1,"ended":1e999}`} {
		if r, err := ParseRecord(text); err == nil {
			t.Errorf("%s is taken for %+v", text, r)
		}
	}
}
