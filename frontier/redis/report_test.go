package redis

import (
	"fmt"
	"strings"
	"testing"

	"seine/shard"
)

// Keys that all shards share may hold what others wrote: a report says which,
// and tells the rest.
func TestReportForeignKeys(t *testing.T) {
	t.Parallel()
	l := newLab(t, connect(t), small(1))
	for _, key := range []string{shard.FeedKey(l.crawl), shard.LiveKey(l.crawl), shard.LiveInfoKey(l.crawl)} {
		l.do("DEL", key)
		l.do("SET", key, "x")
		if key == shard.LiveInfoKey(l.crawl) { // asked only of programs that are there
			l.do("ZADD", shard.LiveKey(l.crawl), 1e15, "somebody")
		}
		r, err := l.Report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(r.Unread); len(r.Unread) != 1 || !strings.Contains(text, key) || !strings.Contains(text, "rename or delete it") || strings.Contains(text, "WRONGTYPE") {
			t.Errorf("%s: %q", key, r.Unread)
		}
		if ofFeed := key == shard.FeedKey(l.crawl); ofFeed != (r.Feed == -1) || ofFeed == (r.Members == nil) || len(r.Shards) != 1 {
			t.Errorf("%s: feed %d, members %v", key, r.Feed, r.Members)
		}
		l.do("DEL", key)
	}
	l.do("DEL", shard.LiveKey(l.crawl))
	if r, err := l.Report(t.Context()); err != nil || r.Unread != nil || r.Feed != 0 || r.Members == nil {
		t.Errorf("%+v, %v", r, err)
	}
}
