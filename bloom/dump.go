package bloom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	redisbloom "github.com/RedisBloom/redisbloom-go"
)

// Dump writes all filters of a set to w, chunk by chunk; it holds 16 MB in
// memory at most. URLs admitted meanwhile may be in the dump or not; for an exact
// copy the crawl must be paused. A filter that grows by a layer meanwhile makes
// Dump fail.
func (f *Filters) Dump(ctx context.Context, s Set, w io.Writer) error {
	h := Header{Shard: s.Shard, Plan: s.Plan, Each: s.Each}
	keys := s.All()
	for _, key := range keys {
		info, err := f.Info(ctx, s.Shard, key)
		if err != nil {
			return err
		}
		h.Filters = append(h.Filters, info)
	}
	out, err := newFrameWriter(w, h)
	if err != nil {
		return err
	}
	for c, key := range keys {
		if err := f.dumpKey(ctx, s.Shard, key, uint32(c), out); err != nil {
			return err
		}
		after, err := f.Info(ctx, s.Shard, key)
		if err != nil {
			return err
		}
		if after.Layers != h.Filters[c].Layers {
			return fmt.Errorf("bloom: %s grew while it was dumped; pause the crawl or try again", key)
		}
	}
	return out.end()
}

func (f *Filters) dumpKey(ctx context.Context, k int, key string, c uint32, out *frameWriter) error {
	for iter := int64(0); ; {
		var next int64
		var data []byte
		err := f.on(ctx, k, "BF.SCANDUMP", key, func(c *redisbloom.Client) (err error) {
			next, data, err = c.BfScanDump(key, iter)
			return err
		})
		if err != nil || next == 0 {
			return lacks(err)
		}
		if err := out.write(frame{c, next, data}); err != nil {
			return err
		}
		iter = next
	}
}

// lacks says of an unknown command what follows: Valkey's own module has no dumps.
func lacks(err error) error {
	if err == nil || !strings.Contains(err.Error(), "unknown command") {
		return err
	}
	return fmt.Errorf("%w: the bloom module of this server has neither BF.SCANDUMP nor BF.LOADCHUNK, as RedisBloom has; keep its filters by the server's own files (append-only file, snapshot, replica): %w", ErrNoDumps, err)
}

// Load reads a dump into a set of the same shard and plan, on these servers or
// others. Filters that hold URLs already are only replaced by force, for the crawl
// would take what only they know for new. All is built under other names first and
// takes its place in the end; the memory of both is needed meanwhile. Where the
// dump has another number of keys a filter, become is called with it then, and
// makes it that of the shard. A connection that breaks, or a slot that moves, makes
// Load fail.
func (f *Filters) Load(ctx context.Context, s Set, r io.Reader, force bool, become func(each int) error) error {
	in, h, err := newFrameReader(r)
	if err != nil {
		return err
	}
	if h.Plan != s.Plan {
		return fmt.Errorf("%w: this crawl has the plan of %s; the dump loads into a crawl created with %s", ErrOther, s.Plan.flags(), h.Plan.flags())
	}
	if h.Shard != s.Shard {
		return fmt.Errorf("%w: the dump is of shard %d, not %d", ErrOther, h.Shard, s.Shard)
	}
	for _, key := range s.All() {
		have, err := f.Info(ctx, s.Shard, key)
		if err != nil && !errors.Is(err, ErrMissing) {
			return err
		}
		if have.Items > 0 && !force {
			return fmt.Errorf("bloom: %s holds %d URLs already; only --force replaces it", key, have.Items)
		}
	}
	to := s
	to.Each = h.Each
	if err := f.loadAll(ctx, to, in, h); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		for _, key := range to.All() { // what was built is of no use to anyone
			f.client.Do(ctx, s.Shard, key, "UNLINK", loading(key))
		}
		return err
	}
	if to.Each == s.Each {
		return nil
	}
	if err := become(to.Each); err != nil {
		return err
	}
	for _, key := range s.All()[min(len(to.All()), len(s.All())):] { // no filter has them any more
		if _, err := f.client.Do(ctx, s.Shard, key, "UNLINK", key); err != nil {
			return err
		}
	}
	return nil
}

// loading is the name of a key that is being built. It is in its shard's slot.
func loading(key string) string { return key + ":loading" }

func (f *Filters) loadAll(ctx context.Context, s Set, in *frameReader, h Header) error {
	began := false
	var epoch uint64
	k, keys := s.Shard, s.All()
	for {
		c, err := in.next()
		if err != nil {
			return err
		}
		if c.key == noKey {
			break
		}
		if int(c.key) >= len(keys) {
			return fmt.Errorf("%w: it names key %d of %d", ErrDamaged, c.key, len(keys))
		}
		if err := f.loadChunk(ctx, k, loading(keys[c.key]), c); err != nil {
			return err
		}
		if !began {
			began, epoch = true, f.client.Epoch(k)
		}
	}
	if err := in.atEnd(); err != nil {
		return err
	}
	for c, want := range h.Filters {
		have, err := f.Info(ctx, k, loading(keys[c]))
		if err != nil && !errors.Is(err, ErrMissing) {
			return err
		}
		if !want.sameAs(have) {
			return fmt.Errorf("%w: %s came out as %+v, was %+v", ErrDamaged, keys[c], have, want)
		}
	}
	if f.client.Epoch(k) != epoch {
		return fmt.Errorf("bloom: the connection to shard %d broke or the shard moved while its filters were loaded, parts may be lost; load again", k)
	}
	for c, want := range h.Filters {
		if err := f.swap(ctx, k, keys[c], want); err != nil {
			return err
		}
	}
	return nil
}

// swap puts what was built in the place of a key.
func (f *Filters) swap(ctx context.Context, k int, key string, want Info) error {
	_, err := f.client.Do(ctx, k, key, "RENAME", loading(key), key)
	if err == nil || !strings.Contains(err.Error(), "no such key") {
		return err
	}
	have, infoErr := f.Info(ctx, k, key) // done by a try whose reply was lost?
	if infoErr == nil && want.sameAs(have) {
		return nil
	}
	return err
}

// sameAs reports whether a filter came out as the dump has it; URLs may have been
// added between the reading of want and the dump itself.
func (want Info) sameAs(have Info) bool {
	return have.Capacity == want.Capacity && have.Layers == want.Layers && have.Items >= want.Items
}

// loadChunk sends one chunk. The first makes the filter, so what an earlier
// load or try left goes first.
func (f *Filters) loadChunk(ctx context.Context, k int, key string, c frame) error {
	return lacks(f.on(ctx, k, "BF.LOADCHUNK", key, func(client *redisbloom.Client) error {
		if c.iter == 1 {
			if _, err := do(ctx, client, "UNLINK", key); err != nil {
				return err
			}
		}
		_, err := client.BfLoadChunk(key, c.iter, c.data)
		return err
	}))
}
