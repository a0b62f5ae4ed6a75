package ask

import (
	"testing"

	"seine/frontier"
	"seine/frontier/memory"
)

// A crawl that ended speaks of paused sites only where there are some.
func TestEnding(t *testing.T) {
	set := frontier.DefaultSettings()
	f, err := memory.New(memory.Config{Layout: frontier.Layout{Shards: 1}, Settings: set})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, x := range []struct {
		total frontier.ShardStats
		want  string
	}{
		{frontier.ShardStats{Done: 5}, "finished: nothing is left"},
		{frontier.ShardStats{Done: 5, Queued: 3, PausedReady: 1}, "finished but for paused sites, 3 URLs are left"},
		{frontier.ShardStats{Done: 5, Queued: 1}, "finished, though counters say that 1 URL is left: see `frontier check`"},
	} {
		r := Summary{Total: x.total}
		if err := r.ending(t.Context(), f, &set); err != nil || r.Ended != x.want {
			t.Errorf("%q, want %q (%v)", r.Ended, x.want, err)
		}
	}
}
