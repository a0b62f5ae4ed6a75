package memory

import (
	"fmt"
	"strings"
	"time"

	"seine/frontier"
	"seine/frontier/memory/store"
)

// loader brings a shard back from the store.
type loader struct {
	*shardState
	store    *store.Store
	crashed  bool // the last process did not close the crawl
	leased   []*site
	suspects map[string]bool // keys of entries that may have ended it
	marked   []suspect       // those of them that live on
	poison   []suspect       // and those that are dead now
}

// suspect is such an entry.
type suspect struct {
	site  *site
	at    position
	entry frontier.Entry
}

// load reads all that the store has of the shard, which it does not write to.
// What was leased is in its queues. Cost: about a microsecond a URL.
func (l *loader) load() error {
	l.suspects = map[string]bool{}
	for _, step := range []struct {
		kind byte
		read func(key, value []byte) bool
	}{
		{keyCounters, l.loadCounters},
		{keySite, l.loadSite},
		{keyKnown, l.loadKnown},
		{keyContent, l.loadContent},
		{keyCounter, l.loadSum},
		{keySeed, l.loadSeed},
		{keyDead, l.loadDeadEntry}, // before what may be added to them
		{keyEntry, l.loadEntry},
		{keyRetry, l.loadRetry},
		{keyRecrawl, l.loadRecrawl},
	} {
		prefix := append([]byte{}, l.newKey(step.kind)...)
		err := l.store.Each(prefix, func(key, value []byte) error {
			if !step.read(key, value) {
				return fmt.Errorf("memory: shard %d: what stands under key %x cannot be read: %w", l.k, key[:3], errUnreadable)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// finish does what the end of the last process left to do.
func (l *loader) finish() {
	for _, e := range l.marked {
		l.keepEntry(e.site, e.at, frontier.AppendEntry(nil, e.site.name, &e.entry))
	}
	for _, e := range l.poison {
		l.dropEntry(e.site, e.at)
		l.deadLetter(e.site.name, frontier.CauseLost, "", e.entry)
	}
	delay := l.f.delay()
	for _, s := range l.leased { // somebody was fetching there
		wait := delay
		if s.delay > 0 {
			wait = s.delay
		}
		s.clock = max(s.clock, l.now+1+roundUp(wait))
		l.changed(s)
	}
	for _, s := range l.sites {
		l.place(s)
	}
}

func (l *loader) loadCounters(_, value []byte) bool {
	r := reader{b: value}
	for _, n := range l.counters() {
		if *n = r.int(); len(r.b) == 0 {
			break
		}
	}
	l.stats.Lost += l.stats.Open
	l.stats.Open = 0
	return !r.bad
}

// loaded is the site of that name, without looking at its age.
func (l *loader) loaded(name string) *site {
	s := l.sites[name]
	if s == nil {
		s = &site{name: strings.Clone(name), place: nowhere}
		l.sites[s.name] = s
	}
	return s
}

func (l *loader) loadSite(key, value []byte) bool {
	r := reader{b: value}
	s := l.loaded(string(key[3:]))
	s.stored = true
	s.clock, s.delay, s.failures = r.int(), time.Duration(r.int()), int32(r.int())
	s.round = r.byte() % 8
	s.paused, s.blocked = r.bool(), r.bool()
	if r.bool() {
		s.extra = &extra{why: r.text(), override: r.text(), cap: r.int(), admitted: r.int()}
		for i := range s.extra.stops {
			s.extra.stops[i] = stop{r.int(), r.text()}
		}
	}
	if r.bool() {
		l.loadLeased(s, &r)
	}
	if len(r.b) > 0 { // earlier versions kept none
		s.siteTotals = siteTotals{pages: r.int(), dead: r.int(), since: r.int(), last: l.word(r.text())}
	}
	if len(r.b) > 0 { // nor these
		s.more().cookies = r.text()
	}
	if len(r.b) > 0 {
		s.more().auth = r.text()
	}
	if len(r.b) > 0 {
		row := &walls{count: int(r.int()), since: r.int(), ends: r.int(), vendor: l.word(r.text())}
		s.more().walls = row
		if row.ends > 0 && !s.blocked {
			l.walled[s.name] = s
		}
	}
	return !r.bad
}

// loadLeased reads what a site was leased with.
func (l *loader) loadLeased(s *site, r *reader) {
	l.leased = append(l.leased, s)
	found := !l.crashed
	for n := r.uint(); n > 0 && !r.bad; n-- {
		e := position{class: r.byte(), seq: r.int()}
		if found || r.bad {
			continue
		}
		key := l.entryKey(s, e)
		value, err := l.store.Get(key)
		if found = err == nil && value != nil; found { // the first that was not settled
			l.suspects[string(key)] = true
		}
	}
}

func (l *loader) loadSum(key, value []byte) bool {
	r := reader{b: value}
	n := r.int()
	l.namedCounters[string(key[3:])] = &n
	return !r.bad
}

func (l *loader) loadSeed(key, value []byte) bool {
	l.seeds[string(key[3:])] = string(value)
	return true
}

func (l *loader) loadKnown(key, _ []byte) bool {
	r := reader{b: key[3:]}
	l.known.add(r.fingerprint())
	return !r.bad
}

// loadEntry appends an entry to its list: keys come in its order.
func (l *loader) loadEntry(key, value []byte) bool {
	name, class, seq, ok := parseNumbered(key, 1)
	if !ok || class[0] > 3 {
		return false
	}
	l.first, l.last = min(l.first, seq), max(l.last, seq)
	s, at := l.loaded(name), position{class[0], seq}
	e, err := frontier.DecodeEntry(string(value), s.name)
	if err != nil || e.Priority != class[0] {
		return false
	}
	if l.suspects[string(key)] {
		if e.Lost++; e.Lost >= 3 {
			l.poison = append(l.poison, suspect{s, at, e})
			return true
		}
		l.marked = append(l.marked, suspect{s, at, e})
	}
	l.scratch = l.list(s, at.class).pushBack(s.name, seq, &e, l.scratch)
	l.stats.Queued++
	return true
}

func (l *loader) loadRetry(key, value []byte) bool {
	name, _, order, ok := parseNumbered(key, 0)
	r := reader{b: value}
	s := l.loaded(name)
	w := &wait{until: r.int(), order: order, entry: r.entry(s.name)}
	if !ok || r.bad {
		return false
	}
	s.waits.push(w)
	l.stats.Waiting++
	return true
}

func (l *loader) loadDeadEntry(key, value []byte) bool {
	cause, _, id, ok := parseNumbered(key, 0)
	r := reader{b: value}
	d := deadEntry{id: id, site: r.text(), text: r.text()}
	if d.entry = r.entry(d.site); !ok || r.bad {
		return false
	}
	if l.dead[cause] == nil {
		l.dead[cause] = &deadList{}
	}
	l.dead[cause].list = append(l.dead[cause].list, d)
	return true
}
