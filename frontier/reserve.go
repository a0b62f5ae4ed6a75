package frontier

import (
	"context"
	"fmt"
	"strings"

	"seine/shard"
)

// reserve makes the filters of shard k as the layout plans them; those that
// are there already stay as they are.
func (f *Frontier) reserve(ctx context.Context, k int) error {
	for j := range f.layout.Filters {
		args := []any{"BF.RESERVE", f.keys[k].Filter(j), f.layout.ErrorRate, f.layout.PerFilter(), "EXPANSION", 2}
		err := f.client.Redis().Do(ctx, args...).Err()
		if err != nil && !strings.Contains(err.Error(), "item exists") {
			return &shard.Error{Shard: k, Op: "reserve", Err: fmt.Errorf("frontier: filter %d: %w", j, err)}
		}
	}
	return nil
}
