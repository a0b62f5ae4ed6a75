package redis

import (
	"context"
	"strings"
	"testing"
	"time"

	"seine/shard"
	"seine/shard/shardtest"
)

// A full Redis takes no claim, and a dead one no call: what is known stays at hand.
func TestProberThroughOutages(t *testing.T) {
	t.Parallel()
	server := shardtest.One(t)
	client, err := shard.Open(t.Context(), shard.Config{Addrs: server.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	l := newLab(t, client, small(1))
	l.do("CONFIG", "SET", "maxmemory", 1)
	if err := l.Round(t.Context(), false); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("probed a full Redis: %v", err)
	}
	if m := l.metrics(); !strings.Contains(m, "seine_bloom_capacity_items{shard=\"0\"} 1000\n") || !strings.Contains(m, "seine_bloom_false_positive_rate_high{shard=\"0\"} 1\n") {
		t.Errorf("nothing known of a full Redis:\n%s", m)
	}
	l.do("CONFIG", "SET", "maxmemory", 0)
	l.rounds(1)
	before := l.metrics()
	server.Nodes[0].Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := l.Round(ctx, false); err == nil {
		t.Error("probed a dead Redis")
	}
	if after := l.metrics(); after != before || before == "" {
		t.Errorf("known before\n%s\nafter\n%s", before, after)
	}
}

// A record that this program does not understand is left alone.
func TestProberLeavesOtherVersions(t *testing.T) {
	t.Parallel()
	l := newLab(t, connect(t), small(1))
	for _, text := range []string{`{"v":2}`, "rubbish"} {
		l.do("HSET", l.keys[0].Probes(), "0", text)
		l.pass()
		err := l.Round(t.Context(), false)
		if err == nil || !strings.Contains(err.Error(), l.keys[0].Probes()) {
			t.Errorf("%s: %v", text, err)
		}
		if have := l.do("HGET", l.keys[0].Probes(), "0"); have != text {
			t.Errorf("%s became %v", text, have)
		}
	}
}

// Started, it probes by itself until it is stopped.
func TestProberRuns(t *testing.T) {
	t.Parallel()
	l := newLab(t, connect(t), small(2))
	stop := l.Start(t.Context(), func() bool { return false })
	deadline := time.Now().Add(time.Minute)
	for strings.Count(l.metrics(), "_probes{") < 2 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if s := l.live(); s.Live.All.N == 0 {
		t.Errorf("nothing was probed: %+v", s)
	}
}

// A record that it cannot read is logged once, by its key.
func TestProberTellsOfOtherVersions(t *testing.T) {
	t.Parallel()
	l := newLab(t, connect(t), small(1))
	l.do("HSET", l.keys[0].Probes(), "0", "rubbish")
	rounds := make(chan struct{}, 100)
	stop := l.Start(t.Context(), func() bool { rounds <- struct{}{}; return false })
	for range 3 {
		<-rounds
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if text := l.log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, l.keys[0].Probes()) {
		t.Errorf("logged:\n%s", text)
	}
}
