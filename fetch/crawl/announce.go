package crawl

import (
	"context"
	"time"

	"seine/frontier"
)

// announcer is a frontier that several fetchers share.
type announcer interface {
	Announce(context.Context, frontier.Member) error
	Leave(ctx context.Context, id string) error
}

// announce tells the others of this worker until ctx ends.
func (w *Worker) announce(ctx context.Context) {
	f, ok := w.cfg.Frontier.(announcer)
	if !ok || w.cfg.Member.ID == "" {
		return
	}
	m := w.cfg.Member
	last, at := w.Progress(), time.Now()
	for {
		p := w.Progress()
		span := time.Since(at)
		if span > time.Second {
			m.Rate = float64(p.Done+p.Dead-last.Done-last.Dead) / span.Seconds()
			last, at = p, time.Now()
		}
		m.Pages, m.Visits, m.Limit = int64(p.Done+p.Dead), int(p.Visits), p.Limit
		if err := f.Announce(ctx, m); err != nil {
			w.fail(ctx, err)
			break
		}
		if !sleep(ctx, nil, frontier.AnnounceEvery) {
			break
		}
	}
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := f.Leave(leave, m.ID); err != nil {
		w.cfg.Log.Debug("left without saying so; it shows for a few seconds more", "err", err)
	}
}
