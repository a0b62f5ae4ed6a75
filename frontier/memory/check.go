package memory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"seine/frontier"
	"seine/frontier/canon"
)

// Checked says what the directory of a crawl holds, and what is wrong with it.
type Checked struct {
	Files  []File   `json:"files"`
	Shards []Saved  `json:"shards"`
	Faults []string `json:"faults"` // of what the store says, where it contradicts itself; the first 100
	Faulty int64    `json:"faulty"` // all of them
}

// File is one file of a crawl.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Saved counts what a shard holds.
type Saved struct {
	Known    int64 `json:"known"`    // URLs and requests for them
	Contents int64 `json:"contents"` // of pages, each once
	Queued   int64 `json:"queued"`
	Waiting  int64 `json:"waiting"`
	Recrawls int64 `json:"recrawls"`
	Done     int64 `json:"done"`
	Dead     int64 `json:"dead"`
}

// faultsMost is how many faults a check tells of.
const faultsMost = 100

// Check reads all of the crawl in a directory, which nobody may have open,
// verifies every checksum and holds what is there against the rules of a crawl:
// each URL that is queued, waiting or dead is known, and each can be fetched. It changes nothing. The error is a store.DamageError, which names the
// file, when one is not what was written. Cost: that of New.
func Check(path string) (*Checked, error) {
	d := &dir{path: path}
	if _, err := os.Stat(filepath.Join(path, storeName)); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNoCrawl, path)
	}
	if err := d.open(lockToRead); err != nil {
		return nil, err
	}
	c, err := d.check()
	return c, errors.Join(err, d.abandon())
}

func (d *dir) check() (*Checked, error) {
	if d.found == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoCrawl, d.path)
	}
	f, err := New(Config{Layout: d.found.Layout, Settings: d.found.Settings})
	if err != nil {
		return nil, err
	}
	d.f = f
	loaders, err := d.loadShards()
	if err != nil {
		return nil, err
	}
	for _, l := range loaders {
		l.finish()
	}
	// A start also reads the runs, and later rewrites what no shard reads, such as former
	// settings.
	if _, err := d.readRuns(); err != nil {
		return nil, d.named(err)
	}
	if err := d.store.Each(nil, func(_, _ []byte) error { return nil }); err != nil {
		return nil, d.named(err)
	}
	c := &Checked{Shards: []Saved{}, Faults: []string{}}
	if c.Files, err = d.files(); err != nil {
		return nil, err
	}
	for _, p := range f.states {
		c.Shards = append(c.Shards, Saved{Known: int64(p.known.n), Contents: p.contents.n, Queued: p.stats.Queued, Waiting: p.stats.Waiting, Recrawls: p.stats.Recrawls, Done: p.stats.Done, Dead: p.stats.Dead})
		c.content(p)
	}
	return c, nil
}

// files lists the files of the store.
func (d *dir) files() ([]File, error) {
	names, err := os.ReadDir(filepath.Join(d.path, storeName))
	if err != nil {
		return nil, err
	}
	var list []File
	for _, n := range names {
		st, err := n.Info()
		if err != nil {
			return nil, err
		}
		list = append(list, File{filepath.Join(storeName, n.Name()), st.Size()})
	}
	return list, nil
}

// content holds what was read of a shard against the rules.
func (c *Checked) content(p *shardState) {
	fault := func(format string, args ...any) {
		if c.Faulty++; len(c.Faults) < faultsMost {
			c.Faults = append(c.Faults, fmt.Sprintf("shard %d: ", p.k)+fmt.Sprintf(format, args...))
		}
	}
	prints := p.printer()
	p.each(func(where, site string, e *frontier.Entry) {
		switch fp, err := prints(site, e); {
		case err != nil:
			fault("%s, %s: %s is no URL: %v", site, where, frontier.HideCredentials(e.URL), err)
		case !p.known.has(fp):
			fault("%s, %s: %s is not known", site, where, frontier.HideCredentials(e.URL))
		}
	})
}

// printer makes fingerprints of entries.
func (p *shardState) printer() func(site string, e *frontier.Entry) (canon.Fingerprint, error) {
	parser, u := canon.NewParser(p.f.layout.CanonConfig()), canon.URL{}
	return func(site string, e *frontier.Entry) (canon.Fingerprint, error) {
		if err := parser.Parse(&u, []byte(e.URL)); err != nil {
			return canon.Fingerprint{}, err
		}
		return e.Request.Fingerprint(canon.FingerprintOf([]byte(site), u.Key())), nil
	}
}

// each calls f with every URL of the shard that is queued, waiting, to be fetched
// again or dead.
func (p *shardState) each(f func(where, site string, e *frontier.Entry)) {
	for _, s := range p.sites {
		for _, q := range s.queues {
			if q != nil {
				q.each(func(rec []byte) {
					_, rec = numberOf(rec)
					e := decodeEntry(rec, s.name)
					f("queued", s.name, &e)
				})
			}
		}
		for _, w := range s.waits {
			f("waiting", s.name, &w.entry)
		}
		if s.recrawl == nil {
			continue
		}
		for _, a := range s.recrawl.due {
			e := decodeEntry(a.entry, s.name)
			f("to be recrawled", s.name, &e)
		}
	}
	for _, d := range p.dead {
		for i := range d.list[d.first:] {
			l := &d.list[d.first+i]
			f("dead", l.site, &l.entry)
		}
	}
}
