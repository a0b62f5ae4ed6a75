package frontier

import (
	"slices"
	"testing"
)

func TestFaultTexts(t *testing.T) {
	full := func(k int) ShardFault { return ShardFault{Shard: k, One: "is full", Many: "are full"} }
	refuses := func(k int) ShardFault {
		return ShardFault{Shard: k, One: "takes no writes", Many: "take no writes", Cause: "MISCONF it is full"}
	}
	failed := func(k int, cause string) ShardFault { return ShardFault{Shard: k, Cause: cause} }
	for _, c := range []struct {
		faults []ShardFault
		want   []string
	}{
		{nil, nil},
		{[]ShardFault{full(3)}, []string{"shard 3 is full"}},
		{[]ShardFault{full(0), full(3), {4, "does not answer", "do not answer", ""}}, []string{"shards 0 and 3 are full", "shard 4 does not answer"}},
		{[]ShardFault{failed(0, "tick: no"), failed(1, "tick: no"), failed(2, "tick: no")}, []string{"shards 0, 1 and 2: tick: no"}},
		{[]ShardFault{refuses(0), full(7), refuses(1)}, []string{"shards 0 and 1 take no writes: MISCONF it is full", "shard 7 is full"}},
		{[]ShardFault{failed(0, "a"), failed(1, "b"), failed(0, "b")}, []string{"shard 0: a", "shards 1 and 0: b"}},
	} {
		if got := FaultTexts(c.faults); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.faults, got, c.want)
		}
	}
	if FaultTexts(nil) == nil {
		t.Error("an empty list became none, which JSON calls null")
	}
}
