//go:build linux

package chaos

import (
	"testing"
	"time"

	"seine/shard"
)

// The clocks of all masters are set back by an hour. The time of the shards goes
// on from where it was, and nothing is lost or repeated.
func TestClocksSetBack(t *testing.T) {
	w := build(t, setup{lease: 20 * time.Second})
	w.start(3)
	tags := shard.NewMap(w.front.Shards())
	for range either(1, 5) {
		w.progress(either(200, 500))
		for k, s := range w.shards() {
			// What a shard adds to the clock is as good as the clock itself.
			meta := shard.KeysOf("seine", tags.Tag(k)).Meta()
			w.redis.MasterOf(t, s.Slot).Do(t, "hincrby", meta, "ahead", -time.Hour.Milliseconds())
		}
		w.blows++
		w.progress(200)
	}
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	w.explained(v)
}
