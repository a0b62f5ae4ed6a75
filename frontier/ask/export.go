package ask

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"seine/frontier"
)

// Exported is a URL of a crawl that is not done.
type Exported struct {
	frontier.Entry
	Cause string // of a dead letter, else ""
	Text  string // its last error

	Credentials string // that its site keeps for its origin
}

// Left counts what an export wrote.
type Left struct {
	Queued  int64 `json:"queued"` // leased ones too
	Waiting int64 `json:"waiting"`
	Dead    int64 `json:"dead"`
}

// orderMost is how many entries of one queue are held to be given in their order;
// of a longer queue later parts come first.
const orderMost = 50_000

// Export calls each with what is queued, leased, waiting or dead, those of a site
// together and in the order in which they are leased; what each gets holds until it
// returns. URLs that wait for a recrawl are done, and left out. It reads only. Of
// a crawl that is paused and has nothing leased it gives each URL once. While one runs, a
// URL that moves may come twice, and links of a page that is settled meanwhile may be
// left out where they went to sites that were passed. Shards that do not answer are left
// out, as of EachShard. Cost: two calls for each SitesMost
// sites, and one for each EntriesMost entries of a queue, atOnce of them at a time.
// Memory: the names of one shard's sites, what is left of SitesMost small sites, and
// orderMost entries.
func Export(ctx context.Context, f frontier.Operated, each func(*Exported) error) (Left, error) {
	x := exporting{ctx: ctx, f: f, each: each}
	partial := frontier.EachShard(ctx, f, nil, func(k int) error {
		sites, err := f.WorkSites(ctx, k)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(sites, frontier.SitesMost) {
			if err := x.sites(k, some); err != nil {
				return err
			}
		}
		return nil
	})
	if partial != nil && !errors.Is(partial, frontier.ErrPartial) {
		return x.left, partial
	}
	// Last, for what dies meanwhile.
	_, err := frontier.WalkDead(ctx, f, frontier.DeadFilter{}, func(k int, batch []frontier.DeadLetter) (int, error) {
		kept, err := x.credentials(k, batch)
		if err != nil {
			return 0, err
		}
		for i := range batch {
			e := &Exported{Entry: batch[i].Entry, Cause: batch[i].Cause, Text: batch[i].Text}
			e.Credentials = credentialsOf(e.URL, kept[batch[i].Site])
			if err := each(e); err != nil {
				return 0, err
			}
			x.left.Dead++
		}
		return 0, nil
	})
	if err == nil || errors.Is(err, frontier.ErrPartial) {
		err = errors.Join(partial, err)
	}
	return x.left, err
}

// exporting is one export on its way.
type exporting struct {
	ctx  context.Context
	f    frontier.Operated
	each func(*Exported) error
	left Left
	kept string // credentials of the site at hand
}

// credentials are what the sites of dead letters keep.
func (x *exporting) credentials(k int, batch []frontier.DeadLetter) (map[string]string, error) {
	names, kept := make([]string, len(batch)), make(map[string]string)
	for i := range batch {
		names[i] = batch[i].Site
	}
	states, err := statesOf(x.ctx, x.f, k, names)
	for i := range states {
		kept[states[i].Site] = states[i].Credentials
	}
	return kept, err
}

// credentialsOf are those for a URL that holds none itself.
func credentialsOf(url, kept string) string {
	origin, ok := frontier.OriginOf(url)
	if !ok {
		return ""
	}
	return frontier.CredentialsFor(kept, origin)
}

// atOnce is how many small sites are read side by side.
const atOnce = 16

// sites gives the entries of some sites: all, and where they moved meanwhile once more
// those that may be new where they stand, which are in the visit, at the front of a
// queue, or wait.
func (x *exporting) sites(k int, names []string) error {
	whole := true
	for range findTries {
		before, err := x.f.SiteStates(x.ctx, k, names)
		if err != nil {
			return err
		}
		if err := x.look(k, before, whole); err != nil {
			return err
		}
		after, err := x.f.SiteStates(x.ctx, k, names)
		if err != nil {
			return err
		}
		var moved []string
		for i := range after {
			if b, a := &before[i], &after[i]; a.Lease != b.Lease || a.Queued != b.Queued || a.Waiting != b.Waiting {
				moved = append(moved, a.Site)
			}
		}
		if len(moved) == 0 {
			return nil
		}
		names, whole = moved, false
	}
	return nil
}

// part is some entries that were read, and what counts them.
type part struct {
	list []frontier.QueuedEntry
	n    *int64
}

// look gives what is in some sites, one site after the other. Those that have
// little are read side by side before.
func (x *exporting) look(k int, sites []frontier.SiteState, whole bool) error {
	read := make([][]part, len(sites)) // of the small ones
	readers, ctx := errgroup.WithContext(x.ctx)
	readers.SetLimit(atOnce)
	for i := range sites {
		if s := &sites[i]; isSmall(s) {
			readers.Go(func() error {
				return x.read(ctx, k, s, whole, func(list []frontier.QueuedEntry, n *int64) error {
					read[i] = append(read[i], part{slices.Clone(list), n})
					return nil
				})
			})
		}
	}
	if err := readers.Wait(); err != nil {
		return err
	}
	for i := range sites {
		s := &sites[i]
		x.kept = s.Credentials
		if !isSmall(s) {
			if err := x.read(x.ctx, k, s, whole, x.give); err != nil {
				return err
			}
		}
		for _, p := range read[i] {
			if err := x.give(p.list, p.n); err != nil {
				return err
			}
		}
	}
	return nil
}

// isSmall reports whether a site may be read ahead of its turn.
func isSmall(s *frontier.SiteState) bool {
	return queued(s)+s.Waiting+s.Open <= frontier.EntriesMost
}

// read calls take with what is in the visit, the queues and the retries of a site,
// and with what counts that.
func (x *exporting) read(ctx context.Context, k int, s *frontier.SiteState, whole bool, take func([]frontier.QueuedEntry, *int64) error) error {
	some := func(at frontier.EntryPlace, offset int64, n *int64) error {
		at.Site = s.Site
		list, err := x.f.Entries(ctx, k, at, offset, frontier.EntriesMost)
		if err != nil {
			return err
		}
		return take(list, n)
	}
	if s.Place == frontier.PlaceLeased {
		if err := some(frontier.EntryPlace{Kind: frontier.InVisit, Token: s.Lease.Token}, 0, &x.left.Queued); err != nil {
			return err
		}
	}
	for class, n := range s.Queued {
		var err error
		at := frontier.EntryPlace{Site: s.Site, Kind: frontier.InQueue, Class: class}
		switch {
		case n == 0:
		case whole:
			err = x.queue(ctx, k, at, take)
		default:
			err = some(at, 0, &x.left.Queued)
		}
		if err != nil {
			return err
		}
	}
	for offset := int64(0); offset < s.Waiting; offset += frontier.EntriesMost {
		if err := some(frontier.EntryPlace{Kind: frontier.InRetries}, offset, &x.left.Waiting); err != nil {
			return err
		}
	}
	return nil
}

// queue calls take with a queue. It reads from the end: what is leased meanwhile goes from
// the front, so nothing is passed over.
func (x *exporting) queue(ctx context.Context, k int, at frontier.EntryPlace, take func([]frontier.QueuedEntry, *int64) error) error {
	var held []frontier.QueuedEntry // the last first
	for offset := int64(-frontier.EntriesMost); ; offset -= frontier.EntriesMost {
		page, err := x.f.Entries(ctx, k, at, offset, frontier.EntriesMost)
		if err != nil {
			return err
		}
		slices.Reverse(page)
		held = append(held, page...)
		first := len(page) < frontier.EntriesMost // the front of the queue is among them
		if !first && len(held) < orderMost {
			continue
		}
		slices.Reverse(held)
		if err := take(held, &x.left.Queued); err != nil || first {
			return err
		}
		held = held[:0]
	}
}

// give gives entries on, and counts them.
func (x *exporting) give(list []frontier.QueuedEntry, n *int64) error {
	for i := range list {
		e := &Exported{Entry: list[i].Entry}
		e.Credentials = credentialsOf(e.URL, x.kept)
		if err := x.each(e); err != nil {
			return err
		}
		*n++
	}
	return nil
}
