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
	// Commit writes all of a batch, or fails. The queue retries it with the same batch,
	// unless the error is ErrGone. What a failed call wrote may be written twice, unless
	// the output recognizes repeats. One call runs at a time. ctx ends 10 s after Close
	// began, or after the last batch since.
	Commit func(ctx context.Context, b *Batch) error
	// MaxPending is how many bytes may wait before AddEntry blocks, default 64 MB.
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
	// returns when the next call is due.
	Idle func() time.Duration
	// End, if not nil, ends the output. Close calls it behind the last commit.
	End func() error
	// Drop makes the queue drop entries that find no room. The others are acknowledged
	// once they are queued.
	Drop bool
}

// Queue is what most sinks are built on. Callers add entries, which join the last batch.
// One committer commits batch after batch, oldest first, and retries each with backoff
// until the output has it. Only then it acknowledges the entries. A Queue is safe for
// concurrent use and in steady state allocates nothing.
type Queue struct {
	cfg QueueConfig

	wake    chan struct{} // a batch was begun, or grew full
	closing chan struct{}
	ended   chan struct{} // the committer returned
	once    sync.Once
	ctx     context.Context
	cancel  context.CancelFunc
	hurry   *time.Timer // ends ctx; there once closing is closed
	lines   sync.Pool   // *[]byte, for encoding outside the lock

	mu      sync.Mutex
	room    sync.Cond // pending fell, or closing
	queue   []*Batch  // oldest first; the last one grows
	free    []*Batch
	pending int64 // bytes added and not done
	closed  bool
	err     error // while commits fail
	failed  error // first error that cost entries, for Close
	endErr  error // of QueueConfig.End
	stats   QueueStats
}

// QueueStats counts what a queue did. Totals only grow.
type QueueStats struct {
	Kept    int64 // entries that the output has
	Batches int64 // that the output has
	Retries int64 // commits that failed and were repeated
	Dropped int64 // entries lost under QueueConfig.Drop
	Pending int64 // gauge: bytes that wait

	// Unfit are records that the output could not take as they are, counted by the sink:
	// Kafka gets them without their largest fields, PostgreSQL has a table of them.
	Unfit int64
}

// Batch is entries that are committed together, in the order of AddEntry.
type Batch struct {
	buf   []byte // keys and values of all entries
	ends  []entryEnd
	done  []func(error)
	first time.Time // when it was begun
}

// entryEnd is where the key of an entry and its value end.
type entryEnd struct{ key, value int }

// Len is the number of entries.
func (b *Batch) Len() int { return len(b.ends) }

// Bytes is all entries in one, keys before values; good until Commit returns.
func (b *Batch) Bytes() []byte { return b.buf }

// Entry returns key and value of one entry; good until Commit returns.
func (b *Batch) Entry(i int) (key, value []byte) {
	start := 0
	if i > 0 {
		start = b.ends[i-1].value
	}
	m := b.ends[i]
	return b.buf[start:m.key:m.key], b.buf[m.key:m.value:m.value]
}

// ErrClosed is the error of an entry that came after Close.
var ErrClosed = errors.New("sink: closed")

// ErrGone is what Commit wraps when an output will never take anything: its entries
// fail, and all that come after them.
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

// AddEntry queues an entry, which it copies. The committer calls done once: with nil when
// the output has the entry, with an error only when the queue was closed before that, or
// its output is gone. done must not block and must not call AddEntry. AddEntry blocks
// while MaxPending bytes wait. key may be nil.
func (q *Queue) AddEntry(key, value []byte, done func(error)) {
	switch q.enqueue(key, value, done) {
	case refusedClosed:
		done(ErrClosed)
	case acknowledged:
		done(nil)
	}
}

// AddRecord queues r, which it does not keep, as a line of JSON with end behind it, as
// AddEntry does.
func (q *Queue) AddRecord(r *Record, fields Fields, end string, done func(error)) {
	line, _ := q.lines.Get().(*[]byte)
	if line == nil {
		line = new([]byte)
	}
	*line = append(r.AppendJSON((*line)[:0], fields), end...)
	q.AddEntry(nil, *line, done)
	if cap(*line) <= keepBatch {
		q.lines.Put(line)
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
	m := entryEnd{key: len(b.buf)}
	b.buf = append(b.buf, value...)
	m.value = len(b.buf)
	b.ends = append(b.ends, m)
	if len(b.ends) == q.cfg.BatchLen {
		q.wakeCommitter()
	}
	if q.cfg.Drop {
		return acknowledged
	}
	b.done = append(b.done, done)
	return waits
}

// last returns the batch that an entry of n bytes joins. The caller has locked mu.
func (q *Queue) last(n int) *Batch {
	if k := len(q.queue); k > 0 {
		b := q.queue[k-1]
		if len(b.buf)+n <= q.cfg.BatchBytes && (q.cfg.BatchLen == 0 || len(b.ends) < q.cfg.BatchLen) {
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
	q.wakeCommitter()
	return b
}

func (q *Queue) wakeCommitter() {
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
		b, wait, end := q.nextBatch()
		if b != nil {
			q.acknowledge(b, q.persist(b))
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

// nextBatch returns the oldest batch if it is due, else how long until it is (0 if
// there is none), or that there will be none.
func (q *Queue) nextBatch() (b *Batch, wait time.Duration, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return nil, 0, q.closed
	}
	b = q.queue[0]
	full := len(q.queue) > 1 || len(b.ends) == q.cfg.BatchLen
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

// persist commits b, and retries until the output has it. Once the queue is being closed
// it tries only once more; after a batch that was lost it does not try at all.
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

// acknowledge calls the done functions of b, with err or nil.
func (q *Queue) acknowledge(b *Batch, err error) {
	q.mu.Lock()
	q.err = nil
	switch {
	case err == nil:
		q.stats.Kept += int64(len(b.ends))
		q.stats.Batches++
	case q.cfg.Drop:
		q.stats.Dropped += int64(len(b.ends))
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
	b.buf, b.ends, b.done = b.buf[:0], b.ends[:0], b.done[:0]
	if len(q.free) < keepFree && cap(b.buf) <= keepBatch {
		q.free = append(q.free, b)
	}
	q.room.Broadcast()
	q.mu.Unlock()
}

// Err is why the last commit failed, while entries wait for the next one, else nil.
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

// Close commits what waits, trying once, acknowledges or fails it, and ends the output. It
// returns the first error that cost entries, unless the queue may drop some, or else that
// of the end. A second call waits for the first and returns the same.
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
		if q.cfg.End == nil {
			return
		}
		if q.endErr = q.cfg.End(); q.endErr != nil {
			q.endErr = fmt.Errorf("%s: closing: %w", q.cfg.Name, q.endErr)
		}
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.failed != nil && !q.cfg.Drop {
		return q.failed
	}
	return q.endErr
}
