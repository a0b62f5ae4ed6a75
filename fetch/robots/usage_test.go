package robots

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// said is what the lines of a file say of a path, sorted, after a passage through the
// compact form.
func said(t *testing.T, file, agent, path string) string {
	t.Helper()
	r := Parse([]byte(file), agent)
	packed := r.Append(nil)
	back, err := Load(packed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Append(nil), packed) {
		t.Error("the compact form changes")
	}
	var lists [2][]string
	for i, r := range []*Rules{r, back} {
		r.EachUsage([]byte(path), func(label, value string) { lists[i] = append(lists[i], label+" "+value) })
		slices.Sort(lists[i])
	}
	if !slices.Equal(lists[0], lists[1]) {
		t.Errorf("%q and loaded %q", lists[0], lists[1])
	}
	return strings.Join(lists[0], "|")
}

func TestUsage(t *testing.T) {
	// draft-ietf-aipref-attach-05, sections 1.2 and 3.4
	const first = "User-Agent: *\nAllow: /\nContent-Usage: train-ai=n\n"
	const example = "User-Agent: *\nAllow: /\nDisallow: /never/\nContent-Usage: train-ai=n\nContent-Usage: /ai-ok/ train-ai=y\n\n" +
		"User-Agent: ExampleBot\nAllow: /\nContent-Usage: train-ai=y\n"
	for _, c := range []struct{ file, agent, path, want string }{
		{first, "seine", "/", "content-usage train-ai=n"},
		{example, "seine", "/test", "content-usage train-ai=n"}, {example, "seine", "/never/test", ""}, {example, "seine", "/ai-ok/test", "content-usage train-ai=y"},
		{example, "examplebot", "/test", "content-usage train-ai=y"}, {example, "ExampleBot", "/never/test", "content-usage train-ai=y"}, {example, "examplebot", "/ai-ok/test", "content-usage train-ai=y"},
		// identical paths count both, longer ones alone, and order says nothing
		{"user-agent: *\ncontent-usage: /a train-ai=y\nCONTENT-USAGE :\t/a\tsearch=n # why\ncontent-usage: /ab ai-use=n", "seine", "/ac", "content-usage search=n|content-usage train-ai=y"},
		{"user-agent: *\ncontent-usage: /ab ai-use=n\ncontent-usage: /a train-ai=y", "seine", "/abc", "content-usage ai-use=n"},
		{"user-agent: *\ncontent-usage: /*.pdf$ train-ai=n", "seine", "/x.pdf", "content-usage train-ai=n"}, {"user-agent: *\ncontent-usage: /*.pdf$ train-ai=n", "seine", "/x.pdfs", ""},
		{"user-agent: *\ncontent-usage: /a%7eb train-ai=n", "seine", "/a~b", "content-usage train-ai=n"},
		// groups
		{"content-usage: train-ai=n\nuser-agent: *\nallow: /", "seine", "/", ""}, {"user-agent: other\ncontent-usage: train-ai=n\nuser-agent: *\nallow: /", "seine", "/", ""},
		{"user-agent: seine\nallow: /\nuser-agent: *\ncontent-usage: train-ai=n", "seine", "/", ""},
		{"user-agent: seine\nuser-agent: other\ncontent-usage: train-ai=n\nuser-agent: seine\ncontent-usage: search=n", "seine", "/", "content-usage search=n|content-usage train-ai=n"},
		// Content Signals, each label by itself
		{"User-agent: *\nContent-Signal: search=yes,ai-train=no\nAllow: /", "seine", "/", "content-signal search=yes,ai-train=no"},
		{"User-agent: *\nContent-Signal: ai-train=no\nContent-Signal: /open/ ai-train=yes\nContent-Usage: search=n", "seine", "/open/x", "content-signal ai-train=yes|content-usage search=n"},
		// RSL 1.0: outside of groups for everybody, inside for the group
		{"License: https://example.com/license.xml\nUser-agent: *\nDisallow: /x", "seine", "/", "license https://example.com/license.xml"}, {"License: https://example.com/license.xml", "seine", "/", "license https://example.com/license.xml"},
		{"User-agent: other\nLicense: https://example.com/other.xml\nDisallow:\n\nUser-agent: *\nLicense: https://example.com/all.xml", "seine", "/", "license https://example.com/all.xml"},
		{"User-agent: *\nContent-Usage:\nContent-Usage: /x", "seine", "/x", "content-usage "}, {"User-agent: *\nContent-Usages: train-ai=n", "seine", "/", ""},
	} {
		if got := said(t, c.file, c.agent, c.path); got != c.want {
			t.Errorf("%q for %s on %s: got %q, want %q", c.file, c.agent, c.path, got, c.want)
		}
	}
	// the draft's table says also what may be fetched
	for path, want := range map[string]bool{"/test": true, "/never/test": false, "/ai-ok/test": true} {
		if got := Parse([]byte(example), "seine").Allowed([]byte(path)); got != want {
			t.Errorf("%s: allowed %v", path, got)
		}
	}
}

// A Content-Usage is a rule, so the next agent begins a group of its own; a License is none.
func TestUsageEndsAgents(t *testing.T) {
	if !Parse([]byte("user-agent: seine\ncontent-usage: train-ai=n\nuser-agent: other\ndisallow: /"), "seine").Allowed([]byte("/")) {
		t.Error("another agent's rules are ours")
	}
	if Parse([]byte("user-agent: seine\nlicense: https://example.com/\nuser-agent: other\ndisallow: /"), "seine").Allowed([]byte("/")) {
		t.Error("a license ends a group")
	}
}

// Of a TDM file the first rule that matches counts (TDMRep, section 6.2).
func TestTDM(t *testing.T) {
	r := Parse(nil, "seine")
	if r.HasTDM() {
		t.Error("nobody asked for it")
	}
	r.AddTDM("/directory-a/", "1", "/directory-b/html/", "1 https://provider.com/policies/policy.json", "/directory-b/images/*.jpg", "0", "/directory-b", "1", "", "0")
	r, err := Load(r.Append(nil))
	if err != nil || !r.HasTDM() {
		t.Fatal(err, r)
	}
	for path, want := range map[string]string{
		"/directory-a/x.pdf": "1", "/directory-b/html/x": "1 https://provider.com/policies/policy.json", "/directory-b/images/x.jpg": "0", "/directory-b/images/x.png": "1", "/directory-c": "",
	} {
		got := ""
		r.EachUsage([]byte(path), func(label, value string) { got += value })
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	empty := Parse(nil, "seine")
	empty.AddTDM()
	if back, err := Load(empty.Append(nil)); err != nil || !back.HasTDM() || back.HasUsage() {
		t.Error(back, err)
	}
}

// What says nothing of pages has the compact form that it had, and hostile files are
// bounded.
func TestUsageBytes(t *testing.T) {
	with := Parse([]byte("user-agent: *\ndisallow: /a\ncontent-usage: /b train-ai=n"), "seine")
	without := Parse([]byte("user-agent: *\ndisallow: /a"), "seine")
	if plain := without.Append(nil); len(plain) != len("\x01")+len("\x01*")+1+1+1+4+1+1 || len(with.Append(nil)) > len(plain)+20 {
		t.Errorf("%d bytes, and %d with a line", len(plain), len(with.Append(nil)))
	}
	var b bytes.Buffer
	b.WriteString("user-agent: *\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "content-usage: /%d train-ai=n, x=%s\n", i, strings.Repeat("a", i%200))
	}
	r := Parse(b.Bytes(), "seine")
	if got := len(r.Append(nil)); got > 2*maxUsageBytes {
		t.Errorf("%d bytes", got)
	}
	tdm := make([]string, 10_000)
	for i := range tdm {
		tdm[i] = "/" + strings.Repeat("b", 20)
	}
	r.AddTDM(tdm...)
	if got := len(r.Append(nil)); got > 4*maxUsageBytes {
		t.Errorf("%d bytes with a TDM file", got)
	}
	if _, err := Load(r.Append(nil)); err != nil {
		t.Error(err)
	}
	if n := testing.AllocsPerRun(10, func() { without.EachUsage([]byte("/x"), func(string, string) { t.Error("said") }) }); n != 0 {
		t.Errorf("%v allocations for a file that says nothing", n)
	}
}

func BenchmarkUsage(b *testing.B) {
	r := Parse(append(typical(), "User-agent: *\nContent-Signal: search=yes,ai-train=no\nContent-Usage: /open/ train-ai=y\n"...), "seine")
	path, n := []byte(benchPaths[1]), 0
	b.ReportAllocs()
	for b.Loop() {
		r.EachUsage(path, func(string, string) { n++ })
	}
}
