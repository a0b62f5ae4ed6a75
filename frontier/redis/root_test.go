package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard"
	"seine/shard/shardtest"
)

func connect(t testing.TB) *shard.Client {
	t.Helper()
	c, err := shard.Open(t.Context(), shard.Config{Addrs: shardtest.One(t).Addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func small(shards int) frontier.Layout {
	return frontier.Layout{Shards: shards, PlanURLs: 1000, ErrorRate: 1e-3}
}

func create(t testing.TB, c *shard.Client, crawl string, shards int) *Frontier {
	t.Helper()
	f, err := Create(t.Context(), c, crawl, small(shards), frontier.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCreateAndOpen(t *testing.T) {
	t.Parallel()
	c := connect(t)
	ctx := t.Context()
	if _, err := Open(ctx, c, "a", nil); !errors.Is(err, frontier.ErrNoCrawl) {
		t.Fatalf("opening no crawl: %v", err)
	}
	f := create(t, c, "a", 3)
	if _, err := Create(ctx, c, "a", small(3), frontier.DefaultSettings()); !errors.Is(err, frontier.ErrExists) {
		t.Fatalf("creating twice: %v", err)
	}
	g, err := Open(ctx, c, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if g.epoch != f.epoch || g.layout != f.layout {
		t.Fatalf("opened %+v, created %+v", g.layout, f.layout)
	}
	for k := range 3 {
		h := c.Redis().HGetAll(ctx, f.keys[k].Meta()).Val()
		if h["epoch"] != f.epoch || h["rev"] != "1" {
			t.Fatalf("meta of shard %d: %v", k, h)
		}
		if n := c.Redis().Exists(ctx, f.keys[k].Filter(0)).Val(); n != 1 {
			t.Fatalf("shard %d has no filter", k)
		}
	}
}

func TestOpenNamesBothLayouts(t *testing.T) {
	t.Parallel()
	c := connect(t)
	create(t, c, "a", 2)
	want := small(3).Complete()
	want.Canon = 99
	_, err := Open(t.Context(), c, "a", &want)
	if !errors.Is(err, frontier.ErrLayout) {
		t.Fatal(err)
	}
	for _, part := range []string{"shards: the crawl has 2, this program 3", fmt.Sprintf("canon version: the crawl has %d, this program 99", frontier.CanonVersion)} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	other := frontier.Layout{Suffixes: "of tomorrow"}
	if _, err := Open(t.Context(), c, "a", &other); !errors.Is(err, frontier.ErrLayout) {
		t.Fatalf("another suffix list: %v", err)
	}
	other.OtherSuffixes = true
	for range 2 {
		f, err := Open(t.Context(), c, "a", &other)
		if err != nil || f.layout.Suffixes != other.Suffixes {
			t.Fatalf("accepted suffix list: %v", err)
		}
		other.OtherSuffixes = false // it is on record now
	}
}

func TestCreateAtOnce(t *testing.T) {
	t.Parallel()
	c := connect(t)
	var wg sync.WaitGroup
	made := make([]*Frontier, 8)
	errs := make([]error, 8)
	for i := range made {
		wg.Go(func() { made[i], errs[i] = Create(context.Background(), c, "a", small(4), frontier.DefaultSettings()) })
	}
	wg.Wait()
	f, err := Open(t.Context(), c, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range made {
		switch {
		case errs[i] == nil && g.epoch == f.epoch:
		case errors.Is(errs[i], frontier.ErrExists):
		default:
			t.Errorf("creator %d: %v", i, errs[i])
		}
	}
}

// TestCreateAtOnceKeepsSettings: a creation that was slower does not change the
// settings of a crawl that is at work.
func TestCreateAtOnceKeepsSettings(t *testing.T) {
	t.Parallel()
	c := connect(t)
	var wg sync.WaitGroup
	made := make([]*Frontier, 8)
	errs := make([]error, 8)
	for i := range made {
		s := frontier.DefaultSettings()
		s.Delay = time.Duration(i+1) * time.Second
		wg.Go(func() { made[i], errs[i] = Create(context.Background(), c, "a", small(4), s) })
	}
	wg.Wait()
	f, err := Open(t.Context(), c, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range made {
		if errs[i] == nil && g.Settings().Delay != f.Settings().Delay {
			t.Errorf("creator %d works with a delay of %v, the crawl has %v", i, g.Settings().Delay, f.Settings().Delay)
		} else if errs[i] != nil && !errors.Is(errs[i], frontier.ErrExists) {
			t.Errorf("creator %d: %v", i, errs[i])
		}
	}
}

func TestCreateResumes(t *testing.T) {
	t.Parallel()
	c := connect(t)
	ctx := t.Context()
	first := create(t, c, "a", 3)
	// As if it had died after the first shard.
	c.Redis().HSet(ctx, shard.RootKey("a"), "state", stateCreating)
	c.Redis().Del(ctx, first.keys[1].Meta(), first.keys[2].Meta(), first.keys[2].Filter(0))
	if _, err := Open(ctx, c, "a", nil); !errors.Is(err, frontier.ErrNoCrawl) {
		t.Fatalf("opening half a crawl: %v", err)
	}
	if _, err := Create(ctx, c, "a", small(2), frontier.DefaultSettings()); !errors.Is(err, frontier.ErrLayout) {
		t.Fatalf("finishing with another layout: %v", err)
	}
	s := frontier.DefaultSettings()
	s.Delay = 3 * time.Second
	if _, err := Create(ctx, c, "a", small(3), s); err != nil {
		t.Fatal(err)
	}
	f, err := Open(ctx, c, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.epoch != first.epoch || f.Settings().Delay != s.Delay {
		t.Fatalf("resumed as %s with delay %v", f.epoch, f.Settings().Delay)
	}
	if n := c.Redis().Exists(ctx, f.keys[2].Filter(0), f.keys[2].Meta()).Val(); n != 2 {
		t.Fatal("shard 2 was not finished")
	}
}

func TestSetRaisesRevEverywhere(t *testing.T) {
	t.Parallel()
	c := connect(t)
	ctx := t.Context()
	f := create(t, c, "a", 3)
	before, after, err := f.Set(ctx, func(s *frontier.Settings) error { s.Delay = 2 * time.Second; s.Deny = append(s.Deny, "x"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if before.Delay != time.Second || after.Delay != 2*time.Second || after.Rev != 2 || len(after.Deny) != 1 {
		t.Fatalf("%+v -> %+v", before, after)
	}
	for k := range 3 {
		if rev := c.Redis().HGet(ctx, f.keys[k].Meta(), "rev").Val(); rev != "2" {
			t.Fatalf("shard %d has revision %s", k, rev)
		}
	}
	if _, _, err := f.Set(ctx, func(s *frontier.Settings) error { s.Allow = []string{"("}; return nil }); err == nil {
		t.Fatal("a broken expression was stored")
	}
	// What a broken Set left undone is done by the next, though it changes nothing.
	c.Redis().HSet(ctx, f.keys[1].Meta(), "rev", "1")
	if _, _, err := f.Set(ctx, func(*frontier.Settings) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if rev := c.Redis().HGet(ctx, f.keys[1].Meta(), "rev").Val(); rev != "2" {
		t.Fatalf("shard 1 still has revision %s", rev)
	}
}

func TestSetAtOnceLosesNothing(t *testing.T) {
	t.Parallel()
	c := connect(t)
	f := create(t, c, "a", 2)
	var wg sync.WaitGroup
	for _, word := range []string{"a", "b", "c", "d", "e", "f"} {
		wg.Go(func() {
			g, err := Open(context.Background(), c, "a", nil)
			if err == nil {
				_, _, err = g.Set(context.Background(), func(s *frontier.Settings) error { s.Deny = append(s.Deny, word); return nil })
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s, err := f.Refresh(t.Context())
	if err != nil || len(s.Deny) != 6 || s.Rev != 7 {
		t.Fatalf("%d changes at revision %d: %v", len(s.Deny), s.Rev, err)
	}
	for k := range 2 {
		if rev := c.Redis().HGet(t.Context(), f.keys[k].Meta(), "rev").Val(); rev != "7" {
			t.Errorf("shard %d has revision %s", k, rev)
		}
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	c := connect(t)
	ctx := t.Context()
	f := create(t, c, "a", 3)
	steps := []struct {
		shard  int
		paused bool
		want   string // of shards 0, 1, 2
	}{
		{1, true, "-1-"}, {1, true, "-1-"}, {0, true, "11-"}, {1, false, "1--"},
		{-1, true, "111"}, {2, false, "11-"}, {-1, false, "---"},
	}
	for i, step := range steps {
		if err := f.Pause(ctx, step.shard, step.paused); err != nil {
			t.Fatal(err)
		}
		got := ""
		for k := range 3 {
			if c.Redis().HGet(ctx, f.keys[k].Meta(), "paused").Val() == "1" {
				got += "1"
			} else {
				got += "-"
			}
		}
		if got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	if err := f.Pause(ctx, 3, true); err == nil {
		t.Error("paused a shard that is not there")
	}
}

func TestStaleSettings(t *testing.T) {
	t.Parallel()
	c := connect(t)
	f := create(t, c, "a", 1)
	c.Redis().FlushAll(t.Context())
	create(t, c, "a", 1)
	if _, err := f.Refresh(t.Context()); !errors.Is(err, frontier.ErrStale) {
		t.Fatal(err)
	}
}

func TestValidName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"news": true, "a.b-1": true, "a.b:c-1": false, "": false, "a b": false, "a{b}": false,
		"\x7f": false, "é": false, "-a": false, string(make([]byte, 101)): false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		if err := frontier.ValidName(name); (err == nil) != want {
			t.Errorf("%q: %v, want valid %v", name, err, want)
		}
	}
}
