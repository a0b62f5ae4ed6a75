package crawl

// doubt empties the cache of known URLs when the shard may have lost what it
// acknowledged: its connection broke or its master changed. Each tick does, for
// links that are all known reach nobody who would notice. It returns the
// connection epoch.
func (l *lane) doubt() uint64 {
	if l.w.cfg.Epoch == nil {
		return 0
	}
	l.trust.Lock()
	defer l.trust.Unlock()
	return l.current()
}

// current is doubt for those who hold trust.
func (l *lane) current() uint64 {
	if e := l.w.cfg.Epoch(l.shard); e != l.epoch {
		l.epoch = e
		l.known.clear()
		l.spill.forget()
	}
	return l.epoch
}

// remember fills the cache with what was answered in an epoch, if it lasts.
func (l *lane) remember(epoch uint64, fill func()) {
	l.trust.Lock()
	defer l.trust.Unlock()
	if l.w.cfg.Epoch == nil || l.current() == epoch {
		fill()
	}
}
