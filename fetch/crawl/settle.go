package crawl

import (
	"context"
	"slices"

	"seine/frontier"
)

// requeue gives URLs back that were not tried.
func (v *visit) requeue(urls []lentURL) {
	v.mu.Lock()
	for i := range urls {
		v.outcomes = append(v.outcomes, frontier.Outcome{Index: int(urls[i].index), Kind: frontier.Requeue})
	}
	v.mu.Unlock()
	v.loop.addDirty(v)
}

// settle records what became of one URL.
func (v *visit) settle(o frontier.Outcome) {
	v.mu.Lock()
	v.outcomes = append(v.outcomes, o)
	v.mu.Unlock()
	v.loop.addDirty(v)
}

// maxSettle bounds the visits of one settle call.
const maxSettle = 64

// addDirty has a visit settled soon that has something to say.
func (l *shardLoop) addDirty(v *visit) {
	if !v.dirty.Swap(true) {
		l.settlements.Add(v)
	}
}

// settle settles visits until ctx ends.
func (l *shardLoop) settle(ctx context.Context) {
	var batch []frontier.Settlement
	err := l.settlements.Run(ctx, func(ctx context.Context, group []*visit) error {
		batch = batch[:0]
		for _, v := range group {
			v.dirty.Store(false) // what it has to say from now on is of the next group
			batch = append(batch, v.settlement())
		}
		settled, err := l.crawler.cfg.Frontier.Settle(ctx, l.shard, batch)
		if err == nil {
			l.applySettled(group, batch, settled)
		}
		return err
	})
	if err != nil {
		l.crawler.fail(ctx, err)
	}
}

// settlement takes what the visit has to say.
func (v *visit) settlement() frontier.Settlement {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := frontier.Settlement{Lease: v.lent.Lease, Outcomes: v.outcomes, Release: v.free}
	if len(s.Outcomes) > 0 || s.Release != nil {
		s.Cookies = v.cookies.Changed()
	}
	v.outcomes, v.free = nil, nil
	return s
}

// applySettled forgets visits whose last URL is settled and whose site is free.
func (l *shardLoop) applySettled(group []*visit, batch []frontier.Settlement, settled []frontier.Settled) {
	c, freed := l.crawler, false
	for i, v := range group {
		if slices.Contains(settled[i], false) && l.holds(v) {
			l.leases.Doubt() // or it is a repeat of a call whose reply was lost
			l.notify()
		}
		for j, ok := range settled[i] {
			o := &batch[i].Outcomes[j]
			if ok {
				c.count.CountOutcome(o)
			} else {
				c.count.Gone.Inc()
			}
		}
		v.mu.Lock()
		v.open -= len(batch[i].Outcomes)
		if batch[i].Release != nil {
			v.freed = true
			freed = true
		}
		over := v.open <= 0 && v.freed
		v.mu.Unlock()
		if over {
			l.drop(v)
		}
	}
	if freed {
		l.notify()
	}
}
