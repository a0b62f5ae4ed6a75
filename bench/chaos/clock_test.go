//go:build linux

package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seine/shard"
)

// jump lets the time of a shard jump ahead as a clock does that is set wrong and
// then right again: fetchers get a lease to come back.
var jump = redis.NewScript(`#!lua flags=allow-oom
local now = redis.call('HINCRBY', KEYS[1], 'tick', ARGV[1])
return redis.call('HSET', KEYS[1], 'quiet', string.format('%.0f', now + ARGV[2]))`)

// The clocks of all masters are set back by an hour. The time of the shards goes
// on from where it was, and nothing is lost or repeated.
func TestClocksSetBack(t *testing.T) {
	w := build(t, setup{lease: 20 * time.Second})
	w.start(3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: w.redis.Addrs})
	defer client.Close()
	tags := shard.NewMap(w.front.Shards())
	for range either(1, 5) {
		w.progress(either(200, 500))
		for k := range tags.Len() {
			meta := shard.KeysOf("seine", tags.Tag(k)).Meta()
			if err := jump.Run(context.Background(), client, []string{meta}, time.Hour.Milliseconds(), w.setup.lease.Milliseconds()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		w.blows++
		w.progress(200)
	}
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	w.explained(v)
}
