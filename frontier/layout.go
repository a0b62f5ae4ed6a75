package frontier

import (
	"errors"
	"fmt"
	"strings"

	"seine/bloom"
	"seine/frontier/canon"
	"seine/shard"
)

// The versions a program builds on; a crawl made with others is refused.
const (
	FormatVersion = 1             // keys, entries and scripts
	CanonVersion  = canon.Version // canonical form and key
)

// Defaults and bounds of a layout.
const (
	DefaultPlanURLs  = 10_000_000
	DefaultErrorRate = 1e-6
)

// Layout is what a crawl is built on. It is fixed when the crawl is created; a
// program with another layout refuses to work on it (ErrLayout).
type Layout struct {
	Format      int           `json:"format"`       // version of keys, entries and scripts
	Shards      int           `json:"shards"`       // n
	LimitBy     canon.LimitBy `json:"limit_by"`     // site rule
	Suffixes    string        `json:"suffixes"`     // version of the public suffix list
	Canon       int           `json:"canon"`        // version of the canonical form
	StripParams bool          `json:"strip_params"` // key rule
	SortQuery   bool          `json:"sort_query"`   // key rule
	PlanURLs    int64         `json:"plan_urls"`    // URLs the filters are planned for, all shards
	ErrorRate   float64       `json:"error_rate"`   // false positives a probe
	Filters     int           `json:"filters"`      // filters a shard

	// OtherSuffixes accepts a crawl made with another public suffix list and
	// records this program's. Hosts whose site changes are fetched anew.
	OtherSuffixes bool `json:"-"`
}

// Complete fills the fields that are zero with their defaults and with the
// versions of this program, and counts the filters.
func (l Layout) Complete() Layout {
	l.Format, l.Canon, l.Suffixes = FormatVersion, CanonVersion, canon.SuffixVersion()
	if l.LimitBy == "" {
		l.LimitBy = canon.ByDomain
	}
	if l.PlanURLs == 0 {
		l.PlanURLs = DefaultPlanURLs
	}
	if l.ErrorRate == 0 {
		l.ErrorRate = DefaultErrorRate
	}
	if p, err := l.Plan(); err == nil && l.Filters == 0 {
		l.Filters = p.Filters
	}
	return l
}

// Plan is how the filters of the crawl are laid out.
func (l Layout) Plan() (bloom.Plan, error) { return bloom.NewPlan(l.PlanURLs, l.ErrorRate, l.Shards) }

// Validate joins all faults of a complete layout.
func (l *Layout) Validate() error {
	var faults []error
	bad := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("frontier: layout: "+format, args...))
	}
	if l.Shards < 1 || l.Shards > shard.MaxShards {
		bad("shards is %d, must be 1 to %d", l.Shards, shard.MaxShards)
	}
	if l.LimitBy != canon.ByDomain && l.LimitBy != canon.ByHost {
		bad("limit-by is %q, must be %s or %s", l.LimitBy, canon.ByDomain, canon.ByHost)
	}
	if l.Shards < 1 {
		return errors.Join(faults...)
	}
	plan, err := l.Plan()
	if err != nil {
		bad("%w", err)
	} else if l.Filters != plan.Filters {
		bad("%d filters a shard, the plan has %d", l.Filters, plan.Filters)
	}
	return errors.Join(faults...)
}

// Check compares the layout of a crawl with what a program wants. Zero fields
// of want are not compared, for there the program takes what the crawl has.
func (l Layout) Check(want Layout) error {
	var faults []string
	differ := func(name string, has, wants any, ignore bool) {
		if !ignore && has != wants {
			faults = append(faults, fmt.Sprintf("%s: the crawl has %v, this program %v", name, has, wants))
		}
	}
	differ("format", l.Format, want.Format, want.Format == 0)
	differ("shards", l.Shards, want.Shards, want.Shards == 0)
	differ("limit-by", l.LimitBy, want.LimitBy, want.LimitBy == "")
	differ("public suffix list", l.Suffixes, want.Suffixes, want.Suffixes == "" || want.OtherSuffixes || l.LimitBy == canon.ByHost)
	differ("canon version", l.Canon, want.Canon, want.Canon == 0)
	differ("strip-params", l.StripParams, want.StripParams, !want.StripParams)
	differ("sort-query", l.SortQuery, want.SortQuery, !want.SortQuery)
	differ("plan-urls", l.PlanURLs, want.PlanURLs, want.PlanURLs == 0)
	differ("error-rate", l.ErrorRate, want.ErrorRate, want.ErrorRate == 0)
	differ("filters a shard", l.Filters, want.Filters, want.Filters == 0)
	if faults == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrLayout, strings.Join(faults, "; "))
}

// CanonConfig is how the crawl's URLs are parsed: its key rules, with the
// guards at their defaults.
func (l Layout) CanonConfig() canon.Config {
	return canon.Config{StripParams: l.StripParams, SortQuery: l.SortQuery}
}
