package flow

import (
	"sync"

	"seine/frontier"
	"seine/frontier/canon"
)

// Overflow keeps candidates that the frontier had no room for; crawl.Overflow has its
// rules.
type Overflow interface {
	Write(lines []byte, done func(error))
	Err() error
}

// OverflowQueue sends the candidates of one shard that found no room to the
// overflow. Who waits for a candidate is answered when its line is safe. A
// candidate that comes again is not written again: what was written is
// remembered as admitted URLs are (known), with the same tiny risk of a false
// hit; a forgotten one only costs another line. Candidates that are wanted
// again are written each time.
//
// While nothing can be written, candidates are not given to it and ask their
// shard again, those too whose lines are on their way: whichever has room first
// answers them. A line that is written after that costs nothing but itself;
// only a candidate wanted again is then wanted once more.
//
// It serves all candidates, whoever waits for them: pages, sitemaps of
// robots.txt and the feed, whose elements leave the feed when their lines are
// safe. Seeds that a program admits before its crawler runs are not the
// crawler's and wait for room.
type OverflowQueue struct {
	cfg   *AdmitConfig
	shard *Shard

	mu       sync.Mutex
	underway map[canon.Fingerprint]*overflowWrite // lines on their way to the disk
	writes   map[*overflowWrite]bool              // writes under way that candidates wait for
	line     []byte                               // of the admitter
}

// overflowWrite is the candidates that one write answers.
type overflowWrite struct {
	candidates []Candidate
	lines      int
	epoch      uint64 // of the shard, when it was given to the overflow
}

// markWritten notes, when the lines of ow are safe, which URLs they name.
func (o *OverflowQueue) markWritten(ow *overflowWrite) {
	for i := range ow.candidates {
		if l := &ow.candidates[i]; !l.IsRefetch() {
			o.cfg.Written.Remember(l.Fingerprint, ow.epoch)
		}
	}
}

func newOverflowQueue(cfg *AdmitConfig, s *Shard) *OverflowQueue {
	return &OverflowQueue{cfg: cfg, shard: s,
		underway: make(map[canon.Fingerprint]*overflowWrite), writes: make(map[*overflowWrite]bool)}
}

// write takes over candidates that found no room. onEnd is called when no write is
// under way any more.
func (o *OverflowQueue) write(candidates []Candidate, onEnd func()) {
	ow := &overflowWrite{epoch: o.shard.CheckEpoch()}
	lines, safe := o.line[:0], 0
	o.mu.Lock()
	for i := range candidates {
		l := &candidates[i]
		switch other := o.underway[l.Fingerprint]; {
		case l.IsRefetch():
		case o.HasWritten(l.Fingerprint):
			candidates[safe] = *l
			safe++
			continue
		case other != nil:
			other.candidates = append(other.candidates, *l)
			continue
		default:
			o.underway[l.Fingerprint] = ow
		}
		ow.candidates = append(ow.candidates, *l)
		ow.lines++
		whole := l.whole()
		lines = frontier.AppendElement(lines, &whole)
	}
	if ow.lines > 0 {
		o.writes[ow] = true
	}
	o.mu.Unlock()
	for i := range safe {
		candidates[i].From.Answered(frontier.Seen)
	}
	if o.line = lines; ow.lines > 0 {
		o.cfg.Overflow.Write(lines, func(err error) { o.done(ow, err, onEnd) })
	}
}

// done answers who waits for a group of lines. What could not be written is
// answered full: pages go back, and the feed keeps its elements.
func (o *OverflowQueue) done(ow *overflowWrite, err error, onEnd func()) {
	verdict := frontier.Seen
	if err != nil {
		verdict = frontier.Full
	} else {
		o.cfg.Overflown.Add(ow.lines)
	}
	o.mu.Lock()
	if err == nil {
		o.markWritten(ow)
	}
	candidates := ow.candidates
	if !o.writes[ow] {
		candidates = nil // they were taken back
	}
	o.release(ow)
	last := len(o.writes) == 0
	o.mu.Unlock()
	for i := range candidates {
		candidates[i].From.Answered(verdict)
	}
	if last && candidates != nil {
		onEnd()
	}
}

// release forgets that candidates wait for a write. Called with mu.
func (o *OverflowQueue) release(ow *overflowWrite) {
	delete(o.writes, ow)
	for i := range ow.candidates {
		if f := ow.candidates[i].Fingerprint; o.underway[f] == ow {
			delete(o.underway, f)
		}
	}
}

// reclaim appends to candidates all that wait for a write; what becomes of the
// writes answers nobody then.
func (o *OverflowQueue) reclaim(candidates []Candidate) []Candidate {
	o.mu.Lock()
	defer o.mu.Unlock()
	for ow := range o.writes {
		candidates = append(candidates, ow.candidates...)
		o.release(ow)
	}
	return candidates
}

// HasWritten reports whether f was written in this epoch of its shard: what was written
// before may have been taken back, and lost with a master.
func (o *OverflowQueue) HasWritten(f canon.Fingerprint) bool {
	return o.cfg.Written.Has(f, o.shard.Epoch())
}

// Waiting is how many candidates wait for a write.
func (o *OverflowQueue) Waiting() (n int) {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for ow := range o.writes {
		n += len(ow.candidates)
	}
	return n
}
