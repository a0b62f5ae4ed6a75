package memory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// loader brings a shard back from its files.
type loader struct {
	p       *part
	dir     string
	salvage *[]Damage // set: damage is stepped over and noted, and files stay as they are
}

// load reads the newest snapshot and the journals since, and returns the
// journal to go on with. What a crash left half written at the end is cut off.
func (l *loader) load() (*journal, error) {
	snaps, logs, err := filesOf(l.dir, l.p.k)
	if err != nil {
		return nil, err
	}
	base := uint64(1)
	if len(snaps) > 0 {
		base = snaps[len(snaps)-1]
		if err := l.snapshot(base); err != nil {
			return nil, err
		}
	}
	logs = slices.DeleteFunc(logs, func(gen uint64) bool { return gen < base })
	if logs, err = l.dropEmpty(logs); err != nil {
		return nil, err
	}
	for i, want := 0, base; i == 0 || i < len(logs); i, want = i+1, want+1 {
		if i < len(logs) && logs[i] == want {
			continue
		}
		if err := l.damaged(fileName(l.p.k, kindLog, want), 0, 0, "the file is missing"); err != nil {
			return nil, err
		}
		break
	}
	var last *frameReader
	for i, gen := range logs {
		if last, err = l.replay(gen, i == len(logs)-1); err != nil {
			return nil, err
		}
		if i < len(logs)-1 {
			last.f.Close()
		}
	}
	for _, s := range l.p.sites {
		l.p.place(s)
	}
	if last == nil {
		return nil, nil // salvaged from a snapshot alone
	}
	// A killed process leaves what its kernel still has to write. The marks of the
	// frames to come say that the disk has it.
	if l.salvage == nil {
		if err := last.f.Sync(); err != nil {
			last.f.Close()
			return nil, fmt.Errorf("memory: %w", err)
		}
	}
	return newJournal(last.f, logs[len(logs)-1], last.salt, last.off, l.p.f.cfg.Sync < 0), nil
}

// dropEmpty removes journals at the end that hold nothing yet: a crash came
// between their making and their use, and the one before is the last.
func (l *loader) dropEmpty(logs []uint64) ([]uint64, error) {
	for len(logs) > 1 {
		gen := logs[len(logs)-1]
		path := filepath.Join(l.dir, fileName(l.p.k, kindLog, gen))
		st, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if st.Size() > int64(frameHeader+len(header(l.p.k, kindLog, gen))) {
			break
		}
		if l.salvage == nil {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
		logs = logs[:len(logs)-1]
	}
	return logs, nil
}

// damaged is the error of a damaged file, or nil when it is stepped over.
func (l *loader) damaged(name string, off, size int64, what string) error {
	if l.salvage == nil {
		return &DamageError{File: filepath.Join(l.dir, name), Offset: off, What: what}
	}
	*l.salvage = append(*l.salvage, Damage{File: name, Offset: off, Bytes: size, What: what})
	return nil
}

// snapshot restores snapshot gen.
func (l *loader) snapshot(gen uint64) error {
	name := fileName(l.p.k, kindSnap, gen)
	head := header(l.p.k, kindSnap, gen)
	r, err := openFrames(filepath.Join(l.dir, name), head, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer r.f.Close()
	if err := l.head(r, name, head); err != nil {
		return err
	}
	ended := false
	for r.off < r.size {
		at := r.off
		payload, ok, err := r.next()
		if err != nil {
			return err
		}
		if !ok {
			if err := l.step(r, name, "a frame is broken"); err != nil {
				return err
			}
			continue
		}
		for rest := (reader{b: payload}); len(rest.b) > 0; {
			if rest.b[0] == snapEnd {
				ended = true
				break
			}
			if !l.p.restore(&rest) {
				if err := l.damaged(name, at, r.off-at, "a record is broken"); err != nil {
					return err
				}
				break
			}
		}
	}
	l.p.snapped.Store(r.size)
	if !ended {
		return l.damaged(name, r.size, 0, "its end is missing")
	}
	return nil
}

// head checks the first frame of a file.
func (l *loader) head(r *frameReader, name string, want []byte) error {
	payload, ok, err := r.next()
	if err != nil {
		return err
	}
	if ok && !bytes.Equal(payload, want) {
		return l.damaged(name, 0, 0, fmt.Sprintf("it says %q, not %q", payload, want))
	}
	return nil // a broken frame is met again by who reads on
}

// step steps over damage: it moves r to the next frame that is whole.
func (l *loader) step(r *frameReader, name, what string) error {
	at := r.off
	if _, err := r.seek(); err != nil {
		return err
	}
	return l.damaged(name, at, r.off-at, what)
}

// replay takes the changes of journal gen over.
func (l *loader) replay(gen uint64, last bool) (*frameReader, error) {
	name := fileName(l.p.k, kindLog, gen)
	head := header(l.p.k, kindLog, gen)
	flag := os.O_RDWR
	if l.salvage != nil {
		flag = os.O_RDONLY
	}
	r, err := openFrames(filepath.Join(l.dir, name), head, flag)
	if err != nil {
		return nil, err
	}
	err = l.head(r, name, head)
	if err == nil && r.size == 0 { // its head was synced before it was used
		err = l.damaged(name, 0, 0, "the file is empty")
	}
	for err == nil && r.off < r.size {
		at := r.off
		payload, ok, e := r.next()
		if err = e; err != nil {
			break
		}
		if !ok {
			err = l.broken(r, name, last)
			continue
		}
		rest := reader{b: payload}
		for len(rest.b) > 0 {
			if what := l.apply(&rest); what != "" {
				err = l.damaged(name, at, r.off-at, what)
				break
			}
		}
	}
	if err != nil {
		r.f.Close()
		return nil, err
	}
	return r, nil
}

// broken deals with a frame of a journal that is none: the torn end of the last
// one is cut off, all else is damage. An end is torn when no later frame says
// that the disk had it.
func (l *loader) broken(r *frameReader, name string, last bool) error {
	at := r.off
	last = last && at > 0 // the first frame was synced before the file was used
	for last {
		synced, err := r.seek()
		if err != nil {
			return err
		}
		if r.off == r.size {
			break
		}
		if synced > at {
			last = false
		}
	}
	r.off = at
	if !last {
		return l.step(r, name, "a frame is broken, and later ones are not")
	}
	if l.salvage != nil {
		size := r.size - at
		r.size = at
		*l.salvage = append(*l.salvage, Damage{File: name, Offset: at, Bytes: size, What: "its end is torn", Torn: true})
		return nil
	}
	if r.size > at {
		l.p.f.cfg.Logger.Warn("memory: cut the torn end of a journal", "file", name, "offset", at, "bytes", r.size-at)
	}
	if err := r.f.Truncate(at); err != nil {
		return err
	}
	r.size = at
	return nil
}
