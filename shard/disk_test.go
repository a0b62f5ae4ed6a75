package shard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seine/shard"
	"seine/shard/shardtest"
)

// A server that cannot write its disk refuses every write until it can again:
// it is waited for, like one that is away.
func TestRunThroughFullDisk(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		s := shardtest.Start(t, shardtest.Config{Kind: kind, Directives: []string{"save 36000 1000000"}})
		n := s.Nodes[0]
		saved := func(want string) {
			t.Helper()
			for end := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				info, err := n.Client().Info(t.Context(), "persistence").Result()
				if err == nil && contains(info, "rdb_bgsave_in_progress:0") && contains(info, "rdb_last_bgsave_status:"+want) {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("bgsave is not %s: %v\n%s", want, err, info)
				}
			}
		}
		dump := filepath.Join(n.Dir, "dump.rdb") // a directory of that name stands for a full disk
		if err := os.Mkdir(dump, 0o700); err != nil {
			t.Fatal(err)
		}
		n.Do(t, "set", "k", 1)
		n.Do(t, "bgsave")
		saved("err")
		if err := n.Client().Set(t.Context(), "k", 1, 0).Err(); !redis.HasErrorPrefix(err, "MISCONF") {
			t.Fatalf("a write to a full disk: %v", err)
		}
		c := open(t, s)
		busy := n.Client().Info(t.Context(), "errorstats").Val()
		done := make(chan string)
		go func() {
			v, err := c.Run(within(t), 0, shard.NewScript("wait", "#!lua\n"+`return redis.call("INCRBY", KEYS[1], ARGV[1])`), []string{"k"}, 1)
			done <- fmt.Sprint(v, err)
		}()
		for n.Client().Info(t.Context(), "errorstats").Val() == busy { // until it was refused
			select {
			case got := <-done:
				t.Fatal("gave up: ", got)
			default:
			}
		}
		if v := c.Epoch(0); v != 0 {
			t.Errorf("epoch %d: no connection broke", v)
		}
		if err := os.Remove(dump); err != nil {
			t.Fatal(err)
		}
		n.Do(t, "bgsave")
		if got := <-done; got != "2 <nil>" {
			t.Error(got)
		}
	})
}
