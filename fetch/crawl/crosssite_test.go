package crawl

import (
	"fmt"
	"testing"
	"time"

	"seine/fetch/crawl/internal/work"
	"seine/frontier"
	"seine/frontier/canon"
)

// TestRobotsOfManySitesOnOne: many sites send for their rules to one. Its delay
// holds, for its own pages too, and all of them are crawled.
func TestRobotsOfManySitesOnOne(t *testing.T) {
	t.Parallel()
	const delay, n = 100 * time.Millisecond, 12
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Delay = delay })
	w.on("shared.example/rules", text(200, "User-agent: *\nDisallow: /x"))
	w.tree("shared.example", 12)
	r.seed("http://shared.example/p0")
	for i := range n {
		host := fmt.Sprintf("s%d.example", i)
		w.on(host+"/robots.txt", redirect("http://shared.example/rules"))
		w.page(host + "/")
		r.seed("http://"+host+"/", "http://"+host+"/x")
	}
	r.run()
	w.checkGaps(t, delay)
	for i := range n {
		if a, b := w.times(fmt.Sprintf("http://s%d.example/", i)), w.times(fmt.Sprintf("http://s%d.example/x", i)); a != 1 || b != 0 {
			t.Errorf("site %d: / asked for %d times, /x, which is disallowed, %d times", i, a, b)
		}
	}
	if got := w.times("http://shared.example/rules"); got != n {
		t.Errorf("the rules were asked for %d times by %d sites", got, n)
	}
	if got := len(w.requests("shared.example", false)); got != 12+n {
		t.Errorf("%d requests to the shared site, want %d", got, 12+n)
	}
	r.checkEmpty()
}

// TestRobotsOnStoppedSite: rules on a site that nobody may ask are not asked for.
func TestRobotsOnStoppedSite(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.GiveUp = 200 * time.Millisecond
	w.on("a.example/robots.txt", redirect("http://b.example/rules"))
	w.page("a.example/")
	r.seed("http://a.example/")
	shard := r.queue.Of(canon.FingerprintOf([]byte("b.example"), nil))
	if err := r.queue.Alter(t.Context(), shard, "b.example", frontier.SiteChange{Blocked: new(true)}); err != nil {
		t.Fatal(err)
	}
	r.run()
	if n := len(w.requests("b.example", false)) + w.times("http://a.example/"); n != 0 {
		t.Errorf("%d requests to a blocked site, and without rules", n)
	}
	if rec := r.store.by(t)["http://a.example/"]; rec.Error == nil || rec.Error.Class != work.CauseUnreachable {
		t.Errorf("its record: %+v", rec)
	}
	r.checkEmpty()
}
