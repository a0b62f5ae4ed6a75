package memory

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"seine/frontier"
	"seine/frontier/memory/store"
)

// The places of a site. The first four are the classes of the ready rule.
const (
	inPaused = 4 + iota // paused, with work
	inIdle              // without work, to be forgotten
	places
	nowhere = -1 // leased, or open in visits, or with something to keep
)

// day is how long a site's clock and delay are kept after its last request, in
// milliseconds.
const day = 24 * 60 * 60 * 1000

// shardState is one shard.
type shardState struct {
	mu        sync.Mutex
	f         *Frontier
	k         int
	now       int64 // milliseconds, never behind the last call
	tick      int64 // last tick of anyone
	clockJump int64 // milliseconds that the clock was set forward by
	quiet     int64 // until then no expired token is named
	round     int   // ticks that named due sites

	known         known
	contents      contents
	sites         map[string]*site
	heaps         [places]heap[*site]
	leases        map[string]*lease
	expiry        heap[*lease]
	dead          map[string]*deadList
	rules         map[string]*siteRules
	namedCounters map[string]*int64     // for reports
	seeds         map[string]string     // what became of the first
	gone          [2][]frontier.TopSite // sites that are forgotten, the first by pages and by dead
	words         map[string]string     // that many sites share
	walled        map[string]*site      // those that have or had a back-off for walls
	stats         frontier.ShardStats
	scratch       []byte
	batch         batch

	tx          *store.Batch // what this call changes in the store; nil when nothing is kept on disk
	changes     []*site      // whose records it changes
	first, last int64        // numbers of entries given out: one goes before all others, or behind
	key, value  []byte       // being made
}

func newShardState(f *Frontier, k int) *shardState {
	return &shardState{
		f: f, k: k,
		known:         newKnown(),
		sites:         make(map[string]*site),
		leases:        make(map[string]*lease),
		dead:          make(map[string]*deadList),
		rules:         make(map[string]*siteRules),
		namedCounters: make(map[string]*int64),
		seeds:         make(map[string]string),
		words:         make(map[string]string),
		walled:        make(map[string]*site),
		stats:         frontier.ShardStats{Shard: k},
	}
}

// site is what a shard keeps of one site.
type site struct {
	name       string
	score      int64 // half milliseconds: due time, odd for a soft claim
	pos        int32 // in the heap of its place
	place      int8
	round      uint8 // visits, modulo 8
	paused     bool
	blocked    bool
	changed    bool // its record is to be stored
	stored     bool // it has one
	failures   int32
	open       int32 // visits of it that are not over
	clock      int64 // milliseconds: next request not before
	delay      time.Duration
	leased     *lease
	queues     [4]*queue
	waits      heap[*wait]
	recrawl    *recrawlSet // nil for none
	extra      *extra
	siteTotals siteTotals
	reserved   *reserved
}

// extra is what few sites have.
type extra struct {
	why      string
	override string
	cookies  string
	auth     string // credentials of its origins
	cap      int64
	admitted int64   // counted only while a cap applies
	walls    *walls  // nil: the last answer was none
	stops    [3]stop // of the pause, of the block, and of what was dropped last
}

// walls is the row of walls that answered in place of a site.
type walls struct {
	count       int
	since, ends int64 // milliseconds: of the first, and of the back-off, 0 = none yet
	vendor      string
}

// stop says since when and why a site is paused or blocked, or its URLs were dropped.
type stop struct {
	since  int64 // milliseconds
	reason string
}

// wait is a retry.
type wait struct {
	until int64
	order int64 // of two that end at once the older first
	pos   int
	entry frontier.Entry
}

func (w *wait) before(x *wait) bool {
	return w.until < x.until || w.until == x.until && w.order < x.order
}
func (w *wait) moved(i int) { w.pos = i }

func (s *site) before(x *site) bool {
	return s.score < x.score || s.score == x.score && s.name < x.name
}
func (s *site) moved(i int) { s.pos = int32(i) }

// lock takes the shard and reads the time.
func (p *shardState) lock() {
	p.mu.Lock()
	p.now = max(p.now, p.f.cfg.Now().UnixMilli()+p.f.ahead-p.clockJump)
}

// unlock gives the shard back and waits until the store has all that was done,
// by others too: what they did may show in the answer.
func (p *shardState) unlock(ctx context.Context, op string) error {
	if p.tx == nil {
		p.mu.Unlock()
		return nil
	}
	last := p.flush()
	p.mu.Unlock()
	if err := p.f.dir.store.Await(ctx, last); err != nil {
		return fmt.Errorf("frontier: shard %d: %s: %w", p.k, op, err)
	}
	return nil
}

// site returns what the shard keeps of a site, made when missing.
func (p *shardState) site(name string) *site {
	s := p.sites[name]
	if s == nil {
		s = &site{name: strings.Clone(name), place: nowhere}
		p.sites[s.name] = s
	} else {
		p.age(s)
	}
	return s
}

// age forgets what is kept of a site for a day only.
func (p *shardState) age(s *site) {
	if s.clock == 0 || s.clock+day > p.now || s.keeps() {
		return
	}
	s.clock, s.delay, s.failures, s.round = 0, 0, 0, 0
	s.extra, s.reserved = nil, nil
	delete(p.walled, s.name)
	p.forgetTotals(s)
	p.changed(s)
}

// keeps reports whether something of the site outlasts the day.
func (s *site) keeps() bool {
	return s.leased != nil || s.paused || s.blocked || s.extra != nil && (s.extra.cap != 0 || s.extra.override != "" || s.extra.admitted != 0 || s.extra.stops[2].since != 0 || s.extra.auth != "" && s.busy())
}

// busy reports whether anything of the site is queued, leased or waits.
func (s *site) busy() bool {
	return s.best() < len(s.queues) || len(s.waits) > 0 || s.recrawl != nil || s.open > 0
}

// more returns the site's rare values to write to.
func (s *site) more() *extra {
	if s.extra == nil {
		s.extra = &extra{}
	}
	return s.extra
}

// wallRow is the row of walls that answered in place of the site, nil for none.
func (s *site) wallRow() *walls {
	if s.extra == nil {
		return nil
	}
	return s.extra.walls
}

func (s *site) why() string {
	if s.extra == nil {
		return ""
	}
	return s.extra.why
}

// best is the first class with entries in its list, or 4.
func (s *site) best() int {
	for class, q := range s.queues {
		if q != nil {
			return class
		}
	}
	return len(s.queues)
}

// move puts a site at a place with a score, wherever it stood.
func (p *shardState) move(s *site, place int8, score int64) {
	if s.place == place && place != nowhere {
		if s.score != score {
			s.score = score
			p.heaps[place].fix(int(s.pos))
		}
		return
	}
	if s.place != nowhere {
		p.heaps[s.place].remove(int(s.pos))
	}
	s.place, s.score = place, score
	if place != nowhere {
		p.heaps[place].push(s)
	}
}

// place applies the ready rule: a site that is leased stands nowhere; a paused
// one with work is among the paused; otherwise it is in the class of its best list from
// its clock on, or, with retries and URLs to be recrawled only, in the last
// class from the first of these on. One without work waits to be forgotten.
func (p *shardState) place(s *site) {
	class := s.best()
	due := max(s.clock, p.now)
	switch {
	case s.leased != nil:
		p.move(s, nowhere, 0)
		return
	case class < 4:
	case len(s.waits) > 0 || s.recrawl != nil:
		class, due = 3, max(s.clock, s.firstWait())
	case s.open > 0 || s.keeps():
		p.move(s, nowhere, 0)
		return
	default:
		p.move(s, inIdle, 2*(s.clock+day))
		return
	}
	if s.paused {
		p.move(s, inPaused, 2*due)
		return
	}
	p.move(s, int8(class), 2*due)
}

// forget drops some sites that have been idle for a day.
func (p *shardState) forget(most int) {
	idle := &p.heaps[inIdle]
	for ; most > 0 && len(*idle) > 0 && (*idle)[0].score <= 2*p.now; most-- {
		s := (*idle)[0]
		p.move(s, nowhere, 0)
		s.clock, s.round = 0, 0
		p.forgetTotals(s)
		p.changed(s)
		delete(p.sites, s.name)
		delete(p.walled, s.name)
	}
}

// pushBack appends an entry to the list of its class.
func (p *shardState) pushBack(s *site, e *frontier.Entry) {
	p.last++
	p.scratch = p.list(s, e.Priority).pushBack(s.name, p.last, e, p.scratch)
	p.pushed(s, e.Priority)
}

// pushFront puts an entry before the list of its class.
func (p *shardState) pushFront(s *site, e *frontier.Entry) {
	p.first--
	p.scratch = p.list(s, e.Priority).pushFront(s.name, p.first, e, p.scratch)
	p.pushed(s, e.Priority)
}

// pushed keeps the record that is in p.scratch.
func (p *shardState) pushed(s *site, class uint8) {
	p.stats.Queued++
	seq, rec := numberOf(p.scratch)
	p.keepEntry(s, position{class, seq}, rec)
}

func (p *shardState) list(s *site, class uint8) *queue {
	if s.queues[class] == nil {
		s.queues[class] = &queue{}
	}
	return s.queues[class]
}

// popped drops the list of a class that became empty.
func (p *shardState) popped(s *site, class int) {
	p.stats.Queued--
	if s.queues[class].n == 0 {
		s.queues[class] = nil
	}
}
