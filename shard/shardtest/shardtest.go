// Package shardtest starts real Redis or Valkey servers with RedisBloom, for
// the tests of any package.
//
// A [Server] is one server, or a cluster of n masters with the slots assigned
// evenly and any number of replicas. It lives on free loopback ports, keeps
// all it writes in the test's temporary directory and is killed when the test
// ends, also when the test process itself dies. Each [Node] of it can be
// killed, frozen, thawed and started again on its old port and directory, so
// that a test can break what it runs on.
//
// Without a server program or without the module a test is skipped with a
// message that says what is missing; where the environment variable CI is set
// it fails instead. The module is looked for in SEINE_REDISBLOOM, in
// seine/redisbloom.so under the user's cache directory, and in the usual places
// of the system.
package shardtest

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Kind is a make of server.
type Kind string

// The kinds of server.
const (
	Redis  Kind = "redis"
	Valkey Kind = "valkey"
)

// Config describes the servers of one test. The zero value is one server with
// RedisBloom and without persistence.
type Config struct {
	Kind        Kind          // default: SEINE_TEST_SERVER, else the first one installed
	Masters     int           // masters of a cluster; 0 = one server without cluster mode
	Replicas    int           // replicas of each master, or of the one server
	Sentinels   int           // that watch the one server, under the name seine
	AOF         string        // appendfsync: "everysec" or "always"; "" = nothing is kept on disk
	Password    string        // of the default user; "" = none
	TLS         *TLS          // serve TLS only; nil = plain text
	NoBloom     bool          // leave the module out
	ValkeyBloom bool          // Valkey with its own bloom module instead of RedisBloom, where scripts/valkey-bloom built it; else the test is skipped
	NodeTimeout time.Duration // cluster-node-timeout; default 5 s, 2 s with replicas
	Directives  []string      // further lines of redis.conf

	// StartTimeout bounds how long a server may take to start and to load what it
	// keeps, and to answer its own Client; default a minute.
	StartTimeout time.Duration

	// Through puts something before each node of a cluster, such as a proxy, and
	// returns its address on 127.0.0.1, which the nodes then tell clients and one
	// another. Addrs and Node.Addr stay those of the nodes.
	Through func(addr string) string
}

// TLS names the files a server speaks TLS with. Clients must show a
// certificate signed by CA.
type TLS struct{ CA, Cert, Key string }

// Server is one running server or cluster.
type Server struct {
	Addrs []string // of all nodes, masters first
	Nodes []*Node  // in the same order: masters, then replicas of master 0, 1, ... in turn
	Watch []*Node  // its sentinels
	Kind  Kind

	cfg             Config
	program, module string
	root            string
}

// One starts one server.
func One(t testing.TB) *Server {
	t.Helper()
	return Start(t, Config{})
}

// Masters starts a cluster of n masters, each with an equal range of slots.
func Masters(t testing.TB, n int) *Server {
	t.Helper()
	return Start(t, Config{Masters: n})
}

// WithReplicas starts a cluster of n masters with r replicas each.
func WithReplicas(t testing.TB, n, r int) *Server {
	t.Helper()
	return Start(t, Config{Masters: n, Replicas: r})
}

// Each runs test once for every kind of server that is installed, as a
// subtest of its name. Where CI is set, both kinds must be there.
func Each(t *testing.T, test func(t *testing.T, kind Kind)) {
	t.Helper()
	for _, kind := range []Kind{Redis, Valkey} {
		t.Run(string(kind), func(t *testing.T) {
			binary(t, kind)
			test(t, kind)
		})
	}
}

// Start starts the servers that cfg describes and returns when they answer:
// a cluster when every node holds it for complete and every replica is in
// step. They end with the test.
func Start(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.Kind == "" {
		cfg.Kind = defaultKind()
	}
	if cfg.NodeTimeout == 0 {
		cfg.NodeTimeout = 5 * time.Second
		if cfg.Replicas > 0 {
			cfg.NodeTimeout = 2 * time.Second
		}
	}
	if cfg.ValkeyBloom {
		cfg.Kind = Valkey
	}
	cfg.StartTimeout = cmp.Or(cfg.StartTimeout, startTimeout)
	program, module := binary(t, cfg.Kind), ""
	switch {
	case cfg.ValkeyBloom:
		module = valkeyBloom(t)
	case !cfg.NoBloom:
		module = bloomModule(t)
	}
	var err error
	for range 5 { // another process may take a free port before our server does
		s := &Server{Kind: cfg.Kind, cfg: cfg, program: program, module: module, root: t.TempDir()}
		if err = s.start(t); err == nil {
			return s
		}
		for _, n := range append(s.Nodes, s.Watch...) {
			n.kill()
		}
	}
	t.Fatalf("shardtest: %s did not start: %v", program, err)
	return nil
}

// start makes the nodes, runs them and waits until they are ready.
func (s *Server) start(t testing.TB) error {
	for range max(s.cfg.Masters, 1) * (1 + s.cfg.Replicas) {
		if _, err := s.newNode(t); err != nil {
			return err
		}
	}
	for _, n := range s.Nodes {
		known := ""
		if s.cfg.Masters > 0 {
			known = s.nodesConf(n)
		}
		if err := errors.Join(n.write(s.module, known), n.run()); err != nil {
			return err
		}
	}
	for _, n := range s.Nodes {
		if err := n.ready(startTimeout); err != nil {
			return err
		}
	}
	if s.cfg.Masters > 0 {
		return s.whole(startTimeout)
	}
	return s.startSentinels(t)
}

// newNode adds a node to the server; it does not run yet.
func (s *Server) newNode(t testing.TB) (*Node, error) {
	port, err := freePort(t)
	if err != nil {
		return nil, err
	}
	n := &Node{Index: len(s.Nodes), Addr: fmt.Sprintf("127.0.0.1:%d", port), Dir: filepath.Join(s.root, fmt.Sprint(len(s.Nodes))), port: port,
		program: s.program, cfg: &s.cfg, id: nodeID()}
	if s.cfg.Masters > 0 {
		if n.bus, err = freePort(t); err != nil {
			return nil, err
		}
	}
	n.known = n.Addr
	if s.cfg.Masters == 0 && n.Index > 0 {
		n.of = s.Nodes[0]
	}
	if s.cfg.Through != nil {
		n.known = s.cfg.Through(n.Addr)
	}
	s.Nodes = append(s.Nodes, n)
	s.Addrs = append(s.Addrs, n.Addr)
	t.Cleanup(func() { n.end(t) })
	return n, nil
}

// startTimeout bounds how long servers may take to start on a busy machine.
const startTimeout = 60 * time.Second

// defaultKind is the kind a test gets that does not ask for one.
func defaultKind() Kind {
	if k := Kind(os.Getenv("SEINE_TEST_SERVER")); k != "" {
		return k
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		if _, err := exec.LookPath("valkey-server"); err == nil {
			return Valkey
		}
	}
	return Redis
}

// binary finds the server program of a kind; without it the test ends here.
func binary(t testing.TB, kind Kind) string {
	t.Helper()
	path, err := exec.LookPath(string(kind) + "-server")
	if err != nil {
		missing(t, fmt.Sprintf("no %s-server on the PATH; scripts/setup installs it", kind))
	}
	return path
}

// bloomModule finds redisbloom.so; without it the test ends here.
func bloomModule(t testing.TB) string {
	t.Helper()
	var places []string
	if p := os.Getenv("SEINE_REDISBLOOM"); p != "" {
		places = []string{p}
	} else {
		if cache, err := os.UserCacheDir(); err == nil {
			places = append(places, filepath.Join(cache, "seine", "redisbloom.so"))
		}
		places = append(places, "/opt/redis-stack/lib/redisbloom.so", "/usr/lib/redis/modules/redisbloom.so",
			"/usr/lib/valkey/modules/redisbloom.so", "/usr/local/lib/redis/modules/redisbloom.so")
	}
	for _, p := range places {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	missing(t, "no redisbloom.so in "+strings.Join(places, ", ")+"; scripts/setup fetches it, SEINE_REDISBLOOM names another place")
	return ""
}

// valkeyBloom finds valkey-bloom.so; without it the test is skipped, in CI too: it
// takes a compiler of Rust to build.
func valkeyBloom(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	path := filepath.Join(cache, "seine", "valkey-bloom.so")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skip("SKIPPED, needs valkey-bloom, which scripts/valkey-bloom builds: ", err)
	}
	return path
}

// missing ends the test: skipped on a developer's machine, failed in CI.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal("shardtest: " + what)
	}
	t.Skip("shardtest: " + what)
}

// Main runs the tests of a package side by side, twice as many as there are processors
// unless -parallel says otherwise: they wait for servers more than they compute.
func Main(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", fmt.Sprint(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err) // the flag is there
		}
	}
	os.Exit(m.Run())
}
