package crawl

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/memory"
)

// canned answers every request with one page, without a network.
type canned struct{ body []byte }

type noHeader struct{}

func (noHeader) Get(string) string              { return "" }
func (noHeader) Values(string) []string         { return nil }
func (noHeader) Each(func(string, string))      {}
func (noHeader) Field(int) (name, value []byte) { return nil, nil }

func (c *canned) Do(_ context.Context, _ *fetch.Request, resp *fetch.Response, h fetch.Handler) error {
	*resp = fetch.Response{Status: 200, ContentType: "text/html", Type: "text/html", Header: noHeader{}, Bytes: int64(len(c.body)), Start: time.Now()}
	if h.Begin(resp) {
		h.Write(c.body)
	}
	return nil
}

// void takes records at once.
type void struct{}

func (void) Write(_ *sink.Record, done func(error)) { done(nil) }
func (void) Err() error                             { return nil }
func (void) Close() error                           { return nil }

// BenchmarkPage is all that a page costs but for its request and its record, from
// visit to settle in memory: a 16 KB page with 60 links to known pages.
func BenchmarkPage(b *testing.B) {
	body := benchBody()
	b.ReportAllocs()
	for b.Loop() {
		crawlPages(b, body, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchSites*benchPages), "ns/page")
}

func benchBody() []byte {
	var body bytes.Buffer
	for i := range 60 {
		fmt.Fprintf(&body, "<p>%s</p><a href='/p%d'>x</a>\n", bytes.Repeat([]byte("text "), 45), i%benchPages)
	}
	return body.Bytes()
}

const benchSites, benchPages = 100, 20

// crawlPages crawls benchPages pages of each of benchSites sites, all of them with
// this body.
func crawlPages(b *testing.B, body []byte, h Handler) {
	s := frontier.DefaultSettings()
	s.Delay, s.Robots = 0, "ignore"
	q, err := memory.New(memory.Config{Settings: s})
	if err != nil {
		b.Fatal(err)
	}
	c, err := New(Config{Frontier: q, Fetcher: &canned{body}, Sink: void{}, Handler: h, Exact: true, KnownURLs: 1 << 14})
	if err != nil {
		b.Fatal(err)
	}
	maker, v := frontier.NewMaker(q.Layout()), make([]frontier.Verdict, 1)
	for i := range benchSites {
		for p := range benchPages {
			c, err := maker.Make(fmt.Sprintf("http://s%d.example/p%d", i, p))
			if err != nil {
				b.Fatal(err)
			}
			if err := q.Admit(b.Context(), q.Of(c.Fingerprint), []frontier.Candidate{c}, v); err != nil {
				b.Fatal(err)
			}
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(b.Context()) }()
	for c.count.Done.Get() < benchSites*benchPages {
		time.Sleep(100 * time.Microsecond) // the end is near; the crawler itself would look 20 times a second
	}
	c.Stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
