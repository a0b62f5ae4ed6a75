package shard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// CheckAck looks whether every master has as many replicas as have to
// acknowledge an admission. When none has, that is ErrUnfit: nothing could be
// admitted. When some have, the others are a warning, for shards on these wait.
// A user who may not run WAIT is ErrForbidden. A server that forbids INFO, or does
// not answer in time, or loads its file, is not judged further.
func (c *Client) CheckAck(ctx context.Context, replicas int) (*Warning, error) {
	var mu sync.Mutex
	var short []string
	masters := 0
	err := c.eachMaster(ctx, func(ctx context.Context, n *redis.Client) error {
		limited, cancel := context.WithTimeout(ctx, checkWait)
		defer cancel()
		info, err := fields(limited, n)
		mu.Lock()
		defer mu.Unlock()
		masters++
		if err != nil || info["loading"] == "1" { // it may have some
			return ctx.Err()
		}
		if mayNotRun(n.Do(limited, "wait", 0, 0).Err()) {
			return fmt.Errorf("%w: the user %s may not run WAIT on %s, by which an admission is acknowledged; add +wait to its rights, or do not ask for an acknowledgement",
				ErrForbidden, cmp.Or(c.cfg.Username, "default"), n.Options().Addr)
		}
		if has, err := strconv.Atoi(info["connected_slaves"]); err == nil && has < replicas {
			short = append(short, n.Options().Addr)
		}
		return nil
	})
	if err != nil || len(short) == 0 {
		return nil, err
	}
	slices.Sort(short)
	if len(short) == masters {
		return nil, fmt.Errorf("%w: no admission would be acknowledged, %d replicas a master are asked for and no master has as many (%s); add replicas, or do not ask for an acknowledgement by them",
			ErrUnfit, replicas, strings.Join(short, ", "))
	}
	return &Warning{Servers: short, What: fmt.Sprintf("fewer than %d replicas: what is admitted there is not acknowledged, and waits", replicas),
		Do: "set up replicas, or do not ask for an acknowledgement by them"}, nil
}
