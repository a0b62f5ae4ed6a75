package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"seine/shard/shardtest"
)

// A key that somebody overwrote with one of another type is named, moved away
// with what it holds, and the rest put in order.
func TestRepairTypes(t *testing.T) {
	t.Parallel()
	server := shardtest.One(t)
	for _, name := range []string{"meta", "stats", "leases", "ready:0", "ready:2", "ready:paused", "s:a.example", "q:a.example:2", "q:b.example:1",
		"w:a.example", "dead:http", "v:token", "robots:http://a.example", "probes", "filter:0"} {
		t.Run(name, func(t *testing.T) {
			server.Nodes[0].Do(t, "flushall")
			s := made(t, server)
			s.admit(candidates("a.example", 0, 5)...)
			s.admit(candidates("b.example", 0, 5)...)
			key := strings.TrimSuffix(s.keys.Meta(), "meta") + name
			moved := strings.TrimSuffix(s.keys.Meta(), "meta") + "moved:" + name
			s.do("DEL", key)
			s.do("GEOADD", key, 1, 1, "x") // a zset
			if strings.HasPrefix(name, "ready") || strings.HasPrefix(name, "w:") || name == "leases" {
				s.do("SET", key, "x")
			}
			c := s.check(true)
			inPlace := name == "robots:http://a.example" // a check does not read it
			if !inPlace && !strings.Contains(fmt.Sprint(c.Faults), key+": is of type ") {
				t.Fatalf("check: %+v", c)
			}
			c = s.repair()
			if n := s.number("EXISTS", moved); !inPlace && n != 1 {
				t.Errorf("what stood there is gone: %+v", c)
			}
			if name == "filter:0" {
				if c.Faulted != 1 || !strings.Contains(c.Faults[0], "is missing") {
					t.Errorf("%+v", c)
				}
				return
			}
			if c.Faulted > 0 {
				t.Errorf("left: %+v", c.Faults)
			}
			s.admit(candidates("a.example", 5, 9)...)
			s.sound()
		})
	}
}
