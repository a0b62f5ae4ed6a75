package sink

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Batches keep to their bounds, their order, and the border between key and value.
func TestQueueBatches(t *testing.T) {
	gate := make(chan struct{})
	var got []string
	var sizes []int
	q := NewQueue(QueueConfig{Name: "test", BatchLen: 4, BatchBytes: 1000, Commit: func(_ context.Context, b *Batch) error {
		<-gate
		sizes = append(sizes, b.Len())
		for i := range b.Len() {
			k, v := b.Entry(i)
			got = append(got, string(k)+"="+string(v))
		}
		return nil
	}})
	for i := range 11 {
		q.AddEntry(fmt.Append(nil, "k", i), fmt.Append(nil, i*i), func(error) {})
	}
	close(gate)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	for i, s := range got {
		if s != fmt.Sprintf("k%d=%d", i, i*i) {
			t.Errorf("%d is %s", i, s)
		}
	}
	for _, n := range sizes {
		if n > 4 {
			t.Errorf("batches of %v", sizes)
		}
	}
	if st := q.Stats(); st.Kept != 11 || st.Pending != 0 || len(got) != 11 {
		t.Errorf("%+v, %d", st, len(got))
	}
}

// What may be dropped holds nobody up: not while nothing is taken, nor at the end.
func TestQueueDrops(t *testing.T) {
	lost := errors.New("no server")
	q := NewQueue(QueueConfig{Name: "test", Drop: true, MaxPending: 10, Commit: func(context.Context, *Batch) error { return lost }})
	acks := 0
	for range 100 {
		q.AddEntry(nil, []byte("entry"), func(err error) {
			if err == nil {
				acks++
			}
		})
	}
	if err := q.Close(); err != nil || acks != 100 {
		t.Errorf("%v, %d acknowledged", err, acks)
	}
	if st := q.Stats(); st.Dropped != 100 || st.Kept != 0 || st.Pending != 0 {
		t.Errorf("%+v", st)
	}
}

// The context of a commit that hangs ends soon after Close.
func TestQueueCloseOfHangingCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{Name: "test", Commit: func(ctx context.Context, b *Batch) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		got := make(chan error, 1)
		q.AddEntry(nil, []byte("entry"), func(err error) { got <- err })
		synctest.Wait()
		at := time.Now()
		if err := q.Close(); !errors.Is(err, context.Canceled) || !errors.Is(<-got, context.Canceled) {
			t.Errorf("%v", err)
		}
		if took := time.Since(at); took != patience {
			t.Errorf("took %v", took)
		}
	})
}

// A long queue whose commits end one after the other is not cut short by Close.
func TestQueueCloseOfLongQueue(t *testing.T) {
	for _, underway := range []bool{false, true} { // the first commit, when Close comes
		synctest.Test(t, func(t *testing.T) { closeLongQueue(t, underway) })
	}
}

func closeLongQueue(t *testing.T, underway bool) {
	q := NewQueue(QueueConfig{Name: "test", BatchLen: 1, Commit: func(ctx context.Context, b *Batch) error {
		select {
		case <-time.After(patience * 3 / 4):
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	for range 10 {
		q.AddEntry(nil, []byte("entry"), func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if underway {
		synctest.Wait()
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}
