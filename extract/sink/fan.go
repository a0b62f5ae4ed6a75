package sink

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Output is a sink of a Fan.
type Output struct {
	Name string // in errors; no two have the same
	Sink Sink
	// Drop lets the output lose records: the Fan ignores its errors. The sink itself must
	// not block, see QueueConfig.Drop.
	Drop bool
	// Archives makes the Fan write records to it that are ArchiveOnly too.
	Archives bool
}

// Fan writes each record to several outputs. A record is in it when it is in all
// of them; each has its own queue, and the Fan waits while that is full. A
// record that one output could not take may be in the others.
type Fan struct {
	outs  []Output
	joins sync.Pool // *join
}

var _ Sink = (*Fan)(nil)

// NewFan makes a sink of at least one output, which it closes in the end.
func NewFan(outs ...Output) *Fan {
	f := &Fan{outs: outs}
	f.joins.New = func() any {
		j := &join{fan: f, each: make([]func(error), len(outs))}
		for i := range outs {
			j.each[i] = func(err error) { j.finishOutput(i, err) }
		}
		return j
	}
	return f
}

// join waits until all outputs are done with one record.
type join struct {
	fan  *Fan
	each []func(error) // done of each output, made once
	left atomic.Int32
	done func(error)

	mu  sync.Mutex
	err error
}

func (j *join) finishOutput(i int, err error) {
	if o := &j.fan.outs[i]; err != nil && !o.Drop {
		j.mu.Lock()
		j.err = errors.Join(j.err, fmt.Errorf("output %s: %w", o.Name, err))
		j.mu.Unlock()
	}
	if j.left.Add(-1) > 0 {
		return
	}
	done, err := j.done, j.err
	j.done, j.err = nil, nil
	j.fan.joins.Put(j)
	done(err)
}

// Write implements Sink.
func (f *Fan) Write(r *Record, done func(error)) {
	j := f.joins.Get().(*join)
	j.done = done
	j.left.Store(int32(len(f.outs)))
	each := j.each // j is another's once all have answered
	for i := range f.outs {
		if r.ArchiveOnly && !f.outs[i].Archives {
			each[i](nil)
			continue
		}
		f.outs[i].Sink.Write(r, each[i])
	}
}

// Err names the outputs that cannot write just now, and why.
func (f *Fan) Err() error {
	var errs []error
	for i := range f.outs {
		if o := &f.outs[i]; !o.Drop {
			if err := o.Sink.Err(); err != nil {
				errs = append(errs, fmt.Errorf("output %s: %w", o.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Close closes all outputs, at the same time: each may have to wait for a server.
func (f *Fan) Close() error {
	errs := make([]error, len(f.outs))
	var all sync.WaitGroup
	for i := range f.outs {
		all.Go(func() {
			o := &f.outs[i]
			if err := o.Sink.Close(); err != nil && !o.Drop {
				errs[i] = fmt.Errorf("output %s: %w", o.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
