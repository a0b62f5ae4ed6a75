package shard

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Error says which operation of which shard failed.
type Error struct {
	Shard int    // negative: a key that belongs to no shard
	Op    string // name of the script or command
	Err   error
}

func (e *Error) Error() string {
	if e.Shard < 0 {
		return fmt.Sprintf("shard: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("shard %d: %s: %v", e.Shard, e.Op, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// silence is the error of a call that was given up.
type silence struct {
	master string
	err    error // of the call, or ErrUnreachable
}

func (e *silence) Error() string {
	text := e.master + " does not answer"
	if _, last, ok := strings.Cut(e.err.Error(), "last try: "); ok {
		text += ": " + last
	}
	return text
}

func (e *silence) Unwrap() []error { return []error{ErrUnreachable, context.DeadlineExceeded, e.err} }

// Sentinels of what callers tell apart.
var (
	// ErrUnreachable: no server of the list answers, or the one that owns a
	// key did not in the time there was.
	ErrUnreachable = errors.New("shard: cannot reach Redis")
	// ErrNoBloom: a master has no RedisBloom.
	ErrNoBloom = errors.New("shard: server without RedisBloom")
	// ErrUnfit: a server is too old or set up so that data would be lost.
	ErrUnfit = errors.New("shard: server not fit for a crawl")
	// ErrForbidden: our user of Redis may not do what is asked.
	ErrForbidden = errors.New("shard: not allowed")
	// ErrEmpty: a server has nothing of a shard that it kept. A call waits until somebody
	// brings it back; with Config.GiveUp it fails at once.
	ErrEmpty = errors.New("shard: its keys are gone")
	// ErrPlain: TLS was asked for, and the port of the server speaks none.
	ErrPlain = errors.New("shard: this port speaks no TLS")
	// ErrLogin: a server asks for a password, or for another one.
	ErrLogin = errors.New("shard: not logged in")
)

// fault is how a failed try is gone on from.
type fault uint8

const (
	permanent fault = iota // the answer will not change: report it
	moved                  // the slot is at another node
	ask                    // this call, once, goes to another node
	busy                   // the node is there but cannot serve now
	broken                 // no answer: connection, time-out
)

func (f fault) String() string {
	return [...]string{"permanent", "moved", "ask", "busy", "broken"}[f]
}

// passing are the error replies that end by themselves, demotions aside: the cluster
// changes, the server starts, its disk is full, or a script holds it up.
var passing = []string{"TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "NOREPLICAS", "MISCONF", "BUSY ",
	"max number of clients", "Script attempted to execute a write command while the cluster is down",
	"Script attempted to execute a command while the cluster is down", "Script killed by user"}

// demotions are how a server says that it became a replica, before a call or during it:
// a write there, a WAIT under way, a WAIT after that. CLIENT UNBLOCK ends a WAIT too.
var demotions = []string{"READONLY", "UNBLOCKED", "WAIT cannot be used with replica"}

// errReplica: a server that was taken for a master is a replica.
var errReplica = errors.New("shard: the server is a replica")

// isDemoted reports whether an error says that its server is a master no longer.
func isDemoted(err error) bool { return errors.Is(err, errReplica) || hasAnyPrefix(err, demotions) }

// hasAnyPrefix reports whether err is an error reply that begins with one of some
// texts, after "ERR ".
func hasAnyPrefix(err error, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return redis.HasErrorPrefix(err, p) })
}

// classify says what a failed try means, and for moved and ask the address of
// the other node: "" when the reply has none, without host when that is the one asked.
func classify(err error) (f fault, addr string) {
	var reply redis.Error
	if errors.As(err, &reply) {
		text := reply.Error()
		for i, prefix := range []string{"MOVED ", "ASK "} {
			if rest, ok := strings.CutPrefix(text, prefix); ok {
				_, addr, _ = strings.Cut(rest, " ")
				addr, _, _ = strings.Cut(addr, " ")
				return []fault{moved, ask}[i], addr
			}
		}
		if hasAnyPrefix(err, passing) || hasAnyPrefix(err, demotions) {
			return busy, ""
		}
		return permanent, ""
	}
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, redis.ErrClosed), errors.Is(err, errDatabase), errors.Is(err, ErrPlain), errors.Is(err, errNoMaster), errors.As(err, &certificate):
		return permanent, ""
	case errors.Is(err, errLoading), errors.Is(err, errReplica), errors.Is(err, ErrUnfit), errors.Is(err, ErrNoBloom), errors.Is(err, ErrEmpty): // until it is repaired, or another is master
		return busy, ""
	case strings.HasPrefix(err.Error(), "redis: can't marshal"): // an argument of a type that has no wire form
		return permanent, ""
	}
	return broken, ""
}

// refusals are how servers say that a user may not run a command, use a key, or run
// a command of a script: Redis 7.0 and Valkey have their own words for the last.
var refusals = []string{"NOPERM", "The user executing the script", "ACL failure in script"}

// logins are how servers say that nobody is logged in. The last is their answer to a
// call of more than ten words, which comes before they look at it.
var logins = []string{"NOAUTH", "WRONGPASS", "Protocol error: unauthenticated"}

// allowed names the user in an error that says what it may not do, and the server in one
// that says that nobody is logged in there.
func (c *Client) allowed(n *redis.Client, err error) error {
	if hasAnyPrefix(err, logins) && n != nil {
		return fmt.Errorf("%w to %s, which asks for a password: %w", ErrLogin, n.Options().Addr, err)
	}
	if hasAnyPrefix(err, refusals) {
		return fmt.Errorf("%w: the user %s of Redis may not do this; log in as one of another role (see deploy/acl): %w", ErrForbidden, cmp.Or(c.cfg.Username, "default"), err)
	}
	return err
}

// ended is the error of a call whose context ended while it was repeated.
func ended(ctx context.Context, last error) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		if last == nil || errors.Is(last, cause) {
			return fmt.Errorf("%w: %w", ErrUnreachable, cause)
		}
		if f, _ := classify(last); f == broken {
			return fmt.Errorf("%w: %w; last try: %w", ErrUnreachable, cause, last)
		}
	}
	if last == nil || errors.Is(last, cause) {
		return cause
	}
	return fmt.Errorf("%w; last try: %w", cause, last)
}
