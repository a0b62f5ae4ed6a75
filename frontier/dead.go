package frontier

import (
	"context"
	"fmt"
	"strings"

	"seine/shard"
)

// DeadLetters returns count dead letters of a cause in shard k from offset on,
// the oldest first. Each is for Revive and DropDead of the same shard. Cost:
// O(offset + count).
func (f *Frontier) DeadLetters(ctx context.Context, k int, cause string, offset, count int64) ([]DeadLetter, error) {
	if offset < 0 || count <= 0 {
		return nil, nil
	}
	key := f.keys[k].Dead(cause)
	reply, err := f.client.Do(ctx, k, key, "LRANGE", key, offset, offset+count-1)
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	letters := make([]DeadLetter, len(list))
	for i, v := range list {
		raw := replyText(v)
		if letters[i], err = parseLetter(raw, cause); err != nil {
			return nil, &shard.Error{Shard: k, Op: "dead letters", Err: fmt.Errorf("frontier: %q: %w", raw, err)}
		}
	}
	return letters, nil
}

// DeadCounts is the number of dead letters in shard k by cause. Cost: one call,
// and one for each cause that ever was.
func (f *Frontier) DeadCounts(ctx context.Context, k int) (map[string]int64, error) {
	counters, err := readHash(ctx, f.client, k, f.keys[k].Stats())
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for name := range counters {
		cause, ok := strings.CutPrefix(name, "dead:")
		if !ok {
			continue
		}
		key := f.keys[k].Dead(cause)
		reply, err := f.client.Do(ctx, k, key, "LLEN", key)
		if err != nil {
			return nil, err
		}
		if n := replyInt(reply); n > 0 {
			counts[cause] = n
		}
	}
	return counts, nil
}
