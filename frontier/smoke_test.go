package frontier

import (
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	s := one(t)
	if v := s.admit(candidates("a.example", 0, 10)...); v != "aaaaaaaaaa" {
		t.Fatal(v)
	}
	if v := s.admit(candidates("a.example", 5, 12)...); v != "sssssaa" {
		t.Fatal(v)
	}
	v := s.lend(4)
	t.Logf("%+v", v)
	t.Log(s.settle(all(v, Done)), s.settle(all(v, Done)))
	v = s.lend(4)
	t.Log(s.settle(all(v, Retry)))
	v = s.lend(2)
	t.Log(s.settle(all(v, Dead)))
	t.Log(s.do("KEYS", "*"), s.do("HGETALL", s.keys[0].Stats()), s.do("LRANGE", s.keys[0].Dead("timeout"), 0, -1), time.Now())
	v = s.lend(2)
	s.pass(0, 61*time.Second)
	r := s.tick(TickRequest{MaxExpired: 10})
	t.Log(r)
	t.Log(s.Reap(t.Context(), 0, r.Expired))
	s.pass(0, time.Second)
	v = s.lend(2)
	t.Log(v)
	b := true
	t.Log(s.Alter(t.Context(), 0, "a.example", SiteChange{Blocked: &b}))
	t.Log(s.do("KEYS", "*"), s.do("HGETALL", s.keys[0].Stats()))
}
