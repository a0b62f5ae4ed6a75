package memory

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"seine/frontier"
)

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
		e := decodeEntry(rec, s.name, int(w.class&3))
		if !ok && hash(e.URL) == w.hash {
			found, ok = e, true
			return
		}
		p.scratch = fresh.pushBack(s.name, &e, p.scratch)
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
