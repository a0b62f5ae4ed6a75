package shard_test

import (
	"strings"
	"testing"
	"time"

	"seine/shard"
	"seine/shard/shardtest"
)

// TestWaits: a call that does not get through says for whom it waits and why,
// once, and goes on when its master is back.
func TestWaits(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	reportedMaster := make(chan shard.Wait, 100)
	c, err := shard.Open(within(t), shard.Config{Addrs: s.Addrs, Waits: func(w shard.Wait) { reportedMaster <- w }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s.Nodes[0].Kill(t)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Do(within(t), 3, "a", "GET", "a")
		ended <- err
	}()
	var first time.Time
	select {
	case w := <-reportedMaster:
		first = time.Now()
		if w.Shard != 3 || w.Op != "GET" || w.Master != s.Nodes[0].Addr || w.Err == nil || !strings.Contains(w.String(), w.Master+", master of shard 3") {
			t.Errorf("%+v: %s", w, w)
		}
	case err := <-ended:
		t.Fatal("it did not wait: ", err)
	}
	s.Nodes[0].Restart(t)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := len(reportedMaster); n != 0 && time.Since(first) < 25*time.Second {
		t.Errorf("reported %d times more", n)
	}
}
