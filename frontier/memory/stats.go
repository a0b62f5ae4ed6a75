package memory

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"seine/frontier"
)

// Stats counts every shard.
func (f *Frontier) Stats(ctx context.Context) ([]frontier.ShardStats, error) {
	out := make([]frontier.ShardStats, len(f.states))
	for k := range f.states {
		var err error
		if out[k], err = f.ShardStats(ctx, k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ShardStats counts shard k.
func (f *Frontier) ShardStats(ctx context.Context, k int) (frontier.ShardStats, error) {
	p, err := f.shard(ctx, k, "stats")
	if err != nil {
		return frontier.ShardStats{}, err
	}
	p.lock()
	defer p.mu.Unlock()
	s := p.stats
	for class := range 4 {
		s.Ready += int64(len(p.heaps[class]))
	}
	s.PausedReady = int64(len(p.heaps[inPaused]))
	s.Leases = int64(len(p.leases))
	for _, site := range p.walled {
		if site.extra.walls.ends > p.tick {
			s.Walled++
		}
	}
	return s, nil
}

// Finished reports whether nothing is left to do: no site in any ready class and
// no visit out, on all shards at one moment, and no seeder at work. Paused
// sites do not count.
func (f *Frontier) Finished(ctx context.Context) (bool, error) {
	members, err := f.Members(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range members {
		if m.Kind == frontier.KindSeeder || m.Seeding {
			return false, nil
		}
	}
	for _, p := range f.states {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	for _, p := range f.states {
		if len(p.leases) > 0 {
			return false, nil
		}
		for class := range 4 {
			if len(p.heaps[class]) > 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

// RecentStats is Stats, for counting costs nothing here.
func (f *Frontier) RecentStats(ctx context.Context) ([]frontier.ShardStats, error) {
	return f.Stats(ctx)
}

// Announce says that m is at work, for frontier.LiveFor, and returns who is.
func (f *Frontier) Announce(ctx context.Context, m frontier.Member) (present frontier.Present, err error) {
	if err := ctx.Err(); err != nil {
		return present, err
	}
	if m.ID == "" {
		return present, errors.New("memory: announce: a member needs an id")
	}
	f.membership.Lock()
	defer f.membership.Unlock()
	if f.members == nil {
		f.members = make(map[string]frontier.Member)
	}
	m.Seen, m.Tokens = f.cfg.Now(), f.run
	if _, known := f.members[m.ID]; !known && m.OnRecord() && !slices.ContainsFunc(f.runs, func(r frontier.Member) bool { return r.ID == m.ID }) {
		f.record(m)
	}
	f.members[m.ID] = m
	for _, m := range f.members {
		if m.Seen.Before(f.cfg.Now().Add(-frontier.LiveFor)) {
			continue
		}
		present.Programs++
		if m.Crowded {
			present.Crowded++
		}
		if m.Room {
			present.Room++
		}
	}
	return present, nil
}

// vanished lists who was heard of within an hour, and did not leave, the last first.
func (f *Frontier) vanished() (list []frontier.Member) {
	f.membership.Lock()
	defer f.membership.Unlock()
	now := f.cfg.Now()
	for _, m := range f.members {
		if gone := now.Sub(m.Seen) - frontier.LiveFor; gone > 0 && gone <= frontier.VanishedFor {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b frontier.Member) int { return b.Seen.Compare(a.Seen) })
	return list
}

// Leave takes a member off the list.
func (f *Frontier) Leave(ctx context.Context, m frontier.Member) error {
	f.membership.Lock()
	defer f.membership.Unlock()
	delete(f.members, m.ID)
	if m.OnRecord() {
		m.Seen = f.cfg.Now()
		f.record(m)
	}
	return ctx.Err()
}

// record puts a run in front of those on record, and into the store; membership is
// held.
func (f *Frontier) record(m frontier.Member) {
	f.runs = slices.DeleteFunc(f.runs, func(r frontier.Member) bool { return r.ID == m.ID })
	f.runs = slices.Insert(f.runs, 0, m)
	f.runs = f.runs[:min(len(f.runs), frontier.RunsKept)]
	if f.dir != nil {
		f.dir.keepRuns(f.runs)
	}
}

// Runs are the last runs of fetchers, the one heard of last first.
func (f *Frontier) Runs(ctx context.Context) ([]frontier.Member, error) {
	f.membership.Lock()
	defer f.membership.Unlock()
	return slices.Clone(f.runs), ctx.Err()
}

// Members lists who is at work, by kind and start.
func (f *Frontier) Members(ctx context.Context) ([]frontier.Member, error) {
	f.membership.Lock()
	defer f.membership.Unlock()
	oldest := f.cfg.Now().Add(-frontier.LiveFor)
	list := make([]frontier.Member, 0, len(f.members))
	for id, m := range f.members { // all of one machine: the last thousand are not counted off
		switch {
		case m.Seen.Before(oldest.Add(-frontier.VanishedFor)):
			delete(f.members, id)
		case !m.Seen.Before(oldest):
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b frontier.Member) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return list, ctx.Err()
}
