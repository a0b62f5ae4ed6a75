package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
			URLs: func(t *testing.T) []string {
				exec1(t, server, createRefusedSQL(table+"_refused"))
				return query[string](t, server, "SELECT url FROM "+table+" UNION ALL SELECT url FROM "+table+"_refused")
			},
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
		"v": 1.0, "url": r.URL, "status": nil, "fetch_status": 200.0, "site": "example.com", "title": "nul \ufffd half \\ud800", "noindex": true, "truncated": false,
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

// What the table cannot hold goes to the table beside it, with the name of its column,
// and costs its neighbours nothing. The row that was there stays.
func TestUnstorable(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address(), Fields: sink.AllFields})
	var records []*sink.Record
	for i := range 50 {
		records = append(records, sinktest.Record(i))
	}
	put(t, s, records[30])
	exec1(t, server, "ALTER TABLE pages ALTER COLUMN title TYPE varchar(20), ADD CHECK (depth < 1000), ALTER COLUMN site SET NOT NULL")
	records[17].Meta = json.RawMessage(`1e999999`)
	records[18].URL = "http://example.com/" + strings.Repeat("long/", 2000)
	records[30].Title = strings.Repeat("too long ", 10)
	records[31].Depth = 1000
	records[32].SetBody(bytes.Repeat([]byte("a"), 200<<20)) // two of them are more than jsonb holds
	records[32].Text = records[32].Body[:100<<20]
	put(t, s, records...)
	shut(t, s)
	if n := query[int](t, server, "SELECT count(*) FROM pages WHERE rest IS NULL AND status = 200")[0]; n != 47 {
		t.Errorf("%d rows, want 46 and the former one", n)
	}
	got := query[string](t, server, `SELECT concat_ws(' ', url, "column", record IS NOT NULL, error <> '') FROM pages_refused ORDER BY url`)
	var want []string
	for i, column := range map[int]string{17: "meta", 30: "title", 31: "depth", 32: "body"} {
		want = append(want, records[i].URL+" "+column+" t t")
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("refused: %q\nwant %q", got, want)
	}
}

// A user who may not make tables writes to the table of refused records that is there;
// without one the record is lost and the log names it. Neither delays the others.
func TestRefusedWithoutRights(t *testing.T) {
	server := start(t)
	shut(t, open(t, Config{Address: server.address()}))
	exec1(t, server, "CREATE ROLE writer LOGIN PASSWORD 'secret'; GRANT SELECT, INSERT, UPDATE ON pages TO writer; REVOKE CREATE ON SCHEMA public FROM PUBLIC; ALTER TABLE pages ADD CHECK (depth < 1000)")
	var log bytes.Buffer
	cfg := Config{Address: strings.Replace(server.address(), "seine:"+escaped, "writer:secret", 1), Log: slog.New(slog.NewTextHandler(&log, nil))}
	deep := func(i int) *sink.Record {
		r := sinktest.Record(i)
		r.Depth = 1000
		return r
	}
	s := open(t, cfg)
	put(t, s, deep(1), sinktest.Record(2))
	exec1(t, server, createRefusedSQL("pages_refused")+"; GRANT INSERT ON pages_refused TO writer")
	put(t, s, deep(3), sinktest.Record(4))
	if n := s.QueueStats().Unfit; n != 2 {
		t.Errorf("%d records are counted as refused, want 2", n)
	}
	shut(t, s)
	if got := query[string](t, server, "SELECT url FROM pages_refused"); !slices.Equal(got, []string{deep(3).URL}) {
		t.Errorf("refused: %q", got)
	}
	if n := query[int](t, server, "SELECT count(*) FROM pages")[0]; n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	if n := strings.Count(log.String(), "record is lost"); n != 1 {
		t.Errorf("%d losses in the log: %s", n, log.String())
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
		sinktest.Until(t, "all are there", func() bool { return kept.Load() == sent.Load() })
		return int(sent.Load())
	}
}

// Killed and restarted many times under load, a server has
// every record that was acknowledged, and each once.
func TestKilledInMidWrite(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address(), MaxPending: 1 << 20})
	kept, stop := stream(t, s)
	for range 3 {
		from := kept.Load()
		sinktest.Until(t, "it writes", func() bool { return kept.Load() > from+2000 })
		server.kill(t)
		sinktest.Until(t, "Err is the reason", func() bool { return s.Err() != nil })
		server.run(t)
		sinktest.Until(t, "it goes on", func() bool { return s.Err() == nil })
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
	sinktest.Until(t, "it writes", func() bool { return kept.Load() > 1000 })
	server.signal(t, syscall.SIGSTOP)
	sinktest.Until(t, "the queue is full", func() bool { return s.QueueStats().Pending > 90_000 })
	server.signal(t, syscall.SIGCONT)
	from := kept.Load()
	sinktest.Until(t, "it goes on", func() bool { return kept.Load() > from+1000 })
	n := stop()
	shut(t, s)
	if got := query[int](t, server, "SELECT count(*) FROM pages")[0]; got != n {
		t.Errorf("%d of %d rows", got, n)
	}
}

// A server without room is reported; with room it goes on, and nothing is missing.
func TestFull(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address(), MaxPending: 1 << 20})
	exec1(t, server, "CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 3000)")
	kept, stop := stream(t, s)
	sinktest.Until(t, "it writes", func() bool { return kept.Load() > 1000 })
	server.limitFiles(t, "3145728")
	sinktest.Until(t, "Err is the reason", func() bool { return s.Err() != nil })
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "File too large") {
		t.Errorf("wrong reason: %v", err)
	}
	server.limitFiles(t, "unlimited")
	from := kept.Load()
	sinktest.Until(t, "it goes on", func() bool { return kept.Load() > from+1000 })
	n := stop()
	shut(t, s)
	if got := query[int](t, server, "SELECT count(*) FROM pages")[0]; got != n {
		t.Errorf("%d of %d rows", got, n)
	}
}

// A missing table is reported, and the sink waits for it.
func TestTableDropped(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address()})
	put(t, s, sinktest.Record(0))
	exec1(t, server, "ALTER TABLE pages RENAME TO gone")
	done := make(chan error, 1)
	s.Write(sinktest.Record(1), func(err error) { done <- err })
	sinktest.Until(t, "Err is the reason", func() bool { return s.Err() != nil })
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

// A fetch that brings no content leaves what is known of the page, also where both come
// in one batch; what it states about itself changes.
func TestNoContent(t *testing.T) {
	server := start(t)
	s := open(t, Config{Address: server.address(), Fields: sink.AllFields})
	defer shut(t, s)
	page := func(n int) *sink.Record {
		r := sinktest.Record(n)
		r.Title, r.ETag, r.Text, r.Links, r.Bytes, r.NoIndex, r.Truncated, r.LinksOut = "kept", `"v1"`, "words", 3, 70, true, true, []string{"http://x/"}
		r.Fields = json.RawMessage(`{"price":1}`)
		r.SetBody([]byte("body"))
		return r
	}
	later := func(r *sink.Record, status int, class string) *sink.Record {
		l := &sink.Record{V: 1, URL: r.URL, Site: r.Site, Status: status, FetchedAt: r.FetchedAt.Add(time.Hour), Attempts: 4}
		if l.Unchanged = status == 304; class != "" {
			l.Error = &sink.Error{Class: class, Text: "it failed"}
		}
		return l
	}
	const content = `200 kept "v1" words 3 70 t t body ["http://x/"] {"price": 1}`
	look := func(r *sink.Record) string {
		return query[string](t, server, `SELECT concat_ws(' ', status, title, etag, text, links, bytes, noindex, truncated, body, rest->>'links_out', rest->>'fields',
			rest->>'unchanged', fetch_status, error_class, extract(epoch FROM fetched_at - '`+r.FetchedAt.Format(time.RFC3339)+`')::integer, attempts) FROM pages WHERE url = $1`, r.URL)[0]
	}
	for n, c := range []struct {
		status      int
		class, want string
	}{{304, "", content + " true 304 3600 4"}, {0, "timeout", content + " 0 timeout 3600 4"}, {503, "status", content + " 503 status 3600 4"}} {
		r := page(n)
		put(t, s, r)
		put(t, s, later(r, c.status, c.class))
		if got := look(r); got != c.want {
			t.Errorf("after %d %s: %s\nwant %s", c.status, c.class, got, c.want)
		}
		r = page(n + 10)
		put(t, s, r, later(r, c.status, c.class))
		if got := look(r); got != c.want {
			t.Errorf("in one batch, after %d %s: %s\nwant %s", c.status, c.class, got, c.want)
		}
		put(t, s, later(r, c.status, c.class), r)
		if got := look(r); !strings.HasPrefix(got, content+" 200 0 ") {
			t.Errorf("content after %d %s: %s", c.status, c.class, got)
		}
	}
	r := page(20)
	put(t, s, later(r, 304, ""), later(r, 0, "dns"))
	if got := look(r); !strings.HasPrefix(got, "0 0 f f 0 dns 3600 4") {
		t.Errorf("without content: %s", got)
	}
	put(t, s, later(r, 200, ""))
	if got := look(r); !strings.HasPrefix(got, "200 0 0 f f 200 3600 4") {
		t.Errorf("then with some: %s", got)
	}
}
