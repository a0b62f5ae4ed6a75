package memory

import (
	"encoding/binary"
	"time"

	"seine/frontier"
)

// The records of a journal. Each starts with its letter and the time of the
// shard, in milliseconds, and ends where its fields end: there is no length.
const (
	recAdmit  = 'A' // URLs that were admitted by one call
	recVisit  = 'V' // a site lent, and the URLs that it was lent with
	recSettle = 'S' // the outcomes of a visit that took effect
	recReap   = 'R' // a lease taken back
	recLetter = 'D' // a dead letter revived or dropped
	recAlter  = 'C' // a site changed
	recBye    = 'B' // the crawl was closed: what was lent is not suspect
	recOpen   = 'O' // the crawl was opened: what was lent was taken back
)

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

// appendFull appends an entry with its class and length.
func appendFull(b []byte, e *frontier.Entry) []byte {
	b = append(b, e.Priority)
	var room [256]byte
	rec := appendEntry(room[:0], "", e)
	b = binary.AppendUvarint(b, uint64(len(rec)))
	return append(b, rec...)
}

// begin starts a record of a shard.
func (p *part) begin(letter byte) {
	if p.log != nil {
		p.rec = binary.AppendVarint(append(p.rec[:0], letter), p.now)
	}
}

// noteAdmitted adds a URL to the record of an admission; last is the site of
// the one before.
func (p *part) noteAdmitted(c *frontier.Candidate, last string, counted, front bool) {
	if p.log == nil {
		return
	}
	flags := byte(1)
	if c.Site != last {
		flags |= 2
	}
	if c.Again != "" {
		flags |= 4
	}
	if counted {
		flags |= 8
	}
	if front {
		flags |= 16
	}
	p.rec = append(p.rec, flags)
	if flags&2 != 0 {
		p.rec = appendText(p.rec, c.Site)
	}
	p.rec = c.Fingerprint.Append(p.rec)
	if flags&4 != 0 {
		p.rec = c.Request().Append(p.rec)
	}
	e := entryOf(c)
	p.rec = appendFull(p.rec, &e)
}

// noteVisit records a visit.
func (p *part) noteVisit(l *lease, most int) {
	if p.log == nil {
		return
	}
	p.begin(recVisit)
	p.rec = appendText(p.rec, l.site.name)
	p.rec = appendText(p.rec, l.token)
	p.rec = binary.AppendUvarint(p.rec, uint64(most))
	p.rec = binary.AppendUvarint(p.rec, uint64(len(l.entries)))
	for i := range l.entries {
		p.rec = append(p.rec, l.entries[i].Priority)
		p.rec = binary.LittleEndian.AppendUint32(p.rec, hash(l.entries[i].URL))
	}
	p.log.add(p.rec)
}

// noteSettled records what of a settlement took effect.
func (p *part) noteSettled(st *frontier.Settlement, settled frontier.Settled, freed bool) {
	if p.log == nil {
		return
	}
	p.begin(recSettle)
	p.rec = appendText(p.rec, st.Token)
	some := freed
	for i, ok := range settled {
		if !ok {
			continue
		}
		some = true
		o := &st.Outcomes[i]
		p.rec = append(p.rec, 1+byte(o.Kind))
		p.rec = binary.AppendUvarint(p.rec, uint64(o.Index))
		switch o.Kind {
		case frontier.Retry:
			p.rec = binary.AppendVarint(p.rec, int64(o.NotBefore))
		case frontier.Dead:
			p.rec = appendText(appendText(p.rec, o.Cause), o.Text)
		}
	}
	p.rec = appendBool(append(p.rec, 0), freed)
	if freed {
		p.rec = binary.AppendVarint(p.rec, int64(st.Free.Remain))
		p.rec = binary.AppendVarint(p.rec, int64(st.Free.Delay))
		p.rec = appendText(p.rec, st.Free.Why)
		p.rec = binary.AppendVarint(p.rec, int64(st.Free.Failures))
	}
	if some {
		p.log.add(p.rec)
	}
}

// noteReap records that a lease was taken back.
func (p *part) noteReap(l *lease, delay time.Duration) {
	if p.log == nil {
		return
	}
	p.begin(recReap)
	p.rec = binary.AppendVarint(appendText(p.rec, l.token), int64(delay))
	p.log.add(p.rec)
}

// noteLetter records that a dead letter was taken out.
func (p *part) noteLetter(cause string, id int64, revived bool) {
	if p.log == nil {
		return
	}
	p.begin(recLetter)
	p.rec = binary.AppendVarint(appendText(p.rec, cause), id)
	p.rec = appendBool(p.rec, revived)
	p.log.add(p.rec)
}

// noteAlter records a change of a site.
func (p *part) noteAlter(site string, c *frontier.SiteChange) {
	if p.log == nil {
		return
	}
	p.begin(recAlter)
	p.rec = appendText(p.rec, site)
	flag := func(v *bool) {
		p.rec = appendBool(p.rec, v != nil)
		if v != nil {
			p.rec = appendBool(p.rec, *v)
		}
	}
	flag(c.Paused)
	flag(c.Blocked)
	if p.rec = appendBool(p.rec, c.Cap != nil); c.Cap != nil {
		p.rec = binary.AppendVarint(p.rec, *c.Cap)
	}
	if p.rec = appendBool(p.rec, c.Override != nil); c.Override != nil {
		p.rec = appendText(p.rec, *c.Override)
	}
	p.log.add(p.rec)
}
