package crawl

import (
	"sync"

	"seine/frontier"
	"seine/frontier/canon"
)

// Overflow keeps links that the frontier had no room for, so that their pages
// can be settled: lines in the form of elements of a feed, which seeding takes
// back.
type Overflow interface {
	// Write takes some whole lines, which it copies, and calls done once: with nil
	// when they are safe on disk, with an error when they never will be. It must
	// not block for the disk; what waits is bounded by the worker's OpenBytes.
	// done does not block.
	Write(lines []byte, done func(error))
	// Err is why nothing can be written just now, or nil. Lines wait meanwhile,
	// and are tried again.
	Err() error
}

// spill sends the links of one shard that found no room to the overflow. Who
// waits for a link is answered when its line is safe. A link that comes again
// is not written again: what was written is remembered as admitted URLs are
// (known), with the same tiny risk of a false hit; a forgotten one only costs
// another line. Links that are wanted again are written each time.
//
// While nothing can be written, links are not given to it and ask their shard
// again, those too whose lines are on their way: whichever has room first answers
// them. A line that is written after that costs nothing but itself; only a link
// wanted again is then wanted once more.
//
// It serves all links, whoever waits for them: pages, sitemaps of robots.txt
// and the feed, whose elements leave the feed when their lines are safe. Seeds
// that a program admits before its worker runs are not the worker's and wait
// for room.
type spill struct {
	w  *Worker
	to Overflow

	mu      sync.Mutex
	written *known
	under   map[canon.Fingerprint]*refused // lines on their way to the disk
	out     map[*refused]bool              // writes under way that links wait for
	line    []byte                         // of the admitter
}

// refused is the links that one write answers.
type refused struct {
	links []link
	lines int
}

// mark notes, when the lines of g are safe, which URLs they name.
func (s *spill) mark(g *refused) {
	for i := range g.links {
		if l := &g.links[i]; l.Again == "" {
			s.written.add(l.Fingerprint)
		}
	}
}

func newSpill(w *Worker, size int) *spill {
	if w.cfg.Overflow == nil {
		return nil
	}
	return &spill{w: w, to: w.cfg.Overflow, written: newKnown(size),
		under: make(map[canon.Fingerprint]*refused), out: make(map[*refused]bool)}
}

// take takes over links that found no room. onEnd is called when no write is
// under way any more.
func (s *spill) take(links []link, onEnd func()) {
	group := new(refused)
	lines, safe := s.line[:0], 0
	s.mu.Lock()
	for i := range links {
		l := &links[i]
		switch other := s.under[l.Fingerprint]; {
		case l.Again != "":
		case s.written.has(l.Fingerprint):
			links[safe] = *l
			safe++
			continue
		case other != nil:
			other.links = append(other.links, *l)
			continue
		default:
			s.under[l.Fingerprint] = group
		}
		group.links = append(group.links, *l)
		group.lines++
		lines = frontier.AppendElement(lines, &l.Candidate)
	}
	if group.lines > 0 {
		s.out[group] = true
	}
	s.mu.Unlock()
	for i := range safe {
		links[i].from.acknowledge(frontier.Seen)
	}
	if s.line = lines; group.lines > 0 {
		s.to.Write(lines, func(err error) { s.done(group, err, onEnd) })
	}
}

// done answers who waits for a group of lines. What could not be written is
// answered full: pages go back, and the feed keeps its elements.
func (s *spill) done(group *refused, err error, onEnd func()) {
	verdict := frontier.Seen
	if err != nil {
		verdict = frontier.Full
	} else {
		s.w.count.overflow.Add(group.lines)
	}
	s.mu.Lock()
	if err == nil {
		s.mark(group)
	}
	links := group.links
	if !s.out[group] {
		links = nil // they were taken back
	}
	s.let(group)
	last := len(s.out) == 0
	s.mu.Unlock()
	for i := range links {
		links[i].from.acknowledge(verdict)
	}
	if last && links != nil {
		onEnd()
	}
}

// let forgets that links wait for a write. Called with mu.
func (s *spill) let(group *refused) {
	delete(s.out, group)
	for i := range group.links {
		if f := group.links[i].Fingerprint; s.under[f] == group {
			delete(s.under, f)
		}
	}
}

// takeBack appends to links all that wait for a write; what becomes of the
// writes answers nobody then.
func (s *spill) takeBack(links []link) []link {
	s.mu.Lock()
	defer s.mu.Unlock()
	for group := range s.out {
		links = append(links, group.links...)
		s.let(group)
	}
	return links
}

// forget forgets what was written: it may have been taken back, and lost with a
// master.
func (s *spill) forget() {
	if s != nil {
		s.written.clear()
	}
}

// empty reports whether no link waits for a write.
func (s *spill) empty() bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.out) == 0
}

// overflowErr is why the overflow takes nothing just now, or nil.
func (w *Worker) overflowErr() error {
	if w.cfg.Overflow == nil {
		return nil
	}
	return w.cfg.Overflow.Err()
}

// unwritten is overflowErr while links wait that found no room.
func (w *Worker) unwritten() error {
	err := w.overflowErr()
	if err == nil {
		return nil
	}
	for _, l := range w.lanes {
		if l.admits.waits() || !l.spill.empty() {
			return err
		}
	}
	return nil
}
