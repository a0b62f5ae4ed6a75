package crawl

import (
	"context"
	"fmt"
	"sync"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// Seed is a URL that comes from outside: a seed or an element of the feed.
type Seed struct {
	URL      string
	Priority uint8
	Depth    uint32
	Meta     string
	Again    string // request id, or ""
}

// Seeder turns texts from outside into candidates. Seeds are in scope whatever
// the rules say of links. For one goroutine.
type Seeder struct {
	parser *canon.Parser
	sites  *canon.Sites
	url    canon.URL
}

// NewSeeder returns a Seeder for crawls with this site rule.
func NewSeeder(cfg canon.Config, by canon.LimitBy) *Seeder {
	return &Seeder{parser: canon.NewParser(cfg), sites: canon.NewSites(by)}
}

// Candidate parses a seed; the error says what is wrong with it.
func (s *Seeder) Candidate(in Seed) (frontier.Candidate, error) {
	if err := s.parser.Parse(&s.url, []byte(in.URL)); err != nil {
		return frontier.Candidate{}, fmt.Errorf("%w: %q", err, clip(in.URL, maxErrorText))
	}
	site, hash := s.sites.Of(s.url.Host())
	return frontier.Candidate{
		URL: string(s.url.Fetch()), Site: site,
		Fingerprint: canon.Fingerprint{Site: hash, Key: s.url.KeyHash()},
		Priority:    in.Priority, Depth: in.Depth, Seed: true, Meta: in.Meta, Again: in.Again,
	}, nil
}

// batch waits for the verdicts on candidates that stand on no page.
type batch struct {
	mu     sync.Mutex
	counts [4]int
	left   int
	done   chan struct{}
}

func (b *batch) acknowledge(v frontier.Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[v]++
	if b.left--; b.left == 0 {
		close(b.done)
	}
}

// Admit admits candidates from outside through the lanes of a running worker
// and waits for all verdicts, counted by frontier.Verdict.
func (w *Worker) Admit(ctx context.Context, candidates []frontier.Candidate) ([4]int, error) {
	if len(candidates) == 0 {
		return [4]int{}, nil
	}
	b := &batch{left: len(candidates), done: make(chan struct{})}
	for _, c := range candidates {
		w.laneOf(c.Fingerprint).admits.add([]link{{Candidate: c, from: b}})
	}
	select {
	case <-b.done:
		return b.counts, nil
	case <-ctx.Done():
		return [4]int{}, ctx.Err()
	}
}

// feeder is a frontier that takes URLs pushed from outside while the crawl runs.
type feeder interface {
	DrainFeed(ctx context.Context, admit func(context.Context, []frontier.FeedItem) error) (int, error)
}

// feedPause is how long an empty feed is left alone.
const feedPause = 500 * time.Millisecond

// feed drains the crawl's feed until ctx ends.
func (w *Worker) feed(ctx context.Context) {
	f, ok := w.cfg.Frontier.(feeder)
	if !ok {
		return
	}
	s := NewSeeder(w.cfg.Canon, w.cfg.Frontier.Layout().LimitBy)
	for ctx.Err() == nil && !w.isStopping() {
		n, err := f.DrainFeed(ctx, func(ctx context.Context, items []frontier.FeedItem) error {
			return w.admitFeed(ctx, s, items)
		})
		if err != nil {
			w.fail(ctx, err)
			return
		}
		if n == 0 {
			sleep(ctx, w.stopping, feedPause)
		}
	}
}
