package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"seine/frontier"
	"seine/shard"
)

// rules is the robots rules of one origin.
type rules struct {
	text  []byte
	until time.Time
}

// Robots returns the rules of an origin as SetRobots stored them, and how long
// they hold; ok is false when there are none or they are too old.
func (f *Frontier) Robots(ctx context.Context, k int, origin string) (text []byte, ttl time.Duration, ok bool, err error) {
	p, err := f.part(ctx, k, "robots")
	if err != nil {
		return nil, 0, false, err
	}
	p.lock()
	defer p.mu.Unlock()
	r, ok := p.robots[origin]
	ttl = r.until.Sub(f.cfg.Now())
	if !ok || ttl <= 0 {
		delete(p.robots, origin)
		return nil, 0, false, nil
	}
	return bytes.Clone(r.text), ttl, true, nil
}

// maxRobots is how many bytes the rules of one origin may take.
const maxRobots = 64 << 10

// robotsSweep is how many rules are looked at for each that is stored: the old
// ones leave at least as fast as new ones come.
const robotsSweep = 4

// SetRobots stores the rules of an origin for some time. They are not kept on
// disk, and not at all when they take more than 64 KB, for one site may have any
// number of origins; whoever needs them asks the origin again.
func (f *Frontier) SetRobots(ctx context.Context, k int, origin string, text []byte, ttl time.Duration) error {
	p, err := f.part(ctx, k, "robots")
	if err != nil {
		return err
	}
	if len(text) > maxRobots {
		return nil
	}
	p.lock()
	defer p.mu.Unlock()
	now := f.cfg.Now()
	n := 0
	for o, r := range p.robots {
		if n++; n > robotsSweep {
			break
		}
		if !r.until.After(now) {
			delete(p.robots, o)
		}
	}
	p.robots[origin] = rules{text: bytes.Clone(text), until: now.Add(ttl)}
	return nil
}

// Stats counts every shard.
func (f *Frontier) Stats(ctx context.Context) ([]frontier.ShardStats, error) {
	out := make([]frontier.ShardStats, len(f.shards))
	for k := range f.shards {
		p, err := f.part(ctx, k, "stats")
		if err != nil {
			return nil, err
		}
		p.lock()
		out[k] = p.stats
		for class := range 4 {
			out[k].Ready += int64(len(p.heaps[class]))
		}
		out[k].Held = int64(len(p.heaps[inHeld]))
		out[k].Leases = int64(len(p.leases))
		p.mu.Unlock()
	}
	return out, nil
}

// shardSlot is the slot that shard k would have in Redis Cluster.
func shardSlot(f *Frontier, k int) int { return shard.Slot(f.slots.Tag(k)) }

// Finished says whether nothing is left to do: no site in any ready class and
// no visit out, on all shards at one moment, and no seeder at work. Paused
// sites do not count.
func (f *Frontier) Finished(ctx context.Context) (bool, error) {
	members, err := f.Members(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range members {
		if m.Kind == frontier.KindSeeder {
			return false, nil
		}
	}
	for _, p := range f.shards {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	for _, p := range f.shards {
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

// Announce says that m is at work, for frontier.LiveFor.
func (f *Frontier) Announce(ctx context.Context, m frontier.Member) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.ID == "" {
		return errors.New("memory: announce: a member needs an id")
	}
	f.membership.Lock()
	defer f.membership.Unlock()
	if f.members == nil {
		f.members = make(map[string]frontier.Member)
	}
	m.Seen = f.cfg.Now()
	f.members[m.ID] = m
	return nil
}

// Leave takes a member off the list.
func (f *Frontier) Leave(ctx context.Context, id string) error {
	f.membership.Lock()
	defer f.membership.Unlock()
	delete(f.members, id)
	return ctx.Err()
}

// Members lists who is at work, by kind and start.
func (f *Frontier) Members(ctx context.Context) ([]frontier.Member, error) {
	f.membership.Lock()
	defer f.membership.Unlock()
	oldest := f.cfg.Now().Add(-frontier.LiveFor)
	list := make([]frontier.Member, 0, len(f.members))
	for id, m := range f.members {
		if m.Seen.Before(oldest) {
			delete(f.members, id)
			continue
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b frontier.Member) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return list, ctx.Err()
}
