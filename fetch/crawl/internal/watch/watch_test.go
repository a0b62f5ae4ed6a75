package watch

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/fetch/crawl/internal/work"
)

// diary is what a log says of situations that come a second apart.
type diary struct {
	out   bytes.Buffer
	log   *slog.Logger
	now   time.Time
	known Troubles
}

func newDiary() *diary {
	d := &diary{now: time.Unix(1_000_000, 0)}
	d.log = slog.New(slog.NewTextHandler(&d.out, nil))
	return d
}

// see passes s for a number of seconds, and returns the levels of what was logged.
func (d *diary) see(seconds int, s Situation) (levels []string, text string) {
	d.out.Reset()
	for range seconds {
		d.now = d.now.Add(time.Second)
		s.At, s.Shards = d.now, 6
		d.known.Log(d.log, &s)
	}
	for line := range strings.Lines(d.out.String()) {
		_, rest, _ := strings.Cut(line, "level=")
		level, _, _ := strings.Cut(rest, " ")
		levels = append(levels, level)
	}
	return levels, d.out.String()
}

func TestTroubleIsLoggedWhenItBeginsGrowsAndEnds(t *testing.T) {
	for name, of := range map[string]func(n int) Situation{
		"silent":             func(n int) Situation { return Situation{Silent: n} },
		"full":               func(n int) Situation { return Situation{Full: n} },
		"unacked":            func(n int) Situation { return Situation{Unacked: n} },
		"over the watermark": func(n int) Situation { return Situation{OverWatermark: n} },
		"sink":               func(n int) Situation { return Situation{Sink: []error{nil, errors.New("no space")}[min(n, 1)]} },
		"overflow":           func(n int) Situation { return Situation{Overflow: []error{nil, errors.New("no space")}[min(n, 1)]} },
	} {
		d := newDiary()
		shards := name != "sink" && name != "overflow"
		expect := func(step string, seconds, n int, want ...string) {
			t.Helper()
			if got, text := d.see(seconds, of(n)); !slices.Equal(got, want) || shards && len(want) > 0 && n > 0 && !strings.Contains(text, fmt.Sprintf("%d of 6", n)) {
				t.Errorf("%s, %s: %v, want %v: %s", name, step, got, want, text)
			}
		}
		first := map[bool]string{true: "WARN", false: "ERROR"}[shards]
		expect("nothing", 100, 0)
		expect("begins", 3, 2, first)
		for range 5 {
			expect("away for a moment", 9, 0)
			expect("back", 1, 2)
		}
		if shards {
			expect("has grown", 30, 3, "WARN") // a minute has passed since
			expect("grows within the minute", 20, 4)
			expect("logged a minute later", 20, 4, "WARN")
		}
		expect("less is no news", 200, 1)
		expect("not over yet", 9, 0)
		expect("over", 100, 0, "INFO")
		expect("begins anew", 1, 1, first)
	}
}

func TestRedisAtItsLimitIsNoNoise(t *testing.T) {
	d := newDiary()
	said := 0
	for i := range 150 { // as many seconds
		levels, _ := d.see(1, Situation{Full: []int{0, 1, 3, 6, 2}[i/2%5]})
		said += len(levels)
	}
	if said > 3 {
		t.Errorf("%d lines in 150 seconds", said)
	}
}

func TestPausesAreLogged(t *testing.T) {
	d := newDiary()
	for _, step := range []struct {
		seconds, paused int
		want            string
	}{
		{10, 0, ""},
		{2, 3, ""}, // the others have not ticked yet
		{5, 6, `paused: .* shards="6 of 6"`},
		{60, 6, ""},
		{5, 2, `resumed in part: .* paused="2 of 6"`},
		{1, 1, ""},
		{5, 0, "resumed: all"},
	} {
		_, text := d.see(step.seconds, Situation{Paused: step.paused})
		head, tail, _ := strings.Cut(step.want, " .* ")
		if (text == "") != (step.want == "") || !strings.Contains(text, head) || !strings.Contains(text, tail) || strings.Count(text, "\n") > 1 {
			t.Errorf("%d paused: %q, want %q", step.paused, text, step.want)
		}
	}
}

// TestBackOffsAreCounted: the number of further sites of a cause is logged a minute later,
// and only when there are more.
func TestBackOffsAreCounted(t *testing.T) {
	var log bytes.Buffer
	out := slog.New(slog.NewTextHandler(&log, nil))
	b, now := NewBackOffs(), time.Now()
	for i := range 3 {
		if first := b.AddSite("connect", "refused", true, now.Add(time.Duration(i)*time.Minute), now); first != (i == 0) {
			t.Errorf("%d: %v", i, first)
		}
	}
	b.AddSite("connect", "refused", false, now, now) // the same one once more
	b.Log(out, now.Add(logPause/2))
	if log.String() != "" {
		t.Error(log.String())
	}
	for range 2 {
		b.Log(out, now.Add(2*logPause))
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "sites=3") || !strings.Contains(got, "refused") {
		t.Error(got)
	}
	if counts, giveUp := b.Counts(); counts["connect"] != (BackedOff{3, "refused"}) || !giveUp.Equal(now.Add(2*time.Minute)) {
		t.Errorf("%+v, %v", counts, giveUp)
	}
}

// TestHandlerCauses: however many causes a handler makes up, the process tells a
// bounded number apart.
func TestHandlerCauses(t *testing.T) {
	h := NewHandlers(NewCounters(time.Now()))
	for i := range 2 * mostCauses {
		got, want := h.Cause(fmt.Sprintf("c%d", i)), fmt.Sprintf("c%d", i)
		if i >= mostCauses {
			want = work.CauseHandler
		}
		if got != want {
			t.Errorf("the %dth cause is %s", i, got)
		}
	}
}
