package crawl

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	arrive "seine/bench/web"
	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/memory"
	"seine/frontier/redis"
	server "seine/shard"
	"seine/shard/shardtest"
)

// TestMain runs many tests side by side, since they wait most of the time. At the end
// nothing of any of them may live on.
func TestMain(m *testing.M) {
	flag.Parse()
	if !isSet("test.parallel") {
		flag.Set("test.parallel", "8")
	}
	goleak.VerifyTestMain(m)
}

func isSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// asked is one request as the web saw it.
type asked struct {
	at   time.Time // when it arrived, however busy the web is
	host string
	path string
	head http.Header
}

// web serves every host name from one address and remembers what it was asked
// for. A path without an answer is a 404; robots.txt is one unless given.
type web struct {
	srv *httptest.Server

	mu     sync.Mutex
	log    []asked
	serve  map[string]http.HandlerFunc // by "host/path" or "/path"
	others http.HandlerFunc
}

func newWeb(t *testing.T) *web {
	t.Helper()
	w := &web{serve: make(map[string]http.HandlerFunc)}
	w.srv = httptest.NewUnstartedServer(http.HandlerFunc(w.answer))
	w.srv.Listener, w.srv.Config.ConnContext = arrive.Stamp(w.srv.Listener), arrive.ConnContext
	w.srv.Start()
	t.Cleanup(w.srv.Close)
	return w
}

func (w *web) answer(rw http.ResponseWriter, r *http.Request) {
	at := arrive.Arrival(r)
	path := r.URL.RequestURI()
	w.mu.Lock()
	w.log = append(w.log, asked{at, r.Host, path, r.Header.Clone()})
	f := w.serve[r.Host+path]
	if f == nil {
		f = w.serve[path]
	}
	if f == nil && path != "/robots.txt" {
		f = w.others
	}
	w.mu.Unlock()
	if f == nil {
		f = http.NotFound
	}
	f(rw, r)
}

// page serves links at a path.
func (w *web) page(path string, links ...string) { w.on(path, html(links...)) }

func (w *web) on(path string, f http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serve[path] = f
}

// rest serves all that no path is there for.
func (w *web) rest(f http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = f
}

func html(links ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(rw, "<title>%s</title>", r.URL.Path)
		for _, l := range links {
			fmt.Fprintf(rw, "<a href='%s'>x</a>", l)
		}
	}
}

func text(status int, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		rw.WriteHeader(status)
		io.WriteString(rw, body)
	}
}

func redirect(to string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Location", to)
		rw.WriteHeader(302)
	}
}

// requests are those for pages, or for robots.txt, of all hosts or of one.
func (w *web) requests(host string, robots bool) []asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []asked
	for _, a := range w.log {
		if (host == "" || a.host == host) && (a.path == "/robots.txt") == robots {
			out = append(out, a)
		}
	}
	return out
}

// times counts requests for one URL.
func (w *web) times(url string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, a := range w.log {
		if "http://"+a.host+a.path == url {
			n++
		}
	}
	return n
}

// checkGaps holds the starts of all requests to each host at least so far apart.
func (w *web) checkGaps(t *testing.T, least time.Duration) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	last := make(map[string]time.Time)
	log := slices.SortedFunc(slices.Values(w.log), func(a, b asked) int { return a.at.Compare(b.at) })
	for _, a := range log {
		if before, ok := last[a.host]; ok && a.at.Sub(before) < least {
			t.Errorf("%s%s came %v after the request before, promised %v", a.host, a.path, a.at.Sub(before), least)
		}
		last[a.host] = a.at
	}
}

// client fetches from the web under any host name.
func (w *web) client(t *testing.T, perAddress ...float64) *fetch.Client {
	t.Helper()
	_, port, err := net.SplitHostPort(w.srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	rate := 0.0
	for _, rate = range perAddress {
	}
	c, err := fetch.New(fetch.Config{
		UserAgent: "seine/test", PerAddress: rate, MaxHeader: 128 << 10, AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		ConnectTo: []string{"::127.0.0.1:" + port}, FetchTimeout: 30 * time.Second, ReadTimeout: 30 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// noNames is a resolver of an empty world; the machine's may be far, or away.
type noNames struct{}

func (noNames) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// store is a sink in memory that can be held up or broken.
type store struct {
	mu      sync.Mutex
	records []sink.Record
	held    []func()
	hold    bool // records stay on their way
	broken  error
	stalled bool
}

func (s *store) Write(r *sink.Record, done func(error)) {
	line := r.AppendJSON(nil, sink.AllFields)
	if !bytes.HasPrefix(line, []byte(`{"v":1,`)) {
		panic("a record that is none: " + string(line))
	}
	s.mu.Lock()
	if s.broken != nil {
		err := s.broken
		s.mu.Unlock()
		done(err)
		return
	}
	c := *r
	if r.Exchange != nil { // it lies in memory of the crawler, which the next page overwrites
		e := *r.Exchange
		e.Request, e.Response = bytes.Clone(e.Request), bytes.Clone(e.Response)
		c.Exchange = &e
	}
	if s.hold {
		s.held = append(s.held, func() { s.add(c); done(nil) })
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.add(c)
	done(nil)
}

func (s *store) add(r sink.Record) {
	s.mu.Lock()
	s.records = append(s.records, r)
	s.mu.Unlock()
}

// flush lets what was held go, and what comes.
func (s *store) flush() {
	s.mu.Lock()
	held := s.held
	s.held, s.hold = nil, false
	s.mu.Unlock()
	for _, f := range held {
		f()
	}
}

func (s *store) Close() error { return nil }

func (s *store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stalled {
		return errors.New("no room")
	}
	return nil
}

func (s *store) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// by indexes the records by URL; each must be there once.
func (s *store) by(t *testing.T) map[string]sink.Record {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]sink.Record)
	for _, r := range s.records {
		if _, twice := out[r.URL]; twice {
			t.Errorf("%s has two records", r.URL)
		}
		out[r.URL] = r
	}
	return out
}

// urls is how many URLs have a record, or several: a crash between a record and its
// settlement repeats it.
func (s *store) urls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	distinct := make(map[string]bool)
	for i := range s.records {
		distinct[s.records[i].URL] = true
	}
	return len(distinct)
}

// rig is a crawl of a web in this process.
type rig struct {
	t     *testing.T
	web   *web
	store *store
	queue frontier.Frontier
	cfg   Config
}

// newRig returns a crawl without delay that ends when nothing is left.
func newRig(t *testing.T, w *web, change func(*frontier.Settings)) *rig {
	t.Helper()
	return newLeaseRig(t, w, 0, change)
}

// newLeaseRig is newRig with leases of such a length.
func newLeaseRig(t *testing.T, w *web, lease time.Duration, change func(*frontier.Settings)) *rig {
	t.Helper()
	s := frontier.DefaultSettings()
	s.Delay, s.Jitter = 0, 0
	if change != nil {
		change(&s)
	}
	q, err := memory.New(memory.Config{Layout: frontier.Layout{Shards: 3}, Settings: s, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	r := &rig{t: t, web: w, store: new(store), queue: q}
	client := w.client(t)
	r.cfg = Config{
		Frontier: q, Fetcher: client, Sink: r.store, Accepts: client.Accepts, Agent: "seine",
		Concurrency: 16, Lease: lease, Exact: true, ExitWhenDone: true, Backoff: 20 * time.Millisecond,
	}
	return r
}

// onBoth runs a test of a crawl in this process, and of one in Redis.
func onBoth(t *testing.T, change func(*frontier.Settings), test func(t *testing.T, w *web, r *rig)) {
	t.Run("memory", func(t *testing.T) {
		w := newWeb(t)
		test(t, w, newLeaseRig(t, w, shortLease, change))
	})
	t.Run("redis", func(t *testing.T) {
		w := newWeb(t)
		r := newLeaseRig(t, w, shortLease, change)
		client, err := server.Open(t.Context(), server.Config{Addrs: shardtest.One(t).Addrs})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		s := *r.queue.Settings()
		q, err := redis.OpenOrCreate(t.Context(), client, "crawl", frontier.Layout{Shards: 3, PlanURLs: 10_000}, s)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Configure(redis.Config{Lease: shortLease}); err != nil {
			t.Fatal(err)
		}
		r.queue, r.cfg.Frontier, r.cfg.Exact = q, q, false
		test(t, w, r)
	})
}

// seed admits URLs as seeds.
func (r *rig) seed(urls ...string) {
	r.t.Helper()
	for _, u := range urls {
		r.admit(u, func(*frontier.Candidate) {})
	}
}

func (r *rig) admit(url string, change func(*frontier.Candidate)) {
	r.t.Helper()
	c, err := frontier.NewMaker(r.queue.Layout()).Make(url)
	if err != nil {
		r.t.Fatal(err)
	}
	change(&c)
	v := make([]frontier.Verdict, 1)
	if err := r.queue.Admit(r.t.Context(), r.queue.Of(c.Fingerprint), []frontier.Candidate{c}, v); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) crawler() *Crawler {
	r.t.Helper()
	c, err := New(r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// run crawls to the end.
func (r *rig) run() *Crawler {
	r.t.Helper()
	c := r.crawler()
	if err := r.start(c)(); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// start runs a crawler; the result waits for its end.
func (r *rig) start(c *Crawler) func() error {
	ended := make(chan error, 1)
	ctx, cut := context.WithCancel(context.Background())
	go func() { ended <- c.Run(ctx) }()
	wait := sync.OnceValue(func() error {
		defer cut()
		select {
		case err := <-ended:
			return err
		case <-time.After(2 * time.Minute):
			cut()
			return errors.Join(errors.New("the crawler does not end"), <-ended)
		}
	})
	r.t.Cleanup(func() { c.Stop(); cut(); wait() })
	return wait
}

func (r *rig) stats() frontier.ShardStats {
	r.t.Helper()
	all, err := r.queue.Stats(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return frontier.Total(all)
}

// checkEmpty holds that nothing is left anywhere.
func (r *rig) checkEmpty() {
	r.t.Helper()
	if s := r.stats(); s.Queued+s.Open+s.Waiting+s.Leases != 0 {
		r.t.Errorf("left behind: %+v", s)
	}
}

// checkIdle holds that a crawler has nothing open.
func checkIdle(t *testing.T, c *Crawler) {
	t.Helper()
	if n := c.agenda.Busy(); n != 0 {
		t.Errorf("%d workers are still held", n)
	}
	if later, ready := c.agenda.Waiting(); later+ready != 0 {
		t.Errorf("%d and %d visits wait at the end", later, ready)
	}
	if n := c.gate.Bytes(); n != 0 {
		t.Errorf("flow control counts %d bytes at the end", n)
	}
	if underway, line := c.gate.Underway(); underway != 0 || line != 0 {
		t.Errorf("flow control counts %d requests under way and %d in line at the end", underway, line)
	}
	for name, n := range map[string]int64{"visits": c.visits.Load(), "reserved": c.reserved.Load(),
		"recording": int64(c.gate.WaitingPages()), "admitting": c.admitting.Load(), "writing": c.writing.Load(), "hungry": int64(c.hungry.Load())} {
		if n != 0 {
			t.Errorf("%s is %d at the end", name, n)
		}
	}
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatal("never: ", what)
		}
		time.Sleep(time.Millisecond) // between looks
	}
}

// meet has all crawlers hear of all.
func meet(crawlers []*Crawler) {
	present := frontier.Present{Programs: len(crawlers)}
	self := make([]frontier.Member, len(crawlers))
	for i, c := range crawlers {
		if self[i].Room = c.HasRoom(); self[i].Room {
			present.Room++
		}
	}
	for i, c := range crawlers {
		c.SetLive(present, self[i])
	}
}

// tree serves n pages under a host, each linking to the next ones.
func (w *web) tree(host string, n int) {
	for i := range n {
		var links []string
		for j := 1; j <= 3; j++ {
			if 3*i+j < n {
				links = append(links, fmt.Sprintf("/p%d", 3*i+j))
			}
		}
		w.on(fmt.Sprintf("%s/p%d", host, i), html(links...))
	}
}

// metric reads one metric of a crawler.
func metric(t *testing.T, c *Crawler, name string) string {
	t.Helper()
	var b strings.Builder
	c.WriteMetrics(&b)
	for line := range strings.Lines(b.String()) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
