package shardtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// SentinelName is what sentinels call the server that they watch.
const SentinelName = "seine"

// SentinelURL is the address of the server as programs take it, by its sentinels.
func (s *Server) SentinelURL() string {
	var addrs []string
	for _, n := range s.Watch {
		addrs = append(addrs, n.Addr)
	}
	return "redis+sentinel://" + SentinelName + "@" + strings.Join(addrs, ",")
}

// startSentinels starts those that the configuration asks for, and waits until the
// replicas are in step and each sentinel knows them and the others.
func (s *Server) startSentinels(t testing.TB) error {
	if s.cfg.Replicas > 0 {
		if err := s.inStep(); err != nil {
			return err
		}
	}
	for i := range s.cfg.Sentinels {
		port, err := freePort(t)
		if err != nil {
			return err
		}
		n := &Node{Index: i, Addr: fmt.Sprintf("127.0.0.1:%d", port), Dir: filepath.Join(s.root, fmt.Sprint("sentinel", i)), port: port,
			program: s.program, args: []string{"--sentinel"}, cfg: &Config{Kind: s.Kind}}
		s.Watch = append(s.Watch, n)
		t.Cleanup(func() { n.end(t) })
		if err := errors.Join(n.writeSentinel(s), n.run()); err != nil {
			return err
		}
	}
	for _, n := range s.Watch {
		if err := errors.Join(n.ready(startTimeout), n.knows(s)); err != nil {
			return err
		}
	}
	return nil
}

// writeSentinel writes the file of a sentinel, which rewrites it. A majority agrees
// that the master is down.
func (n *Node) writeSentinel(s *Server) error {
	host, port, _ := net.SplitHostPort(s.Nodes[0].Addr)
	conf := []string{"bind 127.0.0.1", fmt.Sprint("port ", n.port), "dir " + strconv.Quote(n.Dir), "logfile server.log",
		fmt.Sprintf("sentinel monitor %s %s %s %d", SentinelName, host, port, s.cfg.Sentinels/2+1),
		fmt.Sprintf("sentinel down-after-milliseconds %s %d", SentinelName, s.cfg.NodeTimeout.Milliseconds()),
		fmt.Sprintf("sentinel failover-timeout %s 3000", SentinelName)}
	if p := s.cfg.Password; p != "" {
		conf = append(conf, fmt.Sprintf("sentinel auth-pass %s %s", SentinelName, p))
	}
	if err := os.MkdirAll(n.Dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(n.Dir, "redis.conf"), []byte(strings.Join(conf, "\n")+"\n"), 0o600)
}

// knows waits until a sentinel knows all replicas and the other sentinels.
func (n *Node) knows(s *Server) error {
	return eventually(startTimeout, func() error {
		reply, err := n.Client().Do(context.Background(), "sentinel", "master", SentinelName).StringSlice()
		if err != nil {
			return err
		}
		f := map[string]string{}
		for i := 0; i+1 < len(reply); i += 2 {
			f[reply[i]] = reply[i+1]
		}
		if f["num-slaves"] != fmt.Sprint(s.cfg.Replicas) || f["num-other-sentinels"] != fmt.Sprint(s.cfg.Sentinels-1) || f["flags"] != "master" {
			return fmt.Errorf("sentinel %s knows %s replicas and %s other sentinels, and calls the master %s", n.Addr, f["num-slaves"], f["num-other-sentinels"], f["flags"])
		}
		return nil
	})
}

// inStep waits until all replicas that run are in step with their master.
func (s *Server) inStep() error {
	return eventually(startTimeout, func() error {
		for _, n := range s.Nodes {
			if !n.running() {
				continue
			}
			text, err := n.Client().Info(context.Background(), "replication").Result()
			if err != nil {
				return err
			}
			if f := fields(text); f["role"] == "slave" && f["master_link_status"] != "up" {
				return fmt.Errorf("%s: its link to the master is %s", n.Addr, f["master_link_status"])
			}
		}
		return nil
	})
}

// Master is the node that most sentinels name, once it calls itself master. It waits
// while that is another than not.
func (s *Server) Master(t testing.TB, not *Node) *Node {
	t.Helper()
	var master *Node
	err := eventually(startTimeout, func() error {
		votes := map[string]int{}
		for _, w := range s.Watch {
			if !w.running() {
				continue
			}
			if at, err := w.Client().Do(context.Background(), "sentinel", "get-master-addr-by-name", SentinelName).StringSlice(); err == nil && len(at) == 2 {
				votes[net.JoinHostPort(at[0], at[1])]++
			}
		}
		for _, n := range s.Nodes {
			if n == not || !n.running() || votes[n.Addr] <= len(s.Watch)/2 {
				continue
			}
			text, err := n.Client().Info(context.Background(), "replication").Result()
			if err == nil && fields(text)["role"] == "master" {
				master = n
				return nil
			}
		}
		return fmt.Errorf("sentinels name no new master that runs: %v", votes)
	})
	if err != nil {
		t.Fatal("shardtest: ", err)
	}
	return master
}

// Rejoin starts a master that was killed and replaced. It calls itself master until it
// is told better: here, for sentinels take up to minutes on a busy machine. It returns
// when the replicas are in step and the sentinels see it so.
func (s *Server) Rejoin(t testing.TB, n *Node) {
	t.Helper()
	master := s.Master(t, n)
	n.Restart(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	n.Do(t, "replicaof", host, port)
	n.WaitRole(t, "slave")
	err := s.inStep()
	for _, w := range s.Watch {
		if err == nil && w.running() {
			err = w.knows(s)
		}
	}
	if err != nil {
		t.Fatal("shardtest: ", err)
	}
}
