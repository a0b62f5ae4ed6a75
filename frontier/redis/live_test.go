package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seine/frontier"
	"seine/shard"
	"seine/shard/shardtest"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 1)
	ctx := t.Context()
	began := time.Now().Truncate(time.Second).UTC()
	in := frontier.Member{ID: "x", Kind: frontier.KindFetcher, Version: "v1", Host: "h", PID: 7, Started: began, Rate: 2.5, Pages: 9}
	for _, m := range []frontier.Member{{ID: "s", Kind: frontier.KindSeeder}, in, {ID: "w", Kind: frontier.KindFetcher, Started: began.Add(-time.Hour)}} {
		if _, err := f.Announce(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	list, err := f.Members(ctx)
	if err != nil || len(list) != 3 || list[0].ID != "w" || list[1].ID != "x" || list[2].ID != "s" {
		t.Fatalf("%+v %v", list, err)
	}
	got := list[1]
	if ago := time.Since(got.Seen); ago < -time.Second || ago > frontier.LiveFor {
		t.Errorf("seen %v ago", ago)
	}
	if got.Tokens == "" || !strings.HasPrefix(f.token("a.example"), got.Tokens) {
		t.Errorf("its tokens begin with %q", got.Tokens)
	}
	got.Seen, got.Tokens = time.Time{}, ""
	if got != in {
		t.Errorf("got %+v, want %+v", got, in)
	}
	if err := f.Leave(ctx, frontier.Member{ID: "x"}); err != nil {
		t.Fatal(err)
	}
	// One that announced itself before the server's clock was set back by an hour
	// lives no longer than others.
	f.client.Redis().ZAdd(ctx, shard.LiveKey("a"), zAt("w", float64(time.Now().Add(time.Hour).UnixMilli())))
	if _, err := f.Announce(ctx, frontier.Member{ID: "s", Kind: frontier.KindSeeder}); err != nil {
		t.Fatal(err)
	}
	if list, _ := f.Members(ctx); len(list) != 2 || time.Until(list[0].Seen) > time.Minute {
		t.Errorf("%+v", list)
	}
	// One that went silent leaves the list by itself, and is shown as vanished for an
	// hour; one that left is not.
	f.client.Redis().ZAdd(ctx, shard.LiveKey("a"), zAt("w", float64(time.Now().Add(-30*time.Minute).UnixMilli())))
	for range 2 {
		if live, err := f.Announce(ctx, frontier.Member{ID: "s", Kind: frontier.KindSeeder}); live.Programs != 1 || err != nil {
			t.Error(live, err)
		}
		r, err := f.Report(ctx)
		if err != nil || len(r.Members) != 1 || len(r.Vanished) != 1 || r.Vanished[0].ID != "w" || time.Since(r.Vanished[0].Seen) < 30*time.Minute {
			t.Fatalf("%+v %v", r, err)
		}
	}
	f.client.Redis().ZAdd(ctx, shard.LiveKey("a"), zAt("w", 1))
	if list, _ := f.Members(ctx); len(list) != 1 || list[0].ID != "s" {
		t.Errorf("%+v", list)
	}
	if live, err := f.Announce(ctx, frontier.Member{ID: "s", Kind: frontier.KindSeeder}); live.Programs != 1 || err != nil {
		t.Error(live, err)
	}
	if n := f.client.Redis().HLen(ctx, shard.LiveInfoKey("a")).Val(); n != 1 {
		t.Errorf("details of %d members", n)
	}
}

// Of those that vanished the last thousand are kept.
func TestVanishedAreBounded(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 1)
	r, now := f.client.Redis(), time.Now()
	for i := range 1100 {
		id := fmt.Sprint("m", i)
		r.ZAdd(t.Context(), shard.LiveKey("a"), zAt(id, float64(now.Add(-time.Duration(1100-i)*time.Second).UnixMilli())))
		r.HSet(t.Context(), shard.LiveInfoKey("a"), id, `{"kind":"fetcher"}`)
	}
	for range 2 { // a thousand at a time
		if live, err := f.Announce(t.Context(), frontier.Member{ID: "s", Kind: frontier.KindSeeder}); live.Programs != 1 || err != nil {
			t.Fatal(live, err)
		}
	}
	list, err := f.vanished(t.Context())
	if err != nil || len(list) != 1000 || list[0].ID != "m1099" {
		t.Fatal(len(list), err)
	}
	if n := r.HLen(t.Context(), shard.LiveInfoKey("a")).Val(); n != 1001 {
		t.Errorf("details of %d members", n)
	}
}

func TestFinishedLooksAtEverything(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 3)
	ctx := t.Context()
	r := f.client.Redis()
	finished := func(want bool, when string) {
		t.Helper()
		if got, err := f.Finished(ctx); got != want || err != nil {
			t.Errorf("%s: finished %v, %v", when, got, err)
		}
	}
	finished(true, "a new crawl")
	for k := range 3 {
		for _, key := range []string{f.keys[k].Leases(), f.keys[k].Ready(0), f.keys[k].Ready(3)} {
			r.ZAdd(ctx, key, zAt("x", 1))
			finished(false, key)
			r.Del(ctx, key)
		}
		r.ZAdd(ctx, f.keys[k].PausedReady(), zAt("x", 1))
		finished(true, "a paused site")
	}
	push(t, f, "a:feed", "x")
	finished(false, "a fed crawl")
	r.Del(ctx, "a:feed")
	f.Announce(ctx, frontier.Member{ID: "f", Kind: frontier.KindFetcher})
	finished(true, "with a fetcher live")
	f.Announce(ctx, frontier.Member{ID: "s", Kind: frontier.KindSeeder})
	finished(false, "with a seeder live")
}

// late has each call of a client take longer, as a network does.
type late time.Duration

func (late) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l late) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		time.Sleep(time.Duration(l))
		return next(ctx, cmd)
	}
}

func (l late) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		time.Sleep(time.Duration(l))
		return next(ctx, cmds)
	}
}

// Shards are asked side by side whether a crawl is finished: one after the other, 256
// of them that answer after 50 ms would take 25 s to be looked at twice.
func TestFinishedOfManySlowShards(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 256)
	f.client.Redis().AddHook(late(50 * time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
	defer cancel()
	if done, err := f.Finished(ctx); !done || err != nil {
		t.Errorf("finished %v, %v", done, err)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 2)
	ctx := t.Context()
	r := f.client.Redis()
	r.HSet(ctx, f.keys[1].Stats(), "queued", 1, "waiting", 2, "open", 3, "admits", 4, "known", 5, "done", 6, "retried", 7,
		"dead", 8, "lost", 9, "retried_dead", 10, "dropped", 11, "turned_away", 12, "blocked", 13, "merged", 14, "missing", 15, "unasked", 3, "of tomorrow", 12)
	r.ZAdd(ctx, f.keys[1].Ready(0), zAt("x", 1))
	r.ZAdd(ctx, f.keys[1].Ready(2), zAt("y", 1))
	r.ZAdd(ctx, f.keys[1].PausedReady(), zAt("z", 1))
	r.ZAdd(ctx, f.keys[1].Leases(), zAt("t u", 1))
	if err := f.Pause(ctx, 1, true); err != nil {
		t.Fatal(err)
	}
	list, err := f.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := frontier.ShardStats{Shard: 1, Ready: 2, PausedReady: 1, Leases: 1, Queued: 1, Waiting: 2, Open: 3, Admits: 4, Known: 5, Done: 6, Retried: 7,
		Dead: 8, Unasked: 3, Lost: 9, RetriedDead: 10, Dropped: 11, TurnedAway: 12, Blocked: 13, Merged: 14, Missing: 15, Paused: true, Slot: shard.Slot(f.shards.Tag(1)), Master: list[1].Master, Memory: frontier.Memory{Used: list[1].Memory.Used}}
	if list[1] != want || list[1].Master == "" || want.Memory.Used == 0 || list[0].Queued != 0 {
		t.Errorf("%+v", list)
	}
	if total := frontier.Total(list); total.Known != 5 || total.Blocked != 13 || total.Merged != 14 || total.Missing != 15 || total.Ready != 2 || !total.Paused {
		t.Errorf("%+v", total)
	}
	r.HSet(ctx, f.keys[0].Meta(), "epoch", "another")
	if _, err := f.Stats(ctx); !errors.Is(err, frontier.ErrStale) {
		t.Error(err)
	}
}

// TestLookWithoutWrites: a server that takes no writes can be looked at.
func TestLookWithoutWrites(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 2)...)
	s.do("CONFIG", "SET", "min-replicas-to-write", 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if stats, err := s.Stats(ctx); err != nil || stats[0].Queued != 2 {
		t.Error(stats, err)
	}
	if c, err := AuditCheck(ctx, s.Frontier, 0, true); err != nil || c.Faulted != 0 {
		t.Error(c, err)
	}
}

func TestRulesStored(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 1)
	ctx := t.Context()
	keep := func(origin string, rules []byte) {
		t.Helper()
		if err := f.SetRules(ctx, 0, []frontier.OriginRules{{Site: "x.example", Origin: origin, Rules: rules, TTL: time.Hour}}); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(origin string) frontier.OriginRules {
		t.Helper()
		list := []frontier.OriginRules{{Site: "x.example", Origin: origin}}
		if err := f.Rules(ctx, 0, list); err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	rules := make([]byte, 100_000)
	keep("http://x.example", rules)
	if got := ask("http://x.example"); string(got.Rules) != string(rules) {
		t.Fatal(len(got.Rules))
	}
	key := f.keys[0].Rules("x.example")
	if n := f.client.Redis().MemoryUsage(ctx, key).Val(); n > 1500 {
		t.Errorf("100 kB of nothing take %d bytes", n)
	}
	if ttl := f.client.Redis().PTTL(ctx, key).Val(); ttl <= 59*time.Minute || ttl > time.Hour {
		t.Error("the key stays for ", ttl)
	}
	rand.Read(rules) // which nothing can pack
	keep("http://z.example", rules)
	if got := ask("http://z.example"); got.TTL != 0 {
		t.Error("rules of 100 kB are kept")
	}
	later := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	f.client.Redis().HSet(ctx, key, "http://x.example", later+" \x63of tomorrow")
	if got := ask("http://x.example"); got.TTL != 0 || got.Rules != nil {
		t.Error("rules of another version", got)
	}
}

// A crawl that cannot be read hides no other, and can be deleted.
func TestUnreadableRoot(t *testing.T) {
	t.Parallel()
	c := connect(t)
	create(t, c, "a", 1)
	for field, text := range map[string]string{"settings": "{", "rev": "x"} {
		create(t, c, "b", 1)
		c.Redis().HSet(t.Context(), shard.RootKey("b"), field, text)
		list, err := List(t.Context(), c)
		if err != nil || len(list) != 2 || list[0].State != stateReady || !strings.Contains(list[1].Fault, "cannot be read") {
			t.Fatalf("%s: %+v, %v", field, list, err)
		}
		if _, err := Open(t.Context(), c, "b", nil); !errors.Is(err, errRoot) {
			t.Errorf("%s: opened: %v", field, err)
		}
		if n, err := Delete(t.Context(), c, "b"); err != nil || n == 0 {
			t.Fatalf("%s: %d deleted, %v", field, n, err)
		}
	}
	c.Redis().HSet(t.Context(), shard.RootKey("a"), "layout", `{"format":99}`) // of a program to come
	if list, err := List(t.Context(), c); err != nil || len(list) != 1 || !strings.Contains(list[0].Fault, "99") {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestListAndDelete(t *testing.T) {
	t.Parallel()
	c := connect(t)
	ctx := t.Context()
	f := create(t, c, "a", 3)
	create(t, c, "ab", 1)
	list, err := List(ctx, c)
	if err != nil || len(list) != 2 || list[0].Crawl != "a" || list[0].Layout.Shards != 3 || list[0].State != "ready" || list[0].Created.IsZero() {
		t.Fatalf("%+v %v", list, err)
	}
	for k := range 3 {
		for i := range 1200 {
			c.Redis().Set(ctx, f.keys[k].Site(string(rune('a'+i%26))+time.Duration(i).String()), "x", 0)
		}
	}
	push(t, f, "a:feed", "x")
	push(t, f, "a:{shop}:urls", "x") // of a shop, which names its lists so
	f.Announce(ctx, frontier.Member{ID: "m", Kind: frontier.KindFetcher, Host: "there"})
	if _, err := Delete(ctx, c, "a"); !errors.Is(err, frontier.ErrLive) {
		t.Fatalf("deleted under a fetcher: %v", err)
	}
	f.Leave(ctx, frontier.Member{ID: "m"})
	if n, err := Delete(ctx, c, "a"); n < 3600 || err != nil {
		t.Fatal(n, err)
	}
	if keys := c.Redis().Keys(ctx, "*a:*").Val(); len(keys) != 1 || keys[0] != "a:{shop}:urls" {
		t.Errorf("left: %q", keys)
	}
	if _, err := f.Stats(ctx); !errors.Is(err, frontier.ErrStale) {
		t.Errorf("work on a deleted crawl: %v", err)
	}
	if _, err := f.Refresh(ctx); !errors.Is(err, frontier.ErrStale) {
		t.Errorf("settings of a deleted crawl: %v", err)
	}
	// A deletion that was slow does not touch the next crawl of this name.
	create(t, c, "a", 3)
	if n, err := f.remove(ctx); n != 0 || !errors.Is(err, frontier.ErrStale) {
		t.Errorf("a late deletion removed %d keys: %v", n, err)
	}
	if _, err := Delete(ctx, c, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := Delete(ctx, c, "a"); !errors.Is(err, frontier.ErrNoCrawl) {
		t.Error(err)
	}
	if _, err := Open(ctx, c, "ab", nil); err != nil {
		t.Error(err)
	}
	if list, _ := List(ctx, c); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

// More programs than one call shows are all listed, and a seeder among them keeps
// the crawl from its end, as does a fetcher that seeds.
func TestManyMembers(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 1)
	ctx := t.Context()
	const many = 2*membersMost + 3
	for i := range many {
		live, err := f.Announce(ctx, frontier.Member{ID: strconv.Itoa(i), Kind: frontier.KindFetcher, Seeding: i == many-1})
		if err != nil || live.Programs != i+1 {
			t.Fatal(live, err)
		}
	}
	if list, err := f.Members(ctx); err != nil || len(list) != many {
		t.Errorf("%d of %d members, %v", len(list), many, err)
	}
	if done, err := f.Finished(ctx); done || err != nil {
		t.Error("finished while the last of many seeds", err)
	}
	if _, err := f.Announce(ctx, frontier.Member{ID: strconv.Itoa(many - 1), Kind: frontier.KindFetcher}); err != nil {
		t.Fatal(err)
	}
	if done, err := f.Finished(ctx); !done || err != nil {
		t.Error("not finished though nobody seeds", err)
	}
}

// One reading of all shards serves every program of a crawl.
func TestRecentStats(t *testing.T) {
	t.Parallel()
	client := connect(t)
	f := create(t, client, "a", 3)
	ctx := t.Context()
	readings := func() (n int64) {
		calls := client.Redis().Info(ctx, "commandstats").Val()
		_, rest, _ := strings.Cut(calls, "cmdstat_evalsha:calls=")
		text, _, _ := strings.Cut(rest, ",")
		n, _ = strconv.ParseInt(text, 10, 64)
		return n
	}
	programs := make([]*Frontier, 50)
	for i := range programs {
		var err error
		if programs[i], err = Open(ctx, client, "a", nil); err != nil {
			t.Fatal(err)
		}
	}
	before, began := readings(), time.Now()
	for _, program := range programs {
		stats, err := program.RecentStats(ctx)
		if err != nil || len(stats) != 3 || stats[2].Shard != 2 || stats[1].Silent {
			t.Fatal(stats, err)
		}
	}
	if n, most := readings()-before, 3*(1+int64(time.Since(began)/recentFor)); n > most {
		t.Errorf("%d calls for 50 programs, want at most %d", n, most)
	}
	if err := client.Redis().Set(ctx, shard.RecentKey("a"), `{"Epoch":"another","Stats":[]}`, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	if stats, err := f.RecentStats(ctx); err != nil || len(stats) != 3 {
		t.Error("a reading of another creation of the crawl was taken", stats, err)
	}
}

// A master that reads but does not write in time keeps nobody from a reading.
func TestRecentStatsBesideSlowWrites(t *testing.T) {
	t.Parallel()
	server := shardtest.Start(t, shardtest.Config{})
	client, err := shard.Open(t.Context(), shard.Config{Addrs: server.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	f := create(t, client, "a", 1)
	server.Nodes[0].Do(t, "client", "pause", "60000", "write")
	defer server.Nodes[0].Do(t, "client", "unpause")
	if stats, err := f.RecentStats(t.Context()); err != nil || len(stats) != 1 {
		t.Error(stats, err)
	}
}

// However much a program does at once, it holds at most four connections to a
// master.
func TestConnections(t *testing.T) {
	t.Parallel()
	server := shardtest.Start(t, shardtest.Config{})
	connections := func() int {
		return strings.Count(fmt.Sprint(server.Nodes[0].Do(t, "client", "list")), "id=")
	}
	others := connections()
	client, err := shard.Open(t.Context(), shard.Config{Addrs: server.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	f := create(t, client, "a", 4)
	prober := f.NewProber(slog.New(slog.DiscardHandler))
	stop := prober.Start(t.Context(), func() bool { return false })
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 50 {
				if _, err := f.Tick(t.Context(), i%4, frontier.TickRequest{Want: 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := connections() - others; n < 2 || n > 4 {
		t.Errorf("%d connections", n)
	}
}
