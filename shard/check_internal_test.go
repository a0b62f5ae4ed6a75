package shard

import "testing"

func TestTooOld(t *testing.T) {
	for _, c := range []struct{ redis, valkey, want string }{
		{"7.0.0", "", ""},
		{"7.0.15", "", ""},
		{"8.2.1", "", ""},
		{"10.0.0", "", ""},
		{"6.2.14", "", "Redis 6.2.14"},
		{"7.2.4", "8.0.1", ""},
		{"7.2.4", "7.2.0", ""},
		{"7.2.4", "7.1.9", "Valkey 7.1.9"},
		{"", "", ""},
		{"unknown", "", ""},
		{"255.255.255", "", ""},
	} {
		if got := tooOld(map[string]string{"redis_version": c.redis, "valkey_version": c.valkey}); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
