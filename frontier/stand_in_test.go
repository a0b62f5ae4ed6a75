package frontier_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"seine/frontier"
	"seine/shard"
)

// standIn gives a frontier the calls that it does not have yet.
type standIn struct {
	*frontier.Frontier
	client *shard.Client
	crawl  string
}

func (s standIn) keys(k int) shard.Keys {
	return shard.KeysOf(s.crawl, shard.NewMap(s.Shards()).Tag(k))
}

func (s standIn) DeadLetters(ctx context.Context, k int, cause string, offset, count int64) ([]frontier.DeadLetter, error) {
	list, err := s.client.Redis().LRange(ctx, s.keys(k).Dead(cause), offset, offset+count-1).Result()
	var out []frontier.DeadLetter
	for _, raw := range list {
		l, err := frontier.ParseLetter(raw, cause)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, err
}

func (s standIn) DeadCounts(ctx context.Context, k int) (map[string]int64, error) {
	out := map[string]int64{}
	for _, cause := range []string{"lost", "dns", "timeout", "status-4xx"} {
		n, err := s.client.Redis().LLen(ctx, s.keys(k).Dead(cause)).Result()
		if err != nil {
			return nil, err
		}
		if n > 0 {
			out[cause] = n
		}
	}
	return out, nil
}

func (s standIn) Robots(ctx context.Context, k int, origin string) ([]byte, time.Duration, bool, error) {
	r := s.client.Redis()
	text, err := r.Get(ctx, s.keys(k).Robots(origin)).Result()
	if err != nil {
		return nil, 0, false, nil
	}
	ttl, err := r.PTTL(ctx, s.keys(k).Robots(origin)).Result()
	return []byte(text), ttl, true, err
}

func (s standIn) SetRobots(ctx context.Context, k int, origin string, text []byte, ttl time.Duration) error {
	return s.client.Redis().Set(ctx, s.keys(k).Robots(origin), text, ttl).Err()
}

func (s standIn) Stats(ctx context.Context) ([]frontier.ShardStats, error) {
	r := s.client.Redis()
	var out []frontier.ShardStats
	for k := range s.Shards() {
		h, err := r.HGetAll(ctx, s.keys(k).Stats()).Result()
		if err != nil {
			return nil, err
		}
		n := func(name string) int64 { v, _ := strconv.ParseInt(h[name], 10, 64); return v }
		st := frontier.ShardStats{Shard: k, Queued: n("queued"), Waiting: n("waiting"), Open: n("open"), Admits: n("admits"), Known: n("known"),
			Done: n("done"), Retried: n("retried"), Dead: n("dead"), Lost: n("lost"), Revived: n("revived"), Dropped: n("dropped")}
		for class := range 4 {
			st.Ready += r.ZCard(ctx, s.keys(k).Ready(class)).Val()
		}
		st.Held = r.ZCard(ctx, s.keys(k).Held()).Val()
		st.Leases = r.ZCard(ctx, s.keys(k).Leases()).Val()
		st.Paused = r.HGet(ctx, s.keys(k).Meta(), "paused").Val() != ""
		out = append(out, st)
	}
	return out, nil
}

func (s standIn) Finished(ctx context.Context) (bool, error) {
	st, err := s.Stats(ctx)
	for _, x := range st {
		if x.Ready+x.Leases > 0 {
			return false, err
		}
	}
	return true, err
}

func (s standIn) Close() error { return nil }

var _ = fmt.Sprint
