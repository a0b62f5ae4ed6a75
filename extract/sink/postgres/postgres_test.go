package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seine/extract/sink"
	"seine/extract/sink/sinktest"
)

func open(t testing.TB, cfg Config) *Sink {
	t.Helper()
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shut(t testing.TB, s *Sink) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, s *Sink, records ...*sink.Record) {
	t.Helper()
	done := make(chan error, len(records))
	for _, r := range records {
		s.Write(r, func(err error) { done <- err })
	}
	for range records {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestContract(t *testing.T) {
	server := start(t)
	n := 0
	sinktest.Run(t, func(t *testing.T) sinktest.Target {
		n++
		table := fmt.Sprintf("pages%d", n)
		return sinktest.Target{
			Once: true,
			Open: func(t *testing.T) sink.Sink {
				return open(t, Config{Address: server.address(), Table: table, Fields: sink.AllFields, BatchRows: 100})
			},
			URLs: func(t *testing.T) []string { return query[string](t, server, "SELECT url FROM "+table) },
			Break: func(t *testing.T) func() { // killed in the middle of it
				server.kill(t)
				return func() { server.run(t) }
			},
		}
	})
}

// Every field of a record is in its column, and what has none in rest.
func TestColumns(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address(), Fields: sink.AllFields})
	r := sinktest.Record(3)
	r.Meta, r.Items = json.RawMessage(`{"a":[1]}`), []sink.Item{{Key: "k", Value: json.RawMessage(`2`)}}
	r.Error, r.LinksOut, r.Headers = &sink.Error{Class: "dns", Text: "no"}, []string{"http://x/"}, [][2]string{{"A", "b"}}
	r.Title, r.NoIndex, r.Digest = "nul \x00 half \\ud800", true, "sha256:1"
	r.SetBody([]byte{0xff})
	put(t, s, r)
	shut(t, s)
	row := query[map[string]any](t, server, "SELECT to_jsonb(p) FROM pages AS p")[0]
	want := map[string]any{
		"v": 1.0, "url": r.URL, "status": 200.0, "site": "example.com", "title": "nul \ufffd half \\ud800", "noindex": true, "truncated": false,
		"error_class": "dns", "error_text": "no", "meta": map[string]any{"a": []any{1.0}}, "digest": "sha256:1", "body": "/w==",
		"items": []any{map[string]any{"key": "k", "value": 2.0}}, "headers": []any{[]any{"A", "b"}}, "fetched_at": r.FetchedAt.Format("2006-01-02T15:04:05+00:00"),
		"rest": map[string]any{"body_encoding": "base64", "links_out": []any{"http://x/"}}, "etag": nil,
	}
	for name, v := range want {
		if got := row[name]; fmt.Sprint(got) != fmt.Sprint(v) {
			t.Errorf("%s is %v, not %v", name, got, v)
		}
	}
	// What came last is what is there; columns of the user stay.
	exec1(t, server, "ALTER TABLE pages ADD COLUMN mine integer DEFAULT 7")
	s = open(t, Config{Address: server.address()})
	r.Title = "later"
	put(t, s, r)
	shut(t, s)
	if got := query[string](t, server, "SELECT title || mine FROM pages"); len(got) != 1 || got[0] != "later7" {
		t.Errorf("%v", got)
	}
}

// What jsonb cannot hold is kept as text, and costs its neighbours nothing.
func TestUnreadable(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address()})
	var records []*sink.Record
	for i := range 50 {
		records = append(records, sinktest.Record(i))
	}
	records[17].Meta = json.RawMessage(`1e999999`)
	records[18].URL = "http://example.com/" + strings.Repeat("long/", 2000)
	put(t, s, records...)
	shut(t, s)
	if n := query[int](t, server, "SELECT count(*) FROM pages WHERE rest IS NULL AND status = 200")[0]; n != 49 {
		t.Errorf("%d whole rows", n)
	}
	got := query[string](t, server, "SELECT rest->>'record' FROM pages WHERE url = $1", records[17].URL)
	if len(got) != 1 || !strings.Contains(got[0], `"meta":1e999999`) {
		t.Errorf("%v", got)
	}
}

// What can be seen at the start is refused at the start, without the password.
func TestRefused(t *testing.T) {
	server := start(t)
	exec1(t, server, "CREATE TABLE other (id integer)")
	exec1(t, server, "CREATE TABLE loose (url text)")
	at := "127.0.0.1:" + server.port
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"wrong password": {Config{Address: "postgres://seine:wrongword@" + at + "/postgres"}, "password authentication failed"},
		"no database":    {Config{Address: server.address(), Table: "x.y"}, "x"},
		"no server":      {Config{Address: "postgres://seine@127.0.0.1:1/postgres"}, "refused"},
		"other columns":  {Config{Address: server.address(), Table: "other"}, "does not fit"},
		"url not unique": {Config{Address: server.address(), Table: "loose"}, "does not fit"},
		"no address":     {Config{Address: "postgres://:x:y"}, "parse"},
	} {
		s, err := Open(context.Background(), c.cfg)
		if err == nil {
			s.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "wrongword") || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Parse("postgres://seine@" + at + "/postgres?table=mine&sslmode=disable&password_file=" + file)
	if err != nil || cfg.Table != "mine" {
		t.Fatalf("%+v, %v", cfg, err)
	}
	s := open(t, cfg)
	put(t, s, sinktest.Record(1))
	shut(t, s)
	if n := query[int](t, server, "SELECT count(*) FROM mine")[0]; n != 1 {
		t.Error(n)
	}
	for _, address := range []string{"postgres://h:x/", "postgres://u@h/d?password_file=/nowhere"} {
		if _, err := Parse(address); err == nil {
			t.Errorf("%s is taken", address)
		}
	}
}

// until waits for a state that must come.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// stream writes records on and on until stop is called, which waits for all.
func stream(t *testing.T, s *Sink) (written *atomic.Int64, stop func() int) {
	var sent, kept atomic.Int64
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
			}
			sent.Add(1)
			s.Write(sinktest.Record(i), func(err error) {
				if err != nil {
					t.Errorf("record %d: %v", i, err)
				}
				kept.Add(1)
			})
		}
	}()
	return &kept, func() int {
		close(end)
		<-ended
		until(t, "all are there", func() bool { return kept.Load() == sent.Load() })
		return int(sent.Load())
	}
}

// Killed and restarted again and again while it is written to, a server has
// every record that was acknowledged, and each once.
func TestKilledInMidWrite(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address(), MaxPending: 1 << 20})
	kept, stop := stream(t, s)
	for range 3 {
		from := kept.Load()
		until(t, "it writes", func() bool { return kept.Load() > from+2000 })
		server.kill(t)
		until(t, "Err tells", func() bool { return s.Err() != nil })
		server.run(t)
		until(t, "it goes on", func() bool { return s.Err() == nil })
	}
	n := stop()
	shut(t, s)
	if got := query[int](t, server, "SELECT count(*) FROM pages")[0]; got != n {
		t.Errorf("%d of %d rows", got, n)
	}
}

// A server that stands still holds the writer, who goes on with it.
func TestSlow(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address(), MaxPending: 100_000})
	kept, stop := stream(t, s)
	until(t, "it writes", func() bool { return kept.Load() > 1000 })
	server.signal(t, syscall.SIGSTOP)
	until(t, "the queue is full", func() bool { return s.QueueStats().Pending > 90_000 })
	server.signal(t, syscall.SIGCONT)
	from := kept.Load()
	until(t, "it goes on", func() bool { return kept.Load() > from+1000 })
	n := stop()
	shut(t, s)
	if got := query[int](t, server, "SELECT count(*) FROM pages")[0]; got != n {
		t.Errorf("%d of %d rows", got, n)
	}
}

// A server without room says so; with room it goes on, and nothing is missing.
func TestFull(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address(), MaxPending: 1 << 20})
	exec1(t, server, "CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 3000)")
	kept, stop := stream(t, s)
	until(t, "it writes", func() bool { return kept.Load() > 1000 })
	server.limitFiles(t, "3145728")
	until(t, "Err tells", func() bool { return s.Err() != nil })
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "File too large") {
		t.Errorf("it says: %v", err)
	}
	server.limitFiles(t, "unlimited")
	from := kept.Load()
	until(t, "it goes on", func() bool { return kept.Load() > from+1000 })
	n := stop()
	shut(t, s)
	if got := query[int](t, server, "SELECT count(*) FROM pages")[0]; got != n {
		t.Errorf("%d of %d rows", got, n)
	}
}

// A table that went away is told, and waited for.
func TestTableDropped(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address()})
	put(t, s, sinktest.Record(0))
	exec1(t, server, "ALTER TABLE pages RENAME TO gone")
	done := make(chan error, 1)
	s.Write(sinktest.Record(1), func(err error) { done <- err })
	until(t, "Err tells", func() bool { return s.Err() != nil })
	if err := s.Err(); !strings.Contains(err.Error(), `"pages" does not exist`) {
		t.Error(err)
	}
	exec1(t, server, "ALTER TABLE gone RENAME TO pages")
	if err := <-done; err != nil {
		t.Error(err)
	}
	shut(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	got := make(chan error, 1)
	s.Write(sinktest.Record(2), func(err error) { got <- err })
	if err := <-got; !errors.Is(err, sink.ErrClosed) {
		t.Error(err)
	}
}

func BenchmarkWrite(b *testing.B) {
	server := start(b)
	s := open(b, Config{Address: server.address(), MaxPending: 1 << 20}) // what is measured is the server
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r := sinktest.Record(i)
		s.Write(r, func(error) {})
		i++
	}
	shut(b, s)
	b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "rows/s")
}

// A 304 of a page that was fetched before leaves what is known of the page.
func TestUnchanged(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address(), Fields: sink.AllFields})
	defer shut(t, s)
	r := sinktest.Record(1)
	r.Title, r.ETag, r.LinksOut = "kept", `"v1"`, []string{"http://x/"}
	r.SetBody([]byte("body"))
	put(t, s, r)
	later := &sink.Record{V: 1, URL: r.URL, Site: r.Site, Status: 304, Unchanged: true, FetchedAt: r.FetchedAt.Add(time.Hour)}
	put(t, s, later)
	const look = `SELECT concat_ws(' ', status, title, etag, body, rest->>'links_out', rest->>'unchanged') FROM pages`
	if got := query[string](t, server, look); got[0] != `304 kept "v1" body ["http://x/"] true` {
		t.Errorf("%q", got)
	}
	r.Title, r.LinksOut = "changed", nil
	put(t, s, r)
	if got := query[string](t, server, look); got[0] != `200 changed "v1" body` {
		t.Errorf("%q", got)
	}
}
