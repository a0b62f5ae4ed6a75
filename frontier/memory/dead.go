package memory

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"seine/frontier"
)

// deadList is the dead letters of one cause, the oldest first.
type deadList struct {
	first int // dead letters before it were dropped or taken
	list  []deadEntry
}

type deadEntry struct {
	id    int64
	site  string
	text  string
	entry frontier.Entry
}

// deadLetter adds a dead letter and drops the oldest beyond the bound.
func (p *shardState) deadLetter(site, cause, text string, e frontier.Entry) {
	d := p.dead[cause]
	if d == nil {
		d = &deadList{}
		p.dead[strings.Clone(cause)] = d
	}
	p.stats.Dead++
	d.list = append(d.list, deadEntry{id: p.stats.Dead, site: site, text: text, entry: e})
	p.keepDeadEntry(cause, &d.list[len(d.list)-1])
	for d.len() > p.f.cfg.MaxDead {
		p.dropDeadEntry(cause, d.list[d.first].id)
		d.dropOldest()
		p.stats.Dropped++
	}
}

func (d *deadList) len() int { return len(d.list) - d.first }

// dropOldest takes the first dead letter out without moving the others, but for now
// and then.
func (d *deadList) dropOldest() {
	d.list[d.first] = deadEntry{}
	d.first++
	if d.len() == 0 || d.first > 1024 && d.first > len(d.list)/2 {
		d.list = append([]deadEntry(nil), d.list[d.first:]...)
		d.first = 0
	}
}

// find returns the place of the dead letter with this id.
func (d *deadList) find(id int64) (int, bool) {
	at, ok := slices.BinarySearchFunc(d.list[d.first:], id, func(l deadEntry, id int64) int { return cmp.Compare(l.id, id) })
	return d.first + at, ok
}

// DeadLetters returns count dead letters of a cause from offset on, the oldest
// first.
func (f *Frontier) DeadLetters(ctx context.Context, k int, cause string, offset, count int64) ([]frontier.DeadLetter, error) {
	p, err := f.shard(ctx, k, "dead letters")
	if err != nil {
		return nil, err
	}
	p.lock()
	defer p.mu.Unlock()
	d := p.dead[cause]
	if d == nil || offset < 0 || offset >= int64(d.len()) || count <= 0 {
		return nil, nil
	}
	list := d.list[d.first:][offset:]
	list = list[:min(int64(len(list)), count)]
	out := make([]frontier.DeadLetter, len(list))
	for i, l := range list {
		out[i] = frontier.DeadLetter{Entry: l.entry, Site: l.site, Cause: cause, Text: l.text, Raw: strconv.FormatInt(l.id, 10)}
	}
	return out, nil
}

// DeadCounts is the number of dead letters by cause.
func (f *Frontier) DeadCounts(ctx context.Context, k int) (map[string]int64, error) {
	p, err := f.shard(ctx, k, "dead counts")
	if err != nil {
		return nil, err
	}
	p.lock()
	defer p.mu.Unlock()
	out := make(map[string]int64)
	for cause, d := range p.dead {
		if n := d.len(); n > 0 {
			out[cause] = int64(n)
		}
	}
	return out, nil
}

// RetryDead puts dead letters back at the end of their queues, as if they had
// never failed, and returns how many went. Those of blocked sites stay.
func (f *Frontier) RetryDead(ctx context.Context, k int, dead []frontier.DeadLetter) (int, error) {
	return f.takeDead(ctx, k, "retry", dead)
}

// DropDead forgets dead letters and returns how many were still there.
func (f *Frontier) DropDead(ctx context.Context, k int, dead []frontier.DeadLetter) (int, error) {
	return f.takeDead(ctx, k, "drop dead", dead)
}

// takeDead takes dead letters out and queues them or not.
func (f *Frontier) takeDead(ctx context.Context, k int, op string, dead []frontier.DeadLetter) (int, error) {
	p, err := f.shard(ctx, k, op)
	if err != nil {
		return 0, err
	}
	p.lock()
	n := 0
	for i := range dead {
		id, err := strconv.ParseInt(dead[i].Raw, 10, 64)
		if err == nil && p.retryDead(dead[i].Cause, id, op == "retry") {
			n++
		}
	}
	return n, p.unlock(ctx, op)
}

// retryDead takes one dead letter out; false when it is not there or stays.
func (p *shardState) retryDead(cause string, id int64, retry bool) bool {
	d := p.dead[cause]
	if d == nil {
		return false
	}
	at, ok := d.find(id)
	if !ok {
		return false
	}
	l := d.list[at]
	if retry {
		s := p.site(l.site)
		if s.blocked {
			return false
		}
		l.entry.Lost, l.entry.Attempts = 0, 0
		p.pushBack(s, &l.entry)
		p.stats.RetriedDead++
		p.stats.Admits++
		p.place(s)
	} else {
		p.stats.Forgotten++
		s := p.site(l.site)
		p.dropped(s, frontier.DropDead)
		p.changed(s)
		if s.place == nowhere || s.place == inIdle { // it may be new, and it is not forgotten
			p.place(s)
		}
	}
	p.dropDeadEntry(cause, id)
	if at == d.first {
		d.dropOldest()
	} else {
		d.list = slices.Delete(d.list, at, at+1)
	}
	return true
}
