package crawl

import "seine/frontier/canon"

// checkEpoch looks at the connection epoch of the shard, which rises when the shard
// may have lost what it acknowledged: its connection broke or its master changed.
// Each tick does, for links that are all known reach nobody who would notice. It
// returns the epoch.
func (l *shardLoop) checkEpoch() uint64 {
	if l.crawler.cfg.Epoch == nil {
		return 0
	}
	e := l.crawler.cfg.Epoch(l.shard)
	for { // epochs only rise, whoever is late
		last := l.epoch.Load()
		if e <= last || l.epoch.CompareAndSwap(last, e) {
			return max(e, last)
		}
	}
}

// knows reports whether the shard is known to have f.
func (l *shardLoop) knows(f canon.Fingerprint) bool { return l.crawler.known.Has(f, l.epoch.Load()) }

// knows is shardLoop.knows of the shard of f.
func (c *Crawler) knows(f canon.Fingerprint) bool { return c.loopOf(f).knows(f) }
