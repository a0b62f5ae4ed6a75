package web

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"seine/extract/sink"
)

// The key is what a crawler that does all right comes to, whatever the web is like.
func TestKeyIsTrue(t *testing.T) {
	const quick = AllFeatures &^ Slow
	cases := []struct {
		name  string
		cfg   Config
		plan  Plan
		seeds []int
	}{
		{"demo", Demo(1), Plan{}, nil},
		{"bare", Config{Seed: 2, Sites: 3, Pages: 200}, Plan{}, nil},
		{"one page a site", Config{Seed: 3, Sites: 5, Pages: 1, Features: quick}, Plan{}, nil},
		{"all but slow", Config{Seed: 4, Sites: 6, Pages: 600, Features: quick}, Plan{}, nil},
		{"any scope", Config{Seed: 5, Sites: 9, Pages: 400, Features: Gentle}, Plan{AnyScope: true}, []int{0}},
		{"some sites", Config{Seed: 6, Sites: 9, Pages: 300, Features: quick}, Plan{Sites: []int{1, 4}}, []int{1, 4}},
		{"depth 2", Config{Seed: 7, Sites: 3, Pages: 500, Features: quick &^ Redirects}, Plan{MaxDepth: 2}, nil},
		{"disobedient", Config{Seed: 8, Sites: 8, Pages: 500, Features: quick &^ Traps}, Plan{IgnoreRobots: true}, nil},
		{"wide", Config{Seed: 9, Sites: 2, Pages: 300, Links: 10, New: 1, Features: quick}, Plan{}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.cfg)
			crawl := newCrawler(t, s, c.plan)
			crawl.run(s.web.Seeds(c.seeds...)...)
			c.plan.Slack = time.Second // a loaded machine may hand requests over late
			r, err := s.web.Verify(c.plan, s.web.Log(), all(crawl.records))
			if err != nil {
				t.Fatal(err)
			}
			if !r.OK() {
				t.Errorf("%s", r)
			}
			if r.Expected < len(s.web.Seeds(c.seeds...)) || (c.cfg.Features&Traps != 0 && c.cfg.Pages > 500 && r.Traps == 0) {
				t.Errorf("nothing to see: %s", r)
			}
		})
	}
}

// And a crawl that does something wrong is found out.
func TestVerifyFindsFaults(t *testing.T) {
	s := serve(t, Demo(1))
	crawl := newCrawler(t, s, Plan{})
	crawl.run(s.web.Seeds()...)
	log, records := s.web.Log(), crawl.records
	page := -1
	for i, r := range log {
		if r.Status == 200 && r.Target != "/" && r.Target != "/robots.txt" && r.Host == "s0.example" {
			page = i
			break
		}
	}
	without := append(append([]Request{}, log[:page]...), log[page+1:]...)
	forged := func(target string) []Request {
		return append(append([]Request{}, log...), Request{At: time.Now(), Host: "s0.example", Target: target, Status: 200})
	}
	private := ""
	for n := 1; private == "" && n < s.web.Pages(0); n++ {
		if s.web.traits(0, n).private {
			private = string(s.web.appendPath(nil, 0, kindPage, n, 0))
		}
	}
	changed := func(f func(*sink.Record)) []*sink.Record {
		out := append([]*sink.Record{}, records...)
		r := *out[len(out)/2]
		f(&r)
		out[len(out)/2] = &r
		return out
	}
	cases := []struct {
		name    string
		plan    Plan
		log     []Request
		records []*sink.Record
		finding func(*Report) *Finding
		says    string
	}{
		{"missing", Plan{}, without, records, func(r *Report) *Finding { return &r.Missing }, s.web.Host(0)},
		{"repeated", Plan{}, forged(log[page].Target), records, func(r *Report) *Finding { return &r.Repeated }, "2 requests, not 1"},
		{"forbidden", Plan{}, forged(private), records, func(r *Report) *Finding { return &r.Extra }, "forbidden by robots.txt"},
		{"hidden", Plan{}, forged("/secret/1"), records, func(r *Report) *Finding { return &r.Extra }, "nofollow"},
		{"unknown", Plan{}, forged("/p99999999.html"), records, func(r *Report) *Finding { return &r.Extra }, "no such URL"},
		{"early", Plan{Delay: time.Hour}, log, records, func(r *Report) *Finding { return &r.Early }, "not 1h0m0s"},
		{"no record", Plan{}, log, records[1:], func(r *Report) *Finding { return &r.Unwritten }, "http://s"},
		{"two records", Plan{}, log, append(records, records[0]), func(r *Report) *Finding { return &r.Doubled }, "2 records"},
		{"status", Plan{}, log, changed(func(r *sink.Record) { r.Status = 418 }), func(r *Report) *Finding { return &r.Wrong }, "status 418"},
		{"depth", Plan{}, log, changed(func(r *sink.Record) { r.Depth = 0 }), func(r *Report) *Finding { return &r.Wrong }, "depth"},
		{"noindex", Plan{}, log, changed(func(r *sink.Record) { r.NoIndex = !r.NoIndex }), func(r *Report) *Finding { return &r.Wrong }, "noindex"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.plan.Slack = time.Second
			r, err := s.web.Verify(c.plan, c.log, all(c.records))
			if err != nil {
				t.Fatal(err)
			}
			if f := c.finding(r); r.OK() || f.Count == 0 || !strings.Contains(strings.Join(f.Examples, "\n"), c.says) {
				t.Errorf("%q not found in %s", c.says, r)
			}
		})
	}
	var b bytes.Buffer
	if err := WriteLog(&b, log); err != nil {
		t.Fatal(err)
	}
	back, err := ReadLog(&b)
	if err != nil || len(back) != len(log) || back[page].Target != log[page].Target || !back[page].At.Equal(log[page].At) {
		t.Errorf("log does not survive: %v, %d lines", err, len(back))
	}
	if _, err := ReadLog(strings.NewReader(fmt.Sprintln("what"))); err == nil {
		t.Error("a bad log was read")
	}
}
