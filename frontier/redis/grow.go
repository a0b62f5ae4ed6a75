package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"seine/bloom"
	"seine/frontier"
	"seine/shard"
)

// A key of a filter stays small enough to move to another master. When the last
// one may not grow any more, every filter of the shard gets a further key, and what
// is new goes there.
//
// Programs of format 1 know of no further keys: they would take for new what only
// these hold. Nor do they know of entries of version 2. So the first of either
// raises the format, of the root for programs that
// start, and of the shard for those that run: its epoch becomes another, which is
// stale to their scripts and which scripts of format 2 know. An old program that
// runs ends there, or when it reads the root again; what it held comes back.

// grownEpoch is what a shard of format 2 has for an epoch.
func (f *Frontier) grownEpoch() string { return f.epoch + ":2" }

// owns says whether a shard with this epoch is one of this creation of the crawl.
func (f *Frontier) owns(epoch string) bool { return epoch == f.epoch || epoch == f.grownEpoch() }

// FilterSet names the filters of shard k as they are now. Cost: one call.
func (f *Frontier) FilterSet(ctx context.Context, k int) (bloom.Set, error) {
	plan, err := planOf(f.layout)
	if err != nil {
		return bloom.Set{}, err
	}
	raw, err := f.client.Do(ctx, k, f.keys[k].Meta(), "HGET", f.keys[k].Meta(), "keys")
	if err != nil {
		return bloom.Set{}, err
	}
	each := max(int(shard.Int(raw)), 1)
	f.each[k].Store(int64(each))
	return bloom.Set{Shard: k, Keys: f.keys[k], Plan: plan, Each: each}, nil
}

// roomTries bounds how often a call is made again because filters got further keys.
const roomTries = 20

// withRoom calls a script that adds to filters of shard k, and again with other
// keys when it answers that there are more or must be. call gets how many keys each
// filter has, and how many URLs the last of them may hold by the plan (0: what it
// has room for; -1: what it has no room for is to be refused), and returns the reply
// and the keys that it declared. Where Redis is too full for further keys it
// refuses. ErrLostFilter names a key that is missing.
func (f *Frontier) withRoom(ctx context.Context, k int, op string, call func(each int, room int64) (reply any, keys []string, err error)) error {
	full := false
	for range roomTries {
		each := max(int(f.each[k].Load()), 1)
		reply, keys, err := call(each, f.room(each, full))
		if err == nil {
			err = f.refusal(k, op, reply)
		}
		if err != nil {
			return err
		}
		text, _ := reply.(string)
		switch word, number, _ := strings.Cut(text, " "); word {
		case "!keys":
			f.each[k].Store(shard.Int(number))
		case "!grow":
			if err := f.grow(ctx, k, each); isFull(err) {
				full = true
			} else if err != nil {
				return err
			}
		case "!lost":
			at := min(8+shard.Int(number), int64(len(keys)-1)) // the filters come after KEYS[9]
			return &shard.Error{Shard: k, Op: op, Err: fmt.Errorf("%w: %s; restore it with `frontier bloom load DIR --shard %d`", frontier.ErrLostFilter, keys[at], k)}
		default:
			return nil
		}
	}
	return &shard.Error{Shard: k, Op: op, Err: fmt.Errorf("frontier: the filters got further keys %d times during one call; programs of a crawl must have the same settings", roomTries)}
}

// room is how many URLs the last of so many keys may hold. full: there is no room
// for further keys.
func (f *Frontier) room(each int, full bool) int64 {
	plan, err := planOf(f.layout)
	switch {
	case full:
		return -1
	case each > 1 || err != nil: // a further key does not grow
		return 0
	}
	return plan.Room(f.cfg.MaxFilter)
}

// grow gives every filter of shard k, which has so many keys, a further one. It may
// run in many programs at once, and again after it broke off. Cost: a few calls and
// two a filter, and the memory of the new keys.
func (f *Frontier) grow(ctx context.Context, k, each int) error {
	if err := f.raise(ctx, k); err != nil {
		return err
	}
	err := f.withFilters(func(filters *bloom.Filters, plan bloom.Plan) error {
		for j := range f.layout.Filters {
			first, err := filters.Info(ctx, k, f.keys[k].Filter(j))
			if err != nil {
				return lost(err)
			}
			if err := filters.Reserve(ctx, k, f.keys[k].FilterKey(j, each), plan.Further(first.Layers, each, f.cfg.MaxFilter)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return f.setEach(ctx, k, each, each+1)
}

// raise makes shard k one of format 2, after the root: from then on no program of
// format 1 works on the shard. It may be called again.
func (f *Frontier) raise(ctx context.Context, k int) error {
	h, err := f.client.Hash(ctx, k, f.keys[k].Meta())
	if err != nil || h["epoch"] == f.grownEpoch() {
		return err
	}
	err = f.alterRoot(ctx, func(r *root) (shard.Fields, error) {
		var l frontier.Layout
		if err := json.Unmarshal([]byte(r.raw["layout"]), &l); err != nil || l.Format >= frontier.FormatNewest {
			return nil, err
		}
		l.Format = frontier.FormatNewest
		text, err := json.Marshal(l)
		return shard.Fields{"layout", string(text)}, err
	})
	if err != nil {
		return err
	}
	_, err = f.client.CompareAndSet(ctx, k, f.keys[k].Meta(), shard.Fields{"epoch", f.epoch}, shard.Fields{"epoch", f.grownEpoch()})
	return err
}

// raiseFor is raise before new entries are admitted: it asks once for each master
// that the shard has.
func (f *Frontier) raiseFor(ctx context.Context, k int) error {
	now := f.client.Epoch(k) + 1
	if f.raised[k].Load() == now {
		return nil
	}
	err := f.raise(ctx, k)
	if err == nil {
		f.raised[k].Store(now)
	}
	return err
}

// setEach says in the meta of shard k, which is of format 2, that each filter has
// to keys, unless it does not say from any more.
func (f *Frontier) setEach(ctx context.Context, k, from, to int) error {
	field := func(n int) string {
		if n == 1 {
			return ""
		}
		return strconv.Itoa(n)
	}
	_, err := f.client.CompareAndSet(ctx, k, f.keys[k].Meta(),
		shard.Fields{"epoch", f.grownEpoch(), "keys", field(from)}, shard.Fields{"keys", field(to)})
	return err
}

// Remember makes fingerprints known to filter j of shard k, and queues nothing:
// for a repair. refused tells of those that the filter did not take. It takes some
// hundred at once. Above maxmemory, or where there is no memory for another key, it
// is an error that names OOM. Cost: one call.
func (f *Frontier) Remember(ctx context.Context, k, j int, prints []any) (refused []bool, err error) {
	var reply any
	err = f.withRoom(ctx, k, "remember", func(each int, room int64) (any, []string, error) {
		if room < 0 {
			return nil, nil, &shard.Error{Shard: k, Op: "remember", Err: errNoRoom}
		}
		keys := f.sharedKeys(nil, k, rememberScript)
		for i := range each {
			keys = append(keys, f.keys[k].FilterKey(j, i))
		}
		reply, err = f.run(ctx, k, rememberScript, keys, append([]any{f.epoch, each, room}, prints...)...)
		return reply, keys, err
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

// FoundKeys is how many keys some filter of shard k has by what is there, for a
// shard whose meta lost the number. Cost: a call a key of a filter.
func (f *Frontier) FoundKeys(ctx context.Context, k int) (each int, err error) {
	for each = 1; ; each++ {
		all := []any{"EXISTS"}
		for j := range f.layout.Filters {
			all = append(all, f.keys[k].FilterKey(j, each))
		}
		there, err := f.client.Do(ctx, k, f.keys[k].Meta(), all...)
		if err != nil || shard.Int(there) == 0 {
			return each, err
		}
	}
}
