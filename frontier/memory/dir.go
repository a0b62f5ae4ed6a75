package memory

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"seine/frontier"
)

// The files of a directory beside those of its shards.
const (
	crawlName = "crawl" // layout and settings; its presence says that the crawl was made
	lockName  = "lock"
)

// dir is the directory of a crawl, and what works on it in the background.
type dir struct {
	f     *Frontier
	path  string
	found *crawl // what was there, nil = nothing
	lock  *os.File
	stop  chan struct{}
	work  sync.WaitGroup

	compacting sync.Mutex

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

// openDir makes a directory when it is missing, locks it and reads what it is.
func openDir(path string) (*dir, error) {
	d := &dir{path: path, stop: make(chan struct{})}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	var err error
	if d.lock, err = lockFile(filepath.Join(path, lockName)); err != nil {
		return nil, fmt.Errorf("memory: %s: %w", path, err)
	}
	d.found, err = readCrawlFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.lock.Close()
		return nil, err
	}
	return d, nil
}

// check compares a crawl with what this program is and wants; zero fields of
// want are not compared.
func (c *crawl) check(want frontier.Layout) error {
	own := frontier.Layout{Shards: 1}.Complete()
	want.Format, want.Canon, want.Suffixes = own.Format, own.Canon, own.Suffixes
	if err := c.Layout.Check(want); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if want.OtherSuffixes {
		c.Layout.Suffixes = want.Suffixes
	}
	return nil
}

// load brings back what the directory holds, or makes a crawl in it.
func (d *dir) load(f *Frontier) (err error) {
	d.f = f
	if d.found == nil {
		return d.create()
	}
	for _, k := range d.found.Paused {
		if k < len(f.shards) {
			f.shards[k].stats.Paused = true
		}
	}
	for _, p := range f.shards {
		if p.log, err = (&loader{p: p, dir: d.path}).load(); err != nil {
			return err
		}
	}
	if err := d.keep(f.settings.Load()); err != nil { // an overridden suffix list is recorded
		return fmt.Errorf("memory: %w", err)
	}
	return d.start()
}

// readCrawlFile reads the crawl file of a directory.
func readCrawlFile(path string) (*crawl, error) {
	path = filepath.Join(path, crawlName)
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // reading a pipe would never end
		return nil, &DamageError{File: path, What: "it is no regular file"}
	}
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
	c.Settings.Rev = c.Rev
	if c.Format > formatVersion {
		return nil, fmt.Errorf("%w: %s has format %d, this program knows %d", frontier.ErrLayout, path, c.Format, formatVersion)
	}
	return c, nil
}

// create makes the files of a new crawl. A crash before the last of them leaves
// a directory without a crawl.
func (d *dir) create() error {
	if err := d.unused(); err != nil {
		return err
	}
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

// unused fails when files of shards hold something although the crawl file is
// missing.
func (d *dir) unused() error {
	names, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	for _, n := range names {
		k, kind, gen, ok := parseName(n.Name())
		if !ok {
			continue
		}
		st, err := n.Info()
		if err != nil {
			return fmt.Errorf("memory: %w", err)
		}
		if st.Size() > int64(frameHeader+len(header(k, kind, gen))) {
			return &DamageError{File: filepath.Join(d.path, crawlName), What: "the file is missing, but " + n.Name() + " is there"}
		}
	}
	return nil
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
	if err := d.tidy(); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
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

// tidy removes snapshots that a crash left half written.
func (d *dir) tidy() error {
	names, err := os.ReadDir(d.path)
	for _, n := range names {
		whole, half := strings.CutSuffix(n.Name(), ".new")
		if _, _, _, ok := parseName(whole); ok && half {
			err = errors.Join(err, os.Remove(filepath.Join(d.path, n.Name())))
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
		if p.log.isLost() {
			if e := d.renew(p); e != nil {
				err = errors.Join(err, fmt.Errorf("memory: shard %d: its journal is lost, and cannot be written anew: %w", p.k, e))
			}
		}
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
	if d.f != nil {
		for _, p := range d.f.shards {
			if p.log != nil {
				p.log.file.Close()
			}
		}
	}
	d.lock.Close()
}
