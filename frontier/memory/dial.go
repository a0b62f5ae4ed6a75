package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// openTries is how often Open looks again when a process that has the directory
// does not answer yet, or is about to give it back.
const (
	openTries = 20
	openPause = 100 * time.Millisecond
)

// Open opens the crawl in a directory for an operator: through the process that
// has it open, or itself. It is ErrNoCrawl when there is none.
func Open(ctx context.Context, path string, log *slog.Logger) (frontier.Operated, error) {
	for try := 0; ; try++ {
		r, err := dial(ctx, path)
		if err == nil {
			return r, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		if !HasCrawl(path) {
			return nil, fmt.Errorf("%w: %s", ErrNoCrawl, path)
		}
		f, err := New(Config{Dir: path, Logger: log})
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, ErrInUse) || try == openTries {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(openPause):
		}
	}
}

// remote is a crawl that another process has open.
type remote struct {
	http     http.Client
	socket   string // in the directory
	layout   frontier.Layout
	settings atomic.Pointer[frontier.Settings]
}

// dial reaches the process that has a directory open.
func dial(ctx context.Context, path string) (*remote, error) {
	path = filepath.Join(path, socketName)
	r := &remote{socket: path}
	if to, err := os.Readlink(path); err == nil {
		path = to
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	r.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	d, err := r.describe(ctx)
	if err != nil {
		return nil, err
	}
	r.layout = d.Layout
	r.takeSettings(d)
	return r, nil
}

// answerWait is how long the process that has a crawl open may take to say what the
// crawl is, which it knows without a look at anything.
const answerWait = 4 * time.Second

// watched ends a call when the process does not answer any more: a call may take long,
// or wait for room on a disk, but the process says meanwhile what the crawl is.
func (r *remote) watched(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var look func()
	look = func() {
		if ctx.Err() != nil {
			return
		}
		if _, err := r.describe(ctx); errors.Is(err, ErrSilent) {
			cancel(err)
		}
		time.AfterFunc(answerWait, look)
	}
	time.AfterFunc(answerWait/4, look)
	return ctx, cancel
}

// describe asks what the crawl is.
func (r *remote) describe(ctx context.Context) (described, error) {
	short, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	d, err := post[described](short, r, "Describe")
	if short.Err() != nil && ctx.Err() == nil {
		return d, fmt.Errorf("%w: process %s has %s open; end it, or have it go on if it is stopped (kill -CONT)", ErrSilent, holder(r.socket), filepath.Dir(r.socket))
	}
	return d, err
}

// get makes a call.
func get[R any](ctx context.Context, r *remote, name string, args ...any) (result R, err error) {
	ctx, cancel := r.watched(ctx)
	defer cancel(nil)
	result, err = post[R](ctx, r, name, args...)
	if cause := context.Cause(ctx); errors.Is(cause, ErrSilent) {
		err = cause
	}
	return result, err
}

func post[R any](ctx context.Context, r *remote, name string, args ...any) (result R, err error) {
	body, err := json.Marshal(args)
	if err != nil {
		return result, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://crawl/"+name, bytes.NewReader(body))
	if err != nil {
		return result, err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return result, fmt.Errorf("memory: the process that has the crawl open: %w", err)
	}
	defer resp.Body.Close()
	in := json.NewDecoder(resp.Body)
	switch resp.StatusCode {
	case http.StatusOK:
		err = in.Decode(&result)
	case http.StatusUnprocessableEntity:
		var text string
		if err = in.Decode(&text); err == nil {
			err = errors.New(text)
		}
		if text == errChanged.Error() {
			err = errChanged
		}
	default:
		err = fmt.Errorf("memory: the process that has the crawl open answers %s to %s: run one version of the programs", resp.Status, name)
	}
	io.Copy(io.Discard, resp.Body) // so that the connection is used again
	return result, err
}

// takeSettings takes the settings over.
func (r *remote) takeSettings(d described) *frontier.Settings {
	d.Settings.Rev = d.Rev
	r.settings.Store(&d.Settings)
	return &d.Settings
}

func (r *remote) Close() error                 { r.http.CloseIdleConnections(); return nil }
func (r *remote) Shards() int                  { return r.layout.Shards }
func (r *remote) Of(fp canon.Fingerprint) int  { return fp.Shard(r.layout.Shards) }
func (r *remote) Layout() frontier.Layout      { return r.layout }
func (r *remote) Settings() *frontier.Settings { return r.settings.Load() }
func (r *remote) Refresh(ctx context.Context) (*frontier.Settings, error) {
	d, err := r.describe(ctx)
	if err != nil {
		return nil, err
	}
	return r.takeSettings(d), nil
}

// Set applies change here; it is made again when somebody was faster.
func (r *remote) Set(ctx context.Context, change func(*frontier.Settings) error) (before, after *frontier.Settings, err error) {
	for {
		if before, err = r.Refresh(ctx); err != nil {
			return nil, nil, err
		}
		settings := *before
		if err := change(&settings); err != nil {
			return nil, nil, err
		}
		d, err := get[described](ctx, r, "Set", before.Rev, settings)
		if err == errChanged {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		return before, r.takeSettings(d), nil
	}
}

func (r *remote) Admit(ctx context.Context, k int, batch []frontier.Candidate, verdicts []frontier.Verdict) error {
	list, err := get[[]frontier.Verdict](ctx, r, "Admit", k, batch)
	copy(verdicts, list)
	return err
}

func (r *remote) Pause(ctx context.Context, k int, paused bool) error {
	_, err := get[any](ctx, r, "Pause", k, paused)
	return err
}

func (r *remote) PausedShards(ctx context.Context) ([]int, error) {
	return get[[]int](ctx, r, "PausedShards")
}

func (r *remote) Alter(ctx context.Context, k int, site string, change frontier.SiteChange) error {
	_, err := get[any](ctx, r, "Alter", k, site, change)
	return err
}

func (r *remote) DeadLetters(ctx context.Context, k int, cause string, offset, count int64) ([]frontier.DeadLetter, error) {
	return get[[]frontier.DeadLetter](ctx, r, "DeadLetters", k, cause, offset, count)
}

func (r *remote) NoteSeeds(ctx context.Context, k int, urls []string) error {
	_, err := get[any](ctx, r, "NoteSeeds", k, urls)
	return err
}

func (r *remote) DeadCounts(ctx context.Context, k int) (map[string]int64, error) {
	return get[map[string]int64](ctx, r, "DeadCounts", k)
}

func (r *remote) RetryDead(ctx context.Context, k int, dead []frontier.DeadLetter) (int, error) {
	return get[int](ctx, r, "RetryDead", k, dead)
}

func (r *remote) DropDead(ctx context.Context, k int, dead []frontier.DeadLetter) (int, error) {
	return get[int](ctx, r, "DropDead", k, dead)
}

func (r *remote) Stats(ctx context.Context) ([]frontier.ShardStats, error) {
	return get[[]frontier.ShardStats](ctx, r, "Stats")
}

func (r *remote) RecentStats(ctx context.Context) ([]frontier.ShardStats, error) {
	return r.Stats(ctx)
}

func (r *remote) Finished(ctx context.Context) (bool, error) {
	return get[bool](ctx, r, "Finished")
}

func (r *remote) Announce(ctx context.Context, m frontier.Member) (frontier.Present, error) {
	return get[frontier.Present](ctx, r, "Announce", m)
}

func (r *remote) Leave(ctx context.Context, m frontier.Member) error {
	_, err := get[any](ctx, r, "Leave", m)
	return err
}

func (r *remote) Runs(ctx context.Context) ([]frontier.Member, error) {
	return get[[]frontier.Member](ctx, r, "Runs")
}

func (r *remote) Members(ctx context.Context) ([]frontier.Member, error) {
	return get[[]frontier.Member](ctx, r, "Members")
}

func (r *remote) KnowsSite(ctx context.Context, k int, site string) (bool, error) {
	return get[bool](ctx, r, "KnowsSite", k, site)
}

func (r *remote) Stopped(ctx context.Context) ([]frontier.Stop, error) {
	return get[[]frontier.Stop](ctx, r, "Stopped")
}

func (r *remote) Began(ctx context.Context) (time.Time, error) {
	return get[time.Time](ctx, r, "Began")
}

func (r *remote) Report(ctx context.Context) (*frontier.Report, error) {
	return get[*frontier.Report](ctx, r, "Report")
}

func (r *remote) Rules(ctx context.Context, k int, origins []frontier.OriginRules) error {
	list, err := get[[]frontier.OriginRules](ctx, r, "Rules", k, origins)
	copy(origins, list)
	return err
}

func (r *remote) SetRules(ctx context.Context, k int, origins []frontier.OriginRules) error {
	_, err := get[any](ctx, r, "SetRules", k, origins)
	return err
}

func (r *remote) SiteStates(ctx context.Context, k int, sites []string) ([]frontier.SiteState, error) {
	return get[[]frontier.SiteState](ctx, r, "SiteStates", k, sites)
}

func (r *remote) Entries(ctx context.Context, k int, at frontier.EntryPlace, offset, count int64) ([]frontier.QueuedEntry, error) {
	return get[[]frontier.QueuedEntry](ctx, r, "Entries", k, at, offset, count)
}

func (r *remote) Knows(ctx context.Context, k int, url canon.Fingerprint) (bool, error) {
	return get[bool](ctx, r, "Knows", k, url)
}

func (r *remote) Exact() bool { return true }

func (r *remote) ShardStats(ctx context.Context, k int) (frontier.ShardStats, error) {
	return get[frontier.ShardStats](ctx, r, "ShardStats", k)
}

func (r *remote) Counters(ctx context.Context, k int) (*frontier.Counters, error) {
	return get[*frontier.Counters](ctx, r, "Counters", k)
}

func (r *remote) WorkSites(ctx context.Context, k int) ([]string, error) {
	return get[[]string](ctx, r, "WorkSites", k)
}

func (r *remote) WalledSites(ctx context.Context, k int) ([]string, error) {
	return get[[]string](ctx, r, "WalledSites", k)
}

func (r *remote) SampleSites(ctx context.Context, k, n int) (sites []string, all bool, err error) {
	s, err := get[sample](ctx, r, "SampleSites", k, n)
	return s.Sites, s.All, err
}
