package ask

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"seine/frontier"
)

// Stats says how far a crawl is. Cost: that of the report of its driver, and of
// Sites.
func Stats(ctx context.Context, f frontier.Operated) (*Progress, error) {
	r, err := f.Report(ctx)
	if err != nil {
		return nil, err
	}
	p := &Progress{Report: *r, Fleet: frontier.FleetOf(r.Members), Troubles: troubles(r)}
	if p.State == "ready" && len(p.Troubles) > 0 {
		p.State = "not ready: " + strings.Join(p.Troubles, "; ")
	}
	for _, n := range r.Dead {
		p.DeadNow += n
	}
	p.ETA, err = Estimate(ctx, f, r)
	return p, err
}

// troubles are what keeps a crawl from being ready.
func troubles(r *frontier.Report) []string {
	list := []string{}
	for i := range r.Shards {
		s := &r.Shards[i]
		switch {
		case s.Silent:
			list = append(list, fmt.Sprintf("shard %d does not answer", s.Shard))
		case s.Memory.Limit > 0 && s.Memory.Used >= s.Memory.Limit:
			list = append(list, fmt.Sprintf("shard %d is full", s.Shard))
		}
	}
	return list
}

// Estimate says when the crawl of a report will be done. Cost: that of Sites.
func Estimate(ctx context.Context, f frontier.Operated, r *frontier.Report) (ETA, error) {
	left := r.Total.Queued + r.Total.Waiting + r.Total.Open
	if list := troubles(r); len(list) > 0 {
		return ETA{By: "unknown: " + list[0]}, nil
	}
	if left == 0 {
		return ETA{Known: true, At: time.Now().UTC(), By: "nothing is left"}, nil
	}
	list, err := Sites(ctx, f, SitesQuery{By: ByQueued, Limit: math.MaxInt})
	if err != nil {
		return ETA{}, err
	}
	var slowest Site
	for i := range list.Sites {
		if s := &list.Sites[i]; s.Left > slowest.Left {
			slowest = *s
		}
	}
	eta := ETA{Slowest: slowest.Left}
	rate := frontier.FleetOf(r.Members).Rate
	switch {
	case r.Total.Paused:
		eta.By = "unknown: the crawl is paused, or shards of it"
		return eta, nil
	case rate <= 0:
		eta.By = "unknown: nothing is fetched now"
		return eta, nil
	}
	const most = 100 * 365 * 24 * time.Hour
	span := time.Duration(min(float64(left)/rate*float64(time.Second), float64(most)))
	eta.Known, eta.Left, eta.By = true, Span(span.Round(time.Second)), fmt.Sprintf("%d URLs at %.1f a second, if none are found", left, rate)
	if slowest.Left > eta.Left {
		eta.Left, eta.By = slowest.Left, fmt.Sprintf("%d URLs of %s at its delay of %v, if none are found", slowest.Queued+slowest.Waiting+slowest.Open, slowest.Site, slowest.Delay)
	}
	eta.At = time.Now().Add(time.Duration(eta.Left)).UTC()
	return eta, nil
}
