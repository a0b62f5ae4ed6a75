package ask

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"seine/frontier"
)

// Stats says how far a crawl is. Cost: that of the report of its driver, and of
// Longest.
func Stats(ctx context.Context, f frontier.Operated) (*Progress, error) {
	return StatsWith(ctx, f, func(ctx context.Context) (*Site, error) { return Longest(ctx, f) })
}

// StatsWith is Stats for who asks all the time: longest says which site takes
// longest, as Longest found it lately. It is asked only where something is left.
func StatsWith(ctx context.Context, f frontier.Operated, longest func(context.Context) (*Site, error)) (*Progress, error) {
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
	p.ETA, err = estimate(ctx, r, longest)
	return p, err
}

// troubles are what keeps a crawl from being ready.
func troubles(r *frontier.Report) []string {
	var faults []frontier.ShardFault
	for i := range r.Shards {
		s := &r.Shards[i]
		switch {
		case s.Silent && s.Fault != "":
			faults = append(faults, frontier.ShardFault{Shard: s.Shard, One: "cannot be read", Many: "cannot be read", Cause: s.Fault})
		case s.Silent:
			faults = append(faults, frontier.ShardFault{Shard: s.Shard, One: "does not answer", Many: "do not answer"})
		case s.Memory.Limit > 0 && s.Memory.Used >= s.Memory.Limit:
			faults = append(faults, frontier.ShardFault{Shard: s.Shard, One: "is full", Many: "are full"})
		case s.Fault != "":
			faults = append(faults, frontier.ShardFault{Shard: s.Shard, One: "takes no writes", Many: "take no writes", Cause: s.Fault})
		}
	}
	list := frontier.FaultTexts(faults)
	if n := frontier.FleetOf(r.Members).Limits[frontier.LimitReplica]; n > 0 {
		list = append(list, fmt.Sprintf("fetchers whose new URLs no replica acknowledges: %d; bring a replica of each master in step, or leave --ack out", n))
	}
	return list
}

// Longest is the site that takes longest to finish at its delay, of those that Sites
// looks at; nil when none has work. Cost: that of Sites.
func Longest(ctx context.Context, f frontier.Operated) (*Site, error) {
	list, err := Sites(ctx, f, SitesQuery{By: ByQueued, Limit: math.MaxInt})
	if err != nil || len(list.Sites) == 0 {
		return nil, err
	}
	site := slices.MaxFunc(list.Sites, func(a, b Site) int { return int(min(max(a.Left-b.Left, -1), 1)) })
	return &site, nil
}

// Estimate says when the crawl of a report will be done. Cost: that of Longest.
func Estimate(ctx context.Context, f frontier.Operated, r *frontier.Report) (ETA, error) {
	return estimate(ctx, r, func(ctx context.Context) (*Site, error) { return Longest(ctx, f) })
}

// estimate says when the crawl will be done: where it is bound by pages, at that bound,
// if that comes first.
func estimate(ctx context.Context, r *frontier.Report, longest func(context.Context) (*Site, error)) (ETA, error) {
	left := r.Total.Queued + r.Total.Waiting + r.Total.Open
	list, fleet := troubles(r), frontier.FleetOf(r.Members)
	switch {
	case len(list) > 0:
		return ETA{By: "unknown: " + list[0]}, nil
	case seeding(r):
		return ETA{By: "unknown: seeds are still being admitted"}, nil
	case left == 0 && r.Feed > 0:
		return ETA{By: fmt.Sprintf("unknown: %d elements wait in the feed", r.Feed)}, nil
	case left == 0:
		return ETA{Known: true, At: time.Now().UTC(), By: "nothing is left"}, nil
	}
	s, err := longest(ctx)
	if err != nil {
		return ETA{}, err
	}
	if s == nil {
		s = &Site{}
	}
	switch {
	case r.Total.Paused:
		return ETA{Slowest: s.Left, By: "unknown: the crawl is paused, or shards of it"}, nil
	case fleet.Rate <= 0:
		return ETA{Slowest: s.Left, By: "unknown: nothing is fetched now"}, nil
	}
	eta := queueEnd(r, &fleet, left)
	if eta.Known && s.Left > eta.Left {
		eta.Left, eta.By = s.Left, fmt.Sprintf("%d URLs of %s at its delay of %v, if none are found", s.Queued+s.Waiting+s.Open, s.Site, s.Delay)
	}
	if most := r.Settings.MaxPages; most > 0 {
		pages := max(0, most-r.Total.Pages())
		if span := spanOf(pages, fleet.Rate); !eta.Known || span < eta.Left {
			eta = ETA{Known: true, Left: span, By: fmt.Sprintf("%d pages to --max-pages at %.1f a second", pages, fleet.Rate)}
		}
	}
	if eta.Slowest = s.Left; eta.Known {
		eta.At = time.Now().Add(time.Duration(eta.Left)).UTC()
	}
	return eta, nil
}

// seeding reports whether somebody admits seeds.
func seeding(r *frontier.Report) bool {
	return slices.ContainsFunc(r.Members, func(m frontier.Member) bool { return m.Seeding || m.Kind == frontier.KindSeeder })
}

// queueEnd is when nothing is left if that goes on shrinking as it did over the last
// minutes. Fetchers that do not say how that went have just
// started: then at the rate of pages, as if nothing were found.
func queueEnd(r *frontier.Report, fleet *frontier.Fleet, left int64) ETA {
	switch {
	case len(r.Settings.Recrawl) > 0:
		return ETA{By: "unknown: pages are recrawled (--recrawl), so it is never done"}
	case fleet.Growth == 0:
		return ETA{Known: true, Left: spanOf(left, fleet.Rate), By: fmt.Sprintf("%d URLs at %.1f a second, if none are found", left, fleet.Rate)}
	case fleet.Growth > 0:
		return ETA{By: fmt.Sprintf("unknown: more URLs are found than fetched, %.1f a second", fleet.Growth)}
	}
	return ETA{Known: true, Left: spanOf(left, -fleet.Growth), By: fmt.Sprintf("%d URLs are left, %.1f fewer a second over the last minutes", left, -fleet.Growth)}
}

// spanOf is how long n take, 100 years at most.
func spanOf(n int64, rate float64) Span {
	const most = 100 * 365 * 24 * time.Hour
	return Span(time.Duration(min(float64(n)/rate*float64(time.Second), float64(most))).Round(time.Second))
}
