package preference

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// short is a Set in a line: "search=no" for what was said, in the order of uses.
func short(s *Set) string {
	var parts []string
	for u := range Uses {
		if a := s.Of(u).Answer; a != Unsaid {
			parts = append(parts, u.String()+"="+a.String())
		}
	}
	return strings.Join(parts, " ")
}

func TestRobotsWords(t *testing.T) {
	past, future := "1 Jan 2010 15:00:00 GMT", time.Now().AddDate(1, 0, 0).Format(time.DateOnly)
	for _, c := range []struct{ list, want string }{
		{"noindex", "search=no"}, {"NONE", "search=no"}, {"all, index, follow", ""}, {"noindex,all", "search=no"}, {"nofollow", ""},
		{"noarchive", "archive=no"}, {"nocache", "archive=no"}, {"noai", "ai_train=no"}, {"noai, noimageai", "ai_train=no"}, {"noimageai", ""},
		{"nosnippet", "ai_input=no"}, {"max-snippet:0", "ai_input=no"}, {"max-snippet: 0", "ai_input=no"}, {"max-snippet:20", ""}, {"max-snippet:-1 noai", "ai_train=no"},
		{"max-image-preview: none", ""}, {"max-image-preview: standard, noarchive", "archive=no"}, {"noaix", ""},
		{"unavailable_after: " + past, "search=no"}, {"unavailable_after:2010-01-01", "search=no"}, {"unavailable_after: " + future, ""},
		{"unavailable_after: Fri, 25 Jun 2010 15:00:00 PST, noarchive", "search=no archive=no"},
		{"unavailable_after: Friday, 25-Jun-10 15:00:00 UTC", "search=no"}, {"unavailable_after: 25-Jun-2010 15:00:00 EST", "search=no"},
		{"unavailable_after: 2010-06-25T15:00:00+00:00", "search=no"}, {"unavailable_after: some day, noai", "ai_train=no"}, {"unavailable_after", ""},
		{"noindex noarchive;noai", "search=no ai_train=no archive=no"}, {"", ""}, {":", ""}, {": noindex", ""}, {strings.Repeat("noindex", 9), ""},
	} {
		var header, meta Set
		header.AddHeader(http.Header{"X-Robots-Tag": {c.list}}, "", "text/html")
		meta.AddMeta([]byte("Robots"), []byte(c.list), "seine")
		if h, m := short(&header), short(&meta); h != c.want || m != c.want {
			t.Errorf("%q: header %q, meta %q, want %q", c.list, h, m, c.want)
		}
	}
}

func TestRobotsAgents(t *testing.T) {
	for _, c := range []struct {
		header []string
		typ    string
		want   string
	}{
		{[]string{"other: noindex", "noarchive"}, "", "archive=no"}, {[]string{"Seine: noai, noindex"}, "", "search=no ai_train=no"},
		{[]string{"other: noindex, seine: noai"}, "", "ai_train=no"}, {[]string{"*: noindex"}, "", "search=no"},
		{[]string{"other: unavailable_after: Fri, 25 Jun 2010 15:00:00 PST"}, "", ""}, {[]string{"seine: unavailable_after: Fri, 25 Jun 2010 15:00:00 PST"}, "", "search=no"},
		{[]string{"noimageai"}, "image/png", "ai_train=no"}, {[]string{"noimageindex"}, "image/png", "search=no"}, {[]string{"noimageai, noimageindex"}, "text/html", ""},
	} {
		var s Set
		s.AddHeader(http.Header{"X-Robots-Tag": c.header}, "SEINE", c.typ)
		if got := short(&s); got != c.want {
			t.Errorf("%q: got %q, want %q", c.header, got, c.want)
		}
	}
	var s Set
	s.AddMeta([]byte("other"), []byte("noindex"), "seine")
	s.AddMeta([]byte("SEINE"), []byte("noai"), "seine")
	if got := short(&s); got != "ai_train=no" {
		t.Error(got)
	}
}

// The examples of draft-ietf-aipref-vocab-08 and of RFC 9651 for what does not parse.
func TestUsage(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"train-ai=n", "ai_train=no"}, {"train-ai=n, search=y", "search=yes ai_train=no"}, {"train-ai=n, ai-use=n, search=y", "search=yes ai_input=no ai_train=no"},
		{"train-ai=y, train-ai, search=n, search=\"n\"", ""}, {"train-ai;allow=n, train-ai=y", "ai_train=yes"}, {"train-ai=y;allow=n", "ai_train=yes"},
		{"train-ai", ""}, {`train-ai="n"`, ""}, {"train-ai=no", ""}, {"train-ai=?0", ""}, {"train-ai=(n)", ""}, {"TRAIN-AI=n", ""}, {"train-ai=n,", ""}, {"train-ai = n", ""},
		{"bots=n, train-genai=n", ""}, {"stuff=y, search=n", "search=no"}, {"tdm=n", ""}, {"", ""}, {"train-ai=N", ""}, {"train-ai=n search=n", ""},
		{"a=1, b=-2.5, c=:YQ==:, d=?1, e=@1700000000, f=%\"x%20y\", g=(a \"b\";x=1 2);y, h=\"\\\"\\\\\", train-ai=n", "ai_train=no"},
		{"a=1., train-ai=n", ""}, {"a=1.2345, train-ai=n", ""}, {"a=\"\\x\", train-ai=n", ""}, {"a=(b, train-ai=n", ""}, {"a=(b\"c\"), train-ai=n", ""}, {"a=:YQ==, train-ai=n", ""},
		{"a=?2, train-ai=n", ""}, {"a=, train-ai=n", ""}, {"a=- , train-ai=n", ""}, {"=n", ""}, {"1a=n, train-ai=n", ""}, {"a=b;, train-ai=n", ""}, {"a=\"é\", train-ai=n", ""},
		{"*x=1;y=2; z ,\ttrain-ai=n", "ai_train=no"}, {"train-ai=n\t, search=y", "search=yes ai_train=no"},
	} {
		var header, rule Set
		header.AddHeader(http.Header{"Content-Usage": {c.text}}, "", "")
		rule.AddRule(LabelUsage, c.text)
		if h, r := short(&header), short(&rule); h != c.want || r != c.want {
			t.Errorf("%q: header %q, rule %q, want %q", c.text, h, r, c.want)
		}
	}
	var s Set // lines of a header are one dictionary
	s.AddHeader(http.Header{"Content-Usage": {"train-ai=n, search=y", "train-ai=y"}}, "", "")
	if got := short(&s); got != "search=yes ai_train=yes" {
		t.Error(got)
	}
}

func TestSignal(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"search=yes, ai-train=no", "search=yes ai_train=no"}, {"ai-train=no, search=yes, ai-input=yes", "search=yes ai_input=yes ai_train=no"},
		{"search=yes,ai-input=no,ai-train=no", "search=yes ai_input=no ai_train=no"}, {"Search = No", "search=no"}, {"use=reference, search=yes", "search=yes"},
		{"ai-train=n", ""}, {"ai-train", ""}, {"search=yes, search=no", "search=no"}, {"", ""},
	} {
		var s Set
		s.AddRule(LabelSignal, c.text)
		if got := short(&s); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// Of TDMRep a meta element counts before the header, and that before the file; what is a
// fault counts as not there (TDMRep, sections 5.1 and 6.4).
func TestTDM(t *testing.T) {
	for _, c := range []struct{ file, header, meta, want, policy string }{
		{"1", "", "", "tdm=no", ""}, {"0", "", "", "tdm=yes", ""}, {"1", "0", "", "tdm=yes", ""}, {"0", "1", "", "tdm=no", ""}, {"0", "1", "0", "tdm=yes", ""}, {"", "", "1", "tdm=no", ""},
		{"1 https://provider.com/policies/policy.json", "", "", "tdm=no", "https://provider.com/policies/policy.json"},
		{"1", "2", "", "tdm=no", ""}, {"", "yes", "", "", ""}, {"", "", " 1 ", "tdm=no", ""},
	} {
		var s Set
		if c.file != "" {
			s.AddRule(LabelTDM, c.file)
		}
		h := http.Header{}
		if c.header != "" {
			h.Set("TDM-Reservation", c.header)
		}
		s.AddHeader(h, "", "")
		if c.meta != "" {
			s.AddMeta([]byte("tdm-reservation"), []byte(c.meta), "")
		}
		if got := short(&s); got != c.want || s.TDMPolicy != c.policy {
			t.Errorf("%+v: got %q, %q", c, got, s.TDMPolicy)
		}
	}
	var s Set
	s.AddHeader(http.Header{"Tdm-Reservation": {"1"}, "Tdm-Policy": {"https://provider.com/policies/policy.json"}}, "", "image/jpg")
	if got := fmt.Sprint(short(&s), s.TDMPolicy, s.Of(TDM).By()); got != "tdm=nohttps://provider.com/policies/policy.jsonTDM header: tdm-reservation=1" {
		t.Error(got)
	}
	s.AddMeta([]byte("TDM-Policy"), []byte("/own"), "")
	if s.TDMPolicy != "/own" {
		t.Error(s.TDMPolicy)
	}
}

// The examples of TDMRep, section 6.2, and what is no such file.
func TestParseTDM(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{`[{"location": "/", "tdm-reservation": 1}]`, "[{/ 1}]"},
		{`[{"location": "/directory-a/", "tdm-reservation": 1},
		   {"location": "/directory-b/html/", "tdm-reservation": 1, "tdm-policy":"https://provider.com/policies/policy.json"},
		   {"location": "/directory-b/images/*.jpg", "tdm-reservation": 0}]`,
			"[{/directory-a/ 1} {/directory-b/html/ 1 https://provider.com/policies/policy.json} {/directory-b/images/*.jpg 0}]"},
		{`[{"location": "/a", "tdm-reservation": "1"}, 7, {"tdm-reservation": 1}, {"location": "/b", "tdm-reservation": 0, "tdm-policy": "x"}, {"location": "/c"}]`, `[{/a "1"} {/b 0} {/c }]`},
		{`{"location": "/", "tdm-reservation": 1}`, "[]"}, {`<html>`, "[]"}, {``, "[]"}, {`[]`, "[]"}, {`[{"location": "/", "tdm-reservation": 1, "tdm-policy": 5}]`, "[{/ 1}]"},
	} {
		if got := fmt.Sprint(ParseTDM([]byte(c.file))); got != c.want {
			t.Errorf("%s: got %s, want %s", c.file, got, c.want)
		}
	}
}

// Between forms no beats yes, whatever comes first, and what is silent changes nothing.
func TestForms(t *testing.T) {
	add := []func(*Set){
		func(s *Set) { s.AddRule(LabelSignal, "search=no, ai-train=yes, ai-input=yes") },
		func(s *Set) {
			s.AddHeader(http.Header{"Content-Usage": {"train-ai=n, search=y"}, "X-Robots-Tag": {"nosnippet"}}, "", "")
		},
		func(s *Set) { s.AddRule(LabelUsage, "train-ai=y") },
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		var s Set
		for _, i := range order {
			add[i](&s)
		}
		if got := short(&s); got != "search=no ai_input=no ai_train=no" {
			t.Errorf("%v: %s", order, got)
		}
		if by := s.Of(AITrain).By(); by != "Content-Usage: train-ai=n" {
			t.Error(by)
		}
	}
	for _, w := range words { // so that TDMRep's order within the form is all there is
		if w.form != tdmrep && w.says[TDM] != Unsaid {
			t.Errorf("%s speaks of tdm", w.word)
		}
	}
}

func TestLicense(t *testing.T) {
	var s Set
	s.AddRule(LabelLicense, "https://example.com/license.xml")
	if !strings.Contains(string(s.AppendJSON(nil)), `{"rsl":"https://example.com/license.xml"}`) {
		t.Errorf("%s", s.AppendJSON(nil))
	}
	s.AddLicense("/page.xml", "application/rsl+xml; charset=utf-8")
	s.AddLicense("/second.xml", "Application/RSL+xml")
	s.AddLicense("https://creativecommons.org/licenses/by/4.0/", "")
	s.AddLicense("/other", "")
	s.AddLicense(strings.Repeat("x", maxAddress+1), "")
	if s.RSL != "/page.xml" || s.License != "https://creativecommons.org/licenses/by/4.0/" || s.IsEmpty() {
		t.Errorf("%+v", s)
	}
}

func TestJSON(t *testing.T) {
	var s Set
	if got := string(s.AppendJSON(nil)); got != "{}" || !s.IsEmpty() {
		t.Error(got)
	}
	s.AddHeader(http.Header{"X-Robots-Tag": {"noindex"}, "Tdm-Reservation": {"1"}, "Tdm-Policy": {`a"<b`}}, "", "")
	s.AddLicense("/l", "")
	got := s.AppendJSON(nil)
	const want = `{"search":{"says":"no","by":"X-Robots-Tag: noindex"},"tdm":{"says":"no","by":"TDM header: tdm-reservation=1"},"license":"/l","tdm_policy":"a\"\u003cb"}`
	if string(got) != want || !json.Valid(got) {
		t.Errorf("%s", got)
	}
}

func TestPurpose(t *testing.T) {
	p, err := ParsePurpose([]string{"search", "ai-train", "ai_input", "tdm", "archive"})
	if err != nil || p != 1<<Uses-1 || strings.Join(p.Names(), " ") != "search ai_input ai_train tdm archive" {
		t.Error(p, err, p.Names())
	}
	if _, err := ParsePurpose([]string{"ai"}); err == nil {
		t.Error("ai is a purpose")
	}
	var s Set
	s.AddRule(LabelSignal, "search=yes, ai-train=no")
	if got := s.Refused(p); got != 1<<AITrain || s.Refused(1<<Search) != 0 || s.Refused(0) != 0 {
		t.Error(got)
	}
	if got := s.Why(1 << AITrain); got != "ai_train: robots.txt Content-Signal: ai-train=no" {
		t.Error(got)
	}
}

// Every word that says something is read by the parser of its form.
func TestTableIsWhole(t *testing.T) {
	for i, w := range words {
		var s Set
		switch word := w.word; w.form {
		case robots:
			if word == "unavailable_after" {
				word += ": 2010-01-01"
			}
			typ := "text/html"
			if w.images {
				typ = "image/png"
			}
			s.AddHeader(http.Header{"X-Robots-Tag": {word}}, "", typ)
		case contentUsage:
			s.AddRule(LabelUsage, word)
		case contentSignal:
			s.AddRule(LabelSignal, word)
		case tdmrep:
			s.AddRule(LabelTDM, strings.TrimPrefix(word, "tdm-reservation="))
		}
		for u := range Uses {
			if got := s.Of(u); got.Answer != w.says[u] || got.Answer != Unsaid && int(got.word) != i {
				t.Errorf("%s: %v is %v, not %v", w.word, u, got.Answer, w.says[u])
			}
		}
	}
}

// The manual has each word that says something, and no other.
func TestManual(t *testing.T) {
	manual, err := os.ReadFile("../sink/README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, w := range words {
		if w.says == [Uses]Answer{} {
			continue
		}
		note := ""
		switch {
		case w.images:
			note = ", of an image"
		case w.word == "unavailable_after":
			note = ", once its time is over"
		}
		row := fmt.Sprintf("| %s | `%s`%s |", [...]string{"robots", "Content-Usage", "Content Signals", "TDMRep"}[w.form], w.word, note)
		for _, a := range w.says {
			row += strings.TrimRight(" "+a.String(), " ") + " |"
		}
		if rows++; !strings.Contains(string(manual), row+"\n") {
			t.Errorf("the manual has no row %s", row)
		}
	}
	if n := strings.Count(string(manual), "| robots | `") + strings.Count(string(manual), "| Content-Usage | `") + strings.Count(string(manual), "| Content Signals | `") + strings.Count(string(manual), "| TDMRep | `"); n != rows {
		t.Errorf("the manual has %d rows, the table %d", n, rows)
	}
}

func FuzzParsers(f *testing.F) {
	for _, text := range []string{"noindex", "unavailable_after: Fri, 25 Jun 2010 15:00:00 PST", "a=(b \"c\";d), train-ai=n", "other: noai, seine: noindex", "1 x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s Set
		s.AddHeader(http.Header{"X-Robots-Tag": {text}, "Content-Usage": {text}, "Tdm-Reservation": {text}, "Tdm-Policy": {text}}, "seine", text)
		s.AddMeta([]byte("robots"), []byte(text), "seine")
		for _, label := range []string{LabelUsage, LabelSignal, LabelLicense, LabelTDM} {
			s.AddRule(label, text)
		}
		if got := s.AppendJSON(nil); !json.Valid(got) {
			t.Fatalf("%s", got)
		}
		ParseTDM([]byte(text))
	})
}

// BenchmarkPage is what a page costs: one that says nothing, as most do, one with an index
// meta element, and one that says something in every form.
func BenchmarkPage(b *testing.B) {
	rich := http.Header{"X-Robots-Tag": {"noarchive, max-snippet:0"}, "Content-Usage": {"train-ai=n, search=y"}, "Tdm-Reservation": {"1"}}
	for _, c := range []struct {
		name       string
		header     http.Header
		meta, rule string
	}{{"silent", http.Header{"Content-Type": {"text/html"}}, "", ""}, {"index", http.Header{}, "index, follow, max-image-preview:large", ""}, {"all", rich, "noai, noimageai", "search=yes, ai-train=no"}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			name, content, out := []byte("robots"), []byte(c.meta), make([]byte, 0, 1<<10)
			for b.Loop() {
				var s Set
				if c.rule != "" {
					s.AddRule(LabelSignal, c.rule)
				}
				s.AddHeader(c.header, "seine", "text/html")
				if c.meta != "" {
					s.AddMeta(name, content, "seine")
				}
				if !s.IsEmpty() {
					out = s.AppendJSON(out[:0])
				}
			}
		})
	}
}
