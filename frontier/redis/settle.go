package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tinylib/msgp/msgp"

	"seine/frontier"
	"seine/shard"
)

// The bounds of one call.
const (
	settleMost = 500 // outcomes; a settlement is not divided
	reapMost   = 20  // leases
)

// Settle takes outcomes of visits and frees sites. Each outcome counts once: an
// index that was settled before, or whose lease was reaped, is gone. A lease
// ends when its site is free and all of its URLs are settled. A site that is kept is
// due for others KeptFor later, while its clock is exact.
//
// When some of the settlements fail, what was settled before comes with the
// error; the rest may be sent again. Cost: some 6 us of the server for a
// settlement and one for each outcome.
func (f *Frontier) Settle(ctx context.Context, k int, settlements []frontier.Settlement) ([]frontier.Settled, error) {
	all := make([]frontier.Settled, 0, len(settlements))
	for len(settlements) > 0 {
		n, outcomes := 1, len(settlements[0].Outcomes)
		for n < len(settlements) && outcomes+len(settlements[n].Outcomes)+4*n <= settleMost {
			outcomes += len(settlements[n].Outcomes)
			n++
		}
		settled, err := f.settle(ctx, k, settlements[:n])
		if err != nil {
			return all, err
		}
		all = append(all, settled...)
		settlements = settlements[n:]
	}
	return all, nil
}

// settling puts one call of the settle script together.
type settling struct {
	f      *Frontier
	k      int
	causes []string
	keys   []string
	sent   [][]int   // per settlement: the places of the outcomes that were sent
	counts []counter // of the call
	text   []byte    // the messages of the settlements, one after the other
	ends   []int     // where each ends
	added  []byte    // what one settlement adds to counts
}

func (f *Frontier) settle(ctx context.Context, k int, settlements []frontier.Settlement) ([]frontier.Settled, error) {
	n := f.keys[k]
	s := settling{f: f, k: k, keys: make([]string, 0, preludeKeys+5+(SiteKeys+1)*len(settlements))}
	s.keys = append(f.sharedKeys(s.keys, k, settleScript), n.Counters(), n.Seeds(), n.Top("pages"), n.Top("dead"), n.Top("queued"))
	outcomes := 0
	for i := range settlements {
		outcomes += len(settlements[i].Outcomes)
		for _, o := range settlements[i].Outcomes {
			if o.Kind == frontier.Dead && !slices.Contains(s.causes, o.Cause) {
				s.causes = append(s.causes, o.Cause)
				s.keys = append(s.keys, f.keys[k].Dead(o.Cause))
			}
		}
	}
	s.text = make([]byte, 0, 128*len(settlements)+16*outcomes) // about what add appends
	for i := range settlements {
		s.add(&settlements[i])
	}
	if slices.ContainsFunc(settlements, func(st frontier.Settlement) bool { return st.Walls != nil }) {
		s.keys = append(s.keys, n.Walled())
	}
	raw, err := f.callWhole(ctx, k, settleScript, s.keys, s.args())
	if err != nil {
		return nil, err
	}
	reply := shard.Array(raw)
	if len(reply) != len(settlements) {
		return nil, Malformed(k, "settle", raw)
	}
	settled := make([]frontier.Settled, len(settlements))
	for i, r := range reply {
		digits, kept, isKept := strings.Cut(shard.Text(r), " ")
		if len(digits) != len(s.sent[i]) {
			return nil, Malformed(k, "settle", raw)
		}
		settled[i].Outcomes = make([]bool, len(settlements[i].Outcomes))
		for x, at := range s.sent[i] {
			settled[i].Outcomes[at] = digits[x] == '1'
		}
		if isKept {
			settled[i].Kept, settled[i].Due, isKept = parseKept(settlements[i].Site, kept)
			if !isKept {
				return nil, Malformed(k, "settle", raw)
			}
		}
	}
	return settled, nil
}

// parseKept reads class, ticket and milliseconds until it may be used.
func parseKept(site, text string) (t frontier.Ticket, due time.Duration, ok bool) {
	class, rest, _ := strings.Cut(text, " ")
	score, wait, _ := strings.Cut(rest, " ")
	p, errClass := strconv.ParseUint(class, 10, 8)
	ms, err := strconv.ParseInt(wait, 10, 64)
	return frontier.Ticket{Site: site, Class: uint8(p), Score: score}, time.Duration(ms) * time.Millisecond, errClass == nil && err == nil
}

// add adds one settlement. Of outcomes with one index the first is sent.
func (s *settling) add(st *frontier.Settlement) {
	s.keys = append(s.f.AppendSite(s.keys, s.k, st.Site), s.f.keys[s.k].Visit(st.Token))
	var sent []int
	var known [visitURLs + 1]bool
	for i, o := range st.Outcomes {
		if o.Index < 1 || o.Index > visitURLs || known[o.Index] {
			continue
		}
		known[o.Index] = true
		sent = append(sent, i)
	}
	s.sent = append(s.sent, sent)

	m := msgp.AppendString(s.text, st.Token)
	m = msgp.AppendString(m, st.Site)
	m = msgp.AppendArrayHeader(m, uint32(len(sent)))
	for _, i := range sent {
		m = msgp.AppendString(m, strconv.Itoa(st.Outcomes[i].Index))
	}
	m = msgp.AppendArrayHeader(m, uint32(len(sent)))
	for _, i := range sent {
		m = s.appendOutcome(m, st.Site, &st.Outcomes[i])
	}
	if r := st.Release; r != nil {
		m = msgp.AppendArrayHeader(m, 5)
		m = msgp.AppendInt64(m, Milliseconds(r.Remain))
		m = msgp.AppendString(m, strconv.FormatInt(Milliseconds(r.Delay), 10))
		m = msgp.AppendString(m, r.Why)
		m = msgp.AppendString(m, strconv.Itoa(max(0, r.Failures)))
		if r.Keep {
			m = msgp.AppendInt64(m, frontier.KeptFor.Milliseconds())
		} else {
			m = msgp.AppendBool(m, false)
		}
	} else {
		m = msgp.AppendNil(m)
	}
	if st.Cookies != nil {
		m = msgp.AppendString(m, *st.Cookies)
	} else {
		m = msgp.AppendNil(m)
	}
	counted := st
	if len(sent) < len(st.Outcomes) {
		counted = &frontier.Settlement{} // no fetcher settles a URL twice: what is so does not count
	}
	m = s.appendCounters(m, counted)
	if w := st.Walls; w != nil {
		m = appendWalls(m, w)
	}
	s.text = m
	s.ends = append(s.ends, len(s.text))
}

// appendWalls appends a row of walls.
func appendWalls(m []byte, w *frontier.Walls) []byte {
	if w.Count < frontier.WallsInRow {
		m = msgp.AppendArrayHeader(m, 2)
	} else {
		m = msgp.AppendArrayHeader(m, 3)
	}
	m = msgp.AppendInt(m, max(0, w.Count))
	m = msgp.AppendString(m, w.Vendor)
	if w.Count >= frontier.WallsInRow {
		m = msgp.AppendInt64(m, Milliseconds(w.Pause))
	}
	return m
}

// appendOutcome appends what became of one URL.
func (s *settling) appendOutcome(m []byte, site string, o *frontier.Outcome) []byte {
	switch o.Kind {
	case frontier.Done:
		return msgp.AppendString(m, "done")
	case frontier.Recrawl:
		m = msgp.AppendArrayHeader(m, 4)
		m = msgp.AppendString(m, "recrawl")
		m = msgp.AppendInt64(m, Milliseconds(o.NotBefore))
		m = msgp.AppendStringFromBytes(m, o.Next.ID())
		return msgp.AppendStringFromBytes(m, frontier.AppendEntry(nil, site, &o.Next.Entry))
	case frontier.Retry:
		word := "retry"
		if o.Blameless {
			word = "later"
		}
		m = msgp.AppendArrayHeader(m, 2)
		m = msgp.AppendString(m, word)
		return msgp.AppendInt64(m, Milliseconds(o.NotBefore))
	case frontier.Dead:
		m = msgp.AppendArrayHeader(m, 5)
		m = msgp.AppendString(m, "dead")
		m = msgp.AppendInt(m, slices.Index(s.causes, o.Cause)+1)
		m = msgp.AppendString(m, deadHead(site, o.Text))
		m = msgp.AppendInt(m, int(o.Tries))
		return msgp.AppendBool(m, o.Unasked)
	}
	return msgp.AppendString(m, "requeue")
}

// appendCounters appends what counters.lua counts of a settlement.
func (s *settling) appendCounters(m []byte, st *frontier.Settlement) []byte {
	pages, dead := st.Counted()
	m = msgp.AppendString(m, st.Last())
	m = msgp.AppendInt64(m, int64(pages))
	m = msgp.AppendInt64(m, int64(dead))
	seeds := uint32(0)
	for i := range st.Outcomes {
		if st.Outcomes[i].OfSeed() {
			seeds++
		}
	}
	m = msgp.AppendArrayHeader(m, 2*seeds)
	for i := range st.Outcomes {
		if o := &st.Outcomes[i]; o.OfSeed() {
			m = msgp.AppendString(m, o.Facts.Seed)
			m = msgp.AppendString(m, o.Label())
		}
	}
	s.added = s.added[:0]
	st.EachCounter(s.countOutcomes)
	return msgp.AppendStringFromBytes(m, s.added)
}

// counter is a count of one call.
type counter struct {
	kind, name, detail string
	n                  int64
}

// countOutcomes adds to a count of the call, and to what its settlement says of it: the
// number of the counter and what to add.
func (s *settling) countOutcomes(kind, name, detail string, n int64) {
	if n == 0 {
		return
	}
	at := slices.IndexFunc(s.counts, func(c counter) bool { return c.kind == kind && c.name == name && c.detail == detail })
	if at < 0 {
		at = len(s.counts)
		s.counts = append(s.counts, counter{kind, name, detail, 0})
	}
	s.counts[at].n += n
	s.added = append(strconv.AppendInt(s.added, int64(at+1), 10), ' ')
	s.added = append(strconv.AppendInt(s.added, n, 10), ' ')
}

// args are ARGV of the call.
func (s *settling) args() []any {
	cfg := &s.f.cfg
	args := make([]any, 0, 5+2*len(s.counts)+len(s.ends))
	args = append(args, s.f.epoch, len(s.causes), cfg.MaxDead, cfg.MaxRecrawls, len(s.counts))
	for _, c := range s.counts {
		args = append(args, frontier.CounterName(c.kind, c.name, c.detail), c.n)
	}
	begin := 0
	for _, end := range s.ends {
		args = append(args, s.text[begin:end:end])
		begin = end
	}
	return args
}

// Renew brings forward when URLs are recrawled, unless they are due sooner or
// do not wait for that. Cost: some 5 us of the server for a site and one for each
// URL.
func (f *Frontier) Renew(ctx context.Context, k int, renewals []frontier.Renewal) error {
	for part := range slices.Chunk(renewals, settleMost) {
		var keys []string
		var args []any
		for len(part) > 0 {
			site, n := part[0].Site, 1
			for n < len(part) && part[n].Site == site {
				n++
			}
			keys = f.AppendSite(keys, k, site)
			args = append(args, site, n)
			for i := range part[:n] {
				args = append(args, part[i].ID(), Milliseconds(part[i].Within))
			}
			part = part[n:]
		}
		if _, err := f.Call(ctx, k, renewScript, keys, args); err != nil {
			return err
		}
	}
	return nil
}

// deadHead is what stands before the entry in a dead letter: site and text,
// each ended by a tab.
func deadHead(site, text string) string { return site + "\t" + frontier.OneLine(text) + "\t" }

// Reap takes back leases that nobody extended: URLs that were open return to
// the front of their queues, marked lost once more, to be leased alone; one that
// is lost for the third time is dead. It returns how many leases it took; one
// that was extended since Tick named it is not, nor is any while fetchers may
// have been cut off from the shard.
func (f *Frontier) Reap(ctx context.Context, k int, expired []frontier.Expired) (int, error) {
	n := 0
	for part := range slices.Chunk(expired, reapMost) {
		keys := []string{f.keys[k].Dead(frontier.CauseLost)}
		args, settings := []any{f.cfg.Lease.Milliseconds(), f.cfg.MaxDead}, f.settings.Load()
		for _, e := range part {
			keys = append(f.AppendSite(keys, k, e.Site), f.keys[k].Visit(e.Token))
			args = append(args, e.Token, e.Site, e.Deadline, Milliseconds(settings.DelayOf(e.Site)), deadHead(e.Site, ""))
		}
		raw, err := f.Call(ctx, k, reapScript, keys, args)
		if err != nil {
			return n, err
		}
		for _, r := range shard.Array(raw) {
			if r == int64(1) {
				n++
			}
		}
	}
	return n, nil
}
