package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard"
)

// repeat runs a call as an unlucky client does.
func (d *driver) repeat(ctx context.Context, k int, s *shard.Script, keys []string, args ...any) (any, error) {
	d.calls.Add(1)
	reply, err := d.run(ctx, k, s, keys, args...)
	if err != nil {
		return reply, err
	}
	if rand.Float64() < d.twiceOf {
		// The caller hears the repeat only, as if the first reply was lost.
		reply, err = d.run(ctx, k, s, keys, args...)
	}
	if rand.Float64() < d.lateOf {
		keys := slices.Clone(keys)
		args := cloneArgs(args)
		d.late.Go(func() {
			time.Sleep(time.Duration(rand.Int64N(int64(2 * d.lease)))) // the copy is on its way
			d.world.RLock()
			defer d.world.RUnlock()
			if s == deadLettersScript && ctx.Err() != nil {
				return // what died again meanwhile would come back to nobody
			}
			run := d.run
			if s == visitScript {
				run = d.lateVisit
			}
			if _, err := run(context.Background(), k, s, keys, args...); err != nil {
				d.fail("late %s: %v", s.Name, err)
			}
		})
	}
	return reply, err
}

// cloneArgs copies what the caller may use again.
func cloneArgs(args []any) []any {
	args = slices.Clone(args)
	for i := range args {
		switch arg := args[i].(type) {
		case []byte:
			args[i] = slices.Clone(arg)
		case *string:
			args[i] = *arg
		case *piece:
			args[i] = slices.Clone([]byte(*arg))
		}
	}
	return args
}

// lateVisit runs a late copy of a visit, and fails when it leases anything, for
// nobody would know of it. What was open under its token before is not leased by
// the copy: there may be some although its fetcher is through with the visit,
// when the lease was lost before it could settle, and was released.
func (d *driver) lateVisit(ctx context.Context, k int, s *shard.Script, keys []string, args ...any) (any, error) {
	var tokens []string
	var open []map[string]string // by index
	for i := 9; i < len(args); i += 4 {
		token := args[i].(string)
		entries, err := d.client.Hash(ctx, k, d.keys[k].Visit(token))
		if err != nil {
			return nil, err
		}
		tokens, open = append(tokens, token), append(open, entries)
	}
	reply, err := d.run(ctx, k, s, keys, args...)
	for i, r := range shard.Array(reply) {
		for r := shard.Array(r); len(r) > 6; r = slices.Delete(r, 5, 7) {
			if index, entry := fmt.Sprint(r[5]), shard.Text(r[6]); open[i][index] != entry {
				d.fail("a late copy leased %s %q under %s, where %q was open", index, entry, tokens[i], open[i])
			}
		}
	}
	return reply, err
}

// TestLateVisit: a copy of a visit that comes late gets what is open of the visit
// and no more, though its lease was lost before its fetcher could settle, and was
// released by a repair.
func TestLateVisit(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 5)...)
	s.pass(0, 2*time.Millisecond)
	due := s.tick(frontier.TickRequest{Want: 1}).Due
	v := s.visit(frontier.VisitLimits{URLs: 3}, due...)[0]
	copied := func() string { // the call once more, under its token
		s.tokens.Store(s.tokens.Load() - 1)
		text := "-"
		for _, v := range s.visit(frontier.VisitLimits{URLs: 3}, due...) {
			text = pages(v)
		}
		return text
	}
	s.settle(frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1}}})
	s.do("ZREM", s.keys[0].Leases(), MemberOf(v.Lease))
	if got := s.settle(all(v, frontier.Done))[0]; slices.Contains(got, true) {
		t.Errorf("settled without a lease: %v", got)
	}
	if got := copied(); got != "-" {
		t.Errorf("leased %s while the lease was lost", got)
	}
	if c, err := AuditRepair(t.Context(), s.Frontier, 0, true); err != nil || c.Repairs == 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := copied(); got != "1 2" {
		t.Errorf("the copy got %s, want what is open", got)
	}
	if got := s.settle(all(v, frontier.Done))[0]; !slices.Equal(got, []bool{false, true, true}) {
		t.Errorf("settled %v", got)
	}
	s.pass(0, time.Second)
	if got := copied(); got != "-" {
		t.Errorf("leased %s after the visit was over", got)
	}
	if left := strings.Join(s.stored("a.example", 2), " "); left != "3 4" || s.stat("done") != 3 {
		t.Errorf("left %s, %d done", left, s.stat("done"))
	}
	s.sound(0)
}
