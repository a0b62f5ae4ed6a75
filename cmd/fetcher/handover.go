package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"seine/cmd/internal/boot"
	"seine/extract/sink/handover"
)

// checkHandover finds what is wrong with --on-rotate.
func (g *grammar) checkHandover(all []destination) error {
	if g.OnRotate == "" {
		return nil
	}
	_, err := handover.Parse(g.OnRotate)
	if err != nil {
		return fmt.Errorf("on-rotate: %w", err)
	}
	if !slices.ContainsFunc(all, func(d destination) bool { return d.series != nil }) {
		return errors.New("on-rotate needs a file: name it with --out FILE")
	}
	return nil
}

// openHandover starts what runs --on-rotate, if it is there.
func (g *grammar) openHandover(env *boot.Env) (*handover.Queue, error) {
	if g.OnRotate == "" {
		return nil, nil
	}
	command, err := handover.Parse(g.OnRotate)
	if err != nil {
		return nil, err
	}
	return handover.New(handover.Config{Command: command, Environ: os.Environ(), Parallel: g.OnRotateJobs, Log: env.Log}), nil
}

// Close closes the outputs, and waits for their files to be handed over.
func (o *outputs) Close() error {
	return errors.Join(o.Fan.Close(), o.closeHandover())
}

func (o *outputs) closeHandover() error {
	if o.hand == nil {
		return nil
	}
	if n := o.hand.Stats().Pending; n > 0 {
		o.log.Info("waiting for --on-rotate; what it has not done in the time of --grace the next start does", "files", n, "grace", o.grace)
	}
	ctx, cancel := context.WithTimeoutCause(o.abort, o.grace, errors.New("--grace ran out"))
	defer cancel()
	return o.hand.Close(ctx)
}

// Err is why an output cannot write. Files that are not handed over stop nobody
// as long as there is room; once there is none they may be the cause.
func (o *outputs) Err() error {
	err := o.Fan.Err()
	if err != nil && o.hand != nil {
		err = errors.Join(err, o.hand.Err())
	}
	return err
}

// writeHandover writes how files are handed over, in the text format.
func (o *outputs) writeHandover(w io.Writer) {
	if o.hand == nil {
		return
	}
	st := o.hand.Stats()
	fmt.Fprintf(w, "seine_handover_files_total %d\nseine_handover_failures_total %d\nseine_handover_pending %d\nseine_handover_running %d\n",
		st.Handed, st.Failures, st.Pending, st.Running)
}
