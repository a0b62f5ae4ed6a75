package shard

import (
	"context"
	_ "embed"
)

//go:embed swap.lua
var swapText string

// swapScript gives memory back sooner or later, so it runs above maxmemory too.
var swapScript = JoinScript("swap", "#!lua flags=allow-oom\n", ScriptPart{"shard/swap.lua", swapText})

// Fields are names and values of a hash in turn; "" means absent.
type Fields []string

// CompareAndSet changes fields of the hash at key, which belongs to shard k,
// while others are as expected. It reports whether it did; a repeat after a lost
// reply says false, so callers read again. At least one field that is expected
// must change. rights are names in the slot of key that no key ever has: our user of
// Redis must have all of them. Cost: O(fields).
func (c *Client) CompareAndSet(ctx context.Context, k int, key string, expect, set Fields, rights ...string) (bool, error) {
	args := make([]any, 0, 1+len(expect)+len(set))
	args = append(args, len(expect)/2)
	for _, s := range append(expect[:len(expect):len(expect)], set...) {
		args = append(args, s)
	}
	v, err := c.Run(ctx, k, swapScript, append([]string{key}, rights...), args...)
	return v == int64(1), err
}

// Hash is HGETALL of a key of shard k.
func (c *Client) Hash(ctx context.Context, k int, key string) (map[string]string, error) {
	reply, err := c.Do(ctx, k, key, "HGETALL", key)
	if err != nil {
		return nil, err
	}
	list := Array(reply)
	h := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		h[Text(list[i])] = Text(list[i+1])
	}
	return h, nil
}
