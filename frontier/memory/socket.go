package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// While a process has a directory open, others reach the crawl through a socket in
// it: HTTP, POST /NAME with the arguments as JSON; the answer is the result as
// JSON, or status 422 with the text of an error. Who may open the directory's
// files may use it, nobody else.
const socketName = "socket"

// socketMost is how long the path of a socket may be on any system; the kernel's
// bound is 104 bytes on some. The socket of a longer path is in a directory of
// its own under os.TempDir, and a link to it in its place.
const socketMost = 100

// calls is all that can be asked through the socket. One entry, and the method of
// the same name in dial.go, make a call.
var calls = map[string]call{
	"Describe": ask(func(ctx context.Context, f *Frontier, _ none) (described, error) {
		s := f.Settings()
		return described{f.layout, *s, s.Rev}, ctx.Err()
	}),
	"Set": ask(func(ctx context.Context, f *Frontier, a setArgs) (described, error) {
		_, after, err := f.Set(ctx, func(s *frontier.Settings) error {
			if s.Rev != a.Rev {
				return errChanged
			}
			rev := s.Rev
			*s = a.Settings
			s.Rev = rev
			return nil
		})
		if err != nil {
			return described{}, err
		}
		return described{f.layout, *after, after.Rev}, nil
	}),
	"Admit": ask(func(ctx context.Context, f *Frontier, a admitArgs) ([]frontier.Verdict, error) {
		verdicts := make([]frontier.Verdict, len(a.Batch))
		return verdicts, f.Admit(ctx, a.Shard, a.Batch, verdicts)
	}),
	"NoteSeeds": ask(func(ctx context.Context, f *Frontier, a noteArgs) (none, error) {
		return none{}, f.NoteSeeds(ctx, a.Shard, a.URLs)
	}),
	"Pause": ask(func(ctx context.Context, f *Frontier, a pauseArgs) (none, error) {
		return none{}, f.Pause(ctx, a.Shard, a.Paused)
	}),
	"PausedShards": ask(func(ctx context.Context, f *Frontier, _ none) ([]int, error) { return f.PausedShards(ctx) }),
	"Alter": ask(func(ctx context.Context, f *Frontier, a alterArgs) (none, error) {
		return none{}, f.Alter(ctx, a.Shard, a.Site, a.Change)
	}),
	"DeadLetters": ask(func(ctx context.Context, f *Frontier, a deadLettersArgs) ([]frontier.DeadLetter, error) {
		return f.DeadLetters(ctx, a.Shard, a.Cause, a.Offset, a.Count)
	}),
	"DeadCounts": ask(func(ctx context.Context, f *Frontier, k int) (map[string]int64, error) { return f.DeadCounts(ctx, k) }),
	"Revive": ask(func(ctx context.Context, f *Frontier, a takeDeadArgs) (int, error) {
		return f.RetryDead(ctx, a.Shard, a.Dead)
	}),
	"DropDead": ask(func(ctx context.Context, f *Frontier, a takeDeadArgs) (int, error) {
		return f.DropDead(ctx, a.Shard, a.Dead)
	}),
	"Stats":    ask(func(ctx context.Context, f *Frontier, _ none) ([]frontier.ShardStats, error) { return f.Stats(ctx) }),
	"Finished": ask(func(ctx context.Context, f *Frontier, _ none) (bool, error) { return f.Finished(ctx) }),
	"Announce": ask(func(ctx context.Context, f *Frontier, m frontier.Member) (frontier.Present, error) {
		return f.Announce(ctx, m)
	}),
	"Leave": ask(func(ctx context.Context, f *Frontier, m frontier.Member) (none, error) {
		return none{}, f.Leave(ctx, m)
	}),
	"Runs":    ask(func(ctx context.Context, f *Frontier, _ none) ([]frontier.Member, error) { return f.Runs(ctx) }),
	"Members": ask(func(ctx context.Context, f *Frontier, _ none) ([]frontier.Member, error) { return f.Members(ctx) }),
	"Met": ask(func(ctx context.Context, f *Frontier, a metArgs) (bool, error) {
		return f.KnowsSite(ctx, a.Shard, a.Site)
	}),
	"Stopped": ask(func(ctx context.Context, f *Frontier, _ none) ([]frontier.Stop, error) { return f.Stopped(ctx) }),
	"Rules": ask(func(ctx context.Context, f *Frontier, a rulesArgs) ([]frontier.OriginRules, error) {
		return a.Origins, f.Rules(ctx, a.Shard, a.Origins)
	}),
	"SetRules": ask(func(ctx context.Context, f *Frontier, a rulesArgs) (none, error) {
		return none{}, f.SetRules(ctx, a.Shard, a.Origins)
	}),
	"ShardStats": ask(func(ctx context.Context, f *Frontier, k int) (frontier.ShardStats, error) {
		return f.ShardStats(ctx, k)
	}),
	"SiteStates": ask(func(ctx context.Context, f *Frontier, a statesArgs) ([]frontier.SiteState, error) {
		return f.SiteStates(ctx, a.Shard, a.Sites)
	}),
	"Entries": ask(func(ctx context.Context, f *Frontier, a entriesArgs) ([]frontier.QueuedEntry, error) {
		return f.Entries(ctx, a.Shard, a.At, a.Offset, a.Count)
	}),
	"Sums":      ask(func(ctx context.Context, f *Frontier, k int) (*frontier.Counters, error) { return f.Counters(ctx, k) }),
	"WorkSites": ask(func(ctx context.Context, f *Frontier, k int) ([]string, error) { return f.WorkSites(ctx, k) }),
	"SampleSites": ask(func(ctx context.Context, f *Frontier, a sampleArgs) (sample, error) {
		sites, all, err := f.SampleSites(ctx, a.Shard, a.Most)
		return sample{sites, all}, err
	}),
	"Knows": ask(func(ctx context.Context, f *Frontier, a knowsArgs) (bool, error) {
		return f.Knows(ctx, a.Shard, a.URL)
	}),
	"Began":  ask(func(ctx context.Context, f *Frontier, _ none) (time.Time, error) { return f.Began(ctx) }),
	"Report": ask(func(ctx context.Context, f *Frontier, _ none) (*frontier.Report, error) { return f.Report(ctx) }),
}

type (
	none      struct{}
	described struct {
		Layout   frontier.Layout
		Settings frontier.Settings
		Rev      int64 // of the settings
	}
	setArgs struct {
		Rev      int64 // of the settings that were changed
		Settings frontier.Settings
	}
	admitArgs struct {
		Shard int
		Batch []frontier.Candidate
	}
	noteArgs struct {
		Shard int
		URLs  []string
	}
	pauseArgs struct {
		Shard  int
		Paused bool
	}
	alterArgs struct {
		Shard  int
		Site   string
		Change frontier.SiteChange
	}
	deadLettersArgs struct {
		Shard         int
		Cause         string
		Offset, Count int64
	}
	takeDeadArgs struct {
		Shard int
		Dead  []frontier.DeadLetter
	}
	metArgs struct {
		Shard int
		Site  string
	}
	rulesArgs struct {
		Shard   int
		Origins []frontier.OriginRules
	}
	statesArgs struct {
		Shard int
		Sites []string
	}
	entriesArgs struct {
		Shard         int
		At            frontier.EntryPlace
		Offset, Count int64
	}
	sampleArgs struct{ Shard, Most int }
	sample     struct {
		Sites []string
		All   bool
	}
	knowsArgs struct {
		Shard int
		URL   canon.Fingerprint
	}
)

// errChanged: somebody else changed the settings meanwhile.
var errChanged = errors.New("memory: the settings were changed by somebody else")

// call answers one request; args is JSON.
type call func(ctx context.Context, f *Frontier, args *json.Decoder) (any, error)

func ask[A, R any](do func(context.Context, *Frontier, A) (R, error)) call {
	return func(ctx context.Context, f *Frontier, args *json.Decoder) (any, error) {
		var a A
		if err := args.Decode(&a); err != nil {
			return nil, fmt.Errorf("memory: the arguments cannot be read, run one version of the programs: %w", err)
		}
		return do(ctx, f, a)
	}
}

// adminServer serves the socket of a directory.
type adminServer struct {
	path   string
	ownDir string // a directory of its own, "" = the socket is in its place
	server http.Server
	ended  chan struct{}
}

// Serve lets other processes reach the crawl through its directory, until Close.
func (f *Frontier) Serve() error {
	if f.dir == nil {
		return errors.New("memory: a crawl without a directory has no socket")
	}
	d := &adminServer{path: filepath.Join(f.dir.path, socketName), ended: make(chan struct{})}
	l, err := d.listen()
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	d.server = http.Server{Handler: d.handler(f), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(d.ended)
		d.server.Serve(l) // ends with ErrServerClosed
	}()
	f.adminServer = d
	return nil
}

// listen makes the socket. What is in its place is of a process that is gone:
// the lock says so.
func (d *adminServer) listen() (l net.Listener, err error) {
	if err := os.Remove(d.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	path := d.path
	if len(path) > socketMost {
		if d.ownDir, err = os.MkdirTemp("", "seine"); err != nil {
			return nil, err
		}
		path = filepath.Join(d.ownDir, socketName)
		if err := os.Symlink(path, d.path); err != nil {
			return nil, errors.Join(err, os.Remove(d.ownDir))
		}
	}
	if l, err = net.Listen("unix", path); err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (d *adminServer) handler(f *Frontier) http.Handler {
	mux := http.NewServeMux()
	for name, do := range calls {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			result, err := do(r.Context(), f, json.NewDecoder(r.Body))
			w.Header().Set("Content-Type", "application/json")
			if err != nil {
				w.WriteHeader(http.StatusUnprocessableEntity)
				result = err.Error()
			}
			json.NewEncoder(w).Encode(result) // who asked may be gone; nobody else to tell
		})
	}
	return mux
}

// closeWait is how long answers under way may take at the end.
const closeWait = 2 * time.Second

// close ends the service.
func (d *adminServer) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	err := d.server.Shutdown(ctx)
	if err != nil {
		err = d.server.Close()
	}
	<-d.ended
	if d.ownDir != "" {
		err = errors.Join(err, os.Remove(d.path), os.RemoveAll(d.ownDir))
	}
	return err
}
