package crawl

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"seine/extract/sink"
	"seine/frontier"
)

func basic(userinfo string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(userinfo))
}

// TestCredentialsOfSeeds: those of a seed go with every request to its origin, and
// with none to another; they stand in no record.
func TestCredentialsOfSeeds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *frontier.Settings) { s.Referrer = true }, func(t *testing.T, w *web, r *rig) {
		r.cfg.Fields = sink.FieldLinksOut
		r.cfg.Exchanges = true
		w.on("a.example/robots.txt", text(200, "User-agent: *\nDisallow: /no\n"))
		w.page("a.example/", "/relative", "http://a.example/absolute", "/hop", "http://www.a.example/other", "http://own:word@a.example/own", "/no")
		w.on("a.example/hop", redirect("http://a.example/hopped"))
		w.on("a.example/absolute", redirect("http://www.a.example/away"))
		w.rest(html())
		r.seed("http://us%65r:pass%20word@a.example/")
		r.run()

		want := map[string]string{"a.example/": "user:pass word", "a.example/robots.txt": "user:pass word", "a.example/relative": "user:pass word",
			"a.example/absolute": "user:pass word", "a.example/hop": "user:pass word", "a.example/hopped": "user:pass word",
			"a.example/own": "own:word", "www.a.example/robots.txt": "", "www.a.example/other": "", "www.a.example/away": ""}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, a := range w.log {
			url, got := a.host+a.path, a.head.Get("Authorization")
			userinfo, asked := want[url]
			if !asked || userinfo == "" && got != "" || userinfo != "" && got != basic(userinfo) {
				t.Errorf("%s came with %q, want that of %q", url, got, userinfo)
			}
			delete(want, url)
		}
		if len(want) > 0 {
			t.Errorf("not asked for: %v", want)
		}
		for _, rec := range r.store.records {
			rec.Exchange = nil
			if text := fmt.Sprintf("%+v", rec); strings.Contains(text, "word") || strings.Contains(text, "@") {
				t.Error(text)
			}
		}
	})
}

// TestCredentialsOfRules: a rule's Authorization beats those of a seed.
func TestCredentialsOfRules(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Sites = []frontier.SiteRule{{Match: "a.example", Auth: "rule:x"}} })
	w.rest(func(rw http.ResponseWriter, r *http.Request) {})
	r.seed("http://usr:pw@a.example/")
	r.run()
	for _, a := range w.requests("a.example", false) {
		if got := a.head.Get("Authorization"); got != basic("rule:x") {
			t.Errorf("%s: %q", a.path, got)
		}
	}
	r.checkEmpty()
}
