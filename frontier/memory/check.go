package memory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"seine/frontier"
	"seine/frontier/canon"
)

// Checked says what the directory of a crawl holds, and what is wrong with it.
type Checked struct {
	Files  []File   `json:"files"`
	Shards []Saved  `json:"shards"`
	Damage []Damage `json:"damage"`
	Faults []string `json:"faults"` // of what the files say, where it contradicts itself; the first 100
	Faulty int64    `json:"faulty"` // all of them
}

// Sound says whether nothing is wrong.
func (c *Checked) Sound() bool { return c.Faulty == 0 && !damaged(c.Damage) }

// damaged says whether any of it is more than a torn end.
func damaged(list []Damage) bool {
	return slices.ContainsFunc(list, func(d Damage) bool { return !d.Torn })
}

// File is one file of a crawl.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Saved counts what a shard holds.
type Saved struct {
	Known   int64 `json:"known"` // URLs and requests for them
	Queued  int64 `json:"queued"`
	Waiting int64 `json:"waiting"`
	Open    int64 `json:"open"` // lent when the process ended; they are queued again
	Done    int64 `json:"done"`
	Dead    int64 `json:"dead"`
}

// Damage is a range of a file that cannot be used.
type Damage struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	What   string `json:"what"`
	Torn   bool   `json:"torn"` // the end of a write that a crash cut off: no fault, the next start drops it
}

func (d Damage) String() string {
	return fmt.Sprintf("%s: %d bytes from %d on: %s", d.File, d.Bytes, d.Offset, d.What)
}

// ErrNoCrawl: the directory holds no crawl.
var ErrNoCrawl = errors.New("memory: no crawl in this directory")

// faultsMost is how many faults a check tells of.
const faultsMost = 100

// Check reads the crawl in cfg.Dir, which nobody may have open, verifies every
// checksum and holds what the files say against the rules of a crawl: each URL
// that is queued, waiting, lent or dead is known, and counters are what there is.
// It changes nothing. Only Dir of cfg is used while the crawl file is whole, else
// Layout and Settings stand in for it. Cost: that of New.
func Check(cfg Config) (*Checked, error) {
	s, err := open(cfg, "check", lockToRead)
	if err != nil {
		return nil, err
	}
	defer s.lock.Close()
	c := &Checked{Files: s.files, Shards: []Saved{}, Faults: []string{}}
	for _, p := range s.f.shards {
		before := len(s.damage)
		if err := s.load(p); err != nil {
			return nil, fmt.Errorf("memory: check: shard %d: %w", p.k, err)
		}
		c.Shards = append(c.Shards, p.saved())
		if s.crawl != nil && !damaged(s.damage[before:]) { // with half of a shard, or another layout, all would contradict
			c.content(p)
		}
	}
	c.Damage = append([]Damage{}, s.damage...)
	return c, nil
}

// salvage is a directory whose files may be damaged, open for reading.
type salvage struct {
	dir    string
	lock   *os.File // nil on a read-only file system; closing that does nothing
	crawl  *crawl   // what the crawl file holds, nil = it is damaged or missing
	files  []File
	damage []Damage
	f      *Frontier // of the crawl, with nothing in it yet
}

// open locks a directory by lock and makes an empty crawl of its layout.
func open(cfg Config, op string, lock func(path string) (*os.File, error)) (*salvage, error) {
	if cfg.Dir == "" {
		return nil, fmt.Errorf("memory: %s: Dir is missing", op)
	}
	s := &salvage{dir: cfg.Dir}
	shards, err := s.list()
	if err == nil && len(s.files) == 0 {
		err = ErrNoCrawl
	}
	if err == nil {
		s.lock, err = lock(filepath.Join(s.dir, lockName))
	}
	if err != nil {
		return nil, fmt.Errorf("memory: %s: %s: %w", op, s.dir, err)
	}
	if err := s.make(cfg, shards); err != nil {
		s.lock.Close()
		return nil, fmt.Errorf("memory: %s: %w", op, err)
	}
	return s, nil
}

// list lists the files of the crawl and counts its shards by their names.
func (s *salvage) list() (shards int, err error) {
	names, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, err
	}
	for _, n := range names {
		k, _, _, ok := parseName(n.Name())
		if !ok && n.Name() != crawlName {
			continue
		}
		shards = max(shards, k+1)
		st, err := n.Info()
		if err != nil {
			return 0, err
		}
		s.files = append(s.files, File{n.Name(), st.Size()})
	}
	return shards, nil
}

// make makes the crawl, of what the crawl file says or, without it, of cfg.
func (s *salvage) make(cfg Config, shards int) (err error) {
	var damage *DamageError
	s.crawl, err = readCrawlFile(s.dir)
	switch {
	case err == nil:
		cfg.Layout, cfg.Settings = s.crawl.Layout, s.crawl.Settings
	case errors.As(err, &damage):
		s.damage = append(s.damage, Damage{File: crawlName, What: damage.What})
	case errors.Is(err, os.ErrNotExist):
		s.damage = append(s.damage, Damage{File: crawlName, What: "the file is missing"})
	default:
		return err
	}
	if s.crawl == nil { // else a stray file could change the layout, and with it where every URL belongs
		cfg.Layout.Shards = max(cfg.Layout.Shards, shards)
	}
	cfg.Dir = ""
	s.f, err = New(cfg)
	return err
}

// load reads what it can of a shard.
func (s *salvage) load(p *part) error {
	j, err := (&loader{p: p, dir: s.dir, salvage: &s.damage}).load()
	if err == nil && j != nil {
		err = j.file.Close()
	}
	return err
}

func (p *part) saved() Saved {
	return Saved{Known: int64(p.known.n), Queued: p.stats.Queued, Waiting: p.stats.Waiting, Open: p.stats.Open, Done: p.stats.Done, Dead: p.stats.Dead}
}

// content holds what was read of a shard against the rules.
func (c *Checked) content(p *part) {
	fault := func(format string, args ...any) {
		if c.Faulty++; len(c.Faults) < faultsMost {
			c.Faults = append(c.Faults, fmt.Sprintf("shard %d: ", p.k)+fmt.Sprintf(format, args...))
		}
	}
	prints := p.printer()
	count := map[string]int64{}
	p.each(func(where, site string, e *frontier.Entry) {
		count[where]++
		switch fp, err := prints(site, e.URL); {
		case err != nil:
			fault("%s, %s: %s is no URL: %v", site, where, frontier.HideCredentials(e.URL), err)
		case !p.known.has(fp):
			fault("%s, %s: %s is not known", site, where, frontier.HideCredentials(e.URL))
		}
	})
	for where, n := range map[string]int64{"queued": p.stats.Queued, "waiting": p.stats.Waiting, "open": p.stats.Open} {
		if count[where] != n {
			fault("counter %s is %d, there are %d", where, n, count[where])
		}
	}
}

// printer makes fingerprints of URLs.
func (p *part) printer() func(site, url string) (canon.Fingerprint, error) {
	parser, u := canon.NewParser(p.f.layout.CanonConfig()), canon.URL{}
	return func(site, url string) (canon.Fingerprint, error) {
		if err := parser.Parse(&u, []byte(url)); err != nil {
			return canon.Fingerprint{}, err
		}
		return canon.FingerprintOf([]byte(site), u.Key()), nil
	}
}

// each calls f with every URL of the shard that is queued, waiting, open or dead.
func (p *part) each(f func(where, site string, e *frontier.Entry)) {
	for _, s := range p.sites {
		for class, q := range s.queues {
			if q != nil {
				q.each(func(rec []byte) {
					e := decodeEntry(rec, s.name, class)
					f("queued", s.name, &e)
				})
			}
		}
		for _, w := range s.waits {
			f("waiting", s.name, &w.entry)
		}
	}
	for _, l := range p.leases {
		for i := range l.entries {
			if l.open[i] {
				f("open", l.site.name, &l.entries[i])
			}
		}
	}
	for _, d := range p.dead {
		for i := range d.list[d.first:] {
			l := &d.list[d.first+i]
			f("dead", l.site, &l.entry)
		}
	}
}
