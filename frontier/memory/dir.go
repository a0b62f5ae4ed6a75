package memory

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"seine/frontier"
)

// The files of a directory beside those of its shards.
const (
	crawlName = "crawl" // layout and settings; its presence says that the crawl was made
	lockName  = "lock"
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

// dir is the directory of a crawl, and what works on it in the background.
type dir struct {
	f      *Frontier
	path   string
	lock   *os.File
	stop   chan struct{}
	work   sync.WaitGroup
	closed sync.Once
	err    error
}

// crawl is what the crawl file holds.
type crawl struct {
	Format   int               `json:"format"`
	Layout   frontier.Layout   `json:"layout"`
	Settings frontier.Settings `json:"settings"`
	Rev      int64             `json:"rev"`
	Paused   []int             `json:"paused,omitempty"`
}

// open opens or makes the directory of a crawl and loads what is in it.
func (f *Frontier) open() (err error) {
	d := &dir{f: f, path: f.cfg.Dir, stop: make(chan struct{})}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if d.lock, err = lockFile(filepath.Join(d.path, lockName)); err != nil {
		return fmt.Errorf("memory: %s: %w", d.path, err)
	}
	defer func() {
		if err != nil {
			d.abandon()
		}
	}()
	f.dir = d
	found, err := d.readCrawl()
	if err != nil {
		return err
	}
	if !found {
		return d.create()
	}
	for _, p := range f.shards {
		if p.log, err = (&loader{p: p, dir: d.path}).load(); err != nil {
			return err
		}
	}
	return d.start()
}

// readCrawl takes the settings over; found is false when no crawl was made yet.
func (d *dir) readCrawl() (found bool, err error) {
	c, err := readCrawlFile(d.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if c.Layout != d.f.layout {
		return false, fmt.Errorf("%w: %s has %+v, this program %+v", frontier.ErrLayout, d.path, c.Layout, d.f.layout)
	}
	c.Settings.Rev = c.Rev
	d.f.settings.Store(&c.Settings)
	for _, k := range c.Paused {
		if k < len(d.f.shards) {
			d.f.shards[k].stats.Paused = true
		}
	}
	return true, nil
}

// readCrawlFile reads the crawl file of a directory.
func readCrawlFile(path string) (*crawl, error) {
	path = filepath.Join(path, crawlName)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	payload, _, size, ok := frameAt(b, 0, 0)
	if !ok || size != len(b) {
		return nil, &DamageError{File: path, What: "its checksum is wrong"}
	}
	c := &crawl{Settings: frontier.DefaultSettings()}
	if err := json.Unmarshal(payload, c); err != nil {
		return nil, &DamageError{File: path, What: err.Error()}
	}
	if c.Format > formatVersion {
		return nil, fmt.Errorf("%w: %s has format %d, this program knows %d", frontier.ErrLayout, path, c.Format, formatVersion)
	}
	return c, nil
}

// create makes the files of a new crawl. A crash before the last of them leaves
// a directory without a crawl.
func (d *dir) create() error {
	for _, p := range d.f.shards {
		file, salt, size, err := createLog(d.path, p.k, 1)
		if err != nil {
			return fmt.Errorf("memory: %w", err)
		}
		p.log = newJournal(file, 1, salt, size, d.f.cfg.Sync < 0)
	}
	if err := d.keep(d.f.settings.Load()); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return d.start()
}

// keep writes the crawl file.
func (d *dir) keep(s *frontier.Settings) error {
	c := crawl{Format: formatVersion, Layout: d.f.layout, Settings: *s, Rev: s.Rev}
	for k, p := range d.f.shards {
		p.mu.Lock()
		if p.stats.Paused {
			c.Paused = append(c.Paused, k)
		}
		p.mu.Unlock()
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(d.path, crawlName), text)
}

// start takes back what was lent when the last process ended, and begins the
// work in the background.
func (d *dir) start() error {
	for _, p := range d.f.shards {
		p.lock()
		if len(p.leases) > 0 {
			p.begin(recOpen)
			p.log.add(binary.AppendVarint(p.rec, int64(d.f.delay())))
			p.recover(!p.peace, d.f.delay())
		}
		if err := p.unlock("open"); err != nil {
			return err
		}
	}
	d.work.Go(d.syncs)
	d.work.Go(d.snapshots)
	return nil
}

// syncs brings the journals to the disk again and again.
func (d *dir) syncs() {
	every := d.f.cfg.Sync
	if every < 0 {
		return
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-t.C:
		}
		for _, p := range d.f.shards {
			if err := p.log.sync(); err != nil {
				d.f.cfg.Logger.Error("memory: what was done lately may not be on the disk", "shard", p.k, "err", err)
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
			if p.log.length() < max(d.f.cfg.MaxLog, logTimes*p.snapped) {
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
	path := filepath.Join(d.path, fileName(p.k, kindSnap, gen))
	if p.snapped, err = p.save(path+".new", header(p.k, kindSnap, gen), m); err != nil {
		os.Remove(path + ".new")
		return err
	}
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

// close ends the work in the background and writes all there is.
func (d *dir) close() error {
	d.closed.Do(func() {
		close(d.stop)
		d.work.Wait()
		d.err = d.closeFiles()
	})
	return d.err
}

func (d *dir) closeFiles() (err error) {
	for _, p := range d.f.shards {
		p.lock()
		p.begin(recBye)
		bye := bytes.Clone(p.rec)
		p.mu.Unlock()
		err = errors.Join(err, p.log.close(bye))
	}
	return errors.Join(err, d.lock.Close())
}

// abandon closes the files of a directory that could not be opened, as they are.
func (d *dir) abandon() {
	for _, p := range d.f.shards {
		if p.log != nil {
			p.log.file.Close()
		}
	}
	d.lock.Close()
}
