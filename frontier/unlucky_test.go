package frontier

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"seine/shard"
)

// repeat runs a call as an unlucky client does.
func (d *driver) repeat(ctx context.Context, k int, s *shard.Script, keys []string, args ...any) (any, error) {
	d.calls.Add(1)
	reply, err := d.run(ctx, k, s, keys, args...)
	if err != nil {
		return reply, err
	}
	if rand.Float64() < d.twiceOf {
		// The caller hears the repeat only, as if the first reply was lost.
		reply, err = d.run(ctx, k, s, keys, args...)
	}
	if rand.Float64() < d.lateOf {
		keys := slices.Clone(keys)
		args := cloneArgs(args)
		d.late.Go(func() {
			time.Sleep(time.Duration(rand.Int64N(int64(2 * d.lease)))) // the copy is on its way
			d.world.RLock()
			defer d.world.RUnlock()
			reply, err := d.run(context.Background(), k, s, keys, args...)
			if err != nil {
				d.fail("late %s: %v", s.Name, err)
			}
			if s == visitScript {
				d.ghost(args, reply)
			}
		})
	}
	return reply, err
}

// cloneArgs copies what the caller may use again.
func cloneArgs(args []any) []any {
	args = slices.Clone(args)
	for i := range args {
		if b, ok := args[i].([]byte); ok {
			args[i] = slices.Clone(b)
		}
	}
	return args
}

// ghost fails when a late copy of a visit was granted after the visit had ended:
// nobody would know of it.
func (d *driver) ghost(args []any, reply any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, granted := range array(reply) {
		if token := args[5+4*i+1].(string); array(granted) != nil && d.over[token] {
			d.fail("a late copy lent a site under %s, which was over", token)
		}
	}
}
