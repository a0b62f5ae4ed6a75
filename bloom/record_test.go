package bloom

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Reference values of the chi-square distribution, halved, and closed forms.
func TestGammaQuantile(t *testing.T) {
	for _, c := range []struct{ shape, want, x float64 }{
		{1, 0.95, -math.Log(0.05)},
		{1, 0.025, -math.Log(0.975)},
		{0.5, 0.95, 3.841459 / 2},
		{5, 0.025, 3.246973 / 2},
		{5, 0.975, 20.48318 / 2},
		{50, 0.975, 129.5612 / 2},
		{50, 0.025, 74.22193 / 2},
		{9999, 0.975, 10196.4},
		{10001, 0.975, 10198.4},
	} {
		if x := gammaQuantile(c.shape, c.want); math.Abs(x-c.x) > 1e-4*c.x {
			t.Errorf("shape %g: %g is below %.7g, want %.7g", c.shape, c.want, x, c.x)
		}
	}
}

// With one weight the interval of a loss is that of a Poisson count.
func TestLossInterval(t *testing.T) {
	var l Loss
	l.charge(Probe{N: 1000, Hits: 4}, 500)
	l.charge(Probe{N: 2000, Hits: 6}, 1000)
	if low, high := l.interval(); l.Sum != 5 || math.Abs(low-0.5*4.795389) > 1e-4 || math.Abs(high-0.5*18.39036) > 1e-4 {
		t.Errorf("%+v: %g .. %g", l, low, high)
	}
	l = Loss{}
	l.charge(Probe{N: 1000}, 500)
	l.charge(Probe{}, 500) // nothing was asked, so nothing is known
	if low, high := l.interval(); low != 0 || math.Abs(high-0.5*2.995732) > 1e-5 {
		t.Errorf("no hit: %g .. %g", low, high)
	}
}

func TestRecordWindows(t *testing.T) {
	at := func(items int64) Info { return Info{Items: items, Capacity: 100_000} }
	var r Record
	r = r.Add(at(50_000), Probe{1000, 1})
	r = r.Add(at(54_000), Probe{1000, 0})
	if r.Now != (Probe{2000, 1}) || r.Grown != 54_000 || r.Began != 50_000 {
		t.Errorf("first window, charged with all that came before: %+v", r)
	}
	r = r.Add(at(56_000), Probe{1000, 2}) // a tenth more
	if r.Now != (Probe{1000, 2}) || r.Before != (Probe{2000, 1}) || r.Grown != 2000 || r.Ended.Sum != 27 {
		t.Errorf("second window: %+v", r)
	}
	if r.Lately() != (Probe{3000, 3}) {
		t.Errorf("the window before must help out: %+v", r.Lately())
	}
	r = r.Add(at(56_000), Probe{1000, 2})
	if r.Lately() != (Probe{2000, 4}) {
		t.Errorf("the window before must go: %+v", r.Lately())
	}
	r = r.Add(at(90_000), Probe{1000, 3})
	if r.Before != (Probe{}) || r.Lately() != (Probe{1000, 3}) || r.Ended.Sum != 27+4 || r.Grown != 34_000 {
		t.Errorf("after a leap: %+v", r)
	}
	r = r.Add(at(10_000), Probe{1000, 0})
	if r.Lately() != (Probe{1000, 0}) || r.Grown != 0 || r.Ended.Sum != 27+4+3*34 || r.All != (Probe{6000, 8}) {
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
			r = r.Add(info, Probe{N: 1, Hits: 1}) // every probe hits: all URLs are lost
			if info == before.Info && r.Began != before.Began {
				t.Fatal("a window ended without growth")
			}
		}
		windows := r.Ended
		windows.charge(r.Now, r.Grown)
		if math.Abs(windows.Sum-float64(info.Items)) > 1e-6*float64(info.Items) {
			t.Fatalf("%g URLs are charged, there are %d", windows.Sum, info.Items)
		}
	})
}

func TestJudge(t *testing.T) {
	if q := Judge(1e-3, Record{}); q.Over || q.High != 1 || q.Lost.High != 0 || q.Probe.String() != "not measured" {
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
		if q := Judge(1e-3, Record{}.Add(info, c.p)); q.Over != c.over || q.N != c.p.N {
			t.Errorf("%+v: %+v", c.p, q)
		}
	}
	// Few probes while a filter grew and many since: the rate now bounds the loss.
	r := Record{}.Add(info, Probe{N: 1000}).Add(Info{Items: 20_000, Capacity: 20_000}, Probe{N: 1_000_000})
	if q := Judge(1e-3, r); q.Lost.URLs != 0 || q.Lost.High > 0.061 || q.Lost.String() != "below 0.06" {
		t.Errorf("%+v, %v", q, q.Lost)
	}
	// Two filters of a shard add up.
	a := Record{}.Add(info, Probe{10_000, 10})
	if q := Judge(1e-2, a, a); q.N != 20_000 || q.Hits != 20 || q.Lost.URLs != 20 || q.Lost.String() != "20 (12 .. 31)" {
		t.Errorf("%+v, %v", q, q.Lost)
	}
}

// What no probing can lead to is no record.
func TestParseRecord(t *testing.T) {
	r := Record{}.Add(Info{Items: 10, Capacity: 100}, Probe{N: 1000, Hits: 3}).Add(Info{Items: 90, Capacity: 100}, Probe{N: 1000, Hits: 5})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := ParseRecord(string(text)); err != nil || back != r {
		t.Errorf("%+v became %+v, %v", r, back, err)
	}
	for _, text := range []string{"", "null", "[]", "x", `{"v":1`, `{}`, `{"v":2}`, `{"v":1,"items":-1}`, `{"v":1,"now":{"n":1,"hits":2}}`,
		`{"v":1,"before":{"n":-1,"hits":-1}}`, `{"v":1,"grown":-1}`, `{"v":1,"ended":{"most":-1}}`, `{"v":1,"ended":{"square":1}}`, `{"v":1,"ended":{"sum":1e999}}`} {
		if r, err := ParseRecord(text); err == nil {
			t.Errorf("%s is taken for %+v", text, r)
		}
	}
}
