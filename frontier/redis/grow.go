package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"seine/bloom"
	"seine/frontier"
	"seine/shard"
)

// A key of a filter stays small enough to move to another master. When the last
// one may not grow any more, every filter of the shard gets a further key, and what
// is new goes there.

// family is what every shard has filters of: known URLs, or contents of pages.
type family struct {
	field string         // of meta, says how many keys each filter has
	each  []atomic.Int64 // by shard: the same as last heard; 0 = 1
}

// least is how many keys a filter has where meta does not say: that of contents is
// made when the first are asked for.
func (f *Frontier) least(fam *family) int {
	if fam == &f.contents {
		return 0
	}
	return 1
}

// set names the filters of a family in shard k, each of so many keys.
func (f *Frontier) set(fam *family, k, each int) bloom.Set {
	s := bloom.Set{Shard: k, Keys: f.keys[k], Plan: f.plan, Each: each}
	if fam == &f.contents {
		s.Plan, s.Contents = f.plan.Contents(), true
	}
	return s
}

// setNow is set with as many keys as there are now. Cost: one call.
func (f *Frontier) setNow(ctx context.Context, fam *family, k int) (bloom.Set, error) {
	raw, err := f.client.Do(ctx, k, f.keys[k].Meta(), "HGET", f.keys[k].Meta(), fam.field)
	if err != nil {
		return bloom.Set{}, err
	}
	each := max(int(shard.Int(raw)), f.least(fam))
	fam.each[k].Store(int64(each))
	return f.set(fam, k, each), nil
}

// FilterSet names the filters of known URLs of shard k as they are now. Cost: one
// call.
func (f *Frontier) FilterSet(ctx context.Context, k int) (bloom.Set, error) {
	return f.setNow(ctx, &f.urls, k)
}

// ContentSet names the filter of contents of shard k as it is now; it has no key
// where nobody asked for duplicates yet. Cost: one call.
func (f *Frontier) ContentSet(ctx context.Context, k int) (bloom.Set, error) {
	return f.setNow(ctx, &f.contents, k)
}

// roomTries bounds how often a call is made again because filters got further keys.
const roomTries = 20

// withRoom calls a script that adds to filters of shard k, and again with other
// keys when it answers that there are more or must be. call gets how many keys each
// filter has, and how many URLs the last of them may hold by the plan (0: what it
// has room for; -1: what it has no room for is to be refused), and returns the
// keys that it declared. Where Redis is too full for further keys it
// refuses. ErrLostFilter names a key that is missing; that of contents is made anew,
// for without it copies pass for new and nothing is lost.
func (f *Frontier) withRoom(ctx context.Context, fam *family, k int, op string, call func(each int, room int64) (keys []string, err error)) error {
	full := false
	for range roomTries {
		each := max(int(fam.each[k].Load()), 1)
		var keys []string
		err := f.attempt(ctx, k, op, func(context.Context) (err error) {
			keys, err = call(each, f.room(fam, each, full))
			return err
		})
		switch code, number := shard.Code(err); code {
		case "KEYS":
			fam.each[k].Store(shard.Int(number))
			if shard.Int(number) == 0 {
				if err := f.makeContents(ctx, k, 0); err != nil {
					return err
				}
			}
		case "GROW":
			if err := f.grow(ctx, fam, k, each); isFull(err) {
				full = true
			} else if err != nil {
				return err
			}
		case "LOST":
			if fam == &f.contents {
				if err := f.makeContents(ctx, k, each); err != nil {
					return err
				}
				continue
			}
			at := min(8+shard.Int(number), int64(len(keys)-1)) // the filters come after KEYS[9]
			return &shard.Error{Shard: k, Op: op, Err: fmt.Errorf("%w: %s; restore it with `frontier bloom load DIR --shard %d`", frontier.ErrLostFilter, keys[at], k)}
		default:
			return f.refusal(k, op, err)
		}
	}
	return &shard.Error{Shard: k, Op: op, Err: fmt.Errorf("frontier: the filters got further keys %d times during one call; programs of a crawl must have the same settings", roomTries)}
}

// room is how many items the last of so many keys may hold. full: there is no room
// for further keys.
func (f *Frontier) room(fam *family, each int, full bool) int64 {
	switch {
	case full:
		return -1
	case each > 1: // a further key does not grow
		return 0
	}
	return f.set(fam, 0, each).Plan.Room(f.cfg.MaxFilter)
}

// grow gives every filter of a family in shard k, which has so many keys, a further
// one. It may run in many programs at once, and again after it broke off. Cost: a few
// calls and two a filter, and the memory of the new keys.
func (f *Frontier) grow(ctx context.Context, fam *family, k, each int) error {
	if err := f.reserveKeys(ctx, fam, k, each, each+1); err != nil {
		return err
	}
	return f.setEach(ctx, fam, k, each, each+1)
}

// reserveKeys reserves those keys of a family's filters in shard k, but for those
// that are there.
func (f *Frontier) reserveKeys(ctx context.Context, fam *family, k, from, to int) error {
	set := f.set(fam, k, to)
	return f.withFilters(func(filters *bloom.Filters) error {
		for j := range set.Plan.Filters {
			if from == 0 {
				if err := filters.Reserve(ctx, k, set.Key(j, 0), set.Plan); err != nil {
					return err
				}
			}
			for i := max(from, 1); i < to; i++ {
				first, err := filters.Info(ctx, k, set.Key(j, 0))
				if err != nil {
					return lost(err)
				}
				if err := filters.Reserve(ctx, k, set.Key(j, i), set.Plan.Further(first.Layers, i, f.cfg.MaxFilter)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// ReserveShard makes empty filters of known URLs for shard k, which lost them with all its
// keys. Cost: a call a filter.
func (f *Frontier) ReserveShard(ctx context.Context, k int) error {
	return f.reserveKeys(ctx, &f.urls, k, 0, 1)
}

// setEach says in the meta of shard k that each filter of a family has to keys, unless
// it does not say from any more.
func (f *Frontier) setEach(ctx context.Context, fam *family, k, from, to int) error {
	field := func(n int) string {
		if n == f.least(fam) {
			return ""
		}
		return strconv.Itoa(n)
	}
	_, err := f.client.CompareAndSet(ctx, k, f.keys[k].Meta(),
		shard.Fields{"epoch", f.epoch, fam.field, field(from)}, shard.Fields{fam.field, field(to)})
	return err
}

// Remember makes fingerprints known to filter j of shard k, and queues nothing:
// for a repair. refused tells of those that the filter did not take. It takes some
// hundred at once. Above maxmemory, or where there is no memory for another key, it
// is an error that names OOM. Cost: one call.
func (f *Frontier) Remember(ctx context.Context, k, j int, prints []any) (refused []bool, err error) {
	var reply any
	err = f.withRoom(ctx, &f.urls, k, "remember", func(each int, room int64) (_ []string, err error) {
		if room < 0 {
			return nil, &shard.Error{Shard: k, Op: "remember", Err: errNoRoom}
		}
		keys := f.sharedKeys(nil, k, rememberScript)
		for i := range each {
			keys = append(keys, f.keys[k].FilterKey(j, i))
		}
		reply, err = f.run(ctx, k, rememberScript, keys, append([]any{f.epoch, each, room}, prints...)...)
		return keys, err
	})
	if err != nil {
		return nil, err
	}
	list := shard.Array(reply)
	if len(list) != len(prints) {
		return nil, Malformed(k, "remember", reply)
	}
	refused = make([]bool, len(list))
	for i, v := range list {
		_, refused[i] = v.(error)
	}
	return refused, nil
}

// errNoRoom: a filter needs another key and Redis has no memory for it.
var errNoRoom = errors.New("frontier: OOM: there is no memory for a further key of a filter")

// FoundKeys is how many keys some filter of shard k, and that of contents, have by
// what is there, for a shard whose meta lost the numbers. Cost: a call a key.
func (f *Frontier) FoundKeys(ctx context.Context, k int) (each, contents int, err error) {
	if each, err = f.foundKeys(ctx, &f.urls, k); err == nil {
		contents, err = f.foundKeys(ctx, &f.contents, k)
	}
	return each, contents, err
}

// foundKeys is FoundKeys of a family.
func (f *Frontier) foundKeys(ctx context.Context, fam *family, k int) (each int, err error) {
	set := f.set(fam, k, 0)
	for each = f.least(fam); err == nil; each++ {
		all := []any{"EXISTS"}
		for j := range set.Plan.Filters {
			all = append(all, set.Key(j, each))
		}
		var there any
		if there, err = f.client.Do(ctx, k, f.keys[k].Meta(), all...); err == nil && shard.Int(there) == 0 {
			break
		}
	}
	return each, err
}
