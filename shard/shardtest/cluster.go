package shardtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

const slots = 16384

// nodesConf is the cluster as node n is to know it from the start. Writing it
// spares the seconds that nodes take to meet.
func (s *Server) nodesConf(me *Node) string {
	var b strings.Builder
	masters := s.cfg.Masters
	for i, n := range s.Nodes {
		flags, master, epoch, link := "master", "-", i+1, "connected"
		if i >= masters {
			m := (i - masters) / s.cfg.Replicas
			flags, master, epoch = "slave", s.Nodes[m].id, m+1
		}
		if n == me {
			flags = "myself," + flags
		}
		fmt.Fprintf(&b, "%s %s@%d %s %s 0 0 %d %s", n.id, n.known, n.bus, flags, master, epoch, link)
		if i < masters {
			fmt.Fprintf(&b, " %d-%d", i*slots/masters, (i+1)*slots/masters-1)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "vars currentEpoch %d lastVoteEpoch 0\n", masters)
	return b.String()
}

// WaitWhole waits until every node that runs sees the whole cluster in order
// and every replica is in step with its master.
func (s *Server) WaitWhole(t testing.TB) {
	t.Helper()
	if err := s.whole(startTimeout); err != nil {
		t.Fatal("shardtest: ", err)
	}
}

func (s *Server) whole(timeout time.Duration) error {
	ctx := context.Background()
	return eventually(timeout, func() error {
		for _, n := range s.Nodes {
			if !n.running() {
				continue
			}
			info, err := n.Client().ClusterInfo(ctx).Result()
			if err != nil {
				return fmt.Errorf("%s: %w", n.Addr, err)
			}
			if f := fields(info); f["cluster_state"] != "ok" || f["cluster_slots_ok"] != fmt.Sprint(slots) {
				return fmt.Errorf("%s: cluster state %s, slots ok %s", n.Addr, f["cluster_state"], f["cluster_slots_ok"])
			}
			repl, err := n.Client().Info(ctx, "replication").Result()
			if err != nil {
				return fmt.Errorf("%s: %w", n.Addr, err)
			}
			if f := fields(repl); f["role"] == "slave" && f["master_link_status"] != "up" {
				return fmt.Errorf("%s: its link to the master is %s", n.Addr, f["master_link_status"])
			}
		}
		return nil
	})
}

// Replicas lists the replicas that master m was started with.
func (s *Server) Replicas(m int) []*Node {
	r := s.cfg.Replicas
	return s.Nodes[s.cfg.Masters+m*r : s.cfg.Masters+(m+1)*r]
}

// MasterOf finds the master of a slot: of the running nodes that hold
// themselves for it, the one of the highest configuration epoch.
func (s *Server) MasterOf(t testing.TB, slot int) *Node {
	t.Helper()
	var owner *Node
	err := eventually(startTimeout, func() error {
		var best int64
		for _, n := range s.Nodes {
			if !n.running() {
				continue
			}
			if epoch := n.owns(slot); epoch > best {
				owner, best = n, epoch
			}
		}
		if owner == nil {
			return fmt.Errorf("nobody serves slot %d", slot)
		}
		return nil
	})
	if err != nil {
		t.Fatal("shardtest: ", err)
	}
	return owner
}

// owns is the node's configuration epoch if it holds itself for the master of
// a slot, else 0.
func (n *Node) owns(slot int) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	nodes, err := n.Client().ClusterNodes(ctx).Result()
	if err != nil {
		return 0
	}
	for line := range strings.Lines(nodes) {
		f := strings.Fields(line)
		if len(f) < 8 || !strings.Contains(f[2], "myself,master") {
			continue
		}
		for _, r := range f[8:] {
			first, last, isRange := strings.Cut(r, "-")
			if !isRange {
				last = first
			}
			lo, err1 := strconv.Atoi(first)
			hi, err2 := strconv.Atoi(last)
			if err1 == nil && err2 == nil && lo <= slot && slot <= hi {
				epoch, _ := strconv.ParseInt(f[6], 10, 64)
				return max(epoch, 1)
			}
		}
	}
	return 0
}

// WaitRole waits until a node is "master" or "slave".
func (n *Node) WaitRole(t testing.TB, role string) {
	t.Helper()
	err := eventually(startTimeout, func() error {
		info, err := n.Client().Info(context.Background(), "replication").Result()
		if err != nil {
			return err
		}
		if have := fields(info)["role"]; have != role {
			return fmt.Errorf("%s is %s, not %s", n.Addr, have, role)
		}
		return nil
	})
	if err != nil {
		t.Fatal("shardtest: ", err)
	}
}

// AddMaster starts one more node, which joins the cluster as a master without
// slots, and returns when all others know it.
func (s *Server) AddMaster(t testing.TB) *Node {
	t.Helper()
	n, err := s.newNode(t)
	if err == nil {
		err = errors.Join(n.write(s.module, ""), n.run())
	}
	if err == nil {
		err = n.ready(startTimeout)
	}
	if err != nil {
		t.Fatal("shardtest: ", err)
	}
	n.id = n.Do(t, "cluster", "myid").(string)
	n.Do(t, "cluster", "meet", "127.0.0.1", s.Nodes[0].port, s.Nodes[0].bus)
	err = eventually(startTimeout, func() error {
		for _, other := range s.Nodes {
			if !other.running() {
				continue
			}
			nodes, err := other.Client().ClusterNodes(context.Background()).Result()
			if err != nil || !strings.Contains(nodes, n.id) || strings.Contains(nodes, "handshake") {
				return fmt.Errorf("%s does not know the new master yet (%v)", other.Addr, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal("shardtest: ", err)
	}
	s.WaitWhole(t)
	return n
}

// Move is a slot on its way from one master to another. Between BeginMove and
// Finish the source answers ASK for keys that are gone and TRYAGAIN for calls
// whose keys are here and there.
type Move struct {
	Slot     int
	From, To *Node
	server   *Server
}

// BeginMove marks a slot as migrating to a node; no key moves yet.
func (s *Server) BeginMove(t testing.TB, slot int, to *Node) *Move {
	t.Helper()
	from := s.MasterOf(t, slot)
	if from == to {
		t.Fatalf("shardtest: slot %d is at %s already", slot, to.Addr)
	}
	to.Do(t, "cluster", "setslot", slot, "importing", from.id)
	from.Do(t, "cluster", "setslot", slot, "migrating", to.id)
	return &Move{slot, from, to, s}
}

// Keys moves these keys.
func (m *Move) Keys(t testing.TB, keys ...string) {
	t.Helper()
	host, port, _ := strings.Cut(m.To.Addr, ":")
	args := []any{"migrate", host, port, "", 0, 60000}
	if p := m.From.cfg.Password; p != "" {
		args = append(args, "auth", p)
	}
	args = append(args, "keys")
	for _, k := range keys {
		args = append(args, k)
	}
	m.From.Do(t, args...)
}

// Finish moves the keys that are left, and the slot.
func (m *Move) Finish(t testing.TB) {
	t.Helper()
	for {
		keys, err := m.From.Client().ClusterGetKeysInSlot(context.Background(), m.Slot, 100).Result()
		if err != nil {
			t.Fatal("shardtest: ", err)
		}
		if len(keys) == 0 {
			break
		}
		m.Keys(t, keys...)
	}
	m.To.Do(t, "cluster", "setslot", m.Slot, "node", m.To.id)
	m.From.Do(t, "cluster", "setslot", m.Slot, "node", m.To.id)
	for _, n := range m.server.Nodes { // tells the other masters, which spares the wait for gossip
		if n != m.From && n != m.To && n.running() {
			n.Client().Do(context.Background(), "cluster", "setslot", m.Slot, "node", m.To.id)
		}
	}
}

// Failover makes a replica the master of its shard, in agreement with the old
// one, and waits until it is and the old one follows it.
func (s *Server) Failover(t testing.TB, n *Node) {
	t.Helper()
	if err := eventually(startTimeout, func() error {
		err := n.Client().Do(context.Background(), "cluster", "failover").Err()
		if err != nil && strings.Contains(err.Error(), "to a replica") { // it is one no longer
			return nil
		}
		return err
	}); err != nil {
		t.Fatal("shardtest: ", err)
	}
	n.WaitRole(t, "master")
	s.WaitWhole(t)
}

// fields splits the name:value lines of INFO and CLUSTER INFO.
func fields(info string) map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}
