package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stallAfter is how long due sites may stand untouched before the worker calls
// itself not ready.
const stallAfter = time.Minute

// Ready reports why the worker is of no use right now: a shard that does not
// answer or is full, or due sites while nothing ended for a minute.
func (w *Worker) Ready(ctx context.Context) error {
	var errs []error
	now := time.Now()
	for _, l := range w.lanes {
		if at := l.ticked.Load(); at != nil && now.Sub(*at) > stallAfter/2 {
			errs = append(errs, fmt.Errorf("crawl: shard %d has not answered for %s", l.shard, now.Sub(*at).Round(time.Second)))
		}
		if l.admits.isFull() {
			errs = append(errs, fmt.Errorf("crawl: shard %d has no room: admission answers full", l.shard))
		}
		if l.hungry.Load() && !l.paused.Load() && now.Sub(time.UnixMilli(w.ended.Load())) > stallAfter {
			errs = append(errs, fmt.Errorf("crawl: sites of shard %d are due and no page ended for %s", l.shard, stallAfter))
		}
	}
	return errors.Join(errs...)
}
