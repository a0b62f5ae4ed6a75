package shard

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Config of a connection to Redis.
type Config struct {
	Addrs []string
}

// Client runs scripts on the master that owns a shard.
type Client struct {
	rdb redis.UniversalClient
}

// Open connects.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: cfg.Addrs, MaxRetries: -1, ContextTimeoutEnabled: true})
	if err := rdb.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("shard: redis: %w", err)
	}
	return &Client{rdb: rdb}, nil
}

// Close ends all connections.
func (c *Client) Close() error { return c.rdb.Close() }

// Redis is the underlying client, for plain commands.
func (c *Client) Redis() redis.UniversalClient { return c.rdb }

// Script is one Lua script, known to servers by its SHA-1.
type Script struct {
	Name string
	s    *redis.Script
}

// NewScript names a script text.
func NewScript(name, text string) *Script { return &Script{Name: name, s: redis.NewScript(text)} }

// Run runs a script of shard k; keys[0] decides the node. It repeats the call
// through moves, failovers and broken connections until ctx ends, so a script
// must have the same effect run twice.
func (c *Client) Run(ctx context.Context, k int, s *Script, keys []string, args ...any) (any, error) {
	v, err := s.s.Run(ctx, c.rdb, keys, args...).Result()
	if err != nil && err != redis.Nil {
		return nil, &Error{Shard: k, Op: s.Name, Err: err}
	}
	return v, nil
}

// Error says which operation of which shard failed.
type Error struct {
	Shard int
	Op    string
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("shard %d: %s: %v", e.Shard, e.Op, e.Err) }
func (e *Error) Unwrap() error { return e.Err }
