package memory

import (
	"encoding/binary"

	"seine/frontier"
	"seine/frontier/canon"
)

// What a shard keeps in the store. A key is a letter, the shard in two bytes, and
// what it names; each change of the shard in memory puts its own keys into p.tx,
// and the end of the call adds all of them as one batch.
//
// A URL that is leased stays where it stood in the store until it is settled: a
// process that ends leaves its queues as they were, with all that was leased at
// their front. The record of a leased site says what it was leased with, so that the
// next process knows what may have ended this one.
const (
	keyCounters = 'c' // -> time and counters
	keySite     = 's' // site -> its clock and state, and what it is leased with
	keyKnown    = 'k' // fingerprint -> nothing
	keyContent  = 'b' // digest, and the same of digest and URL -> nothing
	keyEntry    = 'q' // site, 0, class, number -> entry; numbers are the order of a list
	keyRetry    = 'w' // site, 0, number -> due time, entry
	keyRecrawl  = 'a' // site, 0, what it is known by -> due time, entry
	keyCounter  = 't' // name of a count -> its value
	keySeed     = 'f' // a seed -> what became of it
	keyDead     = 'd' // cause, 0, number -> site, text, entry
)

// position names an entry in the store: its list is that of the site.
type position struct {
	class uint8
	seq   int64
}

// newKey begins a key. It is valid until the next one begins.
func (p *shardState) newKey(kind byte) []byte {
	p.key = append(p.key[:0], kind, byte(p.k>>8), byte(p.k))
	return p.key
}

// numbered is a key of a name, some bytes and a number whose order it keeps.
func (p *shardState) numbered(kind byte, name string, seq int64, class ...byte) []byte {
	k := append(append(p.newKey(kind), name...), 0)
	k = append(k, class...)
	p.key = binary.BigEndian.AppendUint64(k, uint64(seq)^1<<63)
	return p.key
}

// parseNumbered is the reverse: class is the number of bytes between.
func parseNumbered(key []byte, class int) (name string, between []byte, seq int64, ok bool) {
	at := len(key) - 8 - class
	if at < 4 {
		return "", nil, 0, false
	}
	return string(key[3 : at-1]), key[at : len(key)-8], int64(binary.BigEndian.Uint64(key[len(key)-8:]) ^ 1<<63), true
}

func (p *shardState) entryKey(s *site, e position) []byte {
	return p.numbered(keyEntry, s.name, e.seq, e.class)
}

// keepEntry stores an entry of a list; rec is its stored form.
func (p *shardState) keepEntry(s *site, e position, rec []byte) {
	if p.tx != nil {
		p.tx.Set(p.entryKey(s, e), rec)
	}
}

// dropEntry takes out what was leased.
func (p *shardState) dropEntry(s *site, e position) {
	if p.tx != nil {
		p.tx.Delete(p.entryKey(s, e))
	}
}

// keepKnown stores a fingerprint.
func (p *shardState) keepKnown(f canon.Fingerprint) {
	if p.tx != nil {
		p.key = f.Append(p.newKey(keyKnown))
		p.tx.Set(p.key, nil)
	}
}

// keepRetry stores a retry.
func (p *shardState) keepRetry(s *site, w *wait) {
	if p.tx == nil {
		return
	}
	v := binary.AppendVarint(p.value[:0], w.until)
	p.value = frontier.AppendEntry(v, s.name, &w.entry)
	p.tx.Set(p.numbered(keyRetry, s.name, w.order), p.value)
}

func (p *shardState) dropRetry(s *site, w *wait) {
	if p.tx != nil {
		p.tx.Delete(p.numbered(keyRetry, s.name, w.order))
	}
}

// keepDeadEntry stores a dead letter.
func (p *shardState) keepDeadEntry(cause string, l *deadEntry) {
	if p.tx == nil {
		return
	}
	v := appendText(appendText(p.value[:0], l.site), l.text)
	p.value = frontier.AppendEntry(v, l.site, &l.entry)
	p.tx.Set(p.numbered(keyDead, cause, l.id), p.value)
}

func (p *shardState) dropDeadEntry(cause string, id int64) {
	if p.tx != nil {
		p.tx.Delete(p.numbered(keyDead, cause, id))
	}
}

// dropWork takes out all that waits of a site, and what was leased of it.
func (p *shardState) dropWork(s *site) {
	if p.tx == nil {
		return
	}
	for _, kind := range []byte{keyEntry, keyRetry, keyRecrawl} {
		p.key = append(append(p.newKey(kind), s.name...), 0)
		p.tx.DeletePrefix(p.key)
	}
}

// changed has the site's own record stored at the end of the call.
func (p *shardState) changed(s *site) {
	if p.tx != nil && !s.changed {
		s.changed = true
		p.changes = append(p.changes, s)
	}
}

// keepSite stores the record of a site, or takes out one that says nothing.
func (p *shardState) keepSite(s *site) {
	s.changed = false
	p.key = append(p.newKey(keySite), s.name...)
	if s.clock == 0 && s.round == 0 && !s.keeps() {
		if s.stored {
			p.tx.Delete(p.key)
			s.stored = false
		}
		return
	}
	v := binary.AppendVarint(p.value[:0], s.clock)
	v = binary.AppendVarint(v, int64(s.delay))
	v = binary.AppendVarint(v, int64(s.failures))
	v = append(v, s.round)
	v = appendBool(appendBool(v, s.paused), s.blocked)
	if v = appendBool(v, s.extra != nil); s.extra != nil {
		v = appendText(appendText(v, s.extra.why), s.extra.override)
		v = binary.AppendVarint(binary.AppendVarint(v, s.extra.cap), s.extra.admitted)
		for _, why := range s.extra.stops {
			v = appendText(binary.AppendVarint(v, why.since), why.reason)
		}
	}
	if v = appendBool(v, s.leased != nil); s.leased != nil {
		v = binary.AppendUvarint(v, uint64(len(s.leased.positions)))
		for _, e := range s.leased.positions {
			v = binary.AppendVarint(append(v, e.class), e.seq)
		}
	}
	cookies, auth, row := "", "", s.wallRow()
	if s.extra != nil {
		cookies, auth = s.extra.cookies, s.extra.auth
	}
	if t := &s.siteTotals; t.since != 0 || cookies+auth != "" || row != nil {
		v = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(v, t.pages), t.dead), t.since)
		v = appendText(v, t.last)
	}
	if cookies+auth != "" || row != nil {
		v = appendText(v, cookies)
	}
	if auth != "" || row != nil {
		v = appendText(v, auth)
	}
	if row != nil {
		v = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(v, int64(row.count)), row.since), row.ends)
		v = appendText(v, row.vendor)
	}
	p.value = v
	p.tx.Set(p.key, v)
	s.stored = true
}

// counters are those that the store keeps, in the order it has them.
func (p *shardState) counters() []*int64 {
	s := &p.stats
	return []*int64{&p.now, &s.Open, &s.Admits, &s.Known, &s.Done, &s.Retried, &s.Dead, &s.Lost, &s.RetriedDead, &s.Dropped, &s.Blocked, &s.Recrawled, &s.Forgotten, &s.Unasked}
}

// flush adds what changed since the last flush to the store, and names it for
// Wait. The lock is held.
func (p *shardState) flush() uint64 {
	for _, s := range p.changes {
		p.keepSite(s)
	}
	p.changes = p.changes[:0]
	if p.tx.Empty() {
		return p.f.dir.store.Last()
	}
	v := p.value[:0]
	for _, n := range p.counters() {
		v = binary.AppendVarint(v, *n)
	}
	p.value = v
	p.tx.Set(p.newKey(keyCounters), v)
	return p.f.dir.store.Add(p.tx)
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
