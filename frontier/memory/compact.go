package memory

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// logTimes is how many times as large as the last snapshot a journal gets before
// the next takes its place.
const logTimes = 3

// How often the size of journals is looked at, and how long a failure to
// shorten one is left alone.
const (
	lookEvery  = 100 * time.Millisecond
	retryAfter = 10 * time.Second
)

// syncs brings the journals to the disk again and again.
func (d *dir) syncs() {
	every := d.f.cfg.Sync
	if every < 0 {
		return
	}
	t := time.NewTicker(every)
	defer t.Stop()
	told := make([]bool, len(d.f.shards))
	for {
		select {
		case <-d.stop:
			return
		case <-t.C:
		}
		for _, p := range d.f.shards {
			if err := p.log.sync(); err != nil && !told[p.k] {
				d.f.cfg.Logger.Error("memory: what was done lately may not be on the disk", "shard", p.k, "err", err)
				told[p.k] = true
			}
		}
	}
}

// snapshots replaces journals that have grown long.
func (d *dir) snapshots() {
	wait := lookEvery
	t := time.NewTimer(wait)
	defer t.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-t.C:
		}
		wait = lookEvery
		for _, p := range d.f.shards {
			if p.log.isLost() || p.log.length() < max(d.f.cfg.MaxLog, logTimes*p.snapped.Load()) {
				continue
			}
			if err := d.compact(p); err != nil {
				d.f.cfg.Logger.Error("memory: a journal cannot be shortened and grows on", "shard", p.k, "err", err)
				wait = retryAfter
			}
		}
		t.Reset(wait)
	}
}

// compact begins a new journal, writes the state at its start as a snapshot and
// removes what both replace. A crash in between leaves files that say the same.
func (d *dir) compact(p *part) error {
	d.compacting.Lock()
	defer d.compacting.Unlock()
	gen := p.log.gen + 1
	file, salt, size, err := createLog(d.path, p.k, gen)
	if err != nil {
		return err
	}
	p.log.sync() // so that little is left to do under the lock
	p.mu.Lock()
	err = p.log.rotate(file, gen, salt, size)
	var m *image
	if err == nil {
		m = p.capture()
	}
	p.mu.Unlock()
	if err != nil {
		file.Close()
		os.Remove(file.Name())
		return err
	}
	return d.snapshot(p, gen, m)
}

// renew writes all of a shard whose journal is lost to new files: memory is what
// can be trusted. Nobody may change the shard meanwhile.
func (d *dir) renew(p *part) error {
	gen := p.log.gen + 1
	file, salt, size, err := createLog(d.path, p.k, gen)
	if err != nil {
		return err
	}
	p.mu.Lock()
	m := p.capture()
	p.mu.Unlock()
	if err := d.snapshot(p, gen, m); err != nil {
		return errors.Join(err, file.Close())
	}
	p.log.replace(file, gen, salt, size)
	return nil
}

// snapshot writes the state at the start of a journal and removes what came
// before.
func (d *dir) snapshot(p *part, gen uint64, m *image) error {
	path := filepath.Join(d.path, fileName(p.k, kindSnap, gen))
	written, err := p.save(path+".new", header(p.k, kindSnap, gen), m)
	if err != nil {
		os.Remove(path + ".new")
		return err
	}
	p.snapped.Store(written)
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	if err := syncDir(d.path); err != nil {
		return err
	}
	return d.removeBefore(p.k, gen)
}

// removeBefore removes the files of a shard that a snapshot replaces.
func (d *dir) removeBefore(k int, gen uint64) error {
	snaps, logs, err := filesOf(d.path, k)
	for _, g := range snaps {
		if g < gen {
			err = errors.Join(err, os.Remove(filepath.Join(d.path, fileName(k, kindSnap, g))))
		}
	}
	for _, g := range logs {
		if g < gen {
			err = errors.Join(err, os.Remove(filepath.Join(d.path, fileName(k, kindLog, g))))
		}
	}
	return err
}
