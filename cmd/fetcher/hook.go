package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"seine/cmd/internal/boot"
	"seine/extract/sink/hook"
)

// checkHook finds what is wrong with --on-rotate.
func (g *grammar) checkHook(all []destination) error {
	if g.OnRotate == "" {
		return nil
	}
	_, err := hook.Parse(g.OnRotate)
	if err != nil {
		return fmt.Errorf("on-rotate: %w", err)
	}
	if !slices.ContainsFunc(all, func(d destination) bool { return d.series != nil }) {
		return errors.New("on-rotate needs a file: name it with --out FILE")
	}
	return nil
}

// openHook starts the hook of --on-rotate, nil without one.
func (g *grammar) openHook(env *boot.Env) (*hook.Hook, error) {
	if g.OnRotate == "" {
		return nil, nil
	}
	command, err := hook.Parse(g.OnRotate)
	if err != nil {
		return nil, err
	}
	return hook.New(hook.Config{Command: command, Environ: os.Environ(), Parallel: g.OnRotateJobs, Log: env.Log}), nil
}

// Close closes the outputs, and waits for the commands of --on-rotate.
func (o *outputs) Close() error {
	return errors.Join(o.Fan.Close(), o.closeHook())
}

func (o *outputs) closeHook() error {
	if o.hook == nil {
		return nil
	}
	if n := o.hook.Stats().Pending; n > 0 {
		o.log.Info("waiting for --on-rotate; what it has not done in the time of --grace the next start does", "files", n, "grace", o.grace)
	}
	ctx, cancel := context.WithTimeoutCause(o.abort, o.grace, errors.New("--grace ran out"))
	defer cancel()
	return o.hook.Close(ctx)
}

// Err is why an output cannot write. Files that wait for --on-rotate stop nobody
// as long as there is room; once there is none they may be the cause.
func (o *outputs) Err() error {
	err := o.Fan.Err()
	if err != nil && o.hook != nil {
		err = errors.Join(err, o.hook.Err())
	}
	return err
}

// writeHook writes the metrics of --on-rotate, in the text format.
func (o *outputs) writeHook(w io.Writer) {
	if o.hook == nil {
		return
	}
	st := o.hook.Stats()
	fmt.Fprintf(w, "seine_hook_files_total %d\nseine_hook_failures_total %d\nseine_hook_pending %d\nseine_hook_running %d\n",
		st.Done, st.Failures, st.Pending, st.Running)
}
