package redis

import (
	"errors"
	"fmt"

	"seine/bloom"
	"seine/frontier"
)

// Complete is Layout.Complete, and counts the filters.
func Complete(l frontier.Layout) frontier.Layout {
	l = l.Complete()
	if p, err := planOf(l); err == nil && l.Filters == 0 {
		l.Filters = p.Filters
	}
	return l
}

// Validate joins all faults of a complete layout, those of its filters too.
func Validate(l frontier.Layout) error {
	err := l.Validate()
	if l.Shards < 1 {
		return err
	}
	plan, fault := planOf(l)
	if fault != nil {
		fault = fmt.Errorf("frontier: layout: %w", fault)
	} else if l.Filters != plan.Filters {
		fault = fmt.Errorf("frontier: layout: %d filters a shard, the plan has %d", l.Filters, plan.Filters)
	}
	return errors.Join(err, fault)
}

// planOf is how the filters of a crawl are laid out.
func planOf(l frontier.Layout) (bloom.Plan, error) {
	return bloom.NewPlan(l.PlanURLs, l.ErrorRate, l.Shards)
}
