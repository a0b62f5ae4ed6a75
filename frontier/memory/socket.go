package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"seine/frontier"
)

// While a process has a directory open, others reach the crawl through a socket in
// it: HTTP, POST /NAME with the arguments as a list of JSON; the answer is the result as
// JSON, or status 422 with the text of an error. Who may open the directory's
// files may use it, nobody else.
const socketName = "socket"

// socketMost is how long the path of a socket may be on any system; the kernel's
// bound is 104 bytes on some. The socket of a longer path is in a directory of
// its own under os.TempDir, and a link to it in its place.
const socketMost = 100

// calls is all that can be asked through the socket. The method of the same name in
// dial.go makes a call.
var calls = map[string]any{
	"Describe": func(f *Frontier, ctx context.Context) (described, error) {
		s := f.Settings()
		return described{f.layout, *s, s.Rev}, ctx.Err()
	},
	"Set": func(f *Frontier, ctx context.Context, rev int64, settings frontier.Settings) (described, error) {
		_, after, err := f.Set(ctx, func(s *frontier.Settings) error {
			if s.Rev != rev {
				return errChanged
			}
			*s, s.Rev = settings, rev
			return nil
		})
		if err != nil {
			return described{}, err
		}
		return described{f.layout, *after, after.Rev}, nil
	},
	"Admit": func(f *Frontier, ctx context.Context, k int, batch []frontier.Candidate) ([]frontier.Verdict, error) {
		verdicts := make([]frontier.Verdict, len(batch))
		return verdicts, f.Admit(ctx, k, batch, verdicts)
	},
	"Rules": func(f *Frontier, ctx context.Context, k int, origins []frontier.OriginRules) ([]frontier.OriginRules, error) {
		return origins, f.Rules(ctx, k, origins)
	},
	"SampleSites": func(f *Frontier, ctx context.Context, k, n int) (sample, error) {
		sites, all, err := f.SampleSites(ctx, k, n)
		return sample{sites, all}, err
	},
	"NoteSeeds":    (*Frontier).NoteSeeds,
	"Pause":        (*Frontier).Pause,
	"PausedShards": (*Frontier).PausedShards,
	"Alter":        (*Frontier).Alter,
	"DeadLetters":  (*Frontier).DeadLetters,
	"DeadCounts":   (*Frontier).DeadCounts,
	"RetryDead":    (*Frontier).RetryDead,
	"DropDead":     (*Frontier).DropDead,
	"Stats":        (*Frontier).Stats,
	"ShardStats":   (*Frontier).ShardStats,
	"Finished":     (*Frontier).Finished,
	"Announce":     (*Frontier).Announce,
	"Leave":        (*Frontier).Leave,
	"Runs":         (*Frontier).Runs,
	"Members":      (*Frontier).Members,
	"KnowsSite":    (*Frontier).KnowsSite,
	"Stopped":      (*Frontier).Stopped,
	"SetRules":     (*Frontier).SetRules,
	"SiteStates":   (*Frontier).SiteStates,
	"Entries":      (*Frontier).Entries,
	"Counters":     (*Frontier).Counters,
	"WorkSites":    (*Frontier).WorkSites,
	"WalledSites":  (*Frontier).WalledSites,
	"Knows":        (*Frontier).Knows,
	"Began":        (*Frontier).Began,
	"Report":       (*Frontier).Report,
}

type (
	described struct {
		Layout   frontier.Layout
		Settings frontier.Settings
		Rev      int64 // of the settings
	}
	sample struct {
		Sites []string
		All   bool
	}
)

// errChanged: somebody else changed the settings meanwhile.
var errChanged = errors.New("memory: the settings were changed by somebody else")

// answer makes one of calls with the arguments of a request, and returns its result.
func answer(ctx context.Context, f *Frontier, call any, body io.Reader) (result any, err error) {
	var args []json.RawMessage
	err = json.NewDecoder(body).Decode(&args)
	do, in := reflect.ValueOf(call), []reflect.Value{reflect.ValueOf(f), reflect.ValueOf(ctx)}
	for i := 0; i < len(args) && err == nil && len(in) < do.Type().NumIn(); i++ {
		arg := reflect.New(do.Type().In(len(in)))
		err = json.Unmarshal(args[i], arg.Interface())
		in = append(in, arg.Elem())
	}
	if err == nil && (len(in) != do.Type().NumIn() || len(args) != len(in)-2) {
		err = fmt.Errorf("%d arguments", len(args))
	}
	if err != nil {
		return nil, fmt.Errorf("memory: the arguments cannot be read, run one version of the programs: %w", err)
	}
	out := do.Call(in)
	err, _ = out[len(out)-1].Interface().(error)
	if len(out) > 1 {
		result = out[0].Interface()
	}
	return result, err
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
	for name, call := range calls {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			result, err := answer(r.Context(), f, call, r.Body)
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
