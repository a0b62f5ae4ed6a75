package shard

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Servers reads INFO of every master, as its fields by name, by the address of the
// master. One that does not answer before ctx ends is missing; one that forbids INFO
// has no fields. Cost: one call a master, all at once.
func (c *Client) Servers(ctx context.Context) (map[string]map[string]string, error) {
	var mu sync.Mutex
	all := make(map[string]map[string]string)
	err := c.eachMaster(ctx, func(ctx context.Context, n *redis.Client) error {
		info, err := fields(ctx, n)
		if err != nil {
			return nil // whoever asks sees that it is missing
		}
		mu.Lock()
		defer mu.Unlock()
		all[n.Options().Addr] = info
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("shard: servers: %w", err)
	}
	return all, nil
}
