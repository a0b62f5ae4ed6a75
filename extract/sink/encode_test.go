package sink

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// reference is r by encoding/json, without HTML escapes.
func reference(t testing.TB, r *Record) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func full() Record {
	return Record{
		V: 1, URL: "https://example.com/a?b=<&>", Status: 200, FetchedAt: time.Date(2026, 11, 28, 1, 2, 3, 45600, time.UTC),
		Depth: math.MaxUint32, Site: "example.com", ContentType: "text/html; charset=\"utf-8\"", Charset: "utf-8",
		Bytes: 1 << 40, WireBytes: -1, Seconds: 0.123456789, Title: "A \\ \"title\"\twith\nlines\b\f\r\x01 и \u2028 \U0001f600",
		Links: 62, Truncated: true, NoIndex: true, Error: &Error{Class: "dns", Text: "no\x00such"}, Attempts: 3, Redirects: 2,
		Location: "/x", Meta: json.RawMessage(`{"a":[1,2,{"b":"c \" d\\"}],"e":null}`), Digest: "sha256:00", Wall: &Wall{Vendor: "a-b", Sure: true}, WallHint: "c", Price: [][2]string{{"crawler-price", "USD 0.01"}, {"payment-required", "e30="}}, ETag: `W/"1"`,
		Modified: "Sat, 28 Nov 2026 01:02:03 GMT", Items: []Item{{Key: "a#1", Value: json.RawMessage(`{"price":1.5}`)}, {Value: json.RawMessage(`null`)}}, Body: "<p>\u00e9", BodyEncoding: "base64", LinksOut: []string{"a", "b\"c"},
		Headers: [][2]string{{"A", "b"}, {"C", "d\x1f"}}, Text: "x", SimHash: "0123456789abcdef", IP: "2001:db8::1", Protocol: "http/1.1", Fields: json.RawMessage(`{"price":1.5}`),
		Preferences: json.RawMessage(`{"search":{"says":"no","by":"X-Robots-Tag: noindex"}}`), Withheld: "search",
	}
}

func TestAppendJSONIsEncodingJSON(t *testing.T) {
	all := full()
	cases := []Record{{}, all}
	// Every field alone, so that omission and order are seen one by one.
	v := reflect.ValueOf(all)
	for i := range v.NumField() {
		var r Record
		reflect.ValueOf(&r).Elem().Field(i).Set(v.Field(i))
		cases = append(cases, r)
	}
	for _, s := range []float64{0, 1, 1e-7, 1.5e-9, 1e21, 1e20, 123456.789, -1e-10, 1e-300} {
		cases = append(cases, Record{Seconds: s})
	}
	cases = append(cases, Record{Title: "bad \xff utf8 \xc3"}, Record{LinksOut: []string{}}, Record{Headers: [][2]string{{"", ""}}})
	for _, r := range cases {
		if got, want := string(r.AppendJSON(nil, AllFields)), reference(t, &r); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A page that its site refuses by now replaces what was recorded of it, even by a 304.
func TestHasContent(t *testing.T) {
	for _, c := range []struct {
		r    Record
		want bool
	}{
		{Record{Status: 200}, true}, {Record{Status: 304}, false}, {Record{Status: 200, Withheld: "search"}, true}, {Record{Status: 304, Withheld: "search"}, true},
		{Record{Error: &Error{Class: "preference"}}, false},
	} {
		if got := c.r.HasContent(); got != c.want {
			t.Errorf("%+v: %v", c.r, got)
		}
	}
}

func TestAppendJSONFields(t *testing.T) {
	r := full()
	for _, f := range fieldNames {
		var got map[string]any
		if err := json.Unmarshal(r.AppendJSON(nil, f.bit), &got); err != nil {
			t.Fatal(err)
		}
		for _, g := range fieldNames {
			if _, there := got[g.name]; there != (f.name == g.name) {
				t.Errorf("with %s: %s there = %v", f.name, g.name, there)
			}
		}
	}
	if f, err := ParseFields([]string{"text", "body"}); err != nil || f != FieldText|FieldBody {
		t.Error(f, err)
	}
	if _, err := ParseFields([]string{"boby"}); err == nil {
		t.Error("unknown field taken")
	}
}

func TestAppendJSONDiffers(t *testing.T) {
	cases := []struct {
		name string
		r    Record
		want string
	}{
		{"C1 and DEL", Record{Title: "a\x7f\u009b31m\u0080\u00a0"}, `"title":"a\u007f\u009b31m\u0080` + "\u00a0\""},
		{"zone", Record{FetchedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("x", 3600))}, `"fetched_at":"2025-12-31T23:00:00Z"`},
		{"not a number", Record{Seconds: math.NaN()}, `"seconds":0,`},
		{"meta lines", Record{Meta: json.RawMessage(" {\n\"a b\" : \"c \\\" d\" ,\r\n\t\"e\":1 }\n")}, `"meta":{"a b":"c \" d","e":1}`},
		{"meta no JSON", Record{Meta: json.RawMessage("{\"a\":\n")}, `"meta":"{\"a\":"`},
		{"meta surrogates", Record{Meta: json.RawMessage(`{"\udfff":"\uD800\ud83d\uDE00x\ude00\ud83d\\ud83d\/"}`)}, `"meta":{"\ufffd":"\ufffd\ud83d\uDE00x\ufffd\ufffd\\ud83d\/"}`},
		{"item surrogates", Record{Items: []Item{{Value: json.RawMessage(`"\ud800"`)}}}, `"value":"\ufffd"`},
		{"field surrogates", Record{Fields: json.RawMessage(`{"a":"\ud800\ud800\udc00"}`)}, `"fields":{"a":"\ufffd\ud800\udc00"}`},
		{"meta control", Record{Meta: json.RawMessage("\"\u009b\\\\\"")}, `"meta":"\u009b\\"`},
	}
	for _, c := range cases {
		got := string(c.r.AppendJSON(nil, 0))
		if !strings.Contains(got, c.want) || !json.Valid([]byte(got)) {
			t.Errorf("%s: got %s, want in it %s", c.name, got, c.want)
		}
	}
}

func TestSetBody(t *testing.T) {
	var r Record
	if r.SetBody([]byte("\xff\xfe")); r.Body != "//4=" || r.BodyEncoding != "base64" {
		t.Error(r.Body, r.BodyEncoding)
	}
	if r.SetBody([]byte("é")); r.Body != "é" || r.BodyEncoding != "" {
		t.Error(r.Body, r.BodyEncoding)
	}
}

func FuzzAppendJSON(f *testing.F) {
	f.Add("title", "{}", 0.5)
	f.Add("\x00\x7f\xff\u2028", "{\"a\" : \"\\u0000\"}", 1e-9)
	f.Fuzz(func(t *testing.T, s, meta string, sec float64) {
		r := Record{V: 1, URL: s, Title: s, Seconds: sec, Meta: json.RawMessage(meta), Text: s, LinksOut: []string{s}, Headers: [][2]string{{s, s}}}
		line := r.AppendJSON(nil, AllFields)
		if bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
			t.Fatalf("control bytes in %q", line)
		}
		var back Record
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		want := strings.ToValidUTF8(s, "\ufffd")
		if utf8.ValidString(s) && (back.Title != want || back.URL != want || back.Text != want || (want != "" && back.LinksOut[0] != want)) {
			t.Fatalf("%q came back as %q", want, back.Title)
		}
		if !math.IsNaN(sec) && !math.IsInf(sec, 0) && back.Seconds != sec {
			t.Fatalf("%v came back as %v", sec, back.Seconds)
		}
	})
}

func TestAppendJSONAllocates(t *testing.T) {
	r := full()
	r.Meta, r.Items, r.Preferences = nil, nil, nil
	buf := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { buf = r.AppendJSON(buf[:0], AllFields) }); n != 0 {
		t.Errorf("%v allocations a record", n)
	}
	r.Meta = json.RawMessage(`{"spider": "a long enough name to leave the stack"}`)
	r.Preferences = full().Preferences
	least := math.Inf(1) // what checks both comes from a pool, which forgets at random under the race detector
	for range 50 {
		least = min(least, testing.AllocsPerRun(5, func() { buf = r.AppendJSON(buf[:0], AllFields) }))
	}
	if least != 0 {
		t.Errorf("%v allocations a record with meta", least)
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	r := full()
	r.Error = nil
	buf := r.AppendJSON(nil, 0)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = r.AppendJSON(buf[:0], 0)
	}
}
