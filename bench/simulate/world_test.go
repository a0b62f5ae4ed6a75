package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seine/extract/sink"
	"seine/fetch/crawl"
	"seine/frontier"
	"seine/frontier/canon"
)

// lease is that of a visit.
const lease = time.Minute

// world is one simulation.
type world struct {
	plan     *plan
	q        *queue
	settings frontier.Settings
	layout   frontier.Layout
	sites    *canon.Sites
	maker    *frontier.Maker
	web      *web
	shards   []*shard
	root     *shard // that counts the pages of the crawl
	pages    *pages
	present  map[string]time.Duration // fetchers: until when they are taken to be at work
	fleet    []*fetcher
	recent   recentStats
	fault    string          // the first thing that did not hold
	crawled  map[string]bool // URLs whose record is in an output

	replaying      bool // operations of a shard run for a replica
	dropped        []droppedLease
	reserved       []reservation
	lives          int // fetchers so far
	lostOperations int
	doubtful       int // requests that came too soon under leases that a failover took
	requests       int
	coming         int           // fetchers that are to start
	ended          time.Duration // when the last fetcher had ended
	steps          []byte
}

// droppedLease is a lease that a failover took. Its fetcher learns that from its next
// tick, and that is a known limit.
type droppedLease struct {
	fetcher *fetcher
	site    string
	until   time.Duration
}

// reservation is leave to make one request to a site that is not leased.
type reservation struct {
	fetcher *fetcher
	site    string
	from    time.Duration
	until   time.Duration
	line    int
}

// fail notes that something does not hold, and ends the simulation.
func (w *world) fail(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf("%v: ", w.q.now()) + fmt.Sprintf(format, args...)
		w.q.end()
	}
}

// simulate runs a plan.
func simulate(t *testing.T, p *plan, replay map[string]replayed) (w *world) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that goroutines run in much the same order each time
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(p)
		w.q.replay = replay
		w.start()
		w.q.run()
		if w.fault == "" {
			w.checkEnd()
		}
		w.steps = w.q.steps
		for _, f := range w.fleet {
			if f != nil && !f.over {
				w.kill(f)
			}
		}
	})
	return w
}

func newWorld(p *plan) *world {
	w := &world{plan: p, q: newQueue(p.Seed), settings: frontier.DefaultSettings(), crawled: make(map[string]bool)}
	w.settings.Jitter, w.settings.Scope, w.settings.MaxPages, w.settings.PerSite = 0, "any", p.MaxPages, p.PerSite
	w.settings.Rev = 1
	if w.q.random("duplicates").IntN(4) == 0 {
		w.settings.Duplicates = frontier.DuplicatesMark
	}
	w.layout = frontier.Layout{Shards: p.Shards}.Complete()
	w.sites = canon.NewSites(w.layout.LimitBy)
	w.maker = frontier.NewMaker(w.layout)
	w.web = newWeb(w)
	r := w.q.random("settings")
	if r.IntN(2) == 0 {
		w.settings.VisitURLs = 1 + r.IntN(30)
	}
	delays := []time.Duration{0, 200 * time.Millisecond, 3 * time.Second, 15 * time.Second}
	for i, s := range w.web.sites {
		rule := frontier.SiteRule{Match: s.host}
		if r.IntN(8) == 0 && i < 200 {
			d := delays[r.IntN(len(delays))]
			rule.Delay, s.delay = &d, d
		}
		if s.capped > 0 {
			rule.MaxPages = &s.capped
		}
		if rule.Delay != nil || rule.MaxPages != nil {
			w.settings.Sites = append(w.settings.Sites, rule)
		}
	}
	for k := range p.Shards {
		w.shards = append(w.shards, w.newShard(k))
	}
	w.root = w.newShard(-1)
	w.pages = &pages{w: w, by: make(map[string]*share)}
	w.present = make(map[string]time.Duration)
	w.fleet = make([]*fetcher, p.Fetchers)
	return w
}

// start plans what happens by itself.
func (w *world) start() {
	for _, u := range w.web.seeds() {
		c, err := w.maker.Make(u)
		if err != nil {
			panic(err)
		}
		s := w.shards[c.Fingerprint.Shard(w.plan.Shards)]
		s.call(func(s *shard) any { return s.admit([]frontier.Candidate{c}) })
		s.acknowledge()
	}
	for i := range w.fleet {
		w.q.at(time.Duration(i)*time.Second, fmt.Sprintf("start %d", i), func() string { return w.begin(i) })
	}
	for i, f := range w.plan.Faults {
		name := fmt.Sprintf("fault %d %s %d", i, f.Kind, f.Who)
		w.q.at(f.At, name, func() string { return w.strike(name, f) })
	}
	w.q.after(time.Second, "look 1", w.look(1))
	w.q.at(w.plan.healed()+w.patience(), "patience ends", func() string {
		w.fail("the crawl does not end: %s", w.situation())
		return ""
	})
}

// patience is how long a crawl may take once all faults have ended: each site's pages, one
// after the other, a part of them four times, and what sites cost that do not answer.
func (w *world) patience() time.Duration {
	longest := time.Duration(0)
	for _, s := range w.web.sites {
		each := max(s.delay, s.crawlDelay) + 2*s.latency + 3*time.Second
		n := len(s.pages) + int(s.capped) + 10
		longest = max(longest, time.Duration(2*n)*each)
	}
	return longest + 3*time.Hour
}

// begin starts a fetcher at a place of the fleet.
func (w *world) begin(place int) string {
	w.lives++
	r := w.q.random(fmt.Sprintf("fetcher %d", w.lives))
	f := &fetcher{w: w, place: place, id: fmt.Sprintf("f%d.%d", place, w.lives), dead: make(chan struct{}), concurrency: 2 + r.IntN(60)}
	f.lines, f.learned = make([]int, w.plan.Shards), make([]time.Duration, w.plan.Shards)
	for range w.plan.Shards + 1 {
		f.epochs = append(f.epochs, new(epoch))
	}
	for k, s := range w.shards {
		f.lines[k] = s.line
	}
	drift := 1 + (r.Float64()-0.5)/100
	c, err := crawl.New(crawl.Config{
		Frontier: f, Fetcher: f, Sink: (*output)(f), Log: slog.New(slog.DiscardHandler), ID: f.id,
		Concurrency: f.concurrency, Memory: 64 << 20, MaxVisits: 16 + r.IntN(2000), Lease: lease, Linger: 2 * time.Millisecond, KnownURLs: 1 << (4 + r.IntN(12)),
		ExitWhenDone: true, Agent: "sim", MaxRedirects: maxRedirects, MaxTries: maxTries,
		Elapsed: func() time.Duration { return time.Duration(float64(time.Since(w.q.began)) * drift) },
		Epoch:   func(k int) uint64 { return f.epochs[k+1].n.Load() },
	})
	if err != nil {
		panic(err)
	}
	f.crawler = c
	w.fleet[place] = f
	w.announce(f)
	go func() {
		err := c.Run(context.Background())
		w.q.ask(&call{from: f, name: "returned", start: func(*call) { w.returned(f, err) }})
	}()
	return f.id
}

// returned is called when a fetcher has ended.
func (w *world) returned(f *fetcher, err error) {
	f.over = true
	defer w.endIfOver()
	if f.killed {
		return
	}
	delete(w.present, f.id)
	if err != nil {
		w.fail("%s ended with %v", f.id, err)
		return
	}
	switch end := f.crawler.Progress().Ended; end {
	case crawl.EndFinished:
		for _, s := range w.shards {
			if b := s.book; b.queued > 0 || b.open > 0 || len(b.of) > 0 {
				w.fail("%s says that the crawl has ended: %s", f.id, w.situation())
			}
		}
	case crawl.EndMaxPages:
		if n := w.settledPages(); n < w.plan.MaxPages {
			w.fail("%s says that the page limit %d is reached, %d are settled: %s", f.id, w.plan.MaxPages, n, w.situation())
		}
	case "": // it was stopped
		return
	default:
		w.fail("%s ended with %q", f.id, end)
	}
}

// endIfOver ends the simulation, a minute after no fetcher is left and none comes.
func (w *world) endIfOver() {
	if w.ended > 0 || w.coming > 0 && !w.isEnded() || slices.ContainsFunc(w.fleet, func(f *fetcher) bool { return f == nil || !f.over }) {
		return
	}
	w.ended = w.q.now()
	w.q.after(time.Minute, "the end", func() string { w.q.end(); return "" })
}

func (w *world) settledPages() (n int64) {
	for _, s := range w.shards {
		n += s.book.done + s.book.dead - s.book.unasked
	}
	return n
}

// kill ends a fetcher: nothing it does from now on is seen by anybody.
func (w *world) kill(f *fetcher) {
	if f.killed {
		return
	}
	f.killed = true
	close(f.dead)
	go f.crawler.Abort(errKilled)
}

// strike has a fault happen.
func (w *world) strike(name string, f fault) string {
	switch f.Kind {
	case faultKill, faultStop:
		who := w.fleet[f.Who%len(w.fleet)]
		if who == nil || who.over || who.killed || who.stopped {
			return "nobody is there"
		}
		if f.Kind == faultKill {
			w.kill(who)
		} else {
			who.stopped = true
			go who.crawler.Stop()
		}
		w.coming++
		w.q.after(f.For, name+" heals", w.replace(who, name))
	case faultMove:
		s := w.shards[f.Who%len(w.shards)]
		r := w.q.random(name)
		n := s.safe + r.IntN(min(len(s.log)-s.safe, 200)+1)
		w.q.after(f.For, name+" heals", func() string { s.takeOver(min(max(n, s.safe), len(s.log))); return "" })
	case faultStale:
		s := w.shards[f.Who%len(w.shards)]
		if s.fork >= 0 {
			return "it is cut off already"
		}
		s.fork = len(s.log)
		s.safe = s.fork
		w.q.after(f.For, name+" heals", func() string {
			if s.fork >= 0 {
				s.takeOver(s.fork)
			}
			return ""
		})
	case faultClock:
		s := w.shards[f.Who%len(w.shards)]
		s.behind += f.For
		for _, site := range w.web.sites { // the first tick after it may be a fetcher's first, which cannot tell the jump
			if w.shardOfSite(site.host) == s {
				site.lastDoubt, site.until = true, 0
			}
		}
	case faultPause:
		s := w.shards[f.Who%len(w.shards)]
		w.setPaused(s, true)
		w.q.after(f.For, name+" heals", w.resume(s, name))
	}
	return "strikes"
}

func (w *world) setPaused(s *shard, paused bool) {
	s.call(func(s *shard) any {
		if err := s.front.Pause(context.Background(), s.k, paused); err != nil {
			s.w.fail("pause: %v", err)
		}
		return nil
	})
	s.acknowledge()
}

// replace starts another fetcher in the place of one that ends.
func (w *world) replace(old *fetcher, name string) func() string {
	return func() string {
		switch {
		case w.isEnded():
		case !old.over:
			w.q.after(time.Second, name+" heals later", w.replace(old, name))
			return ""
		default:
			w.coming--
			return w.begin(old.place)
		}
		w.coming--
		w.endIfOver()
		return "the crawl has ended"
	}
}

// resume resumes a shard, when its replica will know that.
func (w *world) resume(s *shard, name string) func() string {
	return func() string {
		if s.fork >= 0 || w.plan.during(faultMove, s.k, w.q.now()) {
			w.q.after(time.Second, name+" heals later", w.resume(s, name))
			return ""
		}
		w.setPaused(s, false)
		return "resumed"
	}
}

// isEnded reports whether some fetcher said that the crawl has ended.
func (w *world) isEnded() bool {
	return slices.ContainsFunc(w.fleet, func(f *fetcher) bool { return f != nil && f.over && !f.killed && f.crawler.Progress().Ended != "" })
}

// look is what happens every second: fetchers learn who is at work, and their bounds are
// checked.
func (w *world) look(n int) func() string {
	return func() string {
		for _, f := range w.fleet {
			if f != nil && !f.over && !f.killed {
				w.announce(f)
			}
		}
		live := len(w.live())
		bound := 200
		for _, f := range w.fleet {
			if f == nil || f.over || f.killed {
				continue
			}
			if w.plan.Alone == 0 {
				f.crawler.SetLive(frontier.Present{Programs: live}, frontier.Member{})
			}
			bound += 2*f.concurrency + 20*w.plan.Shards + 100
			bound += len(w.web.sites) // robots.txt of others, names
		}
		if n := runtime.NumGoroutine(); n > 3*bound {
			w.fail("there are %d goroutines, and %d fetchers", n, live)
		}
		w.q.after(time.Second, fmt.Sprintf("look %d", n+1), w.look(n+1))
		return ""
	}
}

// isDropped reports whether a failover took a lease of a fetcher lately.
func (w *world) isDropped(f *fetcher, host string) bool {
	now := w.q.now()
	w.dropped = slices.DeleteFunc(w.dropped, func(d droppedLease) bool { return d.until < now })
	return slices.ContainsFunc(w.dropped, func(d droppedLease) bool { return d.fetcher == f && d.site == host })
}

// checkLease checks that a request is made under a lease that is live, and reports
// whether that is in doubt since a failover took it: the fetcher decided on the request
// before it heard of the new master.
func (w *world) checkLease(f *fetcher, s *site, url, path string, asked time.Duration) (doubt bool) {
	w.requests++
	now := w.q.now()
	sh := w.shardOfSite(s.host)
	if w.isDropped(f, s.host) && (f.lines[sh.k] != sh.line || asked <= f.learned[sh.k]) {
		return true
	}
	reserved := false
	for i, r := range w.reserved {
		if path == "/robots.txt" && r.fetcher == f && r.site == s.host && r.from <= now && now <= r.until {
			w.reserved = slices.Delete(w.reserved, i, i+1)
			if r.line != sh.line {
				return true // a failover took it
			}
			reserved = true
			break
		}
	}
	l := sh.book.of[s.host]
	if l != nil && l.fetcher == f {
		if at := w.q.began.Add(now); at.After(l.until) && sh.behind == 0 {
			w.fail("%s asks for %s, its lease ended %v ago", f.id, url, at.Sub(l.until))
		}
		if path == "/robots.txt" {
			return false
		}
		open := false
		for _, u := range l.items {
			open = open || u == url
		}
		if !open || l.asked[url] {
			w.fail("%s asks for %s, which is open in its visit = %v, and was asked for = %v", f.id, url, open, l.asked[url])
		}
		l.asked[url] = true
		return false
	}
	if reserved {
		return false
	}
	w.fail("%s asks for %s without a lease: %s; a failover took it = %v", f.id, url, w.situationOf(s.host), w.isDropped(f, s.host))
	return false
}

func (w *world) shardOfSite(host string) *shard {
	c, err := w.maker.Make("http://" + host + "/")
	if err != nil {
		panic(err)
	}
	return w.shards[c.Fingerprint.Shard(w.plan.Shards)]
}

// checkDone checks that a page that is settled has its record in the output, and that
// what it links to is known.
func (w *world) checkDone(f *fetcher, url string) {
	if w.replaying {
		return
	}
	w.checkRecord(f, url)
	p := w.web.find(url)
	if p == nil {
		w.fail("%s is settled, and is no page", url)
		return
	}
	var links []string
	if dead, _ := p.isDead(); p.kind != pageMissing && !dead {
		links = p.links
		if p.target != "" && p.kind != pageLoop && p.kind != pageEndless {
			links = append(links, p.target)
		}
	}
	for _, l := range links {
		to := w.web.find(l)
		if to.site.kind == siteTrap {
			continue
		}
		if w.shardOfSite(to.site.host).book.urls[l] == nil {
			w.fail("%s is settled by %s, and its link %s is not known", url, f.id, l)
		}
	}
}

func (w *world) checkRecord(f *fetcher, url string) {
	if !w.replaying && !w.crawled[url] {
		w.fail("%s is settled by %s, and no output has its record", url, f.id)
	}
}

// checkEnd compares what was crawled with the answer key.
func (w *world) checkEnd() {
	all := make(map[string]*entry)
	for _, s := range w.shards {
		for u, e := range s.book.urls {
			all[u] = e
		}
	}
	found := w.web.reachable(func(p *page) bool { return all[p.url] != nil && all[p.url].state == done })
	limited := w.plan.MaxPages > 0 && w.settledPages() >= w.plan.MaxPages
	for u, p := range found {
		e := all[u]
		if e == nil {
			w.fail("%s was not found", u)
			continue
		}
		if limited && (e.state == queued) {
			continue
		}
		must, either := p.isDead()
		can := must || either || p.site.canBeGivenUp() || e.cause == frontier.CauseLost && w.plan.kills() >= 3
		switch {
		case e.state != done && e.state != dead:
			w.fail("%s is %s at the end", u, e.state)
		case e.state == dead && !can:
			w.fail("%s is dead: %s", u, e.cause)
		case e.state == done && must:
			w.fail("%s is done, and should be dead", u)
		}
	}
	w.checkRepeats(found)
	led := w.web.reachable(func(p *page) bool { return w.crawled[p.url] }) // some may have been lost with a master, and then died
	for u := range all {
		if p := w.web.find(u); p == nil || led[u] == nil && p.site.kind != siteTrap {
			w.fail("%s is known, and nothing leads to it", u)
		}
	}
	for _, s := range w.web.sites {
		if s.kind != siteTrap || limited {
			continue
		}
		n := int64(0)
		for u := range all {
			if w.web.find(u).site == s {
				n++
			}
		}
		if n > s.capped {
			w.fail("%s has %d URLs, its cap is %d", s.host, n, s.capped)
		}
	}
}

// checkRepeats checks that nothing was repeated for no reason: no URL comes back from a lease
// where no fetcher was lost, and none is fetched twice where all shards answered too.
func (w *world) checkRepeats(found map[string]*page) {
	if w.plan.has(faultKill, faultCut, faultMove, faultStale, faultClock) {
		return
	}
	for _, s := range w.shards {
		if n := s.stats().Lost; n > 0 {
			w.fail("%d URLs of shard %d came back from leases that ended, and no fetcher was lost", n, s.k)
		}
	}
	if w.plan.has(faultLoss, faultDown, faultFull) {
		return
	}
	for u, p := range found {
		most := p.fails + 1
		if p.kind == pageStatus {
			most = maxTries
		}
		if n := p.site.asked[strings.TrimPrefix(u, "http://"+p.site.host)]; n > most {
			w.fail("%s was asked for %d times, %d are needed", u, n, most)
		}
	}
}

// kills is how often a fetcher may have been lost.
func (p *plan) kills() int { return len(p.Faults) }

// situation is what is left.
func (w *world) situation() string {
	var b strings.Builder
	for _, s := range w.shards {
		k := s.book
		fmt.Fprintf(&b, "\n  shard %d: queued %d, open %d, done %d, dead %d, leases %d: %+v", s.k, k.queued, k.open, k.done, k.dead, len(k.of), s.stats())
		n := 0
		for u, e := range k.urls {
			if e.state == queued || e.state == open {
				if n++; n < 6 {
					fmt.Fprintf(&b, "\n    %s %s", u, e.state)
				}
			}
		}
	}
	for _, f := range w.fleet {
		if f == nil {
			continue
		}
		fmt.Fprintf(&b, "\n  %s: killed %v, over %v, %+v", f.id, f.killed, f.over, f.crawler.Progress())
	}
	return b.String()
}

func (w *world) situationOf(host string) string {
	s := w.shardOfSite(host)
	states, _ := s.front.SiteStates(context.Background(), s.k, []string{host})
	by := "nobody"
	if l := s.book.of[host]; l != nil {
		by = l.fetcher.id
	}
	return fmt.Sprintf("leased by %s, %+v", by, states)
}

// output is where a fetcher's records go.
type output fetcher

// Write implements sink.Sink.
func (o *output) Write(r *sink.Record, saved func(error)) {
	f := (*fetcher)(o)
	url := strings.Clone(r.URL)
	if r.ArchiveOnly {
		saved(nil)
		return
	}
	c := &call{from: f, name: "record " + url}
	c.start = func(c *call) {
		if f.killed {
			return
		}
		r := f.w.q.random(c.id)
		late := time.Duration(r.IntN(20)) * time.Millisecond
		for _, x := range f.w.plan.Faults { // an output that stalls
			if now := f.w.q.now(); x.Kind == faultSink && x.Who == f.place && x.At <= now && now < x.At+x.For {
				late = max(late, x.At+x.For-now)
			}
		}
		f.unsaved++
		if most := 1000 + f.concurrency; f.unsaved > most {
			f.w.fail("%s has %d records that its output has not, %d are allowed", f.id, f.unsaved, most)
		}
		f.w.q.after(late, c.id+" saved", func() string {
			if f.killed {
				return ""
			}
			f.unsaved--
			f.w.crawled[url] = true
			go saved(nil)
			return ""
		})
	}
	f.w.q.ask(c)
}

// Err implements sink.Sink.
func (o *output) Err() error { return nil }

// Close implements sink.Sink.
func (o *output) Close() error { return nil }
