package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"seine/frontier"
)

// Repaired says what a repair found and kept.
type Repaired struct {
	Damage []Damage `json:"damage"`
	Shards []Saved  `json:"shards"` // what is left
	Again  int64    `json:"again"`  // URLs with work left that were not known any more, and are again
	Aside  string   `json:"aside"`  // where the old files are
}

// damagedName is where a repair puts the files that it replaces.
const damagedName = "damaged"

// ErrCrawlFile: the crawl file cannot be read, so the configuration must say
// what it held.
var ErrCrawlFile = errors.New("memory: the crawl file, with layout and settings, cannot be read")

// Repair saves what it can of the crawl in a directory whose files are damaged,
// which nobody may have open. It steps over what is broken, and takes whatever
// else the files say: a URL whose end was recorded in a damaged part is fetched
// again, one whose admission was is found again where links lead to it. The old
// files are kept under damaged/. Cost: that of New and of a snapshot.
//
// The crawl file itself (layout and settings) cannot be repaired; when it is
// damaged or missing, cfg must say what it held, its Layout.LimitBy at least,
// else the error is ErrCrawlFile.
func Repair(cfg Config) (*Repaired, error) {
	s, err := open(cfg, "repair", lockFile)
	if err != nil {
		return nil, err
	}
	defer s.lock.Close()
	if s.crawl == nil && cfg.Layout.LimitBy == "" {
		return nil, fmt.Errorf("%w: %s", ErrCrawlFile, filepath.Join(s.dir, crawlName))
	}
	done := &Repaired{Shards: []Saved{}, Aside: filepath.Join(s.dir, damagedName)}
	if err := os.MkdirAll(done.Aside, 0o700); err != nil {
		return nil, fmt.Errorf("memory: repair: %w", err)
	}
	for _, p := range s.f.shards {
		if err := s.repair(p, done); err != nil {
			return nil, fmt.Errorf("memory: repair: shard %d: %w", p.k, err)
		}
		done.Shards = append(done.Shards, p.saved())
	}
	done.Damage = append([]Damage{}, s.damage...)
	if err := s.keepCrawl(done.Aside); err != nil {
		return nil, fmt.Errorf("memory: repair: %w", err)
	}
	return done, nil
}

// keepCrawl writes the crawl file, and keeps one that is damaged.
func (s *salvage) keepCrawl(aside string) error {
	path, c := filepath.Join(s.dir, crawlName), s.crawl
	if c == nil {
		c = &crawl{}
		if err := os.Rename(path, filepath.Join(aside, crawlName)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	c.Format, c.Layout, c.Settings = formatVersion, s.f.layout, *s.f.settings.Load()
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return replaceFile(path, text)
}

// repair loads what it can of a shard, writes it as a snapshot and sets the old
// files aside.
func (s *salvage) repair(p *part, done *Repaired) error {
	if err := s.load(p); err != nil {
		return err
	}
	p.recover(false, p.f.delay())
	done.Again += p.knowAgain()
	snaps, logs, err := filesOf(s.dir, p.k)
	if err != nil {
		return err
	}
	gen := slices.Max(append(append(snaps, logs...), 0)) + 1
	log, _, _, err := createLog(s.dir, p.k, gen)
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return err
	}
	path := filepath.Join(s.dir, fileName(p.k, kindSnap, gen))
	if _, err := p.save(path+".new", header(p.k, kindSnap, gen), p.capture()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	if err := syncDir(s.dir); err != nil { // the new file stands before the old ones go
		return err
	}
	for _, g := range snaps {
		err = errors.Join(err, s.setAside(fileName(p.k, kindSnap, g), done.Aside))
	}
	for _, g := range logs {
		err = errors.Join(err, s.setAside(fileName(p.k, kindLog, g), done.Aside))
	}
	return errors.Join(err, syncDir(s.dir), syncDir(done.Aside))
}

func (s *salvage) setAside(name, aside string) error {
	return os.Rename(filepath.Join(s.dir, name), filepath.Join(aside, name))
}

// knowAgain makes URLs with work left known whose fingerprints were in a
// damaged part; they would be queued twice else.
func (p *part) knowAgain() (n int64) {
	prints := p.printer()
	p.each(func(_, site string, e *frontier.Entry) {
		if fp, err := prints(site, e.URL); err == nil && p.known.add(fp) {
			n++
		}
	})
	return n
}
