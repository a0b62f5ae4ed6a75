package frontier

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"seine/frontier/canon"
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
	MaxShards        = 4096 // each needs some slots of a cluster to choose its tag from
)

// nameForm is what a crawl may be called: a name takes part in key names and
// hash tags, and in patterns of SCAN.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ValidName reports whether a crawl may be called so.
func ValidName(crawl string) error {
	if !nameForm.MatchString(crawl) {
		return fmt.Errorf("frontier: %q is no name for a crawl: 1 to 64 of A-Z a-z 0-9 . _ -, letter or digit first", crawl)
	}
	return nil
}

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

	// OtherSuffixes accepts a crawl made with another public suffix list and
	// records this program's. Hosts whose site changes are fetched anew.
	OtherSuffixes bool `json:"-"`
}

// Complete fills the fields that are zero with their defaults, and sets the versions
// of this program.
func (l Layout) Complete() Layout {
	l.Format, l.Canon, l.Suffixes = FormatVersion, CanonVersion, canon.SuffixVersion()
	l.LimitBy = cmp.Or(l.LimitBy, canon.ByDomain)
	l.PlanURLs = cmp.Or(l.PlanURLs, DefaultPlanURLs)
	l.ErrorRate = cmp.Or(l.ErrorRate, DefaultErrorRate)
	return l
}

// Validate joins all faults of a complete layout.
func (l *Layout) Validate() error {
	var faults []error
	bad := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("frontier: layout: "+format, args...))
	}
	if l.Shards < 1 || l.Shards > MaxShards {
		bad("shards is %d, must be 1 to %d", l.Shards, MaxShards)
	}
	if l.LimitBy != canon.ByDomain && l.LimitBy != canon.ByHost {
		bad("limit-by is %q, must be %s or %s", l.LimitBy, canon.ByDomain, canon.ByHost)
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
