//go:build linux

package chaos

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seine/shard"
)

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
			// What a shard adds to the clock is as good as the clock itself.
			meta := shard.KeysOf("seine", tags.Tag(k)).Meta()
			if err := client.HIncrBy(t.Context(), meta, "ahead", -time.Hour.Milliseconds()).Err(); err != nil {
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
