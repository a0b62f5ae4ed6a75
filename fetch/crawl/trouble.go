package crawl

import (
	"fmt"
	"log/slog"
	"time"
)

// sight is what holds the worker up at one moment.
type sight struct {
	at         time.Time
	shards     int
	deaf, full int   // shards that do not answer, or have no room
	pressed    int   // shards whose memory is above the marks
	paused     int   // shards that lend nothing, as their operator said
	sink       error // records cannot be written, or nil
	overflow   error // nor links that find no room
	spills     bool  // there is an overflow
}

// sight looks at what holds the worker up now.
func (w *Worker) sight(at time.Time) sight {
	s := sight{at: at, shards: len(w.lanes), paused: w.pausedShards(), overflow: w.unwritten(), spills: w.cfg.Overflow != nil}
	for _, l := range w.lanes {
		if asking := l.asking.Load(); asking > 0 && at.Sub(time.UnixMilli(asking)) > deafAfter {
			s.deaf++
		}
		if l.admits.isFull() {
			s.full++
		}
	}
	if stats := w.stats.Load(); stats != nil {
		for i := range *stats {
			if (*stats)[i].Memory.Pressed {
				s.pressed++
			}
		}
	}
	if sink, ok := w.cfg.Sink.(interface{ Err() error }); ok {
		s.sink = sink.Err()
	}
	return s
}

func (w *Worker) pausedShards() int {
	n := 0
	for _, l := range w.lanes {
		if l.paused.Load() {
			n++
		}
	}
	return n
}

// Paused says that the crawl or shards of it are paused, "" when none is.
func (w *Worker) Paused() string {
	switch n := w.pausedShards(); n {
	case 0:
		return ""
	case len(w.lanes):
		return "the crawl is paused"
	default:
		return fmt.Sprintf("%d of %d shards are paused", n, len(w.lanes))
	}
}

const (
	// tellAgain is how often trouble that grows is told of.
	tellAgain = time.Minute
	// calm is how long trouble must be away to be over, for a Redis at its limit has
	// room and has none by turns.
	calm = 10 * time.Second
	// pauseSpread is how long a pause may take to be met in every shard.
	pauseSpread = 2 * time.Second
)

// spell is one kind of trouble, from when it is met until it stays away.
type spell struct {
	told int       // shards, as last told; 0 = there is none
	at   time.Time // when that was
	met  time.Time // when it was met last
}

// note takes in how many shards are met by the trouble now, and says whether to
// tell that it began or grew, or that it is over.
func (s *spell) note(n int, at time.Time) (grew, over bool) {
	if n > 0 {
		s.met = at
	}
	switch {
	case n > s.told && (s.told == 0 || at.Sub(s.at) >= tellAgain):
		s.told, s.at = n, at
		return true, false
	case s.told > 0 && n == 0 && at.Sub(s.met) >= calm:
		s.told = 0
		return false, true
	}
	return false, false
}

// noteErr is note for trouble that has a reason and no number.
func (s *spell) noteErr(err error, at time.Time) (began, over bool) {
	n := 0
	if err != nil {
		n = 1
	}
	return s.note(n, at)
}

// pauses is the number of paused shards as last told.
type pauses struct {
	told, now int
	since     time.Time // now was met first
}

// note takes in how many shards are paused, and says whether to tell that.
func (p *pauses) note(n int, at time.Time) bool {
	if n != p.now {
		p.now, p.since = n, at
	}
	if n == p.told || at.Sub(p.since) < pauseSpread {
		return false
	}
	p.told = n
	return true
}

// troubles is what its operator was told of.
type troubles struct {
	deaf, full, pressed, sink, overflow spell
	paused                              pauses
}

// tell logs what is new.
func (t *troubles) tell(log *slog.Logger, s sight) {
	count := func(n int) string { return fmt.Sprintf("%d of %d", n, s.shards) }
	if grew, over := t.deaf.note(s.deaf, s.at); grew {
		log.Warn("shards that do not answer; the crawl goes on with them when they do", "shards", count(s.deaf))
	} else if over {
		log.Info("all shards answer again")
	}
	if grew, over := t.full.note(s.full, s.at); grew {
		does := "wait"
		if s.spills && s.overflow == nil {
			does = "go to the overflow"
		}
		log.Warn("shards without room: new URLs "+does+", nothing is lost; give Redis memory", "shards", count(s.full))
	} else if over {
		log.Info("all shards have room again")
	}
	if grew, over := t.pressed.note(s.pressed, s.at); grew {
		log.Warn("shards above the memory mark: links of the sites with the longest queues are turned away there", "shards", count(s.pressed))
	} else if over {
		log.Info("memory of all shards is below the mark again: no links are turned away")
	}
	if began, over := t.sink.noteErr(s.sink, s.at); began {
		log.Error("records cannot be written; nothing is fetched until they can", "err", s.sink)
	} else if over {
		log.Info("records are written again")
	}
	if began, over := t.overflow.noteErr(s.overflow, s.at); began {
		log.Error("links that find no room cannot be written; their pages wait until they can, or Redis has room", "err", s.overflow)
	} else if over {
		log.Info("no links wait for the overflow any more")
	}
	if was := t.paused.told; t.paused.note(s.paused, s.at) {
		switch {
		case s.paused == 0:
			log.Info("resumed: all shards lend again")
		case s.paused > was:
			log.Info("paused: nothing is borrowed there until `frontier resume`", "shards", count(s.paused))
		default:
			log.Info("resumed in part: the others lend again", "paused", count(s.paused))
		}
	}
}
