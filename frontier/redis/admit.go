package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"seine/frontier"
	"seine/shard"
)

// admitMost is how many URLs one call of the script takes: it keeps a call
// under about a millisecond and far below the most values Lua can unpack.
const admitMost = 500

// Admit makes the candidates known to shard k and queues what is new, in order,
// and writes what became of each to verdicts, which must be as long. All
// candidates must belong to shard k. A URL that comes twice gets its first's
// verdict; one that is wanted again is queued once for each request id, and the
// first of these speaks for those that do not ask. It keeps nothing of batch.
//
// After an error the verdicts say nothing and the batch may be sent again; with
// ErrNotAcked they are filled, but what they call admitted or seen may be lost
// with the master. What the memory marks turn away is Capped; it is Full when
// the candidate waits or has seed standing. ErrLostFilter names the missing
// filter: nothing is admitted until it is restored. Cost: one script call for
// each 500 URLs, some 2 us of the server for each new one.
func (f *Frontier) Admit(ctx context.Context, k int, batch []frontier.Candidate, verdicts []frontier.Verdict) error {
	if len(verdicts) != len(batch) {
		return fmt.Errorf("frontier: admit: %d verdicts for %d candidates", len(verdicts), len(batch))
	}
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
			verdicts[i] = verdicts[a.speakerOf(&batch[i])]
		}
	}
	return notAcked
}

// admit runs the script for the candidates of batch that chosen names.
func (f *Frontier) admit(ctx context.Context, k int, a *admission, batch []frontier.Candidate, chosen []int, verdicts []frontier.Verdict) error {
	a.build(f, k, batch, chosen)
	var reply any
	var err error
	acked := 0
	if f.cfg.AckReplicas > 0 {
		reply, acked, err = f.client.RunAck(ctx, k, admitScript, f.cfg.AckReplicas, f.cfg.AckTimeout, a.keys, a.args...)
	} else {
		reply, err = f.run(ctx, k, admitScript, a.keys, a.args...)
	}
	if err == nil {
		err = f.refusal(k, "admit", reply)
	}
	if err != nil {
		return err
	}
	letters, _ := reply.(string)
	if which, lost := strings.CutPrefix(letters, "!lost "); lost {
		at := min(8+shard.Int(which), int64(len(a.keys)-1)) // the filters come after KEYS[9]
		return &shard.Error{Shard: k, Op: "admit", Err: fmt.Errorf("%w: %s; restore it with `frontier bloom load DIR --shard %d`", frontier.ErrLostFilter, a.keys[at], k)}
	}
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
