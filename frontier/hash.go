package frontier

import (
	"context"
	"strconv"

	"seine/shard"
)

// fields are names and values of a hash in turn; "" means absent.
type fields []string

// swap changes fields of the hash at key while others are as expected. It says
// whether it did; a repeat after a lost reply says false, so callers read again.
func swap(ctx context.Context, client *shard.Client, k int, key string, expect, set fields) (bool, error) {
	args := make([]any, 0, 1+len(expect)+len(set))
	args = append(args, len(expect)/2)
	for _, s := range append(expect[:len(expect):len(expect)], set...) {
		args = append(args, s)
	}
	v, err := client.Run(ctx, k, swapScript, []string{key}, args...)
	if err != nil {
		return false, err
	}
	return v == int64(1), nil
}

// readHash is HGETALL.
func readHash(ctx context.Context, client *shard.Client, k int, key string) (map[string]string, error) {
	reply, err := client.Do(ctx, k, key, "HGETALL", key)
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	h := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		h[replyText(list[i])] = replyText(list[i+1])
	}
	return h, nil
}

// replyText is a bulk string of a reply, "" when it is none.
func replyText(v any) string {
	s, _ := v.(string)
	return s
}

// replyInt is an integer of a reply, sent as such or as text; else 0.
func replyInt(v any) int64 {
	switch x := v.(type) {
	case int64:
		return x
	case string:
		n, _ := strconv.ParseInt(x, 10, 64)
		return n
	}
	return 0
}
