package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"seine/frontier"
	"seine/frontier/memory"
)

// shard is one shard of the crawl: a frontier in memory that only the queue's goroutine
// calls, and its book. A replica is made of what it was asked, for every call to it
// follows from its arguments and its time.
type shard struct {
	w     *world
	k     int // -1: what counts the pages of the crawl
	front *memory.Frontier
	time  time.Time     // of the call at hand, by the shard's clock
	at    time.Duration // of the call at hand
	book  *book

	line   int         // how often a replica took over
	log    []operation // since the beginning
	safe   int         // operations that the replica has for sure
	tokens map[string]string
	names  map[string]string         // tokens of the frontier, by ours
	given  map[string]frontier.Visit // by token
	behind time.Duration             // by so much the clock was set forward
	fork   int                       // operations that the replica has while it is cut off, -1 = it is not
}

// operation is one call to a shard.
type operation struct {
	at   time.Duration
	time time.Time
	do   func(*shard) any
}

func (w *world) newShard(k int) *shard {
	s := &shard{w: w, k: k, fork: -1}
	s.begin()
	return s
}

// begin makes the shard empty.
func (s *shard) begin() {
	w := s.w
	s.time = w.q.began
	front, err := memory.New(memory.Config{
		Layout: frontier.Layout{Shards: w.plan.Shards}, Settings: w.settings, Lease: lease,
		Now: func() time.Time { return s.time },
	})
	if err != nil {
		panic(err)
	}
	s.front, s.log, s.tokens, s.names = front, nil, make(map[string]string), make(map[string]string)
	s.given = make(map[string]frontier.Visit)
	s.book = newBook(s)
}

// call makes one call to the shard, and checks it.
func (s *shard) call(do func(*shard) any) any {
	now := s.w.q.now()
	op := operation{now, s.w.q.began.Add(now + s.behind), do}
	s.log = append(s.log, op)
	return s.run(op)
}

func (s *shard) run(op operation) any {
	s.at, s.time = op.at, op.time
	reply := op.do(s)
	if s.k >= 0 {
		s.book.check()
	}
	return reply
}

// acknowledge notes that the replica has all that was done, and reports whether it has.
func (s *shard) acknowledge() bool {
	if s.fork < 0 {
		s.safe = len(s.log)
	}
	return s.fork < 0
}

// takeOver has the replica take over, which has the first n operations.
func (s *shard) takeOver(n int) {
	if s.w.isEnded() {
		n = len(s.log) // else URLs come back that nobody is left for
	}
	old, log := s.book, s.log
	lost := len(log) - n
	since := s.w.q.now() // what was done from then on is lost
	if lost > 0 {
		since = log[n].at
	}
	s.begin()
	s.w.replaying = true
	for _, op := range log[:n] {
		s.log = append(s.log, op)
		s.run(op)
	}
	s.w.replaying = false
	s.line++
	s.safe, s.fork = n, -1
	s.w.lostOperations += lost
	for token, l := range old.leases {
		if s.book.leases[token] == nil && !l.ended {
			s.w.dropped = append(s.w.dropped, droppedLease{l.fetcher, l.site, s.w.q.now() + lease})
		}
	}
	for _, site := range s.w.web.sites { // what it asked for may be lost with the rest
		if s.w.shardOfSite(site.host) == s {
			site.until = 0
			site.lastDoubt = site.lastDoubt || site.last >= since
		}
	}
}

// The calls. Each copies what it keeps.

func (s *shard) admit(batch []frontier.Candidate) []frontier.Verdict {
	verdicts := make([]frontier.Verdict, len(batch))
	if err := s.front.Admit(context.Background(), s.k, batch, verdicts); err != nil {
		s.w.fail("admit: %v", err)
	}
	s.book.admit(batch, verdicts)
	return verdicts
}

// full is what admission answers where there is no room.
func (s *shard) full(batch []frontier.Candidate) []frontier.Verdict {
	verdicts := make([]frontier.Verdict, len(batch))
	for i := range batch {
		if verdicts[i] = frontier.Full; s.book.urls[batch[i].URL] != nil {
			verdicts[i] = frontier.Seen
		}
	}
	return verdicts
}

func (s *shard) tick(f *fetcher, req frontier.TickRequest) frontier.TickReply {
	req.Extend = slices.Clone(req.Extend)
	asked := slices.Clone(req.Extend)
	for i, l := range asked {
		req.Extend[i].Token = s.named(l.Token)
	}
	reply, err := s.front.Tick(context.Background(), s.k, req)
	if err != nil {
		s.w.fail("tick: %v", err)
	}
	for i := range reply.Gone {
		reply.Gone[i].Token = s.ours(reply.Gone[i].Token)
	}
	for i := range reply.Expired {
		reply.Expired[i].Token = s.ours(reply.Expired[i].Token)
	}
	s.book.tick(f, asked, reply)
	return reply
}

// named is the frontier's name of a token.
func (s *shard) named(token string) string {
	if t := s.names[token]; t != "" {
		return t
	}
	return "unknown " + token
}

func (s *shard) ours(token string) string {
	if t := s.tokens[token]; t != "" {
		return t
	}
	return token[len("unknown "):]
}

// visit is as a shard in Redis answers: each ticket has a token of the call's, and a call
// that is repeated gets what is open of the leases that these have.
func (s *shard) visit(f *fetcher, id string, tickets []frontier.Ticket, limits frontier.VisitLimits) (list []frontier.Visit) {
	for i, t := range tickets {
		token := fmt.Sprintf("%s.%d", id, i)
		if l := s.book.leases[token]; l != nil {
			v := s.given[token]
			v.Items = slices.DeleteFunc(slices.Clone(v.Items), func(it frontier.Item) bool { return l.ended || l.items[it.Index] == "" })
			if len(v.Items) > 0 {
				list = append(list, v)
				limits.Safe = limits.Safe || v.LastChance()
			}
			continue
		}
		visits, err := s.front.Visit(context.Background(), s.k, []frontier.Ticket{t}, limits)
		if err != nil {
			s.w.fail("visit: %v", err)
		}
		for _, v := range visits {
			s.tokens[v.Token], s.names[token] = token, v.Token
			v.Token = token
			s.book.visit(f, &v)
			s.given[token] = v
			limits.Safe = limits.Safe || v.LastChance()
			list = append(list, v)
		}
	}
	return list
}

func (s *shard) settle(f *fetcher, batch []frontier.Settlement) []frontier.Settled {
	list := slices.Clone(batch)
	for i := range list {
		list[i].Token = s.named(list[i].Token)
	}
	settled, err := s.front.Settle(context.Background(), s.k, list)
	if err != nil {
		s.w.fail("settle: %v", err)
	}
	for i := range batch {
		s.book.settle(f, &batch[i], &settled[i])
	}
	return settled
}

func (s *shard) reap(expired []frontier.Expired) int {
	n := 0
	for _, x := range expired {
		ours := x.Token
		x.Token = s.named(ours)
		reaped, err := s.front.Reap(context.Background(), s.k, []frontier.Expired{x})
		if err != nil {
			s.w.fail("reap: %v", err)
		}
		if n += reaped; reaped > 0 {
			s.book.reap(ours)
		}
	}
	return n
}

func (s *shard) stats() frontier.ShardStats {
	st, err := s.front.ShardStats(context.Background(), s.k)
	if err != nil {
		s.w.fail("stats: %v", err)
	}
	st.Shard = s.k
	return st
}

// book is what must be true of a shard, kept beside it.
type book struct {
	s       *shard
	urls    map[string]*entry
	leases  map[string]*leased
	of      map[string]*leased // leases by site, that were not released
	queued  int64              // or wait
	open    int64
	done    int64
	dead    int64
	unasked int64
}

// entry is a URL that the shard knows.
type entry struct {
	state string
	cause string // of a dead one
	lost  int
}

// States of an entry.
const (
	queued = "queued"
	open   = "open"
	done   = "done"
	dead   = "dead"
)

// leased is one lease.
type leased struct {
	fetcher *fetcher
	site    string
	items   map[int]string  // that are open: URLs by index
	asked   map[string]bool // URLs that were requested
	until   time.Time       // by the shard's time
	ended   bool            // it was reaped, or all of it is settled
}

func newBook(s *shard) *book {
	return &book{s: s, urls: make(map[string]*entry), leases: make(map[string]*leased), of: make(map[string]*leased)}
}

func (b *book) fail(format string, args ...any) {
	b.s.w.fail("shard %d: %s", b.s.k, fmt.Sprintf(format, args...))
}

// check compares the book with the shard's counters.
func (b *book) check() {
	st := b.s.stats()
	for _, c := range []struct {
		what       string
		has, wants int64
	}{
		{"known", st.Known, int64(len(b.urls))},
		{"queued", st.Queued + st.Waiting, b.queued},
		{"open", st.Open, b.open},
		{"done", st.Done, b.done},
		{"dead", st.Dead, b.dead},
		{"all states", st.Known, b.queued + b.open + b.done + b.dead},
	} {
		if c.has != c.wants {
			b.fail("it counts %d URLs as %s, there are %d", c.has, c.what, c.wants)
		}
	}
	w := b.s.w
	if limit := w.settings.MaxPages; limit > 0 && !w.replaying {
		pages := int64(0)
		for _, s := range w.shards {
			pages += s.book.done + s.book.dead - s.book.unasked
		}
		if pages > limit {
			b.fail("the crawl has %d pages, its limit is %d", pages, limit)
		}
	}
}

func (b *book) admit(batch []frontier.Candidate, verdicts []frontier.Verdict) {
	fresh := make(map[string]bool)
	for i := range batch {
		u := batch[i].URL
		known := b.urls[u] != nil && !fresh[u]
		switch v := verdicts[i]; {
		case v == frontier.Admitted && known:
			b.fail("%s is admitted twice", u)
		case v == frontier.Seen && !known:
			b.fail("%s is seen, and is not known", u)
		case v == frontier.Admitted && !fresh[u]:
			fresh[u] = true
			b.urls[u] = &entry{state: queued}
			b.queued++
		case v == frontier.Capped && b.s.w.web.of[batch[i].Site].kind != siteTrap:
			b.fail("%s is capped", u)
		}
	}
}

func (b *book) tick(f *fetcher, asked []frontier.Lease, reply frontier.TickReply) {
	for _, l := range asked {
		own := b.leases[l.Token]
		live := own != nil && !own.ended
		gone := slices.ContainsFunc(reply.Gone, func(g frontier.Lease) bool { return g.Token == l.Token })
		if live == gone {
			b.fail("a tick of %s says gone = %v of the lease %s, which is live = %v", f.id, gone, l.Token, live)
		}
		if live {
			own.until = b.s.time.Add(lease)
		}
	}
}

func (b *book) visit(f *fetcher, v *frontier.Visit) {
	if other := b.of[v.Site]; other != nil {
		b.fail("%s is leased to %s, while %s has it", v.Site, f.id, other.fetcher.id)
	}
	l := &leased{fetcher: f, site: v.Site, items: make(map[int]string), asked: make(map[string]bool), until: b.s.time.Add(lease)}
	for _, it := range v.Items {
		e := b.urls[it.URL]
		if e == nil || e.state != queued {
			b.fail("%s is leased to %s and was not queued: %+v", it.URL, f.id, e)
			continue
		}
		e.state = open
		l.items[it.Index] = it.URL
		b.queued--
		b.open++
	}
	b.leases[v.Token], b.of[v.Site] = l, l
}

func (b *book) settle(f *fetcher, st *frontier.Settlement, settled *frontier.Settled) {
	l := b.leases[st.Token]
	for i := range st.Outcomes {
		o := &st.Outcomes[i]
		var u string
		if l != nil && !l.ended {
			u = l.items[o.Index]
		}
		if accepted := settled.Outcomes[i]; accepted != (u != "") {
			b.fail("an outcome of URL %d %q of lease %s is accepted = %v", o.Index, u, st.Token, accepted)
			continue
		} else if !accepted {
			continue
		}
		delete(l.items, o.Index)
		e := b.urls[u]
		b.open--
		switch o.Kind {
		case frontier.Done:
			e.state = done
			b.done++
			b.s.w.checkDone(f, u)
		case frontier.Dead:
			e.state, e.cause = dead, o.Cause
			b.dead++
			if o.Unasked {
				b.unasked++
			}
			b.s.w.checkRecord(f, u)
		default:
			e.state, e.lost = queued, 0
			b.queued++
		}
	}
	if l == nil {
		return
	}
	if st.Release != nil && !l.ended && b.of[l.site] == l {
		delete(b.of, l.site)
	}
	b.endIfOver(l)
}

// endIfOver ends a lease that was released and of which all is settled.
func (b *book) endIfOver(l *leased) {
	if len(l.items) == 0 && b.of[l.site] != l {
		l.ended = true
	}
}

func (b *book) reap(token string) {
	l := b.leases[token]
	if l == nil || l.ended {
		b.fail("the lease %s is reaped, which is not live", token)
		return
	}
	for _, i := range slices.Sorted(maps.Keys(l.items)) {
		e := b.urls[l.items[i]]
		b.open--
		if e.lost++; e.lost >= 3 {
			e.state, e.cause = dead, frontier.CauseLost
			b.dead++
		} else {
			e.state = queued
			b.queued++
		}
	}
	if b.of[l.site] == l {
		delete(b.of, l.site)
	}
	l.ended = true
	b.s.w.web.of[l.site].until = 0 // what it asked for was never said
}
