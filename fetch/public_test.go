package fetch

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/collectors"
	"github.com/mccutchen/go-httpbin/v2/httpbin"
	"github.com/rs/zerolog"
)

func startBin(tb testing.TB) *httptest.Server {
	s := httptest.NewServer(httpbin.New(httpbin.WithMaxBodySize(32 << 20)))
	tb.Cleanup(s.Close)
	return s
}

// TestHTTPBin: a server that is not ours.
func TestHTTPBin(t *testing.T) {
	bin := startBin(t)
	c := newClient(t, func(cfg *Config) { cfg.MaxBody = 1 << 20 })
	for _, tc := range []struct {
		path   string
		status int
		body   string // part of it
		more   func(*Response, *collector) bool
	}{
		{"/html", 200, "Moby-Dick", nil},
		{"/gzip", 200, `"gzipped": true`, nil},
		{"/deflate", 200, `"deflated": true`, nil},
		{"/encoding/utf8", 200, "UTF-8", nil},
		{"/robots.txt", 200, "Disallow", nil},
		{"/status/404", 404, "", nil},
		{"/status/503", 503, "", nil},
		{"/status/204", 204, "", nil},
		{"/redirect/3", 302, "", func(r *Response, _ *collector) bool { return r.Location == "/relative-redirect/2" }},
		{"/absolute-redirect/1", 302, "", func(r *Response, _ *collector) bool { return strings.HasPrefix(r.Location, "http://") }},
		{"/bytes/1048576", 200, "", func(r *Response, h *collector) bool { return len(h.body) == 1<<20 && !r.Truncated }},
		{"/bytes/1048577", 200, "", func(r *Response, h *collector) bool { return len(h.body) == 1<<20 && r.Cut == ClassBodyWire }},
		{"/stream-bytes/100000?chunk_size=777", 200, "", func(r *Response, h *collector) bool { return len(h.body) == 100000 }},
		{"/stream/20", 200, `"id":19`, nil},
		{"/drip?numbytes=5&duration=0.1&delay=0", 200, "*****", nil},
		{"/trailers?X-A=b", 200, "", nil},
		{"/etag/abc", 200, "", func(r *Response, _ *collector) bool { return r.Header.Get("ETag") == `"abc"` }},
		{"/response-headers?Retry-After=7", 200, "", func(r *Response, _ *collector) bool {
			d, ok := RetryAfter(r.Header, time.Now())
			return ok && d == 7*time.Second
		}},
		{"/anything/Y%2BY/x?a=%2a", 200, "/anything/Y%2BY/x?a=%2a", nil},
		{"/user-agent", 200, "seine", nil},
		{"/image/png", 200, "PNG", func(r *Response, _ *collector) bool { return !c.Accepts(r) }},
	} {
		resp, h, err := get(c, bin.URL+tc.path)
		if err != nil || resp.Status != tc.status || !strings.Contains(string(h.body), tc.body) || tc.more != nil && !tc.more(resp, h) {
			t.Errorf("%s: %v %+v %.200q", tc.path, err, resp, h.body)
		}
	}
	at := strings.TrimPrefix(bin.URL, "http://")
	for login, status := range map[string]int{"me:secret@": 200, "me:wrong@": 401, "": 401} {
		if resp, _, err := get(c, "http://"+login+at+"/basic-auth/me/secret"); err != nil || resp.Status != status {
			t.Errorf("%q: %v %d", login, err, resp.Status)
		}
	}
}

// TestToxics: networks that misbehave between the client and a sound server.
func TestToxics(t *testing.T) {
	bin := startBin(t)
	for _, tc := range []struct {
		toxic string
		path  string
		class string
		bytes int
	}{ // only the timeout that is to strike is short: the machine may be busy
		{"", "/bytes/100000", "", 100000},
		{`{"type":"latency","stream":"downstream","attributes":{"latency":40}}`, "/bytes/100000", "", 100000},
		{`{"type":"slicer","stream":"downstream","attributes":{"average_size":97,"size_variation":90,"delay":10}}`, "/bytes/20000", "", 20000},
		{`{"type":"latency","stream":"downstream","attributes":{"latency":5000}}`, "/bytes/100000", ClassFirstByte, 0},
		{`{"type":"timeout","stream":"downstream","attributes":{"timeout":0}}`, "/bytes/100000", ClassFirstByte, 0},
		{`{"type":"timeout","stream":"upstream","attributes":{"timeout":10}}`, "/bytes/100000", ClassReset, 0},
		{`{"type":"reset_peer","stream":"downstream","attributes":{"timeout":0}}`, "/bytes/100000", ClassReset, 0},
		{`{"type":"limit_data","stream":"downstream","attributes":{"bytes":50}}`, "/bytes/100000", ClassReset, 0},
		{`{"type":"limit_data","stream":"downstream","attributes":{"bytes":50000}}`, "/bytes/100000", ClassShort, -1},
		{`{"type":"bandwidth","stream":"downstream","attributes":{"rate":1}}`, "/bytes/100000", ClassTimeout, -1},
	} {
		srv := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
		srv.Metrics.ProxyMetrics = collectors.NewProxyMetricCollectors()
		px := toxiproxy.NewProxy(srv, "p", "127.0.0.1:0", strings.TrimPrefix(bin.URL, "http://"))
		if err := px.Start(); err != nil {
			t.Fatal(err)
		}
		if tc.toxic != "" {
			if _, err := px.Toxics.AddToxicJson(strings.NewReader(tc.toxic)); err != nil {
				t.Fatal(err)
			}
		}
		c := newClient(t, func(cfg *Config) {
			switch tc.class {
			case ClassFirstByte:
				cfg.FirstByteTimeout = 100 * time.Millisecond
			case ClassTimeout:
				cfg.FetchTimeout = 2 * time.Second
			}
		})
		resp, h, err := get(c, fmt.Sprintf("http://%s%s", px.Listen, tc.path))
		if class(err) != tc.class || tc.bytes >= 0 && len(h.body) != tc.bytes || tc.bytes < 0 && (len(h.body) == 0 || !resp.Truncated) {
			t.Errorf("%s: %v, %d bytes, %+v", tc.toxic, err, len(h.body), resp)
		}
		if st := c.Stats(); (st.Idle == 1) != (tc.class == "") {
			t.Errorf("%s: %+v", tc.toxic, st)
		}
		px.Stop()
	}
}
