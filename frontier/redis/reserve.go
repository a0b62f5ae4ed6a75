package redis

import (
	"context"
	"time"

	"seine/frontier"
	"seine/shard"
)

// Reserve asks the clock of a site for a time at which one request may be made to
// it, by whoever works on another site. What is refused names when to ask again:
// those who wait are spread over the times that the site has. Cost: one script
// call of some 20 us.
func (f *Frontier) Reserve(ctx context.Context, k int, req frontier.ReserveRequest) (frontier.Reservation, error) {
	raw, err := f.Call(ctx, k, reserveScript, f.AppendSite(nil, k, req.Site), []any{
		req.Site, f.token(req.Site), Milliseconds(req.Delay), Milliseconds(req.Slack), req.Ahead.Milliseconds(),
		frontier.ReservedMost, frontier.ReserveRetry.Milliseconds(), frontier.ReserveMaxWait.Milliseconds(),
	})
	if err != nil {
		return frontier.Reservation{}, err
	}
	reply := shard.Array(raw)
	if len(reply) != 2 {
		return frontier.Reservation{}, Malformed(k, "reserve", raw)
	}
	given := shard.Int(reply[0])
	return frontier.Reservation{
		Granted: given == 1, Stopped: given < 0,
		Wait: time.Duration(shard.Int(reply[1])) * time.Millisecond,
	}, nil
}
