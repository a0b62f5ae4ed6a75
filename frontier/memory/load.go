package memory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"seine/frontier"
)

// loader brings a shard back from its files.
type loader struct {
	p       *part
	dir     string
	salvage *Repaired // set: damage is stepped over and noted
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
		if err := os.Remove(path); err != nil {
			return nil, err
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
	l.salvage.Damage = append(l.salvage.Damage, Damage{File: name, Offset: off, Bytes: size, What: what})
	return nil
}

// snapshot restores snapshot gen.
func (l *loader) snapshot(gen uint64) error {
	name := fileName(l.p.k, kindSnap, gen)
	head := header(l.p.k, kindSnap, gen)
	r, err := openFrames(filepath.Join(l.dir, name), head)
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
	l.p.snapped = r.size
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
	r, err := openFrames(filepath.Join(l.dir, name), head)
	if err != nil {
		return nil, err
	}
	err = l.head(r, name, head)
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
		return l.damaged(name, at, size, "its end is torn")
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

// apply takes one record over; it answers what is wrong with it.
func (l *loader) apply(r *reader) (wrong string) {
	letter := r.byte()
	now := r.int()
	if r.bad {
		return "a record is broken"
	}
	p := l.p
	p.now = max(p.now, now)
	closed := p.peace
	p.peace = false
	switch letter {
	case recAdmit:
		l.admit(r)
	case recVisit:
		wrong = l.visit(r)
	case recSettle:
		token := r.text()
		st := r.settlement(token)
		if found := p.leases[token]; found != nil && !r.bad {
			p.settle(found, st)
		} else if !r.bad {
			wrong = l.unknown(token)
		}
	case recReap:
		token, delay := r.text(), time.Duration(r.int())
		if found := p.leases[token]; found != nil && !r.bad {
			p.reap(found, delay)
		} else if !r.bad {
			wrong = l.unknown(token)
		}
	case recLetter:
		if cause, id, revive := r.text(), r.int(), r.bool(); !r.bad {
			p.exhume(cause, id, revive)
		}
	case recAlter:
		site := r.text()
		if change := r.change(); !r.bad {
			p.alter(strings.Clone(site), &change)
		}
	case recBye:
		p.peace = true
	case recOpen:
		p.recover(!closed, time.Duration(r.int()))
	default:
		return fmt.Sprintf("a record of unknown kind %q", letter)
	}
	if r.bad {
		return "a record is broken"
	}
	return wrong
}

// unknown is what is wrong with a record of a visit that is not there. After
// damage that is to be expected: its URLs are in their queues still.
func (l *loader) unknown(token string) string {
	if l.salvage != nil {
		return ""
	}
	return "a record of visit " + token + ", which does not exist"
}

// admit replays an admission.
func (l *loader) admit(r *reader) {
	p := l.p
	var s *site
	for !r.bad {
		flags := r.byte()
		if flags == 0 {
			break
		}
		if flags&2 != 0 {
			s = p.site(r.text())
		}
		p.known.add(r.fingerprint())
		if flags&4 != 0 {
			p.known.add(r.fingerprint())
		}
		e := r.full()
		if r.bad || s == nil {
			r.bad = true
			return
		}
		p.enqueue(s, &e, flags&8 != 0, flags&16 != 0)
		p.stats.Known++
	}
	p.stats.Admits++
}

// visit replays a visit, which must find the URLs that it found then.
func (l *loader) visit(r *reader) string {
	p := l.p
	name, token, most := r.text(), r.text(), int(r.uint())
	n := r.uint()
	var want []lentURL
	for i := uint64(0); i < n && !r.bad; i++ {
		want = append(want, lentURL{r.byte(), r.hash()})
	}
	if r.bad {
		return ""
	}
	s := p.site(name)
	if s.lent != nil {
		if l.salvage == nil {
			return name + " is lent twice"
		}
		s.lent = nil // its settlement was lost
	}
	lent := p.lend(s, token, most)
	same := lent != nil && len(lent.entries) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = want[i] == lentURL{lent.entries[i].Priority, hash(lent.entries[i].URL)}
	}
	if same {
		return ""
	}
	if l.salvage == nil {
		return "a visit of " + name + " finds other URLs than it found then"
	}
	p.lendThese(s, lent, token, want)
	return ""
}

// lentURL is what a journal knows of a URL that was lent.
type lentURL struct {
	class uint8
	hash  uint32
}

// lendThese is for damaged journals: it takes what a visit got by mistake back
// and lends what it had.
func (p *part) lendThese(s *site, wrong *lease, token string, want []lentURL) {
	if wrong != nil {
		for at := len(wrong.entries) - 1; at >= 0; at-- {
			p.pushFront(s, &wrong.entries[at])
		}
		p.drop(wrong)
	}
	l := &lease{token: token, site: s}
	for _, w := range want {
		e, ok := p.pull(s, w)
		l.entries, l.open = append(l.entries, e), append(l.open, ok)
		if ok {
			l.left++
		}
	}
	s.lent = l
	p.enlist(l)
	p.place(s)
}

// pull takes one URL out of the middle of a list. Cost: O(list).
func (p *part) pull(s *site, w lentURL) (found frontier.Entry, ok bool) {
	q := s.queues[w.class&3]
	if q == nil {
		return found, false
	}
	fresh := &queue{}
	q.each(func(rec []byte) {
		e := decodeEntry(rec, int(w.class&3))
		if !ok && hash(e.URL) == w.hash {
			found, ok = e, true
			return
		}
		p.scratch = fresh.pushBack(&e, p.scratch)
	})
	s.queues[w.class&3] = fresh
	if ok {
		p.popped(s, int(w.class&3))
	}
	return found, ok
}

// recover takes back all that was lent when the process ended. Of a visit that
// did not end in peace the first open URL is marked as lost once more, unless
// its site was free already: there nothing was being fetched.
func (p *part) recover(crashed bool, delay time.Duration) {
	var all []*lease
	for _, l := range p.leases {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *lease) int { return strings.Compare(b.token, a.token) })
	for _, l := range all {
		marks := 0
		if crashed && l.site.lent == l {
			marks = 1
		}
		p.takeBack(l, marks, delay)
	}
}
