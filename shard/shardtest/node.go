package shardtest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Node is one server process. Its methods are for one goroutine at a time.
type Node struct {
	Index int    // in Server.Nodes
	Addr  string // host:port
	Dir   string // what it wrote: redis.conf, server.log, the append-only file

	port, bus int
	known     string // the address that the cluster tells clients
	of        *Node  // the master that it is a replica of from the start, without a cluster
	id        string // cluster node id
	program   string
	args      []string // of the program, behind its file
	cfg       *Config
	cmd       *exec.Cmd
	ended     chan struct{} // closed when the process was waited for

	once sync.Once
	rdb  *redis.Client
}

// Pid is the process id of the node as last started.
func (n *Node) Pid() int { return n.cmd.Process.Pid }

// ID is the node's name in the cluster.
func (n *Node) ID() string { return n.id }

// Log is all that the server has written to its log.
func (n *Node) Log() string {
	b, _ := os.ReadFile(filepath.Join(n.Dir, "server.log"))
	return string(b)
}

// Kill ends the process as kill -9 does and returns when it is gone.
func (n *Node) Kill(t testing.TB) {
	t.Helper()
	if !n.kill() {
		t.Fatalf("shardtest: node %s does not run", n.Addr)
	}
}

// Stop freezes the process (SIGSTOP): connections stay open, nothing answers.
func (n *Node) Stop(t testing.TB) { t.Helper(); n.signal(t, syscall.SIGSTOP) }

// Cont lets a frozen process go on (SIGCONT).
func (n *Node) Cont(t testing.TB) { t.Helper(); n.signal(t, syscall.SIGCONT) }

// Restart starts a killed node again on its port and directory and returns
// when it has loaded its data. Without Config.AOF it comes back empty.
func (n *Node) Restart(t testing.TB) {
	t.Helper()
	if n.running() {
		t.Fatalf("shardtest: node %s runs already", n.Addr)
	}
	if err := n.run(); err != nil {
		t.Fatal("shardtest: ", err)
	}
	if err := n.ready(n.cfg.StartTimeout); err != nil {
		t.Fatal("shardtest: ", err)
	}
}

// Client is a connection to this node alone, for a test's own commands. It
// belongs to the node; do not close it.
func (n *Node) Client() *redis.Client {
	n.once.Do(func() {
		n.rdb = redis.NewClient(&redis.Options{Addr: n.Addr, Password: n.cfg.Password, MaxRetries: -1, Protocol: 2,
			DialerRetries: 1, DisableIdentity: true, ContextTimeoutEnabled: true, ReadTimeout: n.cfg.StartTimeout, WriteTimeout: n.cfg.StartTimeout, TLSConfig: n.cfg.TLS.client()})
	})
	return n.rdb
}

// Do runs one command on this node; an error ends the test.
func (n *Node) Do(t testing.TB, args ...any) any {
	t.Helper()
	v, err := n.Client().Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("shardtest: node %s: %v: %v", n.Addr, args, err)
	}
	return v
}

func (n *Node) running() bool {
	select {
	case <-n.ended:
		return false
	default:
		return n.cmd != nil
	}
}

func (n *Node) kill() bool {
	if n.cmd == nil || !n.running() {
		return false
	}
	n.cmd.Process.Kill()
	<-n.ended
	return true
}

func (n *Node) signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := n.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("shardtest: node %s: %v: %v", n.Addr, sig, err)
	}
}

// end is the clean-up of a node: the process dies, and the log of a failed
// test is shown.
func (n *Node) end(t testing.TB) {
	n.kill()
	if n.rdb != nil {
		n.rdb.Close()
	}
	if t.Failed() {
		lines := strings.Split(strings.TrimSpace(n.Log()), "\n")
		t.Logf("%s %s, end of its log:\n%s", n.cfg.Kind, n.Addr, strings.Join(lines[max(0, len(lines)-8):], "\n"))
	}
}

// write makes the directory with redis.conf and, in a cluster, what the node
// knows of it from the start.
func (n *Node) write(module, nodesConf string) error {
	if err := os.MkdirAll(n.Dir, 0o700); err != nil {
		return err
	}
	conf := []string{"bind 127.0.0.1", "dir " + strconv.Quote(n.Dir), "logfile server.log", `save ""`, "maxmemory-policy noeviction",
		"list-compress-depth 1", "enable-debug-command local", "repl-diskless-sync-delay 0"}
	if n.cfg.TLS != nil {
		conf = append(conf, "port 0", fmt.Sprint("tls-port ", n.port), "tls-cluster yes", "tls-replication yes", "tls-ca-cert-file "+strconv.Quote(n.cfg.TLS.CA),
			"tls-cert-file "+strconv.Quote(n.cfg.TLS.Cert), "tls-key-file "+strconv.Quote(n.cfg.TLS.Key))
	} else {
		conf = append(conf, fmt.Sprint("port ", n.port))
	}
	if module != "" {
		conf = append(conf, "loadmodule "+strconv.Quote(module))
	}
	if n.cfg.AOF != "" {
		conf = append(conf, "appendonly yes", "appendfsync "+n.cfg.AOF)
	}
	if n.cfg.Password != "" {
		conf = append(conf, "requirepass "+strconv.Quote(n.cfg.Password), "masterauth "+strconv.Quote(n.cfg.Password))
	}
	if n.of != nil {
		host, port, _ := net.SplitHostPort(n.of.Addr)
		conf = append(conf, "replicaof "+host+" "+port)
	}
	if n.bus != 0 {
		conf = append(conf, "cluster-enabled yes", "cluster-require-full-coverage no", fmt.Sprint("cluster-port ", n.bus),
			fmt.Sprint("cluster-node-timeout ", n.cfg.NodeTimeout.Milliseconds()))
		if host, port, _ := net.SplitHostPort(n.known); n.known != n.Addr {
			conf = append(conf, "cluster-announce-ip "+host, "cluster-announce-port "+port)
		}
	}
	if nodesConf != "" {
		if err := os.WriteFile(filepath.Join(n.Dir, "nodes.conf"), []byte(nodesConf), 0o600); err != nil {
			return err
		}
	}
	conf = append(conf, n.cfg.Directives...)
	return os.WriteFile(filepath.Join(n.Dir, "redis.conf"), []byte(strings.Join(conf, "\n")+"\n"), 0o600)
}

// run starts the process.
func (n *Node) run() error {
	n.cmd = exec.Command(n.program, append([]string{filepath.Join(n.Dir, "redis.conf")}, n.args...)...)
	n.cmd.Dir = n.Dir
	n.cmd.SysProcAttr = dieWithParent()
	if err := n.cmd.Start(); err != nil {
		n.cmd = nil
		return err
	}
	n.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		cmd.Wait()
		close(ended)
	}(n.cmd, n.ended)
	return nil
}

// ready waits until the node answers and has loaded its data.
func (n *Node) ready(timeout time.Duration) error {
	return eventually(timeout, func() error {
		if !n.running() {
			return fmt.Errorf("%s ended: %w; its log ends: %s", n.Addr, errGone, n.Log()[max(0, len(n.Log())-300):])
		}
		return n.Client().Ping(context.Background()).Err()
	})
}

var errGone = errors.New("the process is gone")

// eventually calls probe until it succeeds, the process it asks is gone, or
// the time is over.
func eventually(timeout time.Duration, probe func() error) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(timeout); ; <-tick.C {
		err := probe()
		if err == nil || errors.Is(err, errGone) || time.Now().After(end) {
			return err
		}
	}
}

// client is the configuration of a client of a server that speaks TLS.
func (f *TLS) client() *tls.Config {
	if f == nil {
		return nil
	}
	pem, _ := os.ReadFile(f.CA)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	cert, _ := tls.LoadX509KeyPair(f.Cert, f.Key)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, ServerName: "127.0.0.1"}
}

// freePort finds a port below those that the system gives to outgoing
// connections, and holds it for the test, so that a node can come back to it.
func freePort(t testing.TB) (int, error) {
	for range 200 {
		r, err := rand.Int(rand.Reader, big.NewInt(20000))
		if err != nil {
			return 0, err
		}
		port := 11000 + int(r.Int64())
		if release, err := holdPort(port); err == nil {
			t.Cleanup(release)
			return port, nil
		}
	}
	return 0, errors.New("no free port between 11000 and 31000")
}

// nodeID is a random cluster node name.
func nodeID() string {
	var b [20]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
