package redis

import (
	"errors"
	"strings"
	"testing"

	"seine/frontier"
	"seine/shard"
	"seine/shard/shardtest"
)

// A user who may not run all that scripts do is refused when a crawl is opened.
func TestRights(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		s := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 2})
		for _, x := range []struct{ rules, lacks string }{
			{"~* +@all", ""},
			{"~c:* +@all -info -config", ""},
			{"~* +@all -rpush", "RPUSH"},
			{"~* +@all -bf.insert", "BF.INSERT"},
			{"~* +@all -lpop -time", "LPOP, TIME"},
			{"~c:root ~c:{*}:meta ~c:{*}:filter* ~seine* +@all", "EVALSHA"},
		} {
			for _, n := range s.Nodes {
				args := []any{"acl", "setuser", "app", "reset", "on", ">secret", "&*"}
				for _, r := range strings.Fields(x.rules) {
					args = append(args, r)
				}
				n.Do(t, args...)
			}
			c, err := shard.Open(t.Context(), shard.Config{Addrs: []string{"redis://app:secret@" + s.Addrs[0]}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = OpenOrCreate(t.Context(), c, "c", frontier.Layout{Shards: 2, PlanURLs: 1000}, frontier.DefaultSettings())
			if x.lacks == "" && err != nil || x.lacks != "" && (!errors.Is(err, shard.ErrUnfit) || !strings.Contains(err.Error(), x.lacks)) {
				t.Errorf("%s: %v", x.rules, err)
			}
			c.Close()
		}
	})
}
