package bloom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	redisbloom "github.com/RedisBloom/redisbloom-go"

	"seine/shard"
)

// Dump writes all filters of shard k to w, chunk by chunk; it holds 16 MB in
// memory at most. URLs admitted meanwhile may be in the dump or not; for an exact
// copy the crawl must be paused. A filter that grows by a layer meanwhile makes
// Dump fail.
func (f *Filters) Dump(ctx context.Context, k int, keys shard.Keys, p Plan, w io.Writer) error {
	h := Header{Shard: k, Plan: p}
	for j := range p.Filters {
		info, err := f.Info(ctx, k, keys.Filter(j))
		if err != nil {
			return err
		}
		h.Filters = append(h.Filters, info)
	}
	out, err := newFrameWriter(w, h)
	if err != nil {
		return err
	}
	for j := range p.Filters {
		if err := f.dumpFilter(ctx, k, keys.Filter(j), uint32(j), out); err != nil {
			return err
		}
		after, err := f.Info(ctx, k, keys.Filter(j))
		if err != nil {
			return err
		}
		if after.Layers != h.Filters[j].Layers {
			return fmt.Errorf("bloom: %s grew while it was dumped; pause the crawl or try again", keys.Filter(j))
		}
	}
	return out.end()
}

func (f *Filters) dumpFilter(ctx context.Context, k int, key string, j uint32, out *frameWriter) error {
	for iter := int64(0); ; {
		var next int64
		var data []byte
		err := f.on(ctx, k, "BF.SCANDUMP", key, func(c *redisbloom.Client) (err error) {
			next, data, err = c.BfScanDump(key, iter)
			return err
		})
		if err != nil || next == 0 {
			return err
		}
		if err := out.write(frame{j, next, data}); err != nil {
			return err
		}
		iter = next
	}
}

// Load reads a dump of shard k into a crawl of the same plan, on these servers
// or others. Filters that hold URLs already are only replaced by force, for the
// crawl would take what only they know for new. All is built under other
// names first and takes its place in the end; the memory of both is needed
// meanwhile. A connection that breaks, or a slot that moves, makes Load fail.
func (f *Filters) Load(ctx context.Context, k int, keys shard.Keys, p Plan, r io.Reader, force bool) error {
	in, h, err := newFrameReader(r)
	if err != nil {
		return err
	}
	if h.Plan != p {
		return fmt.Errorf("%w: this crawl has the plan of %s; the dump loads into a crawl created with %s", ErrOther, p.flags(), h.Plan.flags())
	}
	if h.Shard != k {
		return fmt.Errorf("%w: the dump is of shard %d, not %d", ErrOther, h.Shard, k)
	}
	for j := range p.Filters {
		have, err := f.Info(ctx, k, keys.Filter(j))
		if err != nil && !errors.Is(err, ErrMissing) {
			return err
		}
		if have.Items > 0 && !force {
			return fmt.Errorf("bloom: %s holds %d URLs already; only --force replaces it", keys.Filter(j), have.Items)
		}
	}
	if err := f.loadAll(ctx, k, keys, in, h); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		for j := range p.Filters { // what was built is of no use to anyone
			f.client.Do(ctx, k, keys.Filter(j), "UNLINK", loading(keys, j))
		}
		return err
	}
	return nil
}

// loading is the name of a filter that is being built. It is in its shard's slot.
func loading(keys shard.Keys, j int) string { return keys.Filter(j) + ":loading" }

func (f *Filters) loadAll(ctx context.Context, k int, keys shard.Keys, in *frameReader, h Header) error {
	began := false
	var epoch uint64
	for {
		c, err := in.next()
		if err != nil {
			return err
		}
		if c.filter == noFilter {
			break
		}
		if int(c.filter) >= h.Plan.Filters {
			return fmt.Errorf("%w: it names filter %d of %d", ErrDamaged, c.filter, h.Plan.Filters)
		}
		if err := f.loadChunk(ctx, k, loading(keys, int(c.filter)), c); err != nil {
			return err
		}
		if !began {
			began, epoch = true, f.client.Epoch(k)
		}
	}
	if err := in.atEnd(); err != nil {
		return err
	}
	for j, want := range h.Filters {
		have, err := f.Info(ctx, k, loading(keys, j))
		if err != nil && !errors.Is(err, ErrMissing) {
			return err
		}
		if !want.sameAs(have) {
			return fmt.Errorf("%w: filter %d came out as %+v, was %+v", ErrDamaged, j, have, want)
		}
	}
	if f.client.Epoch(k) != epoch {
		return fmt.Errorf("bloom: the connection to shard %d broke or the shard moved while its filters were loaded, parts may be lost; load again", k)
	}
	for j := range h.Filters {
		if err := f.swap(ctx, k, keys, j, h.Filters[j]); err != nil {
			return err
		}
	}
	return nil
}

// swap puts what was built in the place of filter j.
func (f *Filters) swap(ctx context.Context, k int, keys shard.Keys, j int, want Info) error {
	_, err := f.client.Do(ctx, k, keys.Filter(j), "RENAME", loading(keys, j), keys.Filter(j))
	if err == nil || !strings.Contains(err.Error(), "no such key") {
		return err
	}
	have, infoErr := f.Info(ctx, k, keys.Filter(j)) // done by a try whose reply was lost?
	if infoErr == nil && want.sameAs(have) {
		return nil
	}
	return err
}

// sameAs says whether a filter came out as the dump has it; URLs may have been
// added between the reading of want and the dump itself.
func (want Info) sameAs(have Info) bool {
	return have.Capacity == want.Capacity && have.Layers == want.Layers && have.Items >= want.Items
}

// loadChunk sends one chunk. The first makes the filter, so what an earlier
// load or try left goes first.
func (f *Filters) loadChunk(ctx context.Context, k int, key string, c frame) error {
	return f.on(ctx, k, "BF.LOADCHUNK", key, func(client *redisbloom.Client) error {
		if c.iter == 1 {
			if _, err := do(ctx, client, "UNLINK", key); err != nil {
				return err
			}
		}
		_, err := client.BfLoadChunk(key, c.iter, c.data)
		return err
	})
}
