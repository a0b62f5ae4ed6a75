package redis

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"seine/frontier"
	"seine/shard"
)

func kindOf(s frontier.Stop) string {
	if s.Blocked {
		return "blocked"
	}
	return "paused"
}

// Stopped lists the sites that Alter has paused or blocked, by name; one that is
// both comes twice. Cost: a call for each 500 of them, two a shard at least.
func (f *Frontier) Stopped(ctx context.Context) ([]frontier.Stop, error) {
	var list []frontier.Stop
	for k := range f.keys {
		for _, blocked := range []bool{false, true} {
			err := f.pages(ctx, k, "stopped", []any{"HSCAN", f.stopped(k, blocked)}, []any{"COUNT", scanPage}, func(page []any) error {
				for i := 0; i+1 < len(page); i += 2 {
					since, reason, _ := strings.Cut(shard.Text(page[i+1]), " ")
					ms, err := strconv.ParseInt(since, 10, 64)
					if err != nil {
						return Malformed(k, "stopped", page)
					}
					list = append(list, frontier.Stop{Site: shard.Text(page[i]), Shard: k, Blocked: blocked, Since: time.UnixMilli(ms).UTC(), Reason: reason})
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	// HSCAN may name one twice.
	slices.SortFunc(list, func(a, b frontier.Stop) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(kindOf(a), kindOf(b)))
	})
	return slices.CompactFunc(list, func(a, b frontier.Stop) bool { return a.Site == b.Site && a.Blocked == b.Blocked }), nil
}

// stopped is the key of the paused or the blocked sites of a shard.
func (f *Frontier) stopped(k int, blocked bool) string {
	if blocked {
		return f.keys[k].Blocked()
	}
	return f.keys[k].Paused()
}

// countStopped is how many sites are paused and how many blocked, over all
// shards.
func (f *Frontier) countStopped(ctx context.Context) (paused, blocked int64, err error) {
	var counts [2]int64
	for k := range f.keys {
		for i := range counts {
			key := f.stopped(k, i == 1)
			n, err := f.client.Do(ctx, k, key, "HLEN", key)
			if err != nil {
				return 0, 0, err
			}
			counts[i] += shard.Int(n)
		}
	}
	return counts[0], counts[1], nil
}
