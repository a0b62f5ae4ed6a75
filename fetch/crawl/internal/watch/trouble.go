package watch

import (
	"fmt"
	"log/slog"
	"time"
)

// Situation is what holds the crawler up at one moment.
type Situation struct {
	At            time.Time
	Shards        int
	Silent, Full  int    // shards that do not answer, or have no room
	Unacked       int    // shards whose replicas acknowledge nothing
	OverWatermark int    // shards whose memory is above the watermark
	FeedRefused   int    // elements of the feed, so far
	Paused        int    // shards that lease nothing, as their operator wants
	Sink          error  // records cannot be written, or nil
	Overflow      error  // nor candidates that find no room
	HasOverflow   bool   // there is an overflow
	Hanging       int    // handlers that do not return
	HangingURL    string // of the page of the one that runs for longest
}

const (
	// logPause is how often trouble that grows is logged.
	logPause = time.Minute
	// calm is how long trouble must be away to be over, for a Redis at its limit has
	// room now and none a moment later.
	calm = 10 * time.Second
	// pauseSpread is how long a pause may take to be met in every shard.
	pauseSpread = 2 * time.Second
)

// trouble is of one kind, from when it is met until it stays away.
type trouble struct {
	logged int       // shards, as last logged; 0 = there is none
	at     time.Time // when that was
	met    time.Time // when it was met last
}

// update takes in how many shards are met by the trouble now, and reports whether it began
// or grew, or is over.
func (tr *trouble) update(n int, at time.Time) (grew, over bool) {
	if n > 0 {
		tr.met = at
	}
	switch {
	case n > tr.logged && (tr.logged == 0 || at.Sub(tr.at) >= logPause):
		tr.logged, tr.at = n, at
		return true, false
	case tr.logged > 0 && n == 0 && at.Sub(tr.met) >= calm:
		tr.logged = 0
		return false, true
	}
	return false, false
}

// updateErr is update for trouble that has a reason and no number.
func (tr *trouble) updateErr(err error, at time.Time) (began, over bool) {
	n := 0
	if err != nil {
		n = 1
	}
	return tr.update(n, at)
}

// pausedShards is the number of paused shards as last logged.
type pausedShards struct {
	logged, now int
	since       time.Time // now was met first
}

// update takes in how many shards are paused, and reports whether that is news.
func (ps *pausedShards) update(n int, at time.Time) bool {
	if n != ps.now {
		ps.now, ps.since = n, at
	}
	if n == ps.logged || at.Sub(ps.since) < pauseSpread {
		return false
	}
	ps.logged = n
	return true
}

// Troubles is what was logged of situations. Its zero value has logged nothing.
type Troubles struct {
	silent, full, unacked, overWatermark, feedRefused, sink, overflow, hanging trouble
	paused                                                                     pausedShards
}

// Log logs what is new.
func (t *Troubles) Log(log *slog.Logger, s *Situation) {
	count := func(n int) string { return fmt.Sprintf("%d of %d", n, s.Shards) }
	if grew, over := t.silent.update(s.Silent, s.At); grew {
		log.Warn("shards do not answer; the crawl goes on with them when they do", "shards", count(s.Silent))
	} else if over {
		log.Info("all shards answer again")
	}
	if grew, over := t.full.update(s.Full, s.At); grew {
		does := "wait"
		if s.HasOverflow && s.Overflow == nil {
			does = "go to the overflow"
		}
		log.Warn("shards have no room: new URLs "+does+", nothing is lost; give Redis memory", "shards", count(s.Full))
	} else if over {
		log.Info("all shards have room again")
	}
	if grew, over := t.unacked.update(s.Unacked, s.At); grew {
		log.Warn("no replica acknowledges new URLs; their pages wait, and nothing is lost; bring a replica of each master in step, or leave --ack out", "shards", count(s.Unacked))
	} else if over {
		log.Info("replicas of all shards acknowledge new URLs again")
	}
	if grew, _ := t.feedRefused.update(s.FeedRefused, s.At); grew {
		log.Warn("elements of the feed were refused; `frontier dead list --cause feed` shows them", "refused", s.FeedRefused)
	}
	if grew, over := t.overWatermark.update(s.OverWatermark, s.At); grew {
		log.Warn("shards are above the memory watermark: they refuse candidates of the sites with the longest queues", "shards", count(s.OverWatermark))
	} else if over {
		log.Info("memory of all shards is below the watermark again: no candidates are refused")
	}
	if began, over := t.sink.updateErr(s.Sink, s.At); began {
		log.Error("records cannot be written; nothing is fetched until they can", "err", s.Sink)
	} else if over {
		log.Info("records are written again")
	}
	if began, over := t.overflow.updateErr(s.Overflow, s.At); began {
		log.Error("candidates that find no room cannot be written; their pages wait until they can, or Redis has room", "err", s.Overflow)
	} else if over {
		log.Info("no candidates wait for the overflow any more")
	}
	if grew, over := t.hanging.update(s.Hanging, s.At); grew {
		log.Error("handlers do not return; their workers and sites wait", "handlers", s.Hanging, "longer_than", handlerHangs, "url", s.HangingURL)
	} else if over {
		log.Info("handlers return again")
	}
	if was := t.paused.logged; t.paused.update(s.Paused, s.At) {
		switch {
		case s.Paused == 0:
			log.Info("resumed: all shards lease sites again")
		case s.Paused > was:
			log.Info("paused: no site is leased there until `frontier resume`", "shards", count(s.Paused))
		default:
			log.Info("resumed in part: the others lease sites again", "paused", count(s.Paused))
		}
	}
}
