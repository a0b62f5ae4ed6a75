// Package sinktest is the suite that every sink passes: what sink.Sink promises,
// asked of a real output.
package sinktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/extract/sink"
)

// Target is an output under test.
type Target struct {
	// Open opens a sink on the output, each time on the same one.
	Open func(t *testing.T) sink.Sink
	// URLs reads the output back: the URL of each record in it, as often as it is
	// there. No sink is open, or all that was written was acknowledged.
	URLs func(t *testing.T) []string
	// Once: a record written twice is in the output once.
	Once bool
	// Break, if not nil, makes the output unable to take records until mend is
	// called.
	Break func(t *testing.T) (mend func())
}

// Run holds a sink to its contract. make makes an empty output.
func Run(t *testing.T, make func(t *testing.T) Target) {
	for _, c := range []struct {
		name string
		f    func(t *testing.T, o Target)
	}{
		{"Concurrent", concurrent}, {"RecordReused", recordReused}, {"CloseWrites", closeWrites}, {"Reopen", reopen},
		{"Awkward", awkward}, {"Twice", twice}, {"Broken", broken}, {"CloseBroken", closeBroken},
	} {
		t.Run(c.name, func(t *testing.T) { c.f(t, make(t)) })
	}
}

// Record is the i-th of a series of records, whole enough for every sink.
func Record(i int) *sink.Record {
	url := fmt.Sprintf("https://example.com/%d", i)
	body := fmt.Sprintf("<title>page %d</title>%s", i, strings.Repeat("<p>text", i%50))
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n", len(body))
	return &sink.Record{
		V: sink.Version, URL: url, Site: "example.com", Status: 200, FetchedAt: time.Unix(1_800_000_000+int64(i), 0).UTC(),
		ContentType: "text/html", Bytes: int64(len(body)), WireBytes: int64(len(body)), Title: fmt.Sprintf("page %d", i), Attempts: 1,
		Exchange: &sink.Exchange{
			Request:  fmt.Appendf(nil, "GET /%d HTTP/1.1\r\nHost: example.com\r\n\r\n", i),
			Response: []byte(head + body), Body: len(head), Addr: "192.0.2.1",
		},
	}
}

// write writes records lo..hi-1 and returns what waits for all of them.
func write(t *testing.T, s sink.Sink, lo, hi int) (wait func()) {
	t.Helper()
	var all sync.WaitGroup
	for i := lo; i < hi; i++ {
		all.Add(1)
		s.Write(Record(i), func(err error) {
			defer all.Done()
			if err != nil {
				t.Errorf("record %d: %v", i, err)
			}
		})
	}
	return func() { t.Helper(); waitFor(t, all.Wait) }
}

// waitFor fails when f does not return.
func waitFor(t *testing.T, f func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() { f(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("waited in vain")
	}
}

func shut(t *testing.T, s sink.Sink) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// want holds the output to records 0..n-1, each there at least once, or exactly.
func want(t *testing.T, o Target, n int, exactly bool) {
	t.Helper()
	got := o.URLs(t)
	count := map[string]int{}
	for _, u := range got {
		count[u]++
	}
	for i := range n {
		url := Record(i).URL
		if c := count[url]; c == 0 {
			t.Fatalf("%s is missing; %d of %d are there", url, len(count), n)
		} else if c > 1 && (exactly || o.Once) {
			t.Fatalf("%s is there %d times", url, c)
		}
		delete(count, url)
	}
	if len(count) > 0 {
		t.Fatalf("there are others too: %v", count)
	}
}

// Many write at once; each record is acknowledged once, and is there then.
func concurrent(t *testing.T, o Target) {
	const writers, each = 8, 150
	s := o.Open(t)
	var all sync.WaitGroup
	acks := make([]int, writers*each) // a second done of one is a race, or shows
	for w := range writers {
		all.Go(func() {
			var mine sync.WaitGroup
			for i := w * each; i < (w+1)*each; i++ {
				mine.Add(1)
				s.Write(Record(i), func(err error) {
					if acks[i]++; err != nil {
						t.Errorf("record %d: %v", i, err)
					}
					mine.Done()
				})
			}
			mine.Wait()
		})
	}
	waitFor(t, all.Wait)
	want(t, o, writers*each, true)
	if err := s.Err(); err != nil {
		t.Errorf("Err: %v", err)
	}
	shut(t, s)
	for i, n := range acks {
		if n != 1 {
			t.Errorf("record %d was acknowledged %d times", i, n)
		}
	}
	want(t, o, writers*each, true)
}

// The caller may change a record when Write returned.
func recordReused(t *testing.T, o Target) {
	s := o.Open(t)
	var all sync.WaitGroup
	var r sink.Record
	meta := []byte(`{"n":0}`)
	for i := range 200 {
		all.Add(1)
		r = *Record(i)
		r.Meta = meta
		s.Write(&r, func(error) { all.Done() })
		copy(meta, `garbage`)
		clear(r.Exchange.Request)
		clear(r.Exchange.Response)
		*r.Exchange = sink.Exchange{}
		r = sink.Record{URL: "https://example.com/garbage"}
		copy(meta, `{"n":1}`)
	}
	waitFor(t, all.Wait)
	shut(t, s)
	want(t, o, 200, true)
}

// Close writes what waits and acknowledges it; nothing is taken afterwards.
func closeWrites(t *testing.T, o Target) {
	s := o.Open(t)
	var mu sync.Mutex
	acks := 0
	for i := range 300 {
		s.Write(Record(i), func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if acks++; err != nil {
				t.Errorf("record %d: %v", i, err)
			}
		})
	}
	waitFor(t, func() { shut(t, s) })
	if acks != 300 {
		t.Errorf("%d of 300 are acknowledged when Close returned", acks)
	}
	got := make(chan error, 1)
	s.Write(Record(1000), func(err error) { got <- err })
	if err := <-got; !errors.Is(err, sink.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	shut(t, s)
	want(t, o, 300, true)
}

// What was there stays when the output is reopened.
func reopen(t *testing.T, o Target) {
	for i := range 3 {
		s := o.Open(t)
		write(t, s, i*20, i*20+20)()
		shut(t, s)
	}
	want(t, o, 60, true)
}

// Whatever the web and feeds put into a record, it gets through.
func awkward(t *testing.T, o Target) {
	s := o.Open(t)
	var all sync.WaitGroup
	n := 0
	put := func(change func(r *sink.Record)) {
		r := Record(n)
		change(r)
		n++
		all.Add(1)
		s.Write(r, func(err error) {
			defer all.Done()
			if err != nil {
				t.Errorf("%s: %v", r.URL, err)
			}
		})
	}
	for _, text := range []string{"", "\x00", "a\x00b", "\xff\xfe\xc3", "\u2028\u009b\x7f\x1b[31m", `\u0000 \x "quoted"`, "\U0001f600 и", strings.Repeat("long ", 100_000), "a\tb\r\nc\\N\\."} {
		put(func(r *sink.Record) { r.Title, r.Text, r.ETag = text, text, text })
		put(func(r *sink.Record) {
			r.SetBody([]byte(text))
			r.ContentType, r.Charset, r.Location, r.From, r.Referrer = text, text, text, text, text
		})
		put(func(r *sink.Record) { r.Error = &sink.Error{Class: text, Text: text}; r.LinksOut = []string{text} })
		put(func(r *sink.Record) { r.Headers = [][2]string{{"X-Text", text}} })
	}
	for _, raw := range []string{`null`, `{"a":"\u0000"}`, `{"\u0000":["\ud800","\udc00\ud800"]}`, `1e999999`, `{"a":-1e-999999}`, `{"a":1,"a":2}`, "not json \x00", `"\\u0000"`, strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)} {
		put(func(r *sink.Record) { r.Meta = json.RawMessage(raw) })
		put(func(r *sink.Record) { r.Items = []sink.Item{{Key: "k\x00", Value: json.RawMessage(raw)}} })
	}
	put(func(r *sink.Record) { r.FetchedAt = time.Time{} })
	put(func(r *sink.Record) {
		r.Status, r.Depth, r.Bytes, r.WireBytes, r.Seconds = -1, 1<<32-1, 1<<62, -1, 1e300
	})
	put(func(r *sink.Record) { r.Exchange = nil })
	put(func(r *sink.Record) { r.Exchange.Response, r.Exchange.Body = nil, 0 })
	put(func(r *sink.Record) {
		r.Exchange.Response, r.Exchange.Cut = r.Exchange.Response[:r.Exchange.Body], "disconnect"
	})
	put(func(r *sink.Record) { // a large page
		r.Text = strings.Repeat("0123456789abcdef", 200_000)
		r.Exchange.Response = append(r.Exchange.Response, r.Text...)
	})
	waitFor(t, all.Wait)
	shut(t, s)
	want(t, o, n, true)
}

// A record that is repeated, as after a crash, does no harm.
func twice(t *testing.T, o Target) {
	s := o.Open(t)
	write(t, s, 0, 50)()
	repeat := write(t, s, 0, 50)
	for range 2 { // also within one batch
		s.Write(Record(7), func(error) {})
	}
	repeat()
	shut(t, s)
	want(t, o, 50, false)
}

// While the output cannot write, Err is why and nothing is acknowledged; then
// all goes on.
func broken(t *testing.T, o Target) {
	if o.Break == nil {
		t.Skip("this output cannot be broken")
	}
	s := o.Open(t)
	write(t, s, 0, 20)()
	mend := o.Break(t)
	wait := write(t, s, 20, 200)
	Until(t, "Err is the reason", func() bool { return s.Err() != nil })
	mend()
	wait()
	Until(t, "Err is nil", func() bool { return s.Err() == nil })
	shut(t, s)
	want(t, o, 200, false)
}

// Closed while it cannot write, a sink soon fails what waits, and returns an error.
func closeBroken(t *testing.T, o Target) {
	if o.Break == nil {
		t.Skip("this output cannot be broken")
	}
	s := o.Open(t)
	write(t, s, 0, 20)()
	mend := o.Break(t)
	var mu sync.Mutex
	var errs []error
	for i := 20; i < 40; i++ {
		s.Write(Record(i), func(err error) { mu.Lock(); errs = append(errs, err); mu.Unlock() })
	}
	Until(t, "Err is the reason", func() bool { return s.Err() != nil })
	began := time.Now()
	if err := s.Close(); err == nil {
		t.Error("Close returned nil though records were lost")
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("Close took %v", took)
	}
	if len(errs) != 20 || slices.Contains(errs, nil) {
		t.Errorf("%d of 20 failed: %v", len(errs), errs)
	}
	mend()
	s = o.Open(t)
	write(t, s, 20, 40)()
	shut(t, s)
	want(t, o, 40, false)
}
