package warc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/extract/sink"
	"seine/extract/sink/frame"
	"seine/extract/sink/sinktest"
)

var kinds = []frame.Kind{frame.Gzip, frame.Zstd}

func TestContract(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.String(), func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Target {
				dir := t.TempDir()
				moved := dir + ".moved"
				return sinktest.Target{
					Open: func(t *testing.T) sink.Sink {
						return open(t, Config{Dir: dir, Prefix: "crawl", Kind: k, RotateSize: 100_000, Fields: sink.AllFields})
					},
					URLs: func(t *testing.T) (urls []string) {
						for _, b := range blocks(t, append(files(t, dir), files(t, moved)...)...) {
							if b.fields["WARC-Type"] == "metadata" {
								urls = append(urls, b.fields["WARC-Target-URI"])
							}
						}
						return urls
					},
					// A directory that is no directory any more: the open file is gone
					// from there, and no other can be made.
					Break: func(t *testing.T) func() {
						if err := os.Rename(dir, moved); err != nil {
							t.Fatal(err)
						}
						for _, f := range files(t, moved) {
							if strings.HasSuffix(f, frame.OpenEnd) { // take a copy: what has no name is let go
								data, _ := os.ReadFile(f)
								if err := os.WriteFile(strings.TrimSuffix(f, frame.OpenEnd), data, 0o600); err != nil {
									t.Fatal(err)
								}
								os.Remove(f)
							}
						}
						if err := os.WriteFile(dir, nil, 0o600); err != nil {
							t.Fatal(err)
						}
						return func() { os.Remove(dir) }
					},
				}
			})
		})
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Config{
		"dir/crawl":          {Dir: "dir/", Prefix: "crawl", Kind: frame.Gzip},
		"crawl.zst":          {Dir: ".", Prefix: "crawl", Kind: frame.Zstd},
		"/a/b/crawl.warc.gz": {Dir: "/a/b/", Prefix: "crawl", Kind: frame.Gzip},
		"/a/v1.2":            {Dir: "/a/", Prefix: "v1.2", Kind: frame.Gzip},
	} {
		c, err := Parse(text)
		if err != nil || c.Dir != want.Dir || c.Prefix != want.Prefix || c.Kind != want.Kind {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	for _, text := range []string{"", "dir/", ".gz"} {
		if c, err := Parse(text); err == nil {
			t.Errorf("%q is %+v", text, c)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	for _, c := range []Config{{}, {Dir: "x", Prefix: "a/b"}, {Dir: file, Prefix: "x"}, {Dir: "x", Prefix: "x", RotateSize: -1}} {
		if s, err := Open(c); err == nil {
			t.Errorf("%+v is taken", c)
			s.Close()
		}
	}
}

// page is a record with an answer.
func page(url, head, body string) *sink.Record {
	r := sinktest.Record(0)
	r.URL = url
	r.Exchange.Response = []byte(head + body)
	r.Exchange.Body = len(head)
	r.Exchange.Chunked = strings.Contains(head, "chunked")
	return r
}

const (
	plainHead   = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
	chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// What the server reports unchanged is a revisit.
func TestNotModified(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir, Prefix: "crawl"})
	r := page("http://a.example/1", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", "")
	r.Status, r.Unchanged = 304, true
	put(t, s, r)
	shut(t, s)
	got := blocks(t, files(t, dir)...)[1].fields
	if got["WARC-Type"] != "revisit" || !strings.HasSuffix(got["WARC-Profile"], "/revisit/server-not-modified") ||
		got["WARC-Refers-To-Target-URI"] != r.URL || got["WARC-Payload-Digest"] != "" {
		t.Errorf("%v", got)
	}
}

// Of a page that its site refuses there is the metadata alone, with the headers that no other
// record holds.
func TestWithheld(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir, Prefix: "crawl", Fields: sink.FieldHeaders})
	r := page("http://a.example/1", plainHead, "hello world")
	r.Exchange, r.Withheld, r.Preferences = nil, "ai_train", []byte(`{"ai_train":{"says":"no","by":"X-Robots-Tag: noai"}}`)
	r.Headers = [][2]string{{"X-Robots-Tag", "noai"}}
	put(t, s, r)
	shut(t, s)
	all := blocks(t, files(t, dir)...)
	if len(all) != 2 || all[1].fields["WARC-Type"] != "metadata" || all[1].fields["WARC-Target-URI"] != r.URL {
		t.Fatalf("%d records, %v", len(all), all[len(all)-1].fields)
	}
	if back := recordOf(t, all[1]); back.Withheld != "ai_train" || string(back.Preferences) != string(r.Preferences) || len(back.Headers) != 1 {
		t.Errorf("%+v", back)
	}
}

// A payload that is known is a revisit only where it lies in its record as the new one
// would; its digest is that of the payload however the chunks came.
func TestFraming(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir, Prefix: "crawl"})
	old := page("http://a.example/old", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "b\r\nhello world\r\n0\r\n\r\n")
	folded := page("http://a.example/folded", "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n", "b\r\nhello world\r\n0\r\n\r\n")
	declared := page("http://a.example/declared", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nX: 1\r\n\r\n", "hello world")
	declared.Exchange.Chunked = false
	put(t, s, page("http://a.example/plain", plainHead, "hello world"),
		page("http://a.example/chunked", chunkedHead, "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"), old, folded, declared,
		page("http://a.example/parameter", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;q=1\r\n\r\n", "b\r\nhello world\r\n0\r\n\r\n"),
		page("http://a.example/lf", chunkedHead, "5\nhello\n6\n world\n0\n\n"),
		page("http://a.example/gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", "hello world"),
		page("http://a.example/repeated", plainHead, "hello world"))
	shut(t, s)
	sum := "sha256:" + hex.EncodeToString(sha256Of("hello world"))
	var got []string
	for _, b := range blocks(t, files(t, dir)...) {
		if kind := b.fields["WARC-Type"]; kind == "response" || kind == "revisit" {
			got = append(got, path.Base(b.fields["WARC-Target-URI"])+" "+kind)
			if b.fields["WARC-Payload-Digest"] != sum {
				t.Errorf("%s: payload digest %s, want %s", b.fields["WARC-Target-URI"], b.fields["WARC-Payload-Digest"], sum)
			}
		}
	}
	want := "plain response chunked response old revisit folded response declared response parameter response lf revisit gzip response repeated revisit"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

func sha256Of(s string) []byte { sum := sha256.Sum256([]byte(s)); return sum[:] }

// Request and answer stand there as they were; the same payload, however it
// came, stands there once.
func TestRecords(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir, Prefix: "crawl", Fields: sink.FieldLinksOut})
	first := page("http://a.example/1", plainHead, "hello world")
	first.LinksOut = []string{"http://a.example/x\r\ny", "http://b.example/"}
	put(t, s, first)
	put(t, s, page("http://a.example/2", plainHead, "hello world"))
	cut := page("http://a.example/3", plainHead, "hello world")
	cut.Exchange.Cut = "length"
	put(t, s, cut, page("http://a.example/4", plainHead, ""))
	shut(t, s)
	all := blocks(t, files(t, dir)...)
	var got []string
	for _, b := range all {
		got = append(got, b.fields["WARC-Type"])
	}
	if want := "warcinfo response request metadata revisit request metadata response request metadata response request metadata"; strings.Join(got, " ") != want {
		t.Fatalf("%v", got)
	}
	if name := filepath.Base(files(t, dir)[0]); all[0].fields["WARC-Filename"] != name {
		t.Errorf("%v in %s", all[0].fields, name)
	}
	original, repeated := all[1].fields, all[4]
	if string(all[1].body) != plainHead+"hello world" || string(all[2].body) != string(first.Exchange.Request) {
		t.Errorf("%q, %q", all[1].body, all[2].body)
	}
	if all[2].fields["WARC-Concurrent-To"] != original["WARC-Record-ID"] || original["WARC-IP-Address"] != "192.0.2.1" {
		t.Errorf("%v, %v", original, all[2].fields)
	}
	if string(repeated.body) != plainHead || repeated.fields["WARC-Refers-To"] != original["WARC-Record-ID"] ||
		repeated.fields["WARC-Refers-To-Target-URI"] != "http://a.example/1" || repeated.fields["WARC-Refers-To-Date"] != original["WARC-Date"] ||
		repeated.fields["WARC-Payload-Digest"] != original["WARC-Payload-Digest"] {
		t.Errorf("%v\n%q", repeated.fields, repeated.body)
	}
	if f := all[7].fields; f["WARC-Truncated"] != "length" || f["WARC-Payload-Digest"] != "" || f["WARC-Type"] != "response" {
		t.Errorf("a page that was cut: %v", f)
	}
	if f := all[10].fields; f["WARC-Type"] != "response" || f["WARC-Payload-Digest"] == "" {
		t.Errorf("an empty page: %v", f)
	}
	meta := string(all[3].body)
	if !strings.Contains(meta, "outlink: http://a.example/x  y\r\noutlink: http://b.example/\r\n") || !strings.HasPrefix(meta, "hopsFromSeed: 0\r\n") {
		t.Errorf("%q", meta)
	}
	if r := recordOf(t, all[3]); r.URL != first.URL || r.Title != first.Title {
		t.Errorf("%+v", r)
	}
}

// Values of credentials are left out, folded ones too, unless they are asked for.
func TestSecrets(t *testing.T) {
	const secret = "geheim"
	r := page("http://a.example/", "HTTP/1.1 200 OK\r\nset-cookie: a="+secret+"\r\n  b="+secret+"\r\nSet-Cookie : "+secret+"\nX: kept\r\n\r\n", "body")
	r.Exchange.Request = []byte("GET http://a.example/ HTTP/1.1\r\nAuthorization: Basic " + secret + "\r\nProxy-Authorization:" + secret + "\r\nCookie: " + secret + "\r\nX: kept\r\n\r\n")
	r.Headers = [][2]string{{"Set-Cookie", secret}}
	for _, fields := range []sink.Fields{sink.AllFields, sink.AllFields | sink.KeepSecrets} {
		dir := t.TempDir()
		s := open(t, Config{Dir: dir, Prefix: "crawl", Fields: fields})
		put(t, s, r)
		shut(t, s)
		found, kept := 0, 0
		for _, b := range blocks(t, files(t, dir)...) {
			found += bytes.Count(b.body, []byte(secret))
			kept += bytes.Count(b.body, []byte("X: kept"))
		}
		if want := map[bool]int{true: 6}[fields.Has(sink.KeepSecrets)]; found != want || kept != 2 {
			t.Errorf("fields %b: found %d times, %d other lines", fields, found, kept)
		}
	}
}

// Headers that a request calls secret are left out, unless they are asked for; its body
// stays, whatever its lines look like.
func TestSecretsOfRequest(t *testing.T) {
	r := page("http://a.example/", "HTTP/1.1 200 OK\r\nX-Token: answered\r\n\r\n", "body")
	r.Method, r.Request = "POST", "00000000000000ff"
	r.Exchange.Secrets = []string{"X-Token"}
	r.Exchange.Request = []byte("POST / HTTP/1.1\r\nHost: a.example\r\nx-token: geheim\r\n\r\nq=1\r\nCookie: of the body")
	for _, fields := range []sink.Fields{0, sink.KeepSecrets} {
		dir := t.TempDir()
		s := open(t, Config{Dir: dir, Prefix: "crawl", Fields: fields})
		put(t, s, r)
		shut(t, s)
		var all []byte
		for _, b := range blocks(t, files(t, dir)...) {
			all = append(all, b.body...)
		}
		for _, want := range []string{"POST / HTTP/1.1\r\nHost: a.example\r\nx-token: ", "\r\n\r\nq=1\r\nCookie: of the body", "X-Token: answered", `"method":"POST","request":"00000000000000ff"`} {
			if !bytes.Contains(all, []byte(want)) {
				t.Errorf("fields %b: no %q in %s", fields, want, all)
			}
		}
		if found := bytes.Contains(all, []byte("geheim")); found != fields.Has(sink.KeepSecrets) {
			t.Errorf("fields %b: the secret is there: %v", fields, found)
		}
	}
}

// Files keep to their size and age, begin with a warcinfo, are reported when they are
// finished, and are open until then.
func TestRotation(t *testing.T) {
	for _, k := range kinds {
		dir := t.TempDir()
		var reported []string
		s := open(t, Config{Dir: dir, Prefix: "crawl", Kind: k, RotateSize: 20_000, RotateTime: time.Hour, Finished: func(p string) { reported = append(reported, p) }})
		for i := range 100 {
			put(t, s, sinktest.Record(i))
		}
		var open int
		for _, f := range files(t, dir) {
			if strings.HasSuffix(f, frame.OpenEnd) {
				open++
			}
		}
		shut(t, s)
		names := files(t, dir)
		if open != 1 || len(names) < 3 || len(reported) != len(names) || int(s.Stats().Files) != len(names) {
			t.Errorf("%v: %d open, %d files, %d reported", k, open, len(names), len(reported))
		}
		for _, f := range names {
			st, err := os.Stat(f)
			if err != nil || st.Size() > 20_000 || st.Mode().Perm() != 0o600 || strings.HasSuffix(f, frame.OpenEnd) {
				t.Errorf("%s: %v %v", f, st, err)
			}
			if all := blocks(t, f); all[0].fields["WARC-Type"] != "warcinfo" || len(all) < 2 {
				t.Errorf("%s begins with %v", f, all[0].fields)
			}
		}
	}
	dir := t.TempDir()
	finished := make(chan string, 1)
	s := open(t, Config{Dir: dir, Prefix: "crawl", RotateTime: 10 * time.Millisecond, Finished: func(p string) { finished <- p }})
	put(t, s, sinktest.Record(0))
	<-finished // by its age, without another record
	shut(t, s)
}

// Cut at any length, an open file is finished by the next start with what was
// whole, and reported; one that a living process writes is left alone.
func TestTornEndIsCut(t *testing.T) {
	for _, k := range kinds {
		dir := t.TempDir()
		s := open(t, Config{Dir: dir, Prefix: "crawl", Kind: k})
		put(t, s, sinktest.Record(1), sinktest.Record(2))
		name := files(t, dir)[0]
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		shut(t, open(t, Config{Dir: dir, Prefix: "crawl", Kind: k}))
		if now := files(t, dir); len(now) != 1 || now[0] != name {
			t.Errorf("the file of a living process became %v", now)
		}
		shut(t, s)
		for n := 0; n <= len(whole); n += 7 {
			dir := t.TempDir()
			path := filepath.Join(dir, filepath.Base(name))
			if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			var reported []string
			s := open(t, Config{Dir: dir, Prefix: "crawl", Kind: k, Finished: func(p string) { reported = append(reported, p) }})
			shut(t, s)
			got := files(t, dir)
			if len(got) != len(reported) || len(got) > 1 || len(got) == 1 && strings.HasSuffix(got[0], frame.OpenEnd) {
				t.Fatalf("%v, reported %v", got, reported)
			}
			blocks(t, got...) // all whole
		}
	}
}

// victim archives until it is killed, reporting what is in the sink.
func victim(dir string) {
	s, err := Open(Config{Dir: dir, Prefix: "crawl", RotateSize: 100_000})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		r := sinktest.Record(i)
		r.URL += "?" + fmt.Sprint(os.Getpid())
		url := r.URL
		s.Write(r, func(error) { fmt.Println(url) })
	}
}

// What was acknowledged is there after kill -9, once, and nothing is torn.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	reported := sinktest.KillWriters(t, dir, 100, 433, 766, 1099)
	shut(t, open(t, Config{Dir: dir, Prefix: "crawl"}))
	kept, ids := map[string]bool{}, map[string]bool{}
	for _, b := range blocks(t, files(t, dir)...) {
		ids[b.fields["WARC-Record-ID"]] = true
		if to := b.fields["WARC-Refers-To"]; to != "" && !ids[to] {
			// Files are read in the order of their names, which is that of their time
			// to the second; what a revisit refers to may be in any of them.
			ids["wanted "+to] = true
		}
		if u := b.fields["WARC-Target-URI"]; b.fields["WARC-Type"] == "metadata" {
			if kept[u] {
				t.Fatalf("%s twice", u)
			}
			kept[u] = true
		}
	}
	for id := range ids {
		if to, ok := strings.CutPrefix(id, "wanted "); ok && !ids[to] {
			t.Errorf("a revisit refers to %s, which is nowhere", to)
		}
	}
	for u := range reported {
		if !kept[u] {
			t.Fatalf("%s was reported and is not there", u)
		}
	}
	if len(reported) < 500 {
		t.Fatalf("only %d", len(reported))
	}
}
