package crawl

import (
	"fmt"
	"time"
)

// trouble is what holds the worker up, as far as its operator should hear of it.
type trouble struct {
	deaf, full int  // shards that do not answer, or have no room
	pressed    int  // shards whose memory is above the marks
	sink       bool // records cannot be written
	overflow   bool // nor links that find no room
}

// watchTrouble logs what holds the worker up when that changes.
func (w *Worker) watchTrouble(last trouble) trouble {
	var now trouble
	at := time.Now()
	for _, l := range w.lanes {
		if asking := l.asking.Load(); asking > 0 && at.Sub(time.UnixMilli(asking)) > deafAfter {
			now.deaf++
		}
		if l.admits.isFull() {
			now.full++
		}
	}
	if stats := w.stats.Load(); stats != nil {
		for i := range *stats {
			if (*stats)[i].Memory.Pressed {
				now.pressed++
			}
		}
	}
	var why error
	if s, ok := w.cfg.Sink.(interface{ Err() error }); ok {
		why = s.Err()
		now.sink = why != nil
	}
	stuck := w.overflowErr()
	now.overflow = stuck != nil
	if now == last {
		return now
	}
	log := w.cfg.Log
	count := func(n int) string { return fmt.Sprintf("%d of %d", n, len(w.lanes)) }
	switch {
	case now.deaf == last.deaf:
	case now.deaf == 0:
		log.Info("all shards answer again")
	default:
		log.Warn("shards that do not answer; the crawl goes on with them when they do", "shards", count(now.deaf))
	}
	switch {
	case now.full == last.full:
	case now.full == 0:
		log.Info("all shards have room again")
	default:
		does := "wait"
		if w.cfg.Overflow != nil {
			does = "go to the overflow"
		}
		log.Warn("shards without room: new URLs "+does+", nothing is lost; give Redis memory", "shards", count(now.full))
	}
	switch {
	case now.pressed == last.pressed:
	case now.pressed == 0:
		log.Info("memory of all shards is below the mark again: no links are turned away")
	default:
		log.Warn("shards above the memory mark: links of the sites with the longest queues are turned away there", "shards", count(now.pressed))
	}
	switch {
	case now.sink && !last.sink:
		log.Error("records cannot be written; nothing is fetched until they can", "err", why)
	case last.sink && !now.sink:
		log.Warn("records are written again")
	}
	switch {
	case now.overflow && !last.overflow:
		log.Error("links that find no room cannot be written; their pages wait until they can", "err", stuck)
	case last.overflow && !now.overflow:
		log.Warn("links that find no room are written again")
	}
	return now
}
