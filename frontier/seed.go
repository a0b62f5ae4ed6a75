package frontier

import (
	"context"
	"fmt"
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
	Batch    int            // candidates a call, default 500
	Again    string         // request id: known URLs are queued once more; "" = not
	OnFull   func(left int) // called when Redis is full, before each pause
	MinPause time.Duration  // first pause when Redis is full, default 100 ms, doubled up to MaxPause
	MaxPause time.Duration  // default 10 s
}

// SeedCounts says what became of seeds.
type SeedCounts struct {
	Admitted int64 `json:"admitted"`
	Seen     int64 `json:"seen"`
	Capped   int64 `json:"capped"`
	Full     int64 `json:"full"` // times a URL was refused for want of room and tried again
	Bad      int64 `json:"bad"`  // texts that are no URL
}

// Seeder admits texts as URLs, in batches of one shard. What is refused for
// want of room it tries again until ctx ends, so nothing is lost. One goroutine.
type Seeder struct {
	to       Admitter
	cfg      SeedConfig
	maker    *Maker
	classify func(url string) (class uint8, ok bool)
	pending  [][]Candidate // by shard
	verdicts []Verdict
	counts   SeedCounts
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
	if cfg.OnFull == nil {
		cfg.OnFull = func(int) {}
	}
	return &Seeder{to: to, cfg: cfg, maker: NewMaker(to.Layout()), classify: classify,
		pending: make([][]Candidate, to.Shards()), verdicts: make([]Verdict, cfg.Batch)}, nil
}

// BadSeed is a text that is no URL to crawl; the seeder goes on.
type BadSeed struct {
	Text string
	Err  error // of canon
}

func (e *BadSeed) Error() string { return fmt.Sprintf("frontier: seed %.200q: %v", e.Text, e.Err) }
func (e *BadSeed) Unwrap() error { return e.Err }

// Add takes one text. A *BadSeed error concerns this text alone; any other
// ends the seeding.
func (s *Seeder) Add(ctx context.Context, text string) error {
	c, err := s.maker.Make(text)
	if err != nil {
		s.counts.Bad++
		return &BadSeed{text, err}
	}
	c.Again = s.cfg.Again
	c.Priority, _ = s.classify(c.URL)
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

// flush admits what is pending for shard k, until there was room for all.
func (s *Seeder) flush(ctx context.Context, k int) error {
	pause := s.cfg.MinPause
	for len(s.pending[k]) > 0 {
		batch := s.pending[k]
		verdicts := s.verdicts[:len(batch)]
		if err := s.to.Admit(ctx, k, batch, verdicts); err != nil {
			return err
		}
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
				s.counts.Full++
				left = append(left, batch[i])
			}
		}
		s.pending[k] = left
		if len(left) == 0 {
			break
		}
		s.cfg.OnFull(len(left))
		if err := wait(ctx, pause); err != nil {
			return fmt.Errorf("frontier: Redis is full and %d seeds of shard %d were not admitted; give it room and seed again: %w", len(left), k, err)
		}
		pause = min(2*pause, s.cfg.MaxPause)
	}
	return nil
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
