package ask

import (
	"context"
	"slices"

	"seine/frontier"
)

// Exported is a URL of a crawl that is not done.
type Exported struct {
	frontier.Entry
	Cause string // of a dead letter, else ""
	Text  string // its last error
}

// Left counts what an export wrote.
type Left struct {
	Queued  int64 `json:"queued"` // lent ones too
	Waiting int64 `json:"waiting"`
	Dead    int64 `json:"dead"`
}

// orderMost is how many entries of one queue are held to be given in their order;
// of a longer queue later parts come first.
const orderMost = 50_000

// Export calls each with what is queued, lent, waiting or dead, those of a site
// together and in the order in which they are lent; what each gets holds until it
// returns. URLs that wait to be fetched again are done, and left out. It reads only. Of
// a crawl that is paused and has nothing lent it gives each URL once. While one runs, a
// URL that moves may come twice, and links of a page that is settled meanwhile may be
// left out where they went to sites that were passed. Cost: a call for each EntriesMost
// entries, some four a site. Memory: the names of one shard's sites, and orderMost entries.
func Export(ctx context.Context, f frontier.Operated, each func(*Exported) error) (Left, error) {
	x := exporting{ctx: ctx, f: f, each: each}
	for k := range f.Shards() {
		sites, err := f.WorkSites(ctx, k)
		if err != nil {
			return x.left, err
		}
		for _, site := range sites {
			if err := x.site(k, site); err != nil {
				return x.left, err
			}
		}
	}
	// Last, for what dies meanwhile.
	_, err := frontier.WalkDead(ctx, f, frontier.DeadFilter{}, func(_ int, batch []frontier.DeadLetter) (int, error) {
		for i := range batch {
			if err := each(&Exported{batch[i].Entry, batch[i].Cause, batch[i].Text}); err != nil {
				return 0, err
			}
			x.left.Dead++
		}
		return 0, nil
	})
	return x.left, err
}

// exporting is one export on its way.
type exporting struct {
	ctx  context.Context
	f    frontier.Operated
	each func(*Exported) error
	left Left
}

// site gives the entries of a site: all, and where they moved meanwhile once more
// those that may be new where they stand, which are in the visit, at the front of a
// queue, or wait.
func (x *exporting) site(k int, site string) error {
	whole := true
	for range findTries {
		before, err := x.state(k, site)
		if err != nil {
			return err
		}
		if err := x.look(k, &before, whole); err != nil {
			return err
		}
		after, err := x.state(k, site)
		if err != nil {
			return err
		}
		if after.Lease == before.Lease && after.Queued == before.Queued && after.Waiting == before.Waiting {
			return nil
		}
		whole = false
	}
	return nil
}

func (x *exporting) state(k int, site string) (frontier.SiteState, error) {
	list, err := x.f.SiteStates(x.ctx, k, []string{site})
	if err != nil {
		return frontier.SiteState{}, err
	}
	return list[0], nil
}

// look gives what stands in the visit, the queues and the retries of a site.
func (x *exporting) look(k int, s *frontier.SiteState, whole bool) error {
	if s.Place == frontier.PlaceLent {
		open, err := x.f.Entries(x.ctx, k, frontier.EntryPlace{Site: s.Site, Kind: frontier.InVisit, Token: s.Lease.Token}, 0, frontier.EntriesMost)
		if err = x.give(open, &x.left.Queued, err); err != nil {
			return err
		}
	}
	for class, n := range s.Queued {
		var err error
		at := frontier.EntryPlace{Site: s.Site, Kind: frontier.InQueue, Class: class}
		switch {
		case n == 0:
		case whole:
			err = x.queue(k, at)
		default:
			var front []frontier.Standing
			front, err = x.f.Entries(x.ctx, k, at, 0, frontier.EntriesMost)
			err = x.give(front, &x.left.Queued, err)
		}
		if err != nil {
			return err
		}
	}
	for offset := int64(0); offset < s.Waiting; offset += frontier.EntriesMost {
		retries, err := x.f.Entries(x.ctx, k, frontier.EntryPlace{Site: s.Site, Kind: frontier.InRetries}, offset, frontier.EntriesMost)
		if err = x.give(retries, &x.left.Waiting, err); err != nil {
			return err
		}
	}
	return nil
}

// queue gives a queue. It reads from the end: what is lent meanwhile goes from the
// front, so nothing is passed over.
func (x *exporting) queue(k int, at frontier.EntryPlace) error {
	var held []frontier.Standing // the last first
	for offset := int64(-frontier.EntriesMost); ; offset -= frontier.EntriesMost {
		page, err := x.f.Entries(x.ctx, k, at, offset, frontier.EntriesMost)
		if err != nil {
			return err
		}
		slices.Reverse(page)
		held = append(held, page...)
		if len(page) > 0 && len(held) < orderMost {
			continue
		}
		slices.Reverse(held)
		if err := x.give(held, &x.left.Queued, nil); err != nil || len(page) == 0 {
			return err
		}
		held = held[:0]
	}
}

// give gives entries that were read, if err does not say that they were not.
func (x *exporting) give(list []frontier.Standing, n *int64, err error) error {
	for i := 0; err == nil && i < len(list); i++ {
		err = x.each(&Exported{Entry: list[i].Entry})
		*n++
	}
	return err
}
