package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"seine/frontier"
	"seine/frontier/memory/store"
)

// The files of a directory.
const (
	lockName  = "lock"
	storeName = "store" // a directory
)

// formatVersion is the version of all that is in the store.
const formatVersion = 1

// The errors of a crawl on disk that callers branch on.
var (
	// ErrInUse: another process has the directory open.
	ErrInUse = errors.New("memory: the directory is in use by another process")
	// ErrSilent: the process that has the directory open does not answer.
	ErrSilent = errors.New("memory: the fetcher of this crawl does not answer")
	// ErrNoCrawl: the directory holds no crawl.
	ErrNoCrawl = fmt.Errorf("%w in this directory", frontier.ErrNoCrawl)
	// ErrClosed: the crawl was closed.
	ErrClosed = store.ErrClosed

	errUnreadable = errors.New("it is not what this program writes")
)

// dir is the directory of a crawl.
type dir struct {
	f     *Frontier
	path  string
	lock  *os.File // nil on a read-only file system
	store *store.Store
	found *crawl // what was there, nil = nothing

	closed sync.Once
	err    error
}

// crawlKey is where the crawl itself stands.
var crawlKey = []byte("C")

// runsKey is where the runs on record stand.
var runsKey = []byte("R")

// keepRuns stores the runs on record, with what is written next.
func (d *dir) keepRuns(runs []frontier.Member) {
	text, err := json.Marshal(runs)
	if err != nil {
		return // of texts and numbers it cannot fail
	}
	b := d.store.NewBatch()
	b.Set(runsKey, text)
	d.store.Add(b)
}

// readRuns reads them; nil where none are stored.
func (d *dir) readRuns() (runs []frontier.Member, err error) {
	text, err := d.store.Get(runsKey)
	if err != nil || text == nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &runs); err != nil {
		return nil, fmt.Errorf("the runs on record cannot be read: %w", err)
	}
	return runs, nil
}

// crawl is what is there.
type crawl struct {
	Format   int               `json:"format"`
	Layout   frontier.Layout   `json:"layout"`
	Settings frontier.Settings `json:"settings"`
	Rev      int64             `json:"rev"`
	Began    time.Time         `json:"began"`
	Paused   []int             `json:"paused,omitempty"`
	Closed   bool              `json:"closed"` // nothing is suspect
}

// openDir makes a directory when it is missing, locks it and reads what it is. A
// store that is there is opened for reading first: what is damaged stays as it is.
func openDir(cfg Config) (*dir, error) {
	d := &dir{path: cfg.Dir}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return d, d.open(lockFile)
}

// open locks the directory by lock and opens the store in it for reading, if it
// has one.
func (d *dir) open(lock func(path string) (*os.File, error)) (err error) {
	if d.lock, err = lock(filepath.Join(d.path, lockName)); err != nil {
		return fmt.Errorf("memory: %s: %w", d.path, err)
	}
	if !d.made() {
		return nil
	}
	if d.store, err = store.Open(store.Config{Dir: filepath.Join(d.path, storeName), ReadOnly: true}); err == nil {
		d.found, err = d.read()
	}
	if err != nil {
		return errors.Join(d.named(err), d.abandon())
	}
	return nil
}

// HasCrawl reports whether a directory holds a crawl.
func HasCrawl(path string) bool { return (&dir{path: path}).made() }

// made reports whether there is a store: its last file to be made says so.
func (d *dir) made() bool {
	names, _ := filepath.Glob(filepath.Join(d.path, storeName, "marker.manifest.*"))
	return len(names) > 0
}

// begin opens the store for writing.
func (d *dir) begin(cfg Config) (err error) {
	if d.store != nil {
		if err := d.store.Close(); err != nil {
			return d.named(err)
		}
	}
	d.store, err = store.Open(store.Config{Dir: filepath.Join(d.path, storeName), Sync: cfg.Sync, Logger: cfg.Logger, MemTable: cfg.memTable})
	return d.named(err)
}

// named says what to do about damage.
func (d *dir) named(err error) error {
	if err == nil {
		return nil
	}
	var damage *store.DamageError
	if errors.As(err, &damage) && damage.Do != "" {
		return fmt.Errorf("memory: %w; %s", damage, damage.Do)
	}
	if errors.As(err, &damage) {
		return fmt.Errorf("memory: %w; put a copy of the whole of %s back, or give another directory to begin anew", damage, d.path)
	}
	return fmt.Errorf("memory: %s: %w", d.path, err)
}

// read reads what the crawl is, nil when there is none.
func (d *dir) read() (*crawl, error) {
	text, err := d.store.Get(crawlKey)
	if err != nil || text == nil {
		return nil, err
	}
	c := &crawl{Settings: frontier.DefaultSettings()}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("its settings cannot be read: %w", err)
	}
	c.Settings.Rev = c.Rev
	if c.Format != formatVersion {
		return nil, fmt.Errorf("%w: it has format %d, this program knows %d", frontier.ErrLayout, c.Format, formatVersion)
	}
	return c, nil
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

// load brings back what the store has, or makes a crawl in it.
func (d *dir) load(f *Frontier) error {
	d.f = f
	var loaders []*loader
	if d.found != nil {
		var err error
		if loaders, err = d.loadShards(); err != nil {
			return err
		}
		if f.runs, err = d.readRuns(); err != nil {
			return d.named(err)
		}
	}
	if err := d.begin(f.cfg); err != nil {
		return err
	}
	for _, p := range f.states {
		p.tx = d.store.NewBatch()
	}
	for _, l := range loaders {
		l.finish()
	}
	if err := d.keep(atOnce(), f.settings.Load(), false); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	for _, p := range f.states {
		p.lock()
		if err := p.unlock(atOnce(), "open"); err != nil {
			return err
		}
	}
	return nil
}

// loadShards reads all shards.
func (d *dir) loadShards() (list []*loader, err error) {
	for _, k := range d.found.Paused {
		if k < len(d.f.states) {
			d.f.states[k].stats.Paused = true
		}
	}
	for _, p := range d.f.states {
		l := &loader{shardState: p, store: d.store, crashed: !d.found.Closed}
		if err := l.load(); err != nil {
			return nil, d.named(err)
		}
		list = append(list, l)
	}
	return list, nil
}

// keep stores what the crawl is, on the disk; it waits for a full one until ctx ends.
func (d *dir) keep(ctx context.Context, s *frontier.Settings, closed bool) error {
	c := crawl{Format: formatVersion, Layout: d.f.layout, Settings: *s, Rev: s.Rev, Closed: closed, Began: d.f.began}
	for k, p := range d.f.states {
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
	b := d.store.NewBatch()
	b.Set(crawlKey, text)
	if err := d.store.Await(ctx, d.store.Add(b)); err != nil {
		return err
	}
	return d.store.Sync()
}

// atOnce is over: a full disk is not waited for.
func atOnce() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// close stores what is not stored yet, and that the crawl was closed.
func (d *dir) close() error {
	d.closed.Do(func() {
		for _, p := range d.f.states {
			p.lock()
			p.flush()
			p.mu.Unlock()
		}
		d.err = d.keep(atOnce(), d.f.settings.Load(), true)
		d.err = errors.Join(d.err, d.abandon())
	})
	return d.err
}

// abandon closes the files of a directory as they are.
func (d *dir) abandon() error {
	var err error
	if d.store != nil {
		err = d.store.Close()
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return err
}
