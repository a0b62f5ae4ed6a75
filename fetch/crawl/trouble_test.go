package crawl

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
)

// diary is what a log says of sights that come a second apart.
type diary struct {
	out   bytes.Buffer
	log   *slog.Logger
	now   time.Time
	known troubleLog
}

func newDiary() *diary {
	d := &diary{now: time.Unix(1_000_000, 0)}
	d.log = slog.New(slog.NewTextHandler(&d.out, nil))
	return d
}

// see passes s for a number of seconds, and returns the levels of what was logged.
func (d *diary) see(seconds int, s situation) (levels []string, text string) {
	d.out.Reset()
	for range seconds {
		d.now = d.now.Add(time.Second)
		s.at, s.shards = d.now, 6
		d.known.report(d.log, s)
	}
	for line := range strings.Lines(d.out.String()) {
		_, rest, _ := strings.Cut(line, "level=")
		level, _, _ := strings.Cut(rest, " ")
		levels = append(levels, level)
	}
	return levels, d.out.String()
}

func TestTroubleIsToldWhenItBeginsGrowsAndEnds(t *testing.T) {
	for name, of := range map[string]func(n int) situation{
		"deaf":     func(n int) situation { return situation{deaf: n} },
		"full":     func(n int) situation { return situation{full: n} },
		"pressed":  func(n int) situation { return situation{pressed: n} },
		"sink":     func(n int) situation { return situation{sink: []error{nil, errors.New("no space")}[min(n, 1)]} },
		"overflow": func(n int) situation { return situation{overflow: []error{nil, errors.New("no space")}[min(n, 1)]} },
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
			expect("told a minute later", 20, 4, "WARN")
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
		levels, _ := d.see(1, situation{full: []int{0, 1, 3, 6, 2}[i/2%5]})
		said += len(levels)
	}
	if said > 3 {
		t.Errorf("%d lines in 150 seconds", said)
	}
}

func TestPausesAreTold(t *testing.T) {
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
		_, text := d.see(step.seconds, situation{paused: step.paused})
		head, tail, _ := strings.Cut(step.want, " .* ")
		if (text == "") != (step.want == "") || !strings.Contains(text, head) || !strings.Contains(text, tail) || strings.Count(text, "\n") > 1 {
			t.Errorf("%d paused: %q, want %q", step.paused, text, step.want)
		}
	}
}

func TestPausedShardsAreSeen(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	crawler := r.worker()
	if got := crawler.Paused(); got != "" {
		t.Error(got)
	}
	crawler.loops[1].paused.Store(true)
	if got := crawler.Paused(); got != "1 of 3 shards are paused" || crawler.situation(time.Now()).paused != 1 {
		t.Error(got)
	}
	for _, l := range crawler.loops {
		l.paused.Store(true)
	}
	if got := crawler.Paused(); got != "the crawl is paused" {
		t.Error(got)
	}
	stats := []frontier.ShardStats{{}, {Memory: frontier.Memory{Pressed: true}}, {}}
	crawler.stats.Store(&stats)
	crawler.loops[2].asking.Store(time.Now().Add(-time.Hour).UnixMilli())
	if s := crawler.situation(time.Now()); s.pressed != 1 || s.deaf != 1 || s.full != 0 || s.shards != 3 || s.spills {
		t.Errorf("%+v", s)
	}
}
