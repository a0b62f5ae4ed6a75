package memory

import (
	"context"
	"errors"
	"fmt"

	"seine/frontier"
	"seine/frontier/canon"
)

// batch is what a batch of candidates must remember of itself: the verdicts of
// what it admitted, so that repeats get their first's, and which candidate
// speaks for a URL that it wants again.
type batch struct {
	admitted map[canon.Fingerprint]struct{}
	recrawl  map[canon.Fingerprint]int
}

// Admit queues the candidates that are new, in order, and writes what became of
// each to verdicts. All candidates belong to shard k. A candidate with Refetch is
// queued although it is known, once for each request id; the first speaks for
// those of its URL in the batch that do not ask. Cost: about a hundred ns for a
// known URL, some more for a new one.
func (f *Frontier) Admit(ctx context.Context, k int, candidates []frontier.Candidate, verdicts []frontier.Verdict) error {
	p, err := f.shard(ctx, k, "admit")
	if err != nil {
		return err
	}
	if len(verdicts) != len(candidates) {
		return fmt.Errorf("memory: admit: %d verdicts for %d candidates", len(verdicts), len(candidates))
	}
	for i := range candidates {
		c := &candidates[i]
		if own := f.Of(c.Fingerprint); own != k {
			return fmt.Errorf("memory: admit: candidate %d belongs to shard %d, not %d", i, own, k)
		}
		if c.Priority > 3 {
			return fmt.Errorf("memory: admit: candidate %d has class %d, the last is 3", i, c.Priority)
		}
	}
	p.lock()
	if frontier.HasCredentials(candidates) {
		err = frontier.AdmitWithCredentials(candidates, verdicts, p.keepCredentials, func(c []frontier.Candidate, v []frontier.Verdict) error {
			p.admit(c, v)
			return nil
		})
	} else {
		p.admit(candidates, verdicts)
	}
	return errors.Join(err, p.unlock(ctx, "admit"))
}

// keepCredentials keeps those of the origin of a candidate with its site: Admitted,
// or Capped where the site has those of other origins, as many as it may.
func (p *shardState) keepCredentials(c *frontier.Candidate) (frontier.Verdict, error) {
	origin, ok := frontier.OriginOf(c.URL)
	s := p.site(c.Site)
	kept := ""
	if s.extra != nil {
		kept = s.extra.auth
	}
	if ok {
		kept, ok = frontier.AddCredentials(kept, origin, c.Credentials)
	}
	if ok {
		s.more().auth = kept
	}
	if !s.busy() {
		s.clock = max(s.clock, p.now) // from which it is kept for a day
		p.place(s)
	}
	p.changed(s)
	if !ok {
		return frontier.Capped, nil
	}
	return frontier.Admitted, nil
}

func (p *shardState) admit(candidates []frontier.Candidate, verdicts []frontier.Verdict) {
	p.batch.begin(candidates)
	settings := p.f.settings.Load()
	capped := settings.MaxPerSite > 0 || len(settings.Sites) > 0
	front := settings.Order == "depth"
	var s *site
	admitted := 0
	for i := range candidates {
		c := &candidates[i]
		if c.Refetch == "" && p.batch.recrawl != nil {
			if _, ok := p.batch.recrawl[c.Fingerprint]; ok {
				continue // another candidate speaks for this URL
			}
		}
		if p.isKnown(c) {
			verdicts[i] = p.batch.verdictOfKnown(c)
			continue
		}
		if s == nil || s.name != c.Site {
			s = p.site(c.Site)
		}
		limit := int64(0)
		if capped || s.extra != nil {
			limit = p.capOf(s, settings)
		}
		if q := s.queues[c.Priority]; s.blocked || limit > 0 && s.more().admitted >= limit || q != nil && (q.n >= p.f.cfg.MaxList || q.bytes() >= p.f.cfg.MaxListBytes) {
			verdicts[i] = frontier.Capped
			continue
		}
		e := c.Entry()
		p.know(c.Fingerprint)
		if c.Refetch != "" {
			p.know(c.RefetchFingerprint())
		}
		p.enqueue(s, &e, limit > 0, front)
		verdicts[i] = frontier.Admitted
		p.batch.admitted[wanted(c)] = struct{}{}
		admitted++
	}
	for i := range candidates {
		if candidates[i].Refetch != "" {
			continue
		}
		if first, ok := p.batch.recrawl[candidates[i].Fingerprint]; ok {
			verdicts[i] = verdicts[first]
		}
	}
	if admitted > 0 {
		p.stats.Admits++
		p.stats.Known += int64(admitted)
	}
	p.forget(2 * admitted)
}

// begin forgets the last batch and finds who speaks for URLs wanted again.
func (b *batch) begin(candidates []frontier.Candidate) {
	if b.admitted == nil || len(b.admitted) > 4096 {
		b.admitted = make(map[canon.Fingerprint]struct{})
	}
	clear(b.admitted)
	b.recrawl = nil
	for i := range candidates {
		if c := &candidates[i]; c.Refetch != "" {
			if b.recrawl == nil {
				b.recrawl = make(map[canon.Fingerprint]int)
			}
			if _, ok := b.recrawl[c.Fingerprint]; !ok {
				b.recrawl[c.Fingerprint] = i
			}
		}
	}
}

// verdictOfKnown is Admitted for a repeat of what this batch admitted.
func (b *batch) verdictOfKnown(c *frontier.Candidate) frontier.Verdict {
	if len(b.admitted) > 0 {
		if _, ok := b.admitted[wanted(c)]; ok {
			return frontier.Admitted
		}
	}
	return frontier.Seen
}

// know makes a URL, or a request for one, known.
func (p *shardState) know(f canon.Fingerprint) {
	if p.known.add(f) {
		p.keepKnown(f)
	}
}

// isKnown reports whether there is nothing to queue for c.
func (p *shardState) isKnown(c *frontier.Candidate) bool {
	return p.known.has(wanted(c))
}

// wanted is what must be new for c to be queued: its URL, or the request for it.
func wanted(c *frontier.Candidate) canon.Fingerprint {
	if c.Refetch != "" {
		return c.RefetchFingerprint()
	}
	return c.Fingerprint
}

// enqueue puts a new entry into its list. A list that was not empty leaves its
// site where it is; otherwise the site moves unless it has better work already.
// counted says that a cap applies.
func (p *shardState) enqueue(s *site, e *frontier.Entry, counted, front bool) {
	if counted {
		s.more().admitted++
		p.changed(s)
	}
	had := s.queues[e.Priority] != nil
	if front {
		p.pushFront(s, e)
	} else {
		p.pushBack(s, e)
	}
	if !had && s.best() == int(e.Priority) {
		p.place(s)
	}
}

// capOf is the number of URLs that a site may have, 0 = any.
func (p *shardState) capOf(s *site, settings *frontier.Settings) int64 {
	if s.extra != nil && s.extra.cap > 0 {
		return s.extra.cap
	}
	return settings.CapOf(s.name)
}
