package frontier

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
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
}

// SeedConfig says how a Seeder admits.
type SeedConfig struct {
	Batch    int                       // candidates a call, default 500
	Again    string                    // request id: known URLs are queued once more; "" = not
	OnWait   func(why error, left int) // called before each pause; why is ErrFull or ErrNotAcked
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

// Seeder admits texts as URLs, in batches of one shard. What is refused for
// want of room, or not acknowledged, it tries again until ctx ends, so nothing
// is lost. One goroutine.
type Seeder struct {
	to       Admitter
	cfg      SeedConfig
	maker    *Maker
	classify func(url []byte) (class uint8, ok bool)
	pending  [][]Candidate // by shard
	verdicts []Verdict
	counts   SeedCounts
	again    string // request id of texts that ask to be fetched again
}

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
	return &Seeder{to: to, cfg: cfg, again: "seed:" + rand.Text(), maker: NewMaker(to.Layout()), classify: classify,
		pending: make([][]Candidate, to.Shards()), verdicts: make([]Verdict, cfg.Batch)}, nil
}

// BadSeed is a text that is no URL to crawl; the seeder goes on.
type BadSeed struct {
	Text string
	Err  error // of canon
}

// Error shows the text as Shown does.
func (e *BadSeed) Error() string { return fmt.Sprintf("frontier: seed %s: %v", Shown(e.Text), e.Err) }
func (e *BadSeed) Unwrap() error { return e.Err }

// Add takes one text: a URL, or a JSON object in the form of an element of a
// feed, which keeps the depth, class, meta and standing that it names. A
// *BadSeed error concerns this text alone; any other ends the seeding.
func (s *Seeder) Add(ctx context.Context, text string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	item, err := s.maker.Element(text)
	if err != nil {
		s.counts.Bad++
		return &BadSeed{text, err}
	}
	c := item.Candidate
	if c.Again != "" || s.cfg.Again != "" {
		c.Again = cmp.Or(s.cfg.Again, s.again)
	}
	if !item.HasPriority {
		c.Priority, _ = s.classify([]byte(c.URL))
	}
	k := s.to.Of(c.Fingerprint)
	s.pending[k] = append(s.pending[k], c)
	if len(s.pending[k]) >= s.cfg.Batch {
		return s.flush(ctx, k)
	}
	return nil
}

// Skip counts a text that could not even be read.
func (s *Seeder) Skip() { s.counts.Bad++ }

// Flush admits what is pending.
func (s *Seeder) Flush(ctx context.Context) error {
	for k := range s.pending {
		if err := s.flush(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// Counts says what became of the texts so far.
func (s *Seeder) Counts() SeedCounts { return s.counts }

// flush admits what is pending for shard k, until all has its place.
func (s *Seeder) flush(ctx context.Context, k int) error {
	pause := s.cfg.MinPause
	waited := false      // all that is pending was refused before
	var before []Verdict // of a try that was not acknowledged
	for len(s.pending[k]) > 0 {
		batch := s.pending[k]
		verdicts := s.verdicts[:len(batch)]
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
			if s.pending[k] = s.count(batch, verdicts); len(s.pending[k]) == 0 {
				return nil
			}
			if !waited {
				s.counts.Full += int64(len(s.pending[k]))
			}
			waited, why = true, ErrFull
		}
		left := len(s.pending[k])
		s.cfg.OnWait(why, left)
		if err := wait(ctx, pause); err != nil {
			return fmt.Errorf("%w; %d seeds of shard %d are not safe, seed them again: %w", why, left, k, err)
		}
		pause = min(2*pause, s.cfg.MaxPause)
	}
	return nil
}

// count counts verdicts and returns the candidates without a place, in the
// memory of batch.
func (s *Seeder) count(batch []Candidate, verdicts []Verdict) []Candidate {
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
