package memory

import (
	"context"
	"os"
	"testing"
	"time"

	"seine/frontier"
)

// swapFile gives a journal another file and returns the one it had.
func (j *journal) swapFile(file *os.File) *os.File {
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.file
	j.file = file
	return was
}

// TestSyncFails: after a sync that failed no later one is believed, whoever it
// was that asked for it. Nothing more is acknowledged, and Close writes what
// memory holds to new files, whatever became of the old ones.
func TestSyncFails(t *testing.T) {
	for name, test := range map[string]struct {
		sync time.Duration
		meet func(f *Frontier) error // the sync that fails
	}{
		"in the background": {time.Hour, func(f *Frontier) error { return f.shards[0].log.sync() }},
		"of a call":         {-1, func(f *Frontier) error { return admitOne(f, "b.example") }},
		"of a rotation":     {time.Hour, func(f *Frontier) error { return f.dir.compact(f.shards[0]) }},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := New(Config{Dir: t.TempDir(), Sync: test.sync})
			if err != nil {
				t.Fatal(err)
			}
			admitURLs(t, f, "a.example", 3)
			lendAll(t, f, 1)
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) // takes all, and cannot be synced
			if err != nil {
				t.Fatal(err)
			}
			j := f.shards[0].log
			good := j.swapFile(null)
			if err := test.meet(f); err == nil {
				t.Fatal("the sync succeeded")
			}
			j.swapFile(good).Close()
			if err := f.dir.compact(f.shards[0]); err == nil {
				t.Error("a journal that is lost goes on in another file")
			}
			if err := admitOne(f, "c.example"); err == nil {
				t.Error("a call is acknowledged by a journal that is lost")
			}
			if err := good.Truncate(0); err != nil { // the disk never got it
				t.Fatal(err)
			}
			want := f.shards[0].stats
			g := reopened(t, f, false)
			got := g.shards[0].stats
			want.Queued, want.Open, want.Lost, got.Lost = want.Queued+want.Open, 0, 0, 0 // what was lent is back
			if got != want {
				t.Errorf("opened with %+v, want %+v", got, want)
			}
			if err := admitOne(g, "d.example"); err != nil {
				t.Errorf("the new journal: %v", err)
			}
			sameState(t, g)
		})
	}
}

func admitOne(f *Frontier, site string) error {
	return f.Admit(context.Background(), 0, []frontier.Candidate{candidate(site, 1)}, make([]frontier.Verdict, 1))
}
