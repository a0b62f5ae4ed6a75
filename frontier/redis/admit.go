package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cmp"

	"seine/frontier"
	"seine/frontier/canon"
	"seine/shard"
)

// admitMost is how many URLs one call of the script takes: it keeps a call
// under about a millisecond and far below the most values Lua can unpack.
const admitMost = 500

// Admit makes the candidates known to shard k and queues what is new, in order,
// and writes what became of each to verdicts, which must be as long. All
// candidates must belong to shard k. A URL that comes twice gets its first's
// verdict; one that is refetched is queued once for each request id, and the
// first of these speaks for those that do not ask. It keeps nothing of batch.
//
// After an error the verdicts say nothing and the batch may be sent again; with
// ErrNotAcked they are filled, but what they call admitted or seen may be lost
// with the master. What the memory watermarks turn away is Capped; it is Full when
// the candidate waits or has seed scope. ErrLostFilter names the missing
// filter: nothing is admitted until it is restored. Cost: one script call for
// each 500 URLs, some 2 us of the server for each new one.
func (f *Frontier) Admit(ctx context.Context, k int, batch []frontier.Candidate, verdicts []frontier.Verdict) error {
	if len(verdicts) != len(batch) {
		return fmt.Errorf("frontier: admit: %d verdicts for %d candidates", len(verdicts), len(batch))
	}
	if !frontier.HasCredentials(batch) {
		return f.admitAll(ctx, k, batch, verdicts)
	}
	kept := ""
	return frontier.AdmitWithCredentials(batch, verdicts, func(c *frontier.Candidate) (frontier.Verdict, error) {
		origin, _ := frontier.OriginOf(c.URL)
		line := origin + " " + c.Credentials
		if line == kept { // as those of one list of seeds often are
			return frontier.Admitted, nil
		}
		v, err := f.keepCredentials(ctx, k, c.Site, origin, c.Credentials)
		if v == frontier.Admitted && err == nil {
			kept = line
		}
		return v, err
	}, func(batch []frontier.Candidate, verdicts []frontier.Verdict) error {
		return f.admitAll(ctx, k, batch, verdicts)
	})
}

// keepCredentials keeps those of an origin with its site: Admitted, or Capped where
// the site has those of other origins, as many as it may, or Full.
func (f *Frontier) keepCredentials(ctx context.Context, k int, site, origin, credentials string) (frontier.Verdict, error) {
	reply, err := f.Call(ctx, k, credentialsScript, f.AppendSite(nil, k, site), []any{frontier.CredentialOrigins, origin, credentials})
	switch {
	case isFull(err):
		return frontier.Full, nil
	case err != nil:
		return frontier.Full, err
	case shard.Int(reply) == 0:
		return frontier.Capped, nil
	}
	return frontier.Admitted, nil
}

// admitAll is Admit of candidates whose credentials are kept.
func (f *Frontier) admitAll(ctx context.Context, k int, batch []frontier.Candidate, verdicts []frontier.Verdict) error {
	for i := range batch {
		if own := f.shards.Of(batch[i].Fingerprint); own != k {
			return fmt.Errorf("frontier: admit: candidate %d belongs to shard %d, not %d", i, own, k)
		}
		if batch[i].Priority > 3 {
			return fmt.Errorf("frontier: admit: candidate %d has class %d, the last is 3", i, batch[i].Priority)
		}
	}
	a, _ := f.admissions.Get().(*admission)
	if a == nil {
		a = newAdmission()
	}
	defer func() {
		a.forget()
		f.admissions.Put(a)
	}()
	var notAcked error
	for part := range slices.Chunk(a.unique(batch), admitMost) {
		err := f.admit(ctx, k, a, batch, part, verdicts)
		if errors.Is(err, frontier.ErrNotAcked) {
			notAcked = err
		} else if err != nil {
			return err
		}
	}
	if len(a.first) < len(batch) {
		for i := range batch {
			verdicts[i] = verdicts[a.representativeOf(&batch[i])]
		}
	}
	return notAcked
}

// admit runs the script for the candidates of batch that chosen names.
func (f *Frontier) admit(ctx context.Context, k int, a *admission, batch []frontier.Candidate, chosen []int, verdicts []frontier.Verdict) error {
	if err := f.awaitRights(ctx, k); err != nil {
		return err
	}
	var reply any
	acked := 0
	err := f.withRoom(ctx, &f.urls, k, "admit", func(each int, room int64) (_ []string, err error) {
		a.build(f, k, batch, chosen, each, room)
		if f.cfg.AckReplicas > 0 {
			reply, acked, err = f.client.RunAck(ctx, k, admitScript, f.cfg.AckReplicas, f.cfg.AckTimeout, a.keys, a.args...)
		} else {
			reply, err = f.run(ctx, k, admitScript, a.keys, a.args...)
		}
		return a.keys, err
	})
	if err != nil {
		return err
	}
	letters, _ := reply.(string)
	if len(letters) != len(chosen) {
		return Malformed(k, "admit", reply)
	}
	for x, i := range a.placed {
		verdicts[i] = verdictOf(letters[x], batch[i].Seed || batch[i].Waits)
	}
	if acked < f.cfg.AckReplicas {
		return &shard.Error{Shard: k, Op: "admit", Err: fmt.Errorf("%w: %d of %d did in %v", frontier.ErrNotAcked, acked, f.cfg.AckReplicas, f.cfg.AckTimeout)}
	}
	return nil
}

func verdictOf(letter byte, waits bool) frontier.Verdict {
	switch {
	case letter == 'a':
		return frontier.Admitted
	case letter == 's':
		return frontier.Seen
	case letter == 'c', letter == 't' && !waits:
		return frontier.Capped
	}
	return frontier.Full
}

// admission puts calls of the admit script together. Its memory is used again.
type admission struct {
	representative map[canon.Fingerprint]int // whose verdict counts for a URL, or a request, of the batch
	first          []int                     // the representatives, in the batch's order

	placed  []int // candidates in the order of the call: by site, then as in the batch
	filters []int // the filters they fall in
	runs    []run

	text  []byte  // what pieces are parts of
	parts []piece // that args point to

	keys []string
	args []any
}

// piece is an argument that is part of a text. A pointer to one needs no memory of its
// own among the arguments of a call.
type piece []byte

// MarshalBinary implements encoding.BinaryMarshaler.
func (p *piece) MarshalBinary() ([]byte, error) { return *p, nil }

// run is as many candidates as follow each other of one site, class and filter.
type run struct {
	first  *frontier.Candidate
	size   int
	filter int
}

func newAdmission() *admission {
	return &admission{representative: make(map[canon.Fingerprint]int)}
}

// forget lets go of what belongs to the caller.
func (a *admission) forget() {
	clear(a.runs)
	clear(a.keys)
	clear(a.args)
}

// unique returns the representatives of the batch: the first candidate of each refetch
// of a URL, and the first of a URL that none refetches.
func (a *admission) unique(batch []frontier.Candidate) []int {
	clear(a.representative)
	a.first = a.first[:0]
	for i := range batch {
		c := &batch[i]
		j, known := a.representative[c.Fingerprint]
		if !known || c.Refetch != "" && batch[j].Refetch == "" {
			a.representative[c.Fingerprint] = i
		}
		if c.Refetch != "" && a.representativeOf(c) < 0 {
			a.representative[c.RefetchFingerprint()] = i
		}
	}
	for i := range batch {
		if a.representativeOf(&batch[i]) == i {
			a.first = append(a.first, i)
		}
	}
	return a.first
}

// representativeOf is whose verdict c gets, -1 = not known yet.
func (a *admission) representativeOf(c *frontier.Candidate) int {
	print := c.Fingerprint
	if c.Refetch != "" {
		print = c.RefetchFingerprint()
	}
	if i, known := a.representative[print]; known {
		return i
	}
	return -1
}

// build makes keys and args of a call for the candidates of batch that chosen
// names, in runs: as many as follow each other of one site, class and filter. Each
// filter has so many keys, and room for so many URLs in the last.
func (a *admission) build(f *Frontier, k int, batch []frontier.Candidate, chosen []int, each int, room int64) {
	settings, keys, filters := f.settings.Load(), f.keys[k], f.plan.Filters
	refetches := a.place(batch, chosen, filters)
	a.divide(batch, filters)
	capped := 0
	if settings.Caps() {
		capped = 1
	}

	a.keys = f.sharedKeys(a.keys[:0], k, admitScript)
	for _, j := range a.filters {
		for i := range each {
			a.keys = append(a.keys, keys.FilterKey(j, i))
		}
	}
	for _, r := range a.runs {
		a.keys = append(a.keys, keys.Site(r.first.Site))
	}
	for _, r := range a.runs {
		a.keys = append(a.keys, keys.Queue(r.first.Site, int(r.first.Priority)))
	}

	push := "RPUSH"
	if settings.Order == "depth" {
		push = "LPUSH"
	}
	low, high, longest := f.watermarks(k, settings)
	a.args = append(a.args[:0], f.epoch, push, f.cfg.MaxList, low, high, longest, each, room, len(a.filters), len(a.runs), len(a.placed), capped, f.cfg.MaxListBytes)
	for _, r := range a.runs {
		a.args = append(a.args, &r.first.Site)
	}
	for _, r := range a.runs {
		a.args = append(a.args, r.size)
	}
	if len(a.filters) > 1 {
		for _, r := range a.runs {
			a.args = append(a.args, slices.Index(a.filters, r.filter)+1)
		}
	}
	if capped == 1 {
		for _, r := range a.runs {
			a.args = append(a.args, settings.CapOf(r.first.Site))
		}
	}
	a.write(batch, refetches)
}

// divide finds the runs of the placed candidates.
func (a *admission) divide(batch []frontier.Candidate, filters int) {
	a.runs = a.runs[:0]
	for _, i := range a.placed {
		c := &batch[i]
		j := shard.FilterOf(c.Fingerprint, filters)
		if n := len(a.runs); n > 0 {
			if r := &a.runs[n-1]; r.filter == j && r.first.Site == c.Site && r.first.Priority == c.Priority {
				r.size++
				continue
			}
		}
		a.runs = append(a.runs, run{first: c, size: 1, filter: j})
	}
}

// place orders the chosen candidates by site, each site's as in the batch, and
// finds the filters that they fall in. It reports whether any is a refetch.
func (a *admission) place(batch []frontier.Candidate, chosen []int, filters int) (refetches bool) {
	a.placed = append(a.placed[:0], chosen...)
	slices.SortStableFunc(a.placed, func(i, j int) int { return cmp.Compare(batch[i].Site, batch[j].Site) })
	a.filters = a.filters[:0]
	for _, i := range chosen {
		if j := shard.FilterOf(batch[i].Fingerprint, filters); !slices.Contains(a.filters, j) {
			a.filters = append(a.filters, j)
		}
		refetches = refetches || batch[i].Refetch != ""
	}
	return refetches
}

// write adds what the script has of each candidate: what must be new, its entry,
// and, when some are refetches, its plain fingerprint.
func (a *admission) write(batch []frontier.Candidate, refetches bool) {
	a.text = a.text[:0]
	a.parts = slices.Grow(a.parts[:0], 3*len(a.placed)) // they stay where they are
	for _, i := range a.placed {
		print := batch[i].Fingerprint
		if batch[i].Refetch != "" {
			print = batch[i].RefetchFingerprint()
		}
		a.arg(print.Append(a.text))
	}
	for _, i := range a.placed {
		c := &batch[i]
		e := c.Entry()
		a.arg(frontier.AppendEntry(a.text, c.Site, &e))
	}
	if !refetches {
		return
	}
	for _, i := range a.placed {
		if batch[i].Refetch == "" {
			a.args = append(a.args, "")
		} else {
			a.arg(batch[i].Fingerprint.Append(a.text))
		}
	}
}

// arg adds as an argument what longer has more than text. Where text moved, earlier
// arguments stay where they were.
func (a *admission) arg(longer []byte) {
	a.parts = append(a.parts, longer[len(a.text):len(longer):len(longer)])
	a.args = append(a.args, &a.parts[len(a.parts)-1])
	a.text = longer
}
