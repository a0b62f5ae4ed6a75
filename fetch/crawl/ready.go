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

// deafAfter is how long a shard may owe an answer.
const deafAfter = 10 * time.Second

// Ready reports why the worker is of no use right now: a shard that does not
// answer or is full, or due sites while nothing ended for a minute.
func (w *Worker) Ready(ctx context.Context) error {
	var errs []error
	now := time.Now()
	ended := now.Sub(time.UnixMilli(w.ended.Load()))
	for _, l := range w.lanes {
		at, asking := l.ticked.Load(), l.asking.Load()
		switch {
		case at == 0:
			errs = append(errs, fmt.Errorf("crawl: shard %d has not answered yet", l.shard))
		case asking > 0 && now.Sub(time.UnixMilli(asking)) > deafAfter:
			errs = append(errs, fmt.Errorf("crawl: shard %d has not answered for %s", l.shard, now.Sub(time.UnixMilli(at)).Round(time.Second)))
		}
		if l.admits.isFull() {
			errs = append(errs, fmt.Errorf("crawl: shard %d has no room: admission answers full%s", l.shard, w.spillNote()))
		}
		if l.hungry.Load() && !l.paused.Load() && ended > stallAfter {
			errs = append(errs, fmt.Errorf("crawl: sites of shard %d are due and no page ended for %s", l.shard, ended.Round(time.Second)))
		}
	}
	if err := w.unwritten(); err != nil {
		errs = append(errs, fmt.Errorf("crawl: links that find no room cannot be written: %w", err))
	}
	return errors.Join(errs...)
}

// spillNote says what becomes of links without room.
func (w *Worker) spillNote() string {
	if w.cfg.Overflow == nil || w.overflowErr() != nil {
		return ""
	}
	return "; its new links go to the overflow, fetching goes on"
}
