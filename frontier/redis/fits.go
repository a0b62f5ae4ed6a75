package redis

import (
	"context"
	"errors"
	"fmt"

	"seine/bloom"
	"seine/shard"
)

// fits fails with shard.ErrUnfit where the filters of a crawl, which are reserved
// when it is created, do not fit in what a master's maxmemory leaves. Filters that
// are there already are part of what is used. A master that has no maxmemory, or
// does not say, is not judged. Cost: a call a shard, and one more a filter where
// a master has little room.
func (f *Frontier) fits(ctx context.Context, plan bloom.Plan) error {
	type master struct {
		shards      []int
		used, limit int64
	}
	masters := make(map[string]*master)
	for k := range f.keys {
		addr, err := f.client.Owner(ctx, f.keys[k].Meta())
		if err != nil {
			return &shard.Error{Shard: k, Op: "create", Err: err}
		}
		m := masters[addr]
		if m == nil {
			m = &master{}
			masters[addr] = m
			if m.used, m.limit, err = f.memoryOf(ctx, k); err != nil {
				return err
			}
		}
		m.shards = append(m.shards, k)
	}
	for addr, m := range masters {
		filters := int64(len(m.shards) * plan.Filters)
		if m.limit == 0 || m.used+filters*plan.FilterBytes() <= m.limit {
			continue
		}
		there, err := f.filtersThere(ctx, m.shards, plan.Filters)
		if err != nil {
			return err
		}
		if need := (filters - there) * plan.FilterBytes(); m.used+need > m.limit {
			return fmt.Errorf("%w: %s has %d MB of its maxmemory %d MB left, and the filters of its %d shards take %d MB; plan for fewer URLs, raise maxmemory or add masters",
				shard.ErrUnfit, addr, max(0, m.limit-m.used)>>20, m.limit>>20, len(m.shards), need>>20)
		}
	}
	return nil
}

// filtersThere counts filters that are there already.
func (f *Frontier) filtersThere(ctx context.Context, shards []int, filters int) (n int64, err error) {
	for _, k := range shards {
		for j := range filters {
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

// memoryOf is what the master of shard k uses, as it compares it with its limit; 0
// where it does not say.
func (f *Frontier) memoryOf(ctx context.Context, k int) (used, limit int64, err error) {
	reply, err := f.client.Do(ctx, k, f.keys[k].Meta(), "INFO", "memory")
	if err != nil {
		if errors.Is(err, shard.ErrForbidden) {
			err = nil
		}
		return 0, 0, err
	}
	info := shard.InfoFields(shard.Text(reply))
	return shard.Int(info["used_memory"]) - shard.Int(info["mem_not_counted_for_evict"]), shard.Int(info["maxmemory"]), nil
}
