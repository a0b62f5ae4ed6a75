package frontier

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stop is a pause or a block of one site.
type Stop struct {
	Site    string    `json:"site"`
	Shard   int       `json:"shard"`
	Blocked bool      `json:"blocked"` // else paused
	Since   time.Time `json:"since"`
	Reason  string    `json:"reason,omitempty"`
}

func (s Stop) kind() string {
	if s.Blocked {
		return "blocked"
	}
	return "paused"
}

// Stopped lists the sites that Alter has paused or blocked, by name; one that is
// both comes twice. Cost: a call for each 500 of them, two a shard at least.
func (f *Frontier) Stopped(ctx context.Context) ([]Stop, error) {
	var list []Stop
	for k := range f.keys {
		for _, blocked := range []bool{false, true} {
			err := f.pages(ctx, k, "stopped", []any{"HSCAN", f.stopped(k, blocked)}, []any{"COUNT", scanPage}, func(page []any) error {
				for i := 0; i+1 < len(page); i += 2 {
					since, reason, _ := strings.Cut(str(page[i+1]), " ")
					ms, err := strconv.ParseInt(since, 10, 64)
					if err != nil {
						return malformed(k, "stopped", page)
					}
					list = append(list, Stop{Site: str(page[i]), Shard: k, Blocked: blocked, Since: time.UnixMilli(ms).UTC(), Reason: reason})
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	// HSCAN may name one twice.
	slices.SortFunc(list, func(a, b Stop) int { return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.kind(), b.kind())) })
	return slices.CompactFunc(list, func(a, b Stop) bool { return a.Site == b.Site && a.Blocked == b.Blocked }), nil
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
			counts[i] += replyInt(n)
		}
	}
	return counts[0], counts[1], nil
}
