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
	p.ETA, err = etaOf(ctx, f, p)
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

// etaOf is when the crawl will be done.
func etaOf(ctx context.Context, f frontier.Operated, p *Progress) (ETA, error) {
	left := p.Total.Queued + p.Total.Waiting + p.Total.Open
	switch {
	case len(p.Troubles) > 0:
		return ETA{By: "unknown: " + p.Troubles[0]}, nil
	case left == 0:
		return ETA{Known: true, At: time.Now().UTC(), By: "nothing is left"}, nil
	case p.Total.Paused:
		return ETA{By: "unknown: the crawl is paused, or shards of it"}, nil
	case p.Rate <= 0:
		return ETA{By: "unknown: nothing is fetched now"}, nil
	}
	const most = 100 * 365 * 24 * time.Hour
	span := time.Duration(min(float64(left)/p.Rate*float64(time.Second), float64(most)))
	eta := ETA{Known: true, Left: Span(span.Round(time.Second)), By: fmt.Sprintf("%d URLs at %.1f a second, if none are found", left, p.Rate)}
	list, err := Sites(ctx, f, SitesQuery{By: ByQueued, Limit: math.MaxInt})
	if err != nil {
		return ETA{}, err
	}
	for i := range list.Sites {
		if s := &list.Sites[i]; s.Left > eta.Left {
			eta.Left, eta.By = s.Left, fmt.Sprintf("%d URLs of %s at its delay of %v, if none are found", s.Queued+s.Waiting+s.Open, s.Site, s.Delay)
		}
	}
	eta.At = time.Now().Add(time.Duration(eta.Left)).UTC()
	return eta, nil
}
