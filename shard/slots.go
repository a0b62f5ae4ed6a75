package shard

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// sameHost reads CLUSTER SLOTS where go-redis cannot: a node's host is null, for
// cluster-preferred-endpoint-type unknown-endpoint, or empty, and then it is the host
// that was asked.
type sameHost struct{ host string }

func (sameHost) DialHook(next redis.DialHook) redis.DialHook { return next }
func (sameHost) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook asks by a command whose reply may hold null.
func (h sameHost) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		slots, ok := cmd.(*redis.ClusterSlotsCmd)
		if !ok {
			return next(ctx, cmd)
		}
		short, cancel := context.WithTimeout(ctx, slotsWait)
		defer cancel()
		plain := redis.NewSliceCmd(short, slots.Args()...)
		err := next(short, plain)
		if err != nil {
			slots.SetErr(err)
			return err
		}
		slots.SetVal(h.read(plain.Val()))
		return nil
	}
}

// slotsWait is how long a node may take to name the masters; then another is asked.
const slotsWait = 2 * time.Second

// read reads the reply: of each range of slots its first and last, and its nodes, the
// master first: host, port and id.
func (h sameHost) read(reply []any) []redis.ClusterSlot {
	list := make([]redis.ClusterSlot, 0, len(reply))
	for _, v := range reply {
		part := Array(v)
		if len(part) < 2 {
			continue
		}
		s := redis.ClusterSlot{Start: int(Int(part[0])), End: int(Int(part[1]))}
		for _, v := range part[2:] {
			node := Array(v)
			if len(node) < 2 {
				continue
			}
			host := cmp.Or(Text(node[0]), h.host)
			n := redis.ClusterNode{Addr: net.JoinHostPort(host, strconv.FormatInt(Int(node[1]), 10))}
			if len(node) > 2 {
				n.ID = Text(node[2])
			}
			s.Nodes = append(s.Nodes, n)
		}
		list = append(list, s)
	}
	return list
}

// onHost is the address of a redirect that names a port alone: of the host that was asked.
func onHost(n *redis.Client, addr string) string {
	if host, port, err := net.SplitHostPort(addr); err == nil && host == "" && n != nil {
		if asked, _, err := net.SplitHostPort(n.Options().Addr); err == nil {
			return net.JoinHostPort(asked, port)
		}
	}
	return addr
}
