package watch

import (
	"context"
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
	Left          int    // visits that ended since the site's rule binds addresses that this machine lacks, so far
	LeftWhy       string // of the last
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

// log takes in how many shards are met by the trouble now, and logs that it began or grew,
// or that it is over.
func (tr *trouble) log(log *slog.Logger, level slog.Level, n int, at time.Time, began, over string, attrs ...any) {
	if n > 0 {
		tr.met = at
	}
	switch {
	case n > tr.logged && (tr.logged == 0 || at.Sub(tr.at) >= logPause):
		tr.logged, tr.at = n, at
		log.Log(context.Background(), level, began, attrs...)
	case tr.logged > 0 && n == 0 && at.Sub(tr.met) >= calm:
		tr.logged = 0
		if over != "" {
			log.Info(over)
		}
	}
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
	silent, full, unacked, overWatermark, feedRefused, left, sink, overflow, hanging trouble
	paused                                                                           pausedShards
}

// Log logs what is new.
func (t *Troubles) Log(log *slog.Logger, s *Situation) {
	count := func(n int) string { return fmt.Sprintf("%d of %d", n, s.Shards) }
	shards := func(tr *trouble, n int, began, over string) {
		tr.log(log, slog.LevelWarn, n, s.At, began, over, "shards", count(n))
	}
	shards(&t.silent, s.Silent, "shards do not answer; the crawl goes on with them when they do", "all shards answer again")
	does := "wait"
	if s.HasOverflow && s.Overflow == nil {
		does = "go to the overflow"
	}
	shards(&t.full, s.Full, "shards have no room: new URLs "+does+", nothing is lost; give Redis memory", "all shards have room again")
	shards(&t.unacked, s.Unacked, "no replica acknowledges new URLs; their pages wait, and nothing is lost; bring a replica of each master in step, or leave --ack out",
		"replicas of all shards acknowledge new URLs again")
	shards(&t.overWatermark, s.OverWatermark, "shards are above the memory watermark: they refuse candidates of the sites with the longest queues",
		"memory of all shards is below the watermark again: no candidates are refused")
	t.feedRefused.log(log, slog.LevelWarn, s.FeedRefused, s.At, "elements of the feed were refused; `frontier dead list --cause feed` lists them", "", "refused", s.FeedRefused)
	t.left.log(log, slog.LevelWarn, s.Left, s.At, "sites are left to other fetchers: their rules bind addresses that this machine lacks", "", "visits", s.Left, "err", s.LeftWhy)
	t.sink.log(log, slog.LevelError, number(s.Sink), s.At, "records cannot be written; nothing is fetched until they can", "records are written again", "err", s.Sink)
	t.overflow.log(log, slog.LevelError, number(s.Overflow), s.At, "candidates that find no room cannot be written; their pages wait until they can, or Redis has room",
		"no candidates wait for the overflow any more", "err", s.Overflow)
	t.hanging.log(log, slog.LevelError, s.Hanging, s.At, "handlers do not return; their workers and sites wait", "handlers return again",
		"handlers", s.Hanging, "longer_than", handlerHangs, "url", s.HangingURL)
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

// number is of trouble that has a reason and no number.
func number(err error) int {
	if err != nil {
		return 1
	}
	return 0
}
