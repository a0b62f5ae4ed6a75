package sink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
	maxBatch   = 1 << 20
	keepBatch  = 2 * maxBatch // capacity of what is kept for reuse
	keepFree   = 8
	patience   = 10 * time.Second // of Close with a Commit

	defaultMaxPending = 64 << 20
)

// QueueConfig of a Queue. Name and Commit are required; the zero value of
// another field is the default it names.
type QueueConfig struct {
	Name string // of the output; messages begin with it
	Noun string // what is kept, for messages; default records
	// Commit keeps a batch: all of it, or an error, after which it is called
	// with the same batch again, unless it is ErrGone. What a failed call kept may be kept twice,
	// unless the output tells repeats. One call runs at a time. ctx ends when a
	// call takes longer than 10 s after Close began.
	Commit func(ctx context.Context, b *Batch) error
	// MaxPending is how many bytes may wait before Add blocks, default 64 MB.
	MaxPending int64
	// BatchBytes is the size of a batch, which only a single entry exceeds;
	// default, and most, 1 MB.
	BatchBytes int
	// BatchLen is how many entries a batch holds at most; default: no bound.
	BatchLen int
	// Linger is how long a batch waits for company after its first entry.
	// Default: not at all, so that under load a batch is what came while the one
	// before it was committed.
	Linger time.Duration
	// Idle, if not nil, is called by the committer when nothing waits, and
	// returns when to call it again at the latest.
	Idle func() time.Duration
	// Drop says that entries are lost rather than waited for: they count as kept
	// once they are queued, and those that find no room are dropped.
	Drop bool
}

// Queue is what most sinks are built on: callers Add entries, which join the last
// batch of a queue; one committer takes batches off the front and commits them
// one after the other, each again and again with backoff until it is kept. Only
// then are its entries acknowledged. It is safe for concurrent use and in steady
// state allocates nothing.
type Queue struct {
	cfg QueueConfig

	wake    chan struct{} // a batch was begun, or grew full
	closing chan struct{}
	ended   chan struct{} // the committer returned
	once    sync.Once
	ctx     context.Context
	cancel  context.CancelFunc
	hurry   *time.Timer // ends ctx; there once closing is closed

	mu      sync.Mutex
	room    sync.Cond // pending fell, or closing
	queue   []*Batch  // oldest first; the last one grows
	free    []*Batch
	pending int64 // bytes added and not done
	closed  bool
	err     error // while commits fail
	failed  error // first error that cost entries, for Close
	stats   QueueStats
}

// QueueStats counts what a queue did. Totals only grow.
type QueueStats struct {
	Kept    int64 // entries
	Batches int64 // kept
	Retries int64 // commits that failed and were repeated
	Dropped int64 // entries lost because QueueConfig.Drop said so
	Pending int64 // gauge: bytes that wait

	// Unfit are records that the output could not take as they are, counted by the sink:
	// Kafka gets them without their largest fields, PostgreSQL has a table of them.
	Unfit int64
}

// Batch is entries that are committed together, in the order of Add.
type Batch struct {
	buf   []byte // keys and values of all entries
	marks []mark
	done  []func(error)
	first time.Time // when it was begun
}

// mark says where the key of an entry and its value end.
type mark struct{ key, value int }

// Len is the number of entries.
func (b *Batch) Len() int { return len(b.marks) }

// Bytes is all entries in one, keys before values; good until Commit returns.
func (b *Batch) Bytes() []byte { return b.buf }

// Entry returns key and value of one entry; good until Commit returns.
func (b *Batch) Entry(i int) (key, value []byte) {
	start := 0
	if i > 0 {
		start = b.marks[i-1].value
	}
	m := b.marks[i]
	return b.buf[start:m.key:m.key], b.buf[m.key:m.value:m.value]
}

// ErrClosed is what an entry gets that came after Close.
var ErrClosed = errors.New("sink: closed")

// ErrGone is what Commit wraps when an output takes nothing ever again: its entries
// fail instead of being waited for, and all that come after them.
var ErrGone = errors.New("gone")

// NewQueue starts a queue; Close ends it.
func NewQueue(cfg QueueConfig) *Queue {
	if cfg.Noun == "" {
		cfg.Noun = "records"
	}
	if cfg.MaxPending == 0 {
		cfg.MaxPending = defaultMaxPending
	}
	if cfg.BatchBytes == 0 {
		cfg.BatchBytes = maxBatch
	}
	if cfg.Idle == nil {
		cfg.Idle = func() time.Duration { return time.Hour }
	}
	q := &Queue{cfg: cfg, wake: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.room.L = &q.mu
	go q.run()
	return q
}

// Add queues an entry, which it copies. done is called once, by the committer:
// with nil when the entry is kept, with an error only when the queue was closed
// before that, or its output is gone. It must not block and must not call Add. Add blocks while
// MaxPending bytes wait. key may be nil.
func (q *Queue) Add(key, value []byte, done func(error)) {
	switch q.enqueue(key, value, done) {
	case refusedClosed:
		done(ErrClosed)
	case acknowledged:
		done(nil)
	}
}

// What enqueue leaves to be done.
const (
	waits = iota
	refusedClosed
	acknowledged
)

func (q *Queue) enqueue(key, value []byte, done func(error)) int {
	n := len(key) + len(value)
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.pending > 0 && q.pending+int64(n) > q.cfg.MaxPending && !q.closed {
		if q.cfg.Drop {
			q.stats.Dropped++
			return acknowledged
		}
		q.room.Wait()
	}
	if q.closed {
		return refusedClosed
	}
	q.pending += int64(n)
	b := q.last(n)
	b.buf = append(b.buf, key...)
	m := mark{key: len(b.buf)}
	b.buf = append(b.buf, value...)
	m.value = len(b.buf)
	b.marks = append(b.marks, m)
	if len(b.marks) == q.cfg.BatchLen {
		q.rouse()
	}
	if q.cfg.Drop {
		return acknowledged
	}
	b.done = append(b.done, done)
	return waits
}

// last is the batch that takes an entry of n bytes. Called with mu.
func (q *Queue) last(n int) *Batch {
	if k := len(q.queue); k > 0 {
		b := q.queue[k-1]
		if len(b.buf)+n <= q.cfg.BatchBytes && (q.cfg.BatchLen == 0 || len(b.marks) < q.cfg.BatchLen) {
			return b
		}
	}
	var b *Batch
	if k := len(q.free); k > 0 {
		b, q.free = q.free[k-1], q.free[:k-1]
	} else {
		b = new(Batch)
	}
	b.first = time.Now()
	q.queue = append(q.queue, b)
	q.rouse()
	return b
}

func (q *Queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run commits batch after batch until the queue is closed and empty.
func (q *Queue) run() {
	defer close(q.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		b, wait, end := q.take()
		if b != nil {
			q.settle(b, q.persist(b))
			continue
		}
		if end {
			return
		}
		if wait == 0 {
			wait = q.cfg.Idle()
		}
		timer.Reset(wait)
		select {
		case <-q.wake:
		case <-q.closing:
		case <-timer.C:
		}
	}
}

// take returns the oldest batch if it is ripe, else how long until it is (0 if
// there is none), or that there will be none.
func (q *Queue) take() (b *Batch, wait time.Duration, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return nil, 0, q.closed
	}
	b = q.queue[0]
	full := len(q.queue) > 1 || len(b.marks) == q.cfg.BatchLen
	if q.cfg.Linger > 0 && !full && !q.closed {
		if wait = q.cfg.Linger - time.Since(b.first); wait > 0 {
			return nil, wait, false
		}
	}
	n := copy(q.queue, q.queue[1:])
	q.queue[n] = nil
	q.queue = q.queue[:n]
	return b, 0, false
}

// persist commits b, again and again, until it is kept. Once the queue is being
// closed it tries only once more, and not at all what comes after entries that
// were lost.
func (q *Queue) persist(b *Batch) error {
	q.mu.Lock()
	err := q.failed
	q.mu.Unlock()
	if err != nil {
		return err
	}
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		last := q.isClosing()
		err := q.cfg.Commit(q.ctx, b)
		if err == nil {
			if q.isClosing() { // meanwhile, maybe: the next batch has as long as this one
				q.hurry.Reset(patience)
			}
			return nil
		}
		if errors.Is(err, ErrGone) {
			return fmt.Errorf("%s: %w", q.cfg.Name, err)
		}
		err = fmt.Errorf("%s: %s wait, make room or repair the output: %w", q.cfg.Name, q.cfg.Noun, err)
		if last || q.ctx.Err() != nil {
			return err
		}
		q.mu.Lock()
		q.err = err
		q.stats.Retries++
		q.mu.Unlock()
		timer := time.NewTimer(retry)
		select {
		case <-timer.C:
		case <-q.closing:
			timer.Stop()
		}
	}
}

func (q *Queue) isClosing() bool {
	select {
	case <-q.closing:
		return true
	default:
		return false
	}
}

// settle acknowledges b, or fails it.
func (q *Queue) settle(b *Batch, err error) {
	q.mu.Lock()
	q.err = nil
	switch {
	case err == nil:
		q.stats.Kept += int64(len(b.marks))
		q.stats.Batches++
	case q.cfg.Drop:
		q.stats.Dropped += int64(len(b.marks))
	}
	if err != nil && q.failed == nil {
		q.failed = err
	}
	q.mu.Unlock()
	for i, done := range b.done {
		b.done[i] = nil
		done(err)
	}
	q.mu.Lock()
	q.pending -= int64(len(b.buf))
	b.buf, b.marks, b.done = b.buf[:0], b.marks[:0], b.done[:0]
	if len(q.free) < keepFree && cap(b.buf) <= keepBatch {
		q.free = append(q.free, b)
	}
	q.room.Broadcast()
	q.mu.Unlock()
}

// Err is why nothing can be kept just now, or nil. Entries wait meanwhile.
func (q *Queue) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Stats returns the counts so far.
func (q *Queue) Stats() QueueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	st := q.stats
	st.Pending = q.pending
	return st
}

// Close commits what waits, trying once, acknowledges or fails it, and returns
// the first error that cost entries, unless those may be dropped. A second call
// waits for the first and returns the same.
func (q *Queue) Close() error {
	q.once.Do(func() {
		q.mu.Lock()
		q.closed = true
		q.hurry = time.AfterFunc(patience, q.cancel)
		close(q.closing)
		q.room.Broadcast()
		q.mu.Unlock()
		<-q.ended
		q.hurry.Stop()
		q.cancel()
	})
	<-q.ended
	if q.cfg.Drop {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed
}
