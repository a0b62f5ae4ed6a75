package frontier

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"seine/frontier/canon"
)

// Admitter is the part of a frontier that a Seeder needs.
type Admitter interface {
	Shards() int
	Of(canon.Fingerprint) int
	Layout() Layout
	Settings() *Settings
	Admit(ctx context.Context, shard int, batch []Candidate, verdicts []Verdict) error
	// NoteSeeds puts seeds that were admitted on the list of those whose outcome reports
	// tell, while that has fewer than SeedsKept: URLs without credentials.
	NoteSeeds(ctx context.Context, shard int, urls []string) error
}

// SeedConfig says how a Seeder admits.
type SeedConfig struct {
	Batch    int                       // candidates a call, default 500
	Refetch  string                    // request id: known URLs are queued once more; "" = not
	OnWait   func(why error, left int) // called before each pause, once at a time; why is ErrFull or ErrNotAcked
	MinPause time.Duration             // first pause when Redis is full, default 100 ms, doubled up to MaxPause
	MaxPause time.Duration             // default 10 s
}

// SeedCounts says what became of seeds.
type SeedCounts struct {
	Admitted int64 `json:"admitted"`
	Seen     int64 `json:"seen"`
	Capped   int64 `json:"capped"`
	Full     int64 `json:"full"` // of these, how many had to wait for room
	Bad      int64 `json:"bad"`  // texts that are no URL
}

// Seeder admits texts as URLs, in batches of one shard, side by side. What is
// refused for want of room, or not acknowledged, it tries again until ctx ends, so
// nothing is lost. What a shard does not take now it keeps, up to 64 MB for all
// shards, and goes on with the others. One goroutine calls it.
type Seeder struct {
	to       Admitter
	cfg      SeedConfig
	maker    *Maker
	classify func(url []byte) (class uint8, ok bool)
	shards   []seedShard
	kept     int    // bytes that are pending
	refetch  string // request id of texts that ask to be refetched
	bad      int64

	mu     sync.Mutex // over what the goroutines that admit share
	counts SeedCounts
	err    error // the first that ended one
}

// seedShard is what waits for one shard.
type seedShard struct {
	pending []Candidate
	noted   int           // how many are on the list of seeds by our word
	busy    chan struct{} // closed when what was handed over before has its place; nil: nothing was
}

const (
	// maxSeedsKept bounds the seeds that wait for shards that do not take them.
	maxSeedsKept = 64 << 20
	// seedOverhead is what a seed takes beside its text.
	seedOverhead = 160
)

// NewSeeder returns a seeder of one crawl. Its rules of priority hold for seeds
// too; a seed that none matches is of class 0.
func NewSeeder(to Admitter, cfg SeedConfig) (*Seeder, error) {
	classify, err := Classifier(to.Settings().Priority)
	if err != nil {
		return nil, err
	}
	if cfg.Batch <= 0 {
		cfg.Batch = 500
	}
	if cfg.MinPause <= 0 {
		cfg.MinPause = 100 * time.Millisecond
	}
	if cfg.MaxPause <= 0 {
		cfg.MaxPause = 10 * time.Second
	}
	if cfg.OnWait == nil {
		cfg.OnWait = func(error, int) {}
	}
	return &Seeder{to: to, cfg: cfg, refetch: "seed:" + rand.Text(), maker: NewMaker(to.Layout()), classify: classify,
		shards: make([]seedShard, to.Shards())}, nil
}

// BadSeed is a text that is no URL to crawl; the seeder goes on.
type BadSeed struct {
	Text string
	Err  error // of canon
}

// Error shows the text as LogText does.
func (e *BadSeed) Error() string { return fmt.Sprintf("frontier: seed %s: %v", LogText(e.Text), e.Err) }
func (e *BadSeed) Unwrap() error { return e.Err }

// AddText takes one text: a URL, or a JSON object in the form of an element of a
// feed, which keeps the depth, class, meta and seed scope that it names. A
// *BadSeed error concerns this text alone; any other ends the seeding.
func (s *Seeder) AddText(ctx context.Context, text string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.maker.MaxURL = s.to.Settings().LongestURL()
	item, err := s.maker.Element(text)
	if err != nil {
		s.bad++
		return &BadSeed{text, err}
	}
	c := item.Candidate
	if item.WantsID() || s.cfg.Refetch != "" {
		c.Refetch = cmp.Or(s.cfg.Refetch, s.refetch)
	}
	if !item.HasPriority {
		c.Priority, _ = s.classify([]byte(c.URL))
	}
	k := s.to.Of(c.Fingerprint)
	h := &s.shards[k]
	h.pending = append(h.pending, c)
	s.kept += sizeOf(&c)
	if len(h.pending) < s.cfg.Batch {
		return nil
	}
	if h.isBusy() && s.kept >= maxSeedsKept {
		if err := h.await(ctx); err != nil {
			return err
		}
	}
	if !h.isBusy() {
		s.hand(ctx, k)
	}
	return s.fault()
}

func sizeOf(c *Candidate) int { return len(c.URL) + len(c.Meta) + len(c.Request) + seedOverhead }

// Skip counts a text that could not even be read.
func (s *Seeder) Skip() { s.bad++ }

// Flush admits what is pending.
func (s *Seeder) Flush(ctx context.Context) error {
	for k := range s.shards {
		s.hand(ctx, k)
	}
	for k := range s.shards {
		if h := &s.shards[k]; h.busy != nil {
			<-h.busy // ends with ctx
		}
	}
	return s.fault()
}

// Counts says what became of the texts so far.
func (s *Seeder) Counts() SeedCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := s.counts
	counts.Bad = s.bad
	return counts
}

// fault is the first error that ended the work on a shard.
func (s *Seeder) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// isBusy reports whether what was handed over before waits for its place.
func (h *seedShard) isBusy() bool {
	select {
	case <-h.busy:
		return false
	default:
		return h.busy != nil
	}
}

// await waits while the shard is busy.
func (h *seedShard) await(ctx context.Context) error {
	select {
	case <-h.busy:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hand admits what is pending for shard k, on another goroutine, when what was
// handed over before has its place.
func (s *Seeder) hand(ctx context.Context, k int) {
	h := &s.shards[k]
	pending, before, done := h.pending, h.busy, make(chan struct{})
	h.pending, h.busy = nil, done
	for i := range pending {
		s.kept -= sizeOf(&pending[i])
	}
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		for batch := range slices.Chunk(pending, s.cfg.Batch) {
			if err := s.place(ctx, k, batch); err != nil {
				s.mu.Lock()
				s.err = cmp.Or(s.err, err)
				s.mu.Unlock()
				return
			}
		}
	}()
}

// place admits a batch of shard k, until all of it has its place.
func (s *Seeder) place(ctx context.Context, k int, batch []Candidate) error {
	pause := s.cfg.MinPause
	waited := false      // all that is left was refused before
	var before []Verdict // of a try that was not acknowledged
	all := make([]Verdict, len(batch))
	for len(batch) > 0 {
		verdicts := all[:len(batch)]
		why := s.to.Admit(ctx, k, batch, verdicts)
		for i := range before {
			if before[i] == Admitted && verdicts[i] == Seen {
				verdicts[i] = Admitted // by ourselves
			}
		}
		switch {
		case errors.Is(why, ErrNotAcked):
			before = slices.Clone(verdicts)
		case why != nil:
			return why
		default:
			before = nil
			s.note(ctx, k, batch, verdicts)
			if batch = s.count(batch, verdicts, !waited); len(batch) == 0 {
				return nil
			}
			waited, why = true, ErrFull
		}
		s.logWait(why, len(batch))
		if err := wait(ctx, pause); err != nil {
			return fmt.Errorf("%w; %d seeds of shard %d are not safe, seed them again: %w", why, len(batch), k, err)
		}
		pause = min(2*pause, s.cfg.MaxPause)
	}
	return nil
}

// note has the first seeds of shard k that were admitted listed. They are in the
// crawl: that reports cannot tell of one before it is settled is no reason to fail.
func (s *Seeder) note(ctx context.Context, k int, batch []Candidate, verdicts []Verdict) {
	noted := &s.shards[k].noted
	var urls []string
	for i := range batch {
		e := batch[i].Entry()
		if *noted < SeedsKept && verdicts[i] == Admitted && e.Begins() {
			urls = append(urls, LogURL(batch[i].URL))
			*noted++
		}
	}
	if len(urls) > 0 {
		_ = s.to.NoteSeeds(ctx, k, urls)
	}
}

func (s *Seeder) logWait(why error, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.OnWait(why, left)
}

// count counts verdicts and returns the candidates without a place, in the
// memory of batch. first says that they were not refused before.
func (s *Seeder) count(batch []Candidate, verdicts []Verdict, first bool) []Candidate {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := batch[:0]
	for i, v := range verdicts {
		switch v {
		case Admitted:
			s.counts.Admitted++
		case Seen:
			s.counts.Seen++
		case Capped:
			s.counts.Capped++
		case Full:
			left = append(left, batch[i])
		}
	}
	if first {
		s.counts.Full += int64(len(left))
	}
	return left
}

// wait returns after d, or with the cause when ctx ends before.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
