package fetch

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestTypes(t *testing.T) {
	for _, tc := range []struct {
		patterns, yes, no string
	}{
		{strings.Join(DefaultTypes(), ","), "text/html|TEXT/HTML; charset=x|application/xhtml+xml|text/xml|application/xml|application/rss+xml|image/svg+xml|text/plain;",
			"image/png|application/pdf|text/css|text/javascript|application/json|html||text/htmlx|;text/html"},
		{"text/*", "text/html|text/css", "application/text|text"},
		{"*/*", "a/b||x", ""},
		{"*/*+json,Application/JSON", "application/ld+json|application/json", "application/jsonx|text/html"},
	} {
		types, err := NewTypes(strings.Split(tc.patterns, ","))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range strings.Split(tc.yes, "|") {
			if !types.Accept(s) {
				t.Errorf("%s refuses %q", tc.patterns, s)
			}
		}
		if tc.no == "" {
			continue
		}
		for _, s := range strings.Split(tc.no, "|") {
			if types.Accept(s) {
				t.Errorf("%s accepts %q", tc.patterns, s)
			}
		}
	}
	for _, bad := range []string{"", "html", "text/", "/html", "*/html", "text/h*", "text/html; q=1", "*/*xml"} {
		if _, err := NewTypes([]string{bad}); err == nil {
			t.Errorf("%q is no type", bad)
		}
	}
}

// TestMissingType: without a Content-Type the first bytes decide, before the
// Handler is asked.
func TestMissingType(t *testing.T) {
	for _, tc := range []struct {
		body, sniffed string
		accepts       bool
	}{
		{"  <!DOCTYPE html><p>x", "text/html", true},
		{"<?xml version='1.0'?><a/>", "text/xml", true},
		{"just words", "text/plain", true},
		{"\x89PNG\r\n\x1a\n....", "image/png", false},
		{"%PDF-1.7 ...", "application/pdf", false},
		{"\x00\x01\x02\x03", "application/octet-stream", false},
		{"", "", true},
	} {
		for _, enc := range []string{"", "gzip"} {
			body := encode(t, enc, []byte(tc.body+strings.Repeat("x", 2000*len(tc.sniffed))))
			say := strings.Replace(answer(enc, body, true), "Content-Type: text/html\r\n", "", 1)
			c := newClient(t, nil)
			s := answers(t, say, false)
			var asked Response
			h := &funcHandler{begin: func(r *Response) bool { asked = *r; return c.Accepts(r) }}
			var resp Response
			if err := c.Do(t.Context(), &Request{URL: s.url}, &resp, h); err != nil {
				t.Fatal(err)
			}
			if asked.ContentType != "" || asked.Sniffed != tc.sniffed || (len(h.body) > 0) != (tc.accepts && tc.body != "") {
				t.Errorf("%q: sniffed %q, %d bytes", tc.body, asked.Sniffed, len(h.body))
			}
			if tc.accepts && len(h.body) != len(tc.body)+2000*len(tc.sniffed) {
				t.Errorf("%q: %d bytes", tc.body, len(h.body))
			}
		}
	}
	all := newClient(t, func(cfg *Config) { cfg.FetchAll = true })
	if !all.Accepts(&Response{ContentType: "image/png"}) || newClient(t, nil).Accepts(&Response{ContentType: "image/png"}) {
		t.Error("FetchAll")
	}
}

type funcHandler struct {
	collector
	begin func(*Response) bool
}

func (h *funcHandler) Begin(r *Response) bool { return h.begin(r) }

func TestRetryAfter(t *testing.T) {
	now := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"120": 2 * time.Minute, " 0 ": 0, "Tue, 02 Jan 2024 03:05:05 GMT": time.Minute, "Tue, 02 Jan 2024 03:00:00 GMT": 0,
		"Tuesday, 02-Jan-24 03:04:35 GMT": 30 * time.Second, "4294967295": 4294967295 * time.Second,
		"": -1, "-5": -1, "soon": -1, "1.5": -1, "99999999999999999999": math.MaxInt64, "9999999999": math.MaxInt64,
	} {
		h := &header{}
		h.text = []byte("Retry-After: " + v)
		(&headReader{h: h}).field(0, len(h.text), false)
		got, ok := RetryAfter(h, now)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %s %v", v, got, ok)
		}
	}
}
