package memory

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCompactionCut: whatever moment of a compaction is the last, the files say
// what the crawl said then, and after a power cut what the disk was told to keep.
func TestCompactionCut(t *testing.T) {
	f, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, dir := f.shards[0], f.cfg.Dir
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for gen := uint64(2); gen < 4; gen++ { // without an older snapshot, and with one
		admitURLs(t, f, "a.example", int(100*gen))
		lendAll(t, f, 3)
		file, salt, size, err := createLog(dir, 0, gen)
		must(err)
		sameState(t, f) // the new journal is there, and not in use

		must(p.log.rotate(file, gen, salt, size))
		m, before := p.capture(), p.dump()
		sameState(t, f)
		admitURLs(t, f, "b.example", int(100*gen))
		sameState(t, f) // both are in use
		cut := copied(t, dir)
		must(os.Truncate(filepath.Join(cut, fileName(0, kindLog, gen)), size))
		if got := reloadFrom(t, f, cut).shards[0].dump(); got != before {
			t.Errorf("generation %d: after a power cut there is\n%s\nand was\n%s", gen, got, before)
		}

		path := filepath.Join(dir, fileName(0, kindSnap, gen))
		_, err = p.save(path+".new", header(0, kindSnap, gen), m)
		must(err)
		sameState(t, f)
		must(os.Rename(path+".new", path))
		sameState(t, f) // old and new files are there
		must(os.Remove(filepath.Join(dir, fileName(0, kindLog, gen-1))))
		sameState(t, f)
		must(f.dir.removeBefore(0, gen))
		sameState(t, f)
	}
}
