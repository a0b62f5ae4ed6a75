// Package shardtest starts real Redis or Valkey servers with RedisBloom for tests.
package shardtest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Server is one running server or cluster.
type Server struct {
	Addrs []string
}

// One starts one server that ends with the test.
func One(t testing.TB) *Server {
	t.Helper()
	home, _ := os.UserCacheDir()
	so := filepath.Join(home, "seine", "redisbloom.so")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir(),
		"--loadmodule", so, "--maxmemory-policy", "noeviction", "--list-compress-depth", "1", "--list-max-listpack-size", "-2")
	if err := cmd.Start(); err != nil {
		t.Skip("no redis-server: ", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for range 500 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return &Server{Addrs: []string{addr}}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("redis-server did not start")
	return nil
}
