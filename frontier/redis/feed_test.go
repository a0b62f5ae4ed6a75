package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard"
	"seine/shard/shardtest"
)

// push pushes elements as producers do.
func push(t *testing.T, f *Frontier, key string, elements ...any) {
	t.Helper()
	if err := f.client.Redis().LPush(t.Context(), key, elements...).Err(); err != nil {
		t.Fatal(err)
	}
}

// drained collects what drains hand over.
type drained struct{ items []frontier.FeedItem }

func (d *drained) admit(_ context.Context, items []frontier.FeedItem) ([]int, error) {
	d.items = append(d.items, items...)
	return nil, nil
}

func TestFeedElements(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 2)
	push(t, f, "a:feed",
		"http://one.example/x",
		`{"url":"http://two.example/","priority":2,"depth":5,"meta":{"k": [1, 2]}}`,
		`{"url":"http://three.example/","refetch":true}`,
		"  http://four.example/#f \n",
		"http://e.example/"+strings.Repeat("x", 8192), "http://usr:sesame@[bad/", `{"url":`, `{"url":"http://e.example/","priority":4}`, `{"url":"http://e.example/","depth":4294967295}`, `{"url":"ftp://e.example/"}`, `{"url":"http://e.example/","method":"POST"}`,
		`{"url":"http://e.example/","meta":[1]}`, "", strings.Repeat("x", 256<<10+1),
	)
	var d drained
	n, err := f.DrainFeed(t.Context(), d.admit)
	if err != nil || n != 14 {
		t.Fatal(n, err)
	}
	var got []string
	for _, it := range d.items {
		got = append(got, fmt.Sprint(it.URL, " ", it.Site, " ", it.Priority, it.HasPriority, it.Depth, it.Seed, " ", it.Meta, it.Refetch != ""))
	}
	want := []string{
		"http://one.example/x one.example 0 false 0 true false",
		`http://two.example/ two.example 2 true 5 true {"k":[1,2]}false`,
		"http://three.example/ three.example 0 false 0 true true",
		"http://four.example/ four.example 0 false 0 true false",
	}
	for i := range want {
		want[i] = strings.Join(strings.Fields(want[i]), "")
		if i < len(got) {
			got[i] = strings.Join(strings.Fields(got[i]), "")
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	dead, err := f.DeadElements(t.Context(), 0, 100)
	if err != nil || len(dead) != 10 {
		t.Fatalf("%d dead elements: %v", len(dead), err)
	}
	for _, text := range dead {
		var e struct{ Element, Error, At string }
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Error == "" || len(e.Element) > deadText || strings.Contains(text, "sesame") {
			t.Errorf("%.100s: %v", text, err)
		}
	}
	if n, err := f.FeedLen(t.Context()); n != 0 || err != nil {
		t.Errorf("%d elements left: %v", n, err)
	}
}

// TestFeedElementsRefused: what was put together or encoded by mistake is no URL. It
// is kept with the reason.
func TestFeedElementsRefused(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 2)
	shared := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "testdata", "webcases2", name))
		if os.IsNotExist(err) && os.Getenv("CI") == "" {
			t.Skip("SKIPPED: no ../shared/testdata/webcases2 beside the repository")
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for element, why := range map[string]string{
		shared("feed-element-two-lines.txt"):       "line break",
		shared("feed-element-latin1.txt"):          "no UTF-8",
		"http://e.example/a\rb":                    "line break",
		"http://e.example/a\tb":                    "control byte",
		"http://e.example/a\x00b":                  "control byte",
		"http://e.example/a\x7fb":                  "control byte",
		"http://e.example/\xef\xbf\xbd":            "no UTF-8",
		`{"url":"http://e.example/a\nb"}`:          "line break",
		`{"url":"http://e.example/a\u0001b"}`:      "control byte",
		`{"url":"http://e.example/a\ud800b"}`:      "no UTF-8",
		`{"url":"http://e.example/a\udc00\ud800"}`: "no UTF-8",
		"{\"url\":\"http://e.example/\xed\"}":      "no UTF-8",
	} {
		push(t, f, "a:feed", element)
		var d drained
		if n, err := f.DrainFeed(t.Context(), d.admit); err != nil || n != 1 || len(d.items) != 0 {
			t.Errorf("%q: %d %v %v", element, n, d.items, err)
		}
		dead, err := f.DeadElements(t.Context(), 0, 100)
		if err != nil || len(dead) == 0 {
			t.Fatalf("%q: %v %v", element, dead, err)
		}
		var e struct{ Error string }
		if err := json.Unmarshal([]byte(dead[len(dead)-1]), &e); err != nil || !strings.Contains(e.Error, why) {
			t.Errorf("%q: %v, %v, want %q", element, e, err, why)
		}
	}
	push(t, f, "a:feed", shared("feed-element-surrogate.json"), " http://e.example/a\n", `{"url":" http://e.example/b\n"}`,
		"{\"url\":\"http://e.example/c\",\"meta\":{\"k\":\"\xed\"}}")
	var d drained
	if n, err := f.DrainFeed(t.Context(), d.admit); n != 4 || err != nil || len(d.items) != 4 {
		t.Fatal(n, err, d.items)
	}
	for i, want := range []string{`http://example.com/p {"k":"v\ufffd"}`, "http://e.example/a ", "http://e.example/b ", "http://e.example/c {\"k\":\"\ufffd\"}"} {
		if got := d.items[i].URL + " " + d.items[i].Meta; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestFeedSurvivesItsDrainer(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 1)
	again := `{"url":"http://one.example/","refetch":true}`
	push(t, f, "a:feed", again, again, "http://two.example/")
	boom := errors.New("boom")
	var first, second drained
	_, err := f.DrainFeed(t.Context(), func(ctx context.Context, items []frontier.FeedItem) ([]int, error) {
		first.admit(ctx, items)
		return nil, boom // as if it died after admission, before the removal
	})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	push(t, f, "a:feed", again) // at the head, meanwhile
	if n, err := f.DrainFeed(t.Context(), second.admit); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	ids := map[string]bool{}
	for i, item := range second.items {
		if i < 3 && item.Refetch != first.items[i].Refetch {
			t.Errorf("item %d: request id %q, then %q", i, first.items[i].Refetch, item.Refetch)
		}
		if item.Refetch != "" {
			ids[item.Refetch] = true
		}
	}
	if len(ids) != 3 {
		t.Errorf("three requests have %d ids", len(ids))
	}
}

func TestFeedTakenTwiceAtOnce(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 1)
	ctx := t.Context()
	push(t, f, "a:feed", "http://x.example/", "http://x.example/", "http://y.example/")
	// A second drainer that took its lock for lost handles the same elements.
	n, err := f.DrainFeed(ctx, func(ctx context.Context, _ []frontier.FeedItem) ([]int, error) {
		f.client.Redis().Del(ctx, shard.FeedLockKey("a:feed"))
		push(t, f, "a:feed", "http://x.example/")
		var d drained
		if n, err := f.DrainFeed(ctx, d.admit); n != 4 || err != nil {
			t.Errorf("second drainer: %d %v", n, err)
		}
		push(t, f, "a:feed", "http://x.example/")
		return nil, nil
	})
	if n != 0 || err != nil {
		t.Fatalf("first drainer removed %d: %v", n, err)
	}
	if n, _ := f.FeedLen(ctx); n != 1 {
		t.Errorf("%d elements left, want the one pushed last", n)
	}
}

func TestFeedOneDrainerAtATime(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 1)
	push(t, f, "a:feed", "http://x.example/")
	n, err := f.DrainFeed(t.Context(), func(ctx context.Context, _ []frontier.FeedItem) ([]int, error) {
		if n, err := f.DrainFeed(ctx, func(context.Context, []frontier.FeedItem) ([]int, error) { t.Error("two drainers"); return nil, nil }); n != 0 || err != nil {
			t.Error(n, err)
		}
		return nil, nil
	})
	if n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n := f.client.Redis().Exists(t.Context(), shard.FeedLockKey("a:feed")).Val(); n != 0 {
		t.Error("the lock stays")
	}
}

// A lock that lasts, for its server's clock was set back, does so no longer than
// any; one of now is not prolonged.
func TestFeedLockLasts(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 1)
	push(t, f, "a:feed", "http://x.example/")
	for held, most := range map[time.Duration]time.Duration{time.Hour: feedLock, feedLock / 2: feedLock / 2} {
		lock := shard.FeedLockKey("a:feed")
		f.client.Redis().Set(t.Context(), lock, "somebody", held)
		if n, err := f.DrainFeed(t.Context(), nil); n != 0 || err != nil {
			t.Error(n, err)
		}
		if left := f.client.Redis().PTTL(t.Context(), lock).Val(); left > most {
			t.Errorf("held for %v: %v are left, want %v at most", held, left, most)
		}
	}
}

func TestFeedKeys(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 1)
	for _, key := range []string{"spider:start_urls", "in{tag}side", "plain"} {
		if _, _, err := f.Set(t.Context(), func(s *frontier.Settings) error { s.FeedKey, s.FeedRefetch = key, true; return nil }); err != nil {
			t.Fatal(err)
		}
		if a, b := slotOf(key), slotOf(shard.FeedSeqKey(key)); a != b {
			t.Errorf("%s is in slot %d, its number in %d", key, a, b)
		}
		push(t, f, key, "http://x.example/")
		var d drained
		if n, err := f.DrainFeed(t.Context(), d.admit); n != 1 || err != nil || d.items[0].Refetch == "" {
			t.Error(key, n, err, d.items)
		}
	}
	f.client.Redis().SAdd(t.Context(), "plain", "x")
	if _, err := f.DrainFeed(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "not a list") {
		t.Error(err)
	}
	if _, _, err := f.Set(t.Context(), func(s *frontier.Settings) error { s.FeedKey = "a}b"; return nil }); err == nil {
		t.Error("a key with a loose brace is taken")
	}
}

// Above maxmemory neither the feed nor rules of robots.txt stop a fetcher: both wait.
func TestFeedAndRobotsWithoutRoom(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		server := shardtest.Start(t, shardtest.Config{Kind: kind})
		client, err := shard.Open(t.Context(), shard.Config{Addrs: server.Addrs})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		f := create(t, client, "a", 1)
		push(t, f, "a:feed", "http://one.example/x")
		server.Nodes[0].Do(t, "config", "set", "maxmemory", 1)
		var d drained
		if n, err := f.DrainFeed(t.Context(), d.admit); n != 0 || err != nil || len(d.items) != 0 {
			t.Errorf("feed without room: %d, %v, %v", n, err, d.items)
		}
		if err := f.SetRules(t.Context(), 0, []frontier.OriginRules{{Site: "one.example", Origin: "http://one.example", Rules: []byte("rules"), TTL: time.Minute}}); err != nil {
			t.Error("robots without room: ", err)
		}
		server.Nodes[0].Do(t, "config", "set", "maxmemory", 0)
		if n, err := f.DrainFeed(t.Context(), d.admit); n != 1 || err != nil {
			t.Errorf("feed with room: %d, %v", n, err)
		}
	})
}

func TestFeedOnACluster(t *testing.T) {
	t.Parallel()
	client, err := shard.Open(t.Context(), shard.Config{Addrs: shardtest.Masters(t, 3).Addrs})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range 6 { // keys in the slots of all masters
		crawl := fmt.Sprint("c", i)
		f := create(t, client, crawl, 3)
		for _, key := range []string{crawl + ":feed", "outside:" + crawl, "in{" + crawl + "}side"} {
			if _, _, err := f.Set(t.Context(), func(s *frontier.Settings) error { s.FeedKey = key; return nil }); err != nil {
				t.Fatal(err)
			}
			push(t, f, key, "http://x.example/", "broken")
			var d drained
			if n, err := f.DrainFeed(t.Context(), d.admit); n != 2 || err != nil || len(d.items) != 1 {
				t.Error(key, n, err, d.items)
			}
		}
		if _, err := f.Announce(t.Context(), frontier.NewMember(frontier.KindSeeder, "v")); err != nil {
			t.Error(err)
		}
		if done, err := f.Finished(t.Context()); done || err != nil {
			t.Error(done, err)
		}
	}
}

// What is late waits aside, under the number that it had, and holds up nobody; it
// is handed over in turns until it is taken.
func TestFeedLate(t *testing.T) {
	t.Parallel()
	f := create(t, connect(t), "a", 2)
	for i := range 3 * feedBatch {
		push(t, f, "a:feed", fmt.Sprintf(`{"url":"http://s%d.example/","refetch":true}`, i))
	}
	silent := true
	ids, times := map[string]string{}, map[string]int{}
	admit := func(_ context.Context, items []frontier.FeedItem) (late []int, err error) {
		for i, item := range items {
			if was := ids[item.URL]; was != "" && was != item.Refetch {
				t.Fatalf("%s: request id %q, then %q", item.URL, was, item.Refetch)
			}
			ids[item.URL] = item.Refetch
			if silent && f.Of(item.Fingerprint) == 1 {
				late = append(late, i)
			} else {
				times[item.URL]++
			}
		}
		return late, nil
	}
	handled := 0
	for range 6 {
		n, err := f.DrainFeed(t.Context(), admit)
		if err != nil {
			t.Fatal(err)
		}
		handled += n
	}
	waits, err := f.FeedLen(t.Context())
	if err != nil || handled != len(times) || int(waits) != 3*feedBatch-handled || waits == 0 || handled == 0 {
		t.Fatalf("%d handled, %d of them different, %d wait: %v", handled, len(times), waits, err)
	}
	silent = false
	for waits > 0 {
		if n, err := f.DrainFeed(t.Context(), admit); err != nil || n == 0 {
			t.Fatal(n, err)
		}
		waits, _ = f.FeedLen(t.Context())
	}
	for url, n := range times {
		if n != 1 {
			t.Errorf("%s was handed over %d times to a shard that took it", url, n)
		}
	}
	if len(times) != 3*feedBatch {
		t.Errorf("%d of %d elements", len(times), 3*feedBatch)
	}
}

// A bad element whose list has no room, or no master, waits for it; what can be
// read goes on.
func TestFeedKeepsEveryURL(t *testing.T) {
	t.Parallel()
	server := shardtest.Masters(t, 2)
	client, err := shard.Open(t.Context(), shard.Config{Addrs: server.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	crawl := "a"
	for i := 0; server.MasterOf(t, slotOf(shard.FeedKey(crawl))) == server.MasterOf(t, slotOf(shard.DeadFeedKey(crawl))); i++ {
		crawl = fmt.Sprint("a", i)
	}
	f := create(t, client, crawl, 2)
	keeper := server.MasterOf(t, slotOf(shard.DeadFeedKey(crawl)))
	check := func(what string) {
		t.Helper()
		push(t, f, shard.FeedKey(crawl), "http://x.example/", what)
		var d drained
		if n, err := f.DrainFeed(t.Context(), d.admit); err != nil || n != 1 || len(d.items) != 1 {
			t.Errorf("%s: %d %v %v", what, n, err, d.items)
		}
	}
	keeper.Do(t, "config", "set", "maxmemory", 1)
	check("no room")
	keeper.Do(t, "config", "set", "maxmemory", 0)
	keeper.Stop(t)
	check("no answer")
	keeper.Cont(t)
	for waits := int64(1); waits > 0; waits, _ = f.FeedLen(t.Context()) {
		if _, err := f.DrainFeed(t.Context(), new(drained).admit); err != nil {
			t.Fatal(err)
		}
	}
	dead, err := f.DeadElements(t.Context(), 0, 10)
	if text := fmt.Sprint(dead); err != nil || !strings.Contains(text, "no room") || !strings.Contains(text, "no answer") {
		t.Errorf("%v %v", dead, err)
	}
}

// slotOf is the slot of a key by the rule of Redis Cluster.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return shard.Slot(tag)
		}
	}
	return shard.Slot(key)
}
