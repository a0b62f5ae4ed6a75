package redis

import (
	"errors"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard/shardtest"
)

// TestAck: with a replica that answers, admissions are acknowledged; with a
// frozen one they are not, nor is what is known already, for somebody else may
// have admitted it a moment ago. The verdicts come all the same.
func TestAck(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		servers := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 1, Replicas: 1, NodeTimeout: time.Minute})
		s := open(t, servers, 1, 1)
		if err := s.Configure(Config{AckReplicas: 1, AckTimeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
		admit := func(from, to int) (string, error) {
			verdicts := make([]frontier.Verdict, to-from)
			err := s.Admit(t.Context(), 0, candidates("a.example", from, to), verdicts)
			return letters(verdicts), err
		}
		if v, err := admit(0, 3); err != nil || v != "aaa" {
			t.Fatal(v, err)
		}
		replica := servers.Replicas(0)[0]
		replica.Stop(t)
		s.cfg.AckTimeout = 300 * time.Millisecond
		if v, err := admit(2, 5); !errors.Is(err, frontier.ErrNotAcked) || v != "saa" {
			t.Errorf("new URLs: %s, %v, want saa and ErrNotAcked", v, err)
		}
		if v, err := admit(0, 3); !errors.Is(err, frontier.ErrNotAcked) || v != "sss" {
			t.Errorf("known URLs: %s, %v, want sss and ErrNotAcked", v, err)
		}
		replica.Cont(t)
		s.cfg.AckTimeout = time.Minute
		if v, err := admit(3, 6); err != nil || v != "ssa" {
			t.Errorf("after the replica came back: %s, %v", v, err)
		}
		s.sound(0)
	})
}
