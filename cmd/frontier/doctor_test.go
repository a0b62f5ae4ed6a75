package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"seine/shard"
	"seine/shard/shardtest"
)

// doctor prints one line a finding and ends with 1 where something must be repaired.
func TestDoctor(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
		}
		if !strings.HasPrefix(r.UserAgent(), "seine/") {
			t.Error(r.UserAgent())
		}
	}))
	defer web.Close()
	d := newOperator(t, shardtest.Start(t, shardtest.Config{AOF: "everysec", Directives: []string{"maxmemory 100mb"}}))
	const local = " --allow-net 127.0.0.0/8"
	level := func(command string, code int) map[string]shard.Finding {
		t.Helper()
		got, out, errs := d.run(strings.Fields(command + " --json")...)
		var list []shard.Finding
		if err := json.Unmarshal([]byte(out), &list); err != nil || got != code {
			t.Fatalf("%s: code %d, %v, %s%s", command, got, err, out, errs)
		}
		by := map[string]shard.Finding{}
		for _, f := range list {
			by[f.What] = f
		}
		return by
	}
	found := level("doctor --contact "+web.URL+"/bot"+local, 0)
	for _, what := range []string{"version", "bloom module", "maxmemory-policy", "contact", "DNS", "egress"} {
		if f := found[what]; f.Level != shard.OK {
			t.Errorf("%s: %+v", what, f)
		}
	}
	if f := found["egress"]; !strings.Contains(f.Found, "answers 200") {
		t.Error(f)
	}
	if f := level("doctor --contact "+web.URL+"/gone"+local, 0)["egress"]; f.Level != shard.Warn || !strings.Contains(f.Found, "410") {
		t.Error(f)
	}
	for command, wrong := range map[string]string{
		"doctor --contact " + web.URL:                                      "egress", // a private address
		"doctor --reach http://127.0.0.1:1/ --contact a@b.example" + local: "egress",
		"doctor --reach http://no.such.invalid/ --dns 127.0.0.1:1":         "DNS",
		"doctor --redis 127.0.0.1:1":                                       "Redis",
	} {
		if f := level(command, 1)[wrong]; f.Level != shard.Fail || f.Do == "" {
			t.Errorf("%s: %+v", command, f)
		}
	}
	if f := level("doctor", 0)["contact"]; f.Level != shard.Warn {
		t.Error(f)
	}
	d.ok("create --shards 1 --plan-urls 100 --user-agent mybot/1.0(+https://example.com/bot)")
	if f := level("doctor", 0)["contact"]; f.Level != shard.OK || !strings.Contains(f.Found, "mybot/1.0") {
		t.Error(f)
	}
	code, out, _ := d.run("doctor")
	for line := range strings.Lines(out) {
		if w := strings.Fields(line)[0]; w != "ok" && w != "warn" && w != "fail" {
			t.Errorf("%q", line)
		}
	}
	if t.Logf("%s", out); code != 0 {
		t.Error(code)
	}
	d.refused(2, "doctor --state x", "crawls in Redis")
}
