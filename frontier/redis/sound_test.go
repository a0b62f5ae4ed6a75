package redis

import (
	"context"
	"fmt"
	"maps"
	"strings"
)

// sound fails the test when the shard is not as its rules want it.
func (s *stand) sound(k int) {
	s.t.Helper()
	c, err := AuditCheck(context.Background(), s.Frontier, k, true)
	if err != nil {
		s.t.Fatal(err)
	}
	if c.Faulted > 0 || c.Moving {
		s.t.Fatalf("moving %v, %d faults: %s", c.Moving, c.Faulted, strings.Join(c.Faults, "\n"))
	}
}

// dump is all that the shard's keys hold, but what a call may change without
// any effect: the number of calls, the clock, and the turn of ticks.
func (s *stand) dump(k int) map[string]string {
	s.t.Helper()
	all := make(map[string]string)
	for _, v := range s.do("KEYS", s.keys[k].Pattern()).([]any) {
		key := v.(string)
		switch kind := s.do("TYPE", key).(string); kind {
		case "hash":
			h, err := s.rdb.HGetAll(context.Background(), key).Result()
			if err != nil {
				s.t.Fatal(err)
			}
			for _, name := range []string{"calls", "tick", "quiet", "round"} {
				if key == s.keys[k].Stats() || key == s.keys[k].Meta() {
					delete(h, name)
				}
			}
			all[key] = fmt.Sprint(h)
		case "list":
			all[key] = fmt.Sprintf("%q", s.do("LRANGE", key, 0, -1))
		case "zset":
			all[key] = fmt.Sprintf("%q", s.do("ZRANGE", key, 0, -1, "WITHSCORES"))
		}
	}
	return all
}

// twice runs a call, and again, and fails when the repeat changed anything.
func (s *stand) twice(name string, call func()) {
	s.t.Helper()
	call()
	once := s.dump(0)
	call()
	if again := s.dump(0); !maps.Equal(once, again) {
		for key := range again {
			if once[key] != again[key] {
				s.t.Errorf("%s, repeated, changes %s\nfrom %s\nto   %s", name, key, once[key], again[key])
			}
		}
		for key := range once {
			if _, ok := again[key]; !ok {
				s.t.Errorf("%s, repeated, removes %s", name, key)
			}
		}
		s.t.FailNow()
	}
}
