package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seine/shard/shardtest"
)

// reply is an error reply as a server sends it.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// TestReplies: what a failover, a restart, a move, a full disk, a long script or an
// ended connection makes a server answer is tried again; what stays as it is, is not.
func TestReplies(t *testing.T) {
	for _, x := range []struct {
		err  error
		want fault
		addr string
	}{
		{reply("MOVED 5 10.0.0.1:7"), moved, "10.0.0.1:7"},
		{reply("MOVED 5 :7"), moved, ":7"},
		{reply("ASK 5 10.0.0.1:7"), ask, "10.0.0.1:7"},
		{reply("TRYAGAIN Multiple keys request during rehashing of slot"), busy, ""},
		{reply("TRYAGAIN Slot is being trimmed"), busy, ""},
		{reply("CLUSTERDOWN The cluster is down"), busy, ""},
		{reply("CLUSTERDOWN The cluster is down and only accepts read commands"), busy, ""},
		{reply("CLUSTERDOWN Hash slot not served"), busy, ""},
		{reply("ERR Script attempted to execute a write command while the cluster is down and readonly script: 1, on @user_script:1."), busy, ""},
		{reply("ERR Script attempted to execute a command while the cluster is down script: 1, on @user_script:1."), busy, ""},
		{reply("LOADING Redis is loading the dataset in memory"), busy, ""},
		{reply("LOADING Valkey is loading the dataset in memory"), busy, ""},
		{reply("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), busy, ""},
		{reply("READONLY You can't write against a read only replica."), busy, ""},
		{reply("READONLY You can't write against a read only replica. script: 1, on @user_script:7."), busy, ""},
		{reply("READONLY Can not run script with write flag on readonly replica."), busy, ""},
		{reply("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"), busy, ""},
		{reply("UNBLOCKED client unblocked via CLIENT UNBLOCK"), busy, ""},
		{reply("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated."), busy, ""},
		{reply("NOREPLICAS Not enough good replicas to write."), busy, ""},
		{reply("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."), busy, ""},
		{reply("MISCONF Errors writing to the AOF file: No space left on device"), busy, ""},
		{reply("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."), busy, ""},
		{reply("ERR Script killed by user with SCRIPT KILL. script: 1, on @user_script:1."), busy, ""},
		{reply("ERR max number of clients reached"), busy, ""},
		{reply("ERR max number of clients + cluster connections reached"), busy, ""},
		{fmt.Errorf("wrapped: %w", reply("UNBLOCKED force unblock")), busy, ""},
		{fmt.Errorf("%w of 10.0.0.1:7", errReplica), busy, ""},
		{errLoading, busy, ""},
		{ErrNoBloom, busy, ""},
		{io.EOF, broken, ""},
		{io.ErrUnexpectedEOF, broken, ""},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, broken, ""},
		{context.DeadlineExceeded, broken, ""},
		{redis.ErrPoolTimeout, broken, ""},

		{reply("OOM command not allowed when used memory > 'maxmemory'."), permanent, ""},
		{reply("NOPERM this user has no permissions to run the 'wait' command"), permanent, ""},
		{reply("NOAUTH Authentication required."), permanent, ""},
		{reply("WRONGTYPE Operation against a key holding the wrong kind of value"), permanent, ""},
		{reply("CROSSSLOT Keys in request don't hash to the same slot"), permanent, ""},
		{reply("ERR syntax error"), permanent, ""},
		{reply("ERR WAIT timeout is not an integer or out of range"), permanent, ""},
		{redis.ErrClosed, permanent, ""},
	} {
		if f, addr := classify(x.err); f != x.want || addr != x.addr {
			t.Errorf("%v: %v %q, want %v %q", x.err, f, addr, x.want, x.addr)
		}
	}
}

// TestDemoted: a server that became a replica is named as that, and not as one that
// does not fit.
func TestDemoted(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		n := shardtest.Start(t, shardtest.Config{Kind: kind, AOF: "everysec"}).Nodes[0]
		reportedMaster := make(chan Wait, 1000)
		c, err := Open(t.Context(), Config{Addrs: []string{n.Addr}, Waits: func(w Wait) { reportedMaster <- w }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.patience = patience{first: time.Millisecond, again: time.Millisecond, open: time.Hour}
		if _, err := c.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		epoch := c.Epoch(0)
		call := func() error { _, err := c.Do(t.Context(), 0, "k", "SET", "k", "v"); return err }
		if err := call(); err != nil {
			t.Fatal(err)
		}
		n.Do(t, "replicaof", "127.0.0.1", "1")
		ended := make(chan error, 1)
		go func() { ended <- call() }()
		for range 3 { // by its answer, then as it is looked at again
			if w := <-reportedMaster; !strings.Contains(w.String(), n.Addr+", master of shard 0 is a replica") || strings.Contains(w.String(), "not fit") {
				t.Errorf("%v: %v", w, w.Err)
			}
		}
		n.Do(t, "replicaof", "no", "one")
		if err := <-ended; err != nil || c.Epoch(0) == epoch {
			t.Errorf("%v, epoch %d", err, c.Epoch(0))
		}
	})
}
