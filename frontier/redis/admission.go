package redis

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"seine/frontier"
	"seine/frontier/canon"
	"seine/shard"
)

// admission puts calls of the admit script together. Its memory is used again.
type admission struct {
	speaker map[canon.Fingerprint]int // whose verdict counts for a URL, or a request, of the batch
	first   []int                     // the speakers, in the batch's order

	placed  []int // candidates in the order of the call: by filter, then as in the batch
	filters []int // the filters they fall in
	sites   map[string]int
	names   []string // of the sites, whose numbers start at 1
	inClass [][4]int // per site: the numbers of its lists by class, from 1
	queues  []string // keys of the lists

	counts, lists, of, caps, order, again []byte // ARGV[4..9]
	marks                                 []byte // ARGV[11]

	text                   []byte // what prints, entries and plain are parts of
	prints, entries, plain []part

	keys []string
	args []any
}

// part is a part of admission.text, which moves while it grows.
type part struct{ from, to int }

func newAdmission() *admission {
	return &admission{speaker: make(map[canon.Fingerprint]int), sites: make(map[string]int)}
}

// forget lets go of what belongs to the caller.
func (a *admission) forget() {
	clear(a.sites)
	clear(a.names)
	clear(a.queues)
	clear(a.keys)
	clear(a.args)
}

// unique returns the candidates that speak for themselves and others: the first
// of each request for a URL again, and of a URL that none wants again the first.
func (a *admission) unique(batch []frontier.Candidate) []int {
	clear(a.speaker)
	a.first = a.first[:0]
	for i := range batch {
		c := &batch[i]
		j, known := a.speaker[c.Fingerprint]
		if !known || c.Again != "" && batch[j].Again == "" {
			a.speaker[c.Fingerprint] = i
		}
		if c.Again != "" && a.speakerOf(c) < 0 {
			a.speaker[c.Request()] = i
		}
	}
	for i := range batch {
		if a.speakerOf(&batch[i]) == i {
			a.first = append(a.first, i)
		}
	}
	return a.first
}

// speakerOf is whose verdict c gets, -1 = not known yet.
func (a *admission) speakerOf(c *frontier.Candidate) int {
	print := c.Fingerprint
	if c.Again != "" {
		print = c.Request()
	}
	if i, known := a.speaker[print]; known {
		return i
	}
	return -1
}

// build makes keys and args of a call for the candidates of batch that chosen
// names.
func (a *admission) build(f *Frontier, k int, batch []frontier.Candidate, chosen []int) {
	settings := f.settings.Load()
	clear(a.sites)
	a.names, a.inClass, a.queues = a.names[:0], a.inClass[:0], a.queues[:0]
	a.lists, a.of, a.again = a.lists[:0], a.of[:0], a.again[:0]
	a.text, a.prints, a.entries, a.plain = a.text[:0], a.prints[:0], a.entries[:0], a.plain[:0]
	a.place(batch, chosen, f.layout.Filters)
	for x, i := range a.placed {
		a.add(f.keys[k], x+1, &batch[i])
	}
	a.limit(settings)
	a.marks = f.appendMarks(a.marks[:0], k, settings)

	a.keys = append(a.keys[:0], f.base[k]...)
	for _, j := range a.filters {
		a.keys = append(a.keys, f.keys[k].Filter(j))
	}
	for _, name := range a.names {
		a.keys = append(a.keys, f.keys[k].Site(name))
	}
	a.keys = append(a.keys, a.queues...)

	push := "RPUSH"
	if settings.Order == "depth" {
		push = "LPUSH"
	}
	a.args = append(a.args[:0], f.epoch, push, f.cfg.MaxList, a.counts, a.lists, a.of, a.caps, a.order, a.again, len(a.names), a.marks)
	for _, name := range a.names {
		a.args = append(a.args, name)
	}
	for _, parts := range [][]part{a.prints, a.entries, a.plain} {
		for _, p := range parts {
			a.args = append(a.args, a.text[p.from:p.to])
		}
	}
}

// place groups the chosen candidates by the filters they fall in, and keeps the
// order in which they are to be queued.
func (a *admission) place(batch []frontier.Candidate, chosen []int, filters int) {
	a.filters, a.counts, a.order = a.filters[:0], a.counts[:0], a.order[:0]
	a.placed = append(a.placed[:0], chosen...)
	if filters == 1 {
		a.filters = append(a.filters, 0)
		a.counts = binary.BigEndian.AppendUint16(a.counts, uint16(len(chosen)))
		for x := range chosen {
			a.order = binary.BigEndian.AppendUint16(a.order, uint16(x+1))
		}
		return
	}
	filterOf := func(i int) int { return shard.FilterOf(batch[i].Fingerprint, filters) }
	slices.SortStableFunc(a.placed, func(i, j int) int { return cmp.Compare(filterOf(i), filterOf(j)) })
	count := 0
	for x, i := range a.placed {
		count++
		if j := filterOf(i); x+1 == len(a.placed) || filterOf(a.placed[x+1]) != j {
			a.filters = append(a.filters, j)
			a.counts = binary.BigEndian.AppendUint16(a.counts, uint16(count))
			count = 0
		}
	}
	// chosen ascends, so a candidate's place in it is found by search.
	a.order = append(a.order, make([]byte, 2*len(chosen))...)
	for x, i := range a.placed {
		at, _ := slices.BinarySearch(chosen, i)
		binary.BigEndian.PutUint16(a.order[2*at:], uint16(x+1))
	}
}

// add adds one candidate, the x-th from 1.
func (a *admission) add(keys shard.Keys, x int, c *frontier.Candidate) {
	site, known := a.sites[c.Site]
	if !known {
		a.names = append(a.names, c.Site)
		a.inClass = append(a.inClass, [4]int{})
		site = len(a.names)
		a.sites[c.Site] = site
	}
	list := &a.inClass[site-1][c.Priority]
	if *list == 0 {
		a.queues = append(a.queues, keys.Queue(c.Site, int(c.Priority)))
		*list = len(a.queues)
		a.lists = append(binary.BigEndian.AppendUint16(a.lists, uint16(site)), c.Priority)
	}
	a.of = binary.BigEndian.AppendUint16(a.of, uint16(*list))

	plain := a.write(c.Fingerprint.Append)
	if c.Again == "" {
		a.prints = append(a.prints, plain)
	} else {
		a.again = binary.BigEndian.AppendUint16(a.again, uint16(x))
		a.plain = append(a.plain, plain)
		a.prints = append(a.prints, a.write(c.Request().Append))
	}
	e := frontier.Entry{URL: c.URL, Priority: c.Priority, Depth: c.Depth, Redirects: c.Redirects, Seed: c.Seed, Meta: c.Meta}
	a.entries = append(a.entries, a.write(func(dst []byte) []byte { return frontier.AppendEntry(dst, c.Site, &e) }))
}

// write adds what app appends to text.
func (a *admission) write(app func([]byte) []byte) part {
	from := len(a.text)
	a.text = app(a.text)
	return part{from, len(a.text)}
}

// limit writes the caps that the settings put on the sites of the call.
func (a *admission) limit(s *frontier.Settings) {
	a.caps = a.caps[:0]
	any := s.MaxPerSite > 0
	for i := range s.Sites {
		any = any || s.Sites[i].MaxPages > 0
	}
	if !any {
		return
	}
	for _, name := range a.names {
		a.caps = binary.BigEndian.AppendUint32(a.caps, uint32(min(s.CapOf(name), math.MaxUint32)))
	}
}

// lost names the filter that a reply of the script says is missing.
func (a *admission) lost(keys shard.Keys, which string) string {
	x, err := strconv.Atoi(which)
	if err != nil || x < 1 || x > len(a.filters) {
		return "?"
	}
	return keys.Filter(a.filters[x-1])
}
