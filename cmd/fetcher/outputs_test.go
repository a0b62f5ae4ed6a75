package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"seine/extract/sink/jsonl"
	"seine/shard/shardtest"
)

// What no output is, is refused before anything is opened.
func TestBadOutputs(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"--out ftp://h/x":                         `no output "ftp:"`,
		"--out postgres://u:pw@h/d":               "command line",
		"--out postgres://h:x/d":                  "postgres",
		"--out postgres://u:p/w@h/d":              "command line",
		"--out postgres://h/d?x=y&pass%77ord=pw@": "command line",
		"--out postgres://h/d?sslpassword=pw@":    "command line",
		"--out redis:":                            "redis://HOST",
		"--out kafka://h":                         "a topic",
		"--out kafka://u:pw@h/t":                  "command line",
		"--out redis://h?x=y":                     "unknown parameter",
		"--out warc:dir/":                         "warc:DIR/PREFIX",
		"--out x:y":                               "./x:y",
		"--out a --out a":                         "twice",
		"--out a --out-drop b":                    `no output "b"`,
		"--out - --rotate-time 1h":                "need a file",
		"--on-rotate true":                        "no word {}",
		"--out pages.csv":                         "the kind .csv",
		"--out d/pages.parquet":                   "the kind .parquet",
		"--out pages.jsonl.bz2":                   "the kind .bz2",
		"--out pages.jsonl.XZ":                    "the kind .XZ",
		"--out pages.JSONL.GZ":                    "small letters",
		"--out warc:dir/crawl.bz2":                "the kind .bz2",
	} {
		code, log := end(t, append(strings.Fields(flags), "--embedded", "--seed", "http://127.0.0.1:1/")...)
		if code != 2 || !strings.Contains(log, want) || strings.Contains(log, "pw@") {
			t.Errorf("%s: code %d, %s", flags, code, log)
		}
	}
}

// What --on-rotate cannot run is refused too.
func TestBadOnRotate(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"/nowhere/x {}": "nowhere", "sh -c 'x {}'": "no shell", "true {}": "needs a file"} {
		code, log := end(t, "--embedded", "--seed", "http://127.0.0.1:1/", "--on-rotate", args)
		if code != 2 || !strings.Contains(log, want) {
			t.Errorf("%s: code %d, %s", args, code, log)
		}
	}
}

// An output that may lose records and is down at the start holds nobody up; how many it
// lost is logged.
func TestDropDownAtStart(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<a href=/a>a</a><a href=/b>b</a>`))
	}))
	defer srv.Close()
	p := start(t, "--embedded", "--delay", "0s", "--out", "postgres://u@127.0.0.1:1/d", "--out-drop", "postgres", "--seed", srv.URL+"/")
	p.wait(t)
	for _, want := range []string{"an output cannot be opened", "output=postgres", "records were lost", "output postgres dropped 3 records"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("no %q in %s", want, p.log)
		}
	}
	n := 0
	for _, err := range jsonl.Records(p.out) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 3 {
		t.Errorf("%d of 3 records are in the other output", n)
	}
}

// Each of several outputs has every record; a device that is full holds nobody
// up when it may lose.
func TestSeveralOutputs(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<a href=/a>a</a><a href=/b>b</a>`))
	}))
	defer srv.Close()
	second := filepath.Join(t.TempDir(), "second.jsonl.gz")
	full := "/dev/full"
	if _, err := os.Stat(full); err != nil {
		full = os.DevNull
	}
	p := start(t, "--embedded", "--delay", "0s", "--out", second, "--out", full, "--out-drop", "jsonl2", "--seed", srv.URL+"/")
	p.wait(t)
	for _, path := range []string{p.out, second} {
		n := 0
		for _, err := range jsonl.Records(path) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != 3 {
			t.Errorf("%s: %d records", path, n)
		}
	}
}

// A fleet's records wait in the crawl's own Redis for consumers.
func TestItemsInRedis(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<a href=/a>a</a><a href=/b>b</a>`))
	}))
	defer srv.Close()
	server := shardtest.One(t)
	start(t, "--redis", server.Addrs[0], "--shards", "1", "--plan-urls", "10k", "--delay", "0s", "--out", "redis:", "--exit-when-done", "--seed", srv.URL+"/").wait(t)
	if n := server.Nodes[0].Client().LLen(t.Context(), "seine:items").Val(); n != 3 {
		t.Errorf("%d records", n)
	}
}

// Records are messages of a topic, from where the secret to log in stands in the
// environment.
func TestKafka(t *testing.T) {
	t.Setenv("SEINE_KAFKA_PASSWORD", "geheim")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<a href=/a>a</a><a href=/b>b</a>`))
	}))
	defer srv.Close()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "pages"), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "seine", "geheim"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	var produced atomic.Int64
	cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		produced.Add(1)
		return nil, nil, false
	})
	address := "kafka://seine@" + cluster.ListenAddrs()[0] + "/pages"
	p := start(t, "--embedded", "--delay", "0s", "--out", address, "--seed", srv.URL+"/")
	p.wait(t)
	if strings.Contains(p.log.String(), "geheim") || produced.Load() == 0 {
		t.Errorf("%d batches, %s", produced.Load(), p.log)
	}
	if code, log := end(t, "--embedded", "--out", strings.TrimSuffix(address, "pages")+"other", "--seed", srv.URL+"/"); code != 1 || !strings.Contains(log, "no topic other") {
		t.Error(code, log)
	}
}
