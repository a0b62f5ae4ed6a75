package shard

import (
	"strings"
	"testing"
	"time"

	"seine/shard/shardtest"
)

// TestOpenSlotIsNamed: while a slot moves, calls wait as for a master that is away.
// When it has stood half moved for long it is named, with the nodes and what to do.
func TestOpenSlotIsNamed(t *testing.T) {
	t.Parallel()
	s := shardtest.Masters(t, 2)
	reportedMaster := make(chan Wait, 1000)
	c, err := Open(t.Context(), Config{Addrs: s.Addrs, Waits: func(w Wait) { reportedMaster <- w }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.patience = patience{first: 10 * time.Millisecond, again: 20 * time.Millisecond, open: 500 * time.Millisecond}
	tag := NewMap(2).Tag(0)
	keys, slot := KeysOf("c", tag), Slot(tag)
	pair := []string{keys.Stats(), keys.Meta()}
	both := NewScript("both", `return redis.call("INCR", KEYS[1]) + redis.call("INCR", KEYS[2])`)
	call := func() error { _, err := c.Run(t.Context(), 0, both, pair); return err }
	if err := call(); err != nil {
		t.Fatal(err)
	}
	from, to := s.MasterOf(t, slot), s.Nodes[0]
	if from == to {
		to = s.Nodes[1]
	}
	move := s.BeginMove(t, slot, to)
	move.Keys(t, keys.Stats())
	ended := make(chan error, 1)
	go func() { ended <- call() }()
	early := 0
	for {
		w := <-reportedMaster
		if w.Slot == nil {
			if early++; !strings.Contains(w.String(), "goes on by itself") {
				t.Error(w)
			}
			continue
		}
		if early == 0 || w.Slot.Slot != slot || w.Slot.From != from.Addr || w.Slot.To != to.Addr || w.Slot.For < c.patience.open ||
			strings.Contains(w.String(), "by itself") || !strings.Contains(w.String(), "redis-cli --cluster fix "+from.Addr) {
			t.Errorf("%+v: %v", w.Slot, w)
		}
		break
	}
	move.Finish(t)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestMovesOf(t *testing.T) {
	const a, b = "aaaa 10.0.0.1:1@11,host", "bbbb 10.0.0.2:2@12"
	for _, c := range []struct{ nodes, from, to string }{
		{a + " myself,master - 0 0 1 connected 0-99 [7->-bbbb]\n" + b + " master - 0 0 2 connected 100-199\n", "10.0.0.1:1", "10.0.0.2:2"},
		{a + " master - 0 0 1 connected 0-99\n" + b + " myself,master - 0 0 2 connected 100-199 [17-<-aaaa] [7-<-aaaa]\n", "10.0.0.1:1", "10.0.0.2:2"},
		{a + " myself,master - 0 0 1 connected 0-99 [77->-bbbb]\n" + b + " master - 0 0 2 connected\n", "", ""},
		{"", "", ""},
	} {
		if from, to := movesOf(c.nodes, 7); from != c.from || to != c.to {
			t.Errorf("%q: from %q to %q", c.nodes, from, to)
		}
	}
}
