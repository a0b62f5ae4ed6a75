package crawl

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"seine/extract/sink"
	"seine/fetch"
	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/watch"
	"seine/frontier"
)

// unbound is a client of a machine that has none of the addresses that rules bind.
type unbound struct{ *fetch.Client }

var errUnbound = errors.New("this machine does not have the address")

func (unbound) MayLeaveFrom(string) error { return errUnbound }

// bind has requests to sites leave from addresses.
func bind(r *rig, match string, addrs ...string) {
	r.t.Helper()
	_, _, err := r.queue.Set(r.t.Context(), func(s *frontier.Settings) error {
		s.Sites = append(s.Sites, frontier.SiteRule{Match: match, Bind: addrs})
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// peerLog is from where each host was asked.
type peerLog struct {
	mu    sync.Mutex
	hosts map[string][]string
}

// watchPeers serves pages, and notes who asks for them and for robots.txt.
func watchPeers(w *web) *peerLog {
	p := &peerLog{hosts: make(map[string][]string)}
	note := func(r *http.Request) {
		addr, _, _ := net.SplitHostPort(r.RemoteAddr)
		p.mu.Lock()
		p.hosts[r.Host] = append(p.hosts[r.Host], addr)
		p.mu.Unlock()
	}
	w.rest(func(rw http.ResponseWriter, r *http.Request) {
		note(r)
		html()(rw, r)
	})
	w.on("/robots.txt", func(rw http.ResponseWriter, r *http.Request) {
		note(r)
		rw.WriteHeader(http.StatusNotFound)
	})
	return p
}

// of is from where a host was asked, each address once, "" for never.
func (p *peerLog) of(host string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, a := range p.hosts[host] {
		if !strings.Contains(strings.Join(all, " "), a) {
			all = append(all, a)
		}
	}
	return strings.Join(all, " ")
}

// TestBindOfSites: all requests for a site whose rule has addresses leave from these,
// robots.txt too, and those of other sites do not.
func TestBindOfSites(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	peers := watchPeers(w)
	r := newRig(t, w, nil)
	bind(r, "a.example", "127.0.0.2")
	bind(r, "*.b.example", "127.0.0.3", "127.0.0.3/32")
	for _, host := range []string{"a.example", "x.b.example", "c.example"} {
		r.seed("http://"+host+"/", "http://"+host+"/1")
	}
	r.run()
	for host, want := range map[string]string{"a.example": "127.0.0.2", "c.example": "127.0.0.1"} {
		if got := peers.of(host); got != want {
			t.Errorf("%s is asked from %q, want %s", host, got, want)
		}
	}
	r.checkEmpty()
}

// TestLeftToOthers: a fetcher that lacks the addresses of a site's rule leaves the site to
// those that have them, says so, and goes on with others.
func TestLeftToOthers(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	peers := watchPeers(w)
	r := newRig(t, w, nil)
	bind(r, "bound.example", "127.0.0.2")
	r.cfg.Exact, r.cfg.ExitWhenDone = false, false
	able := r.cfg.Fetcher.(*fetch.Client)
	r.cfg.Fetcher = unbound{able}
	lacks := r.crawler()
	lacksEnds := r.start(lacks)
	r.seed("http://bound.example/", "http://bound.example/1", "http://other.example/")
	until(t, "the site was left", func() bool { n, why := lacks.left.Count(); return n > 0 && why == errUnbound.Error() })
	until(t, "others are fetched", func() bool { return peers.of("other.example") == "127.0.0.1" })
	until(t, "it is named", func() bool { return lacks.Progress().Limit == watch.LimitBind })
	if v := metric(t, lacks, `seine_crawl_limited_by{bound="bind"}`); v != "1" {
		t.Errorf("metric: %q", v)
	}
	states, err := r.queue.SiteStates(t.Context(), frontier.ShardOf(r.queue, "bound.example"), []string{"bound.example"})
	if err != nil {
		t.Fatal(err)
	}
	if s := states[0]; s.Why != site.WhyBind || s.Failures != 0 {
		t.Errorf("the site's delay is for %q, with %d failures", s.Why, s.Failures)
	}
	if got := peers.of("bound.example"); got != "" {
		t.Errorf("it is asked from %s", got)
	}
	r.cfg.Fetcher = able
	has := r.crawler()
	hasEnds := r.start(has)
	until(t, "one that has the address fetches the site", func() bool { return r.stats().Done == 3 })
	if got := peers.of("bound.example"); got != "127.0.0.2" {
		t.Errorf("it is asked from %q", got)
	}
	if n, _ := lacks.left.Count(); n > 100 {
		t.Errorf("it was leased %d times to be left", n)
	}
	lacks.Stop()
	has.Stop()
	if err := errors.Join(lacksEnds(), hasEnds()); err != nil {
		t.Fatal(err)
	}
	r.checkEmpty()
}

// TestBoundFamily: a host without an address of the bound family is dead for that.
func TestBoundFamily(t *testing.T) {
	t.Parallel()
	if ln, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		t.Skip("no IPv6 on this machine")
	} else {
		ln.Close()
	}
	w := newWeb(t)
	r := newRig(t, w, nil)
	bind(r, "a.example", "::1")
	w.rest(html())
	r.seed("http://a.example/", "http://a.example/1", "http://b.example/")
	r.run()
	got := r.store.by(t)
	for _, url := range []string{"http://a.example/", "http://a.example/1"} {
		if rec := got[url]; rec.Error == nil || rec.Error.Class != fetch.ClassFamily || !strings.Contains(rec.Error.Text, "IPv6") {
			t.Errorf("%s: %+v", url, rec)
		}
	}
	if rec := got["http://b.example/"]; rec.Status != 200 {
		t.Errorf("%+v", rec)
	}
}

// TestUserAgentOfSite: a rule's user agent goes with each request of its site, and
// robots.txt is read for the crawl's name all the same.
func TestUserAgentOfSite(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) {
		s.UserAgent, s.RobotsAgent = "crawl/1", "seine"
		s.Sites = []frontier.SiteRule{{Match: "a.example", UserAgent: "other/2 (+https://b.example/bot)"}}
	})
	w.on("a.example/robots.txt", text(200, "User-agent: other\nDisallow: /\n\nUser-agent: seine\nDisallow: /no\n"))
	w.rest(html())
	r.seed("http://a.example/", "http://a.example/no", "http://b.example/")
	r.run()
	for host, want := range map[string]string{"a.example": "other/2 (+https://b.example/bot)", "b.example": "crawl/1"} {
		for _, robots := range []bool{false, true} {
			log := w.requests(host, robots)
			if len(log) != 1 {
				t.Errorf("%s is asked %d times", host, len(log))
			}
			for _, a := range log {
				if got := a.head.Get("User-Agent"); got != want {
					t.Errorf("%s%s: User-Agent %q, want %q", host, a.path, got, want)
				}
			}
		}
	}
	if rec := r.store.by(t)["http://a.example/no"]; rec.Error == nil || rec.Error.Class != "robots" {
		t.Errorf("%+v", rec)
	}
}

// TestConnectionFields: records have the address and the protocol of answers where that is
// asked for.
func TestConnectionFields(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.rest(html())
	r.cfg.Fields = sink.FieldIP | sink.FieldProtocol
	r.seed("http://a.example/")
	r.run()
	rec := r.store.by(t)["http://a.example/"]
	line := string(rec.AppendJSON(nil, r.cfg.Fields))
	if !strings.Contains(line, `"ip":"127.0.0.1","protocol":"http/1.1"`) {
		t.Error(line)
	}
}
