package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Repaired says what a repair found and kept.
type Repaired struct {
	Damage []Damage
	Stats  []Saved // by shard
}

// Saved counts what is left of a shard.
type Saved struct {
	Known   int64 // URLs and requests for them
	Queued  int64
	Waiting int64
}

// Damage is a range of a file that could not be used.
type Damage struct {
	File   string
	Offset int64
	Bytes  int64
	What   string
}

func (d Damage) String() string {
	return fmt.Sprintf("%s: %d bytes from %d on: %s", d.File, d.Bytes, d.Offset, d.What)
}

// damagedName is where a repair puts the files that it replaces.
const damagedName = "damaged"

// Repair saves what it can of the crawl in a directory whose files are damaged,
// which nobody may have open. It steps over what is broken, and takes whatever
// else the files say: a URL whose end was recorded in a damaged part is fetched
// again, one whose admission was is found again where links lead to it. The old
// files are kept under damaged/. Cost: that of New and of a snapshot.
//
// The crawl file itself (layout and settings) cannot be repaired; when it is
// damaged or missing, cfg must say what it held.
func Repair(cfg Config) (*Repaired, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Dir == "" {
		return nil, errors.New("memory: repair: Dir is missing")
	}
	lock, err := lockFile(filepath.Join(cfg.Dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("memory: %s: %w", cfg.Dir, err)
	}
	defer lock.Close()
	dir := cfg.Dir
	found := &Repaired{}
	var damage *DamageError
	c, err := readCrawlFile(dir)
	switch {
	case err == nil:
		cfg.Layout, cfg.Settings = c.Layout, c.Settings
	case errors.As(err, &damage):
		found.Damage = append(found.Damage, Damage{File: crawlName, What: damage.What + "; made anew"})
		c = &crawl{}
	case errors.Is(err, os.ErrNotExist):
		found.Damage = append(found.Damage, Damage{File: crawlName, What: "the file is missing; made anew"})
		c = &crawl{}
	default:
		return nil, fmt.Errorf("memory: repair: %w", err)
	}
	cfg.Dir = ""
	f, err := New(cfg)
	if err != nil {
		return nil, err
	}
	for _, p := range f.shards {
		if err := p.repair(dir, found); err != nil {
			return nil, fmt.Errorf("memory: repair: shard %d: %w", p.k, err)
		}
		found.Stats = append(found.Stats, Saved{Known: int64(p.known.n), Queued: p.stats.Queued, Waiting: p.stats.Waiting})
	}
	c.Format, c.Layout, c.Settings = formatVersion, f.layout, *f.settings.Load()
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	if err := replaceFile(filepath.Join(dir, crawlName), text); err != nil {
		return nil, fmt.Errorf("memory: repair: %w", err)
	}
	return found, nil
}

// repair loads what it can of a shard, writes it as a snapshot and sets the old
// files aside.
func (p *part) repair(dir string, found *Repaired) error {
	j, err := (&loader{p: p, dir: dir, salvage: found}).load()
	if err != nil {
		return err
	}
	if j != nil {
		j.file.Close()
	}
	p.recover(false, p.f.delay())
	snaps, logs, err := filesOf(dir, p.k)
	if err != nil {
		return err
	}
	gen := slices.Max(append(append(snaps, logs...), 0)) + 1
	log, _, _, err := createLog(dir, p.k, gen)
	if err != nil {
		return err
	}
	log.Close()
	path := filepath.Join(dir, fileName(p.k, kindSnap, gen))
	if _, err := p.save(path+".new", header(p.k, kindSnap, gen), p.capture()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	aside := filepath.Join(dir, damagedName)
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	for _, g := range snaps {
		name := fileName(p.k, kindSnap, g)
		err = errors.Join(err, os.Rename(filepath.Join(dir, name), filepath.Join(aside, name)))
	}
	for _, g := range logs {
		name := fileName(p.k, kindLog, g)
		err = errors.Join(err, os.Rename(filepath.Join(dir, name), filepath.Join(aside, name)))
	}
	return errors.Join(err, syncDir(dir))
}
