package frontier

import (
	"slices"
	"testing"
)

func TestMergeShards(t *testing.T) {
	for _, c := range []struct{ texts, want []string }{
		{nil, nil},
		{[]string{"shard 3 is full"}, []string{"shard 3 is full"}},
		{[]string{"shard 0 is full", "shard 3 is full", "shard 4 does not answer"}, []string{"shards 0 and 3 are full", "shard 4 does not answer"}},
		{[]string{"left out: shard 0: tick: no", "shard 1: tick: no", "shard 2: tick: no"}, []string{"left out: shards 0, 1 and 2: tick: no"}},
		{[]string{"shard 0 takes no writes: MISCONF it is full", "other", "shard 1 takes no writes: MISCONF it is full"},
			[]string{"shards 0 and 1 take no writes: MISCONF it is full", "other"}},
		{[]string{"shard 0: a", "shard 1: b", "shard 0: b"}, []string{"shard 0: a", "shards 1 and 0: b"}},
	} {
		if got := MergeShards(c.texts); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.texts, got, c.want)
		}
	}
	if MergeShards([]string{}) == nil {
		t.Error("an empty list became none, which JSON calls null")
	}
}
