package redis

import (
	"context"
	"errors"
	"fmt"
	"net"

	"seine/shard"
)

// fits fails with shard.ErrUnfit where the filters of a crawl, which are reserved
// when it is created, do not fit in what a master's maxmemory leaves. Masters without
// maxmemory share the memory of their machine. Filters that are there already are part
// of what is used. A master that does not say is not judged. Cost: a call a shard, and
// one more a filter where there is little room.
func (f *Frontier) fits(ctx context.Context) error {
	rooms, byMaster := map[string]*room{}, map[string]*room{}
	for k := range f.keys {
		addr, err := f.client.Owner(ctx, f.keys[k].Meta())
		if err != nil {
			return &shard.Error{Shard: k, Op: "create", Err: err}
		}
		r := byMaster[addr]
		if r == nil {
			m, err := f.memoryOf(ctx, k)
			if err != nil {
				return err
			}
			name, limit, of := addr, m.limit, "maxmemory"
			if limit == 0 {
				if host, _, err := net.SplitHostPort(addr); err == nil {
					name = host
				}
				limit, of = m.machine, "memory, as no maxmemory is set,"
			}
			if r = rooms[name]; r == nil {
				r = &room{name: name, of: of, limit: limit}
				rooms[name] = r
			}
			r.used += m.used
			byMaster[addr] = r
		}
		r.shards = append(r.shards, k)
	}
	for _, r := range rooms {
		filters := int64(len(r.shards) * f.plan.Filters)
		if r.limit == 0 || r.used+filters*f.plan.FilterBytes() <= r.limit {
			continue
		}
		there, err := f.filtersThere(ctx, r.shards)
		if err != nil {
			return err
		}
		if need := (filters - there) * f.plan.FilterBytes(); r.used+need > r.limit {
			return fmt.Errorf("%w: %s has %d MB of its %s %d MB left, and the filters of its %d shards take %d MB; plan for fewer URLs, raise maxmemory or add masters",
				shard.ErrUnfit, r.name, max(0, r.limit-r.used)>>20, r.of, r.limit>>20, len(r.shards), need>>20)
		}
	}
	return nil
}

// room is memory that the filters of some shards share.
type room struct {
	name, of    string // of a master or a machine; what bounds it
	shards      []int
	used, limit int64
}

// filtersThere counts filters that are there already.
func (f *Frontier) filtersThere(ctx context.Context, shards []int) (n int64, err error) {
	for _, k := range shards {
		for j := range f.plan.Filters {
			key := f.keys[k].Filter(j)
			there, err := f.client.Do(ctx, k, key, "EXISTS", key)
			if err != nil {
				return 0, err
			}
			n += shard.Int(there)
		}
	}
	return n, nil
}

// masterMemory is the memory of a master in bytes; 0 where it does not say.
type masterMemory struct{ used, limit, machine int64 }

// memoryOf is what the master of shard k uses, as it compares it with its limit, and
// what its machine has.
func (f *Frontier) memoryOf(ctx context.Context, k int) (m masterMemory, err error) {
	reply, err := f.client.Do(ctx, k, f.keys[k].Meta(), "INFO", "memory")
	if err != nil {
		if errors.Is(err, shard.ErrForbidden) {
			err = nil
		}
		return m, err
	}
	info := shard.InfoFields(shard.Text(reply))
	return masterMemory{shard.Int(info["used_memory"]) - shard.Int(info["mem_not_counted_for_evict"]), shard.Int(info["maxmemory"]), shard.Int(info["total_system_memory"])}, nil
}
