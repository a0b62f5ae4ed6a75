package frontier

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// RecrawlInterval is how often a URL is recrawled: first after Min. What did not change
// waits half as long again the next time, what did half as long, from Min to Max.
type RecrawlInterval struct{ Min, Max time.Duration }

// String is the interval, or from which to which it is.
func (r RecrawlInterval) String() string {
	if r.Min == r.Max {
		return r.Min.String()
	}
	return fmt.Sprintf("%v to %v", r.Min, r.Max)
}

// Next is when a URL is recrawled that was fetched now: last is from the last
// fetch to this one as it was chosen, 0 when this is the first.
func (r RecrawlInterval) Next(last time.Duration, unchanged bool) time.Duration {
	switch {
	case last <= 0:
		last = r.Min
	case unchanged:
		last += last / 2
	default:
		last /= 2
	}
	return min(max(last, r.Min), r.Max).Round(time.Millisecond)
}

// ParseRecrawl reads REGEX=INTERVAL or REGEX=INTERVAL..MAX. Without MAX the interval
// stays as it is.
func ParseRecrawl(rule string) (*regexp.Regexp, RecrawlInterval, error) {
	bad := func(format string, args ...any) (*regexp.Regexp, RecrawlInterval, error) {
		return nil, RecrawlInterval{}, fmt.Errorf("frontier: settings: recrawl %q "+format, append([]any{rule}, args...)...)
	}
	at := strings.LastIndexByte(rule, '=')
	if at < 0 {
		return bad("must be REGEX=INTERVAL or REGEX=INTERVAL..MAX, such as .=24h..720h")
	}
	from, to, bounded := strings.Cut(rule[at+1:], "..")
	var r RecrawlInterval
	var err error
	if r.Min, err = time.ParseDuration(from); err != nil {
		return bad("must end in an interval such as 24h: %w", err)
	}
	if r.Max = r.Min; bounded {
		if r.Max, err = time.ParseDuration(to); err != nil {
			return bad("must end in a longest interval such as 720h: %w", err)
		}
	}
	if r.Min < time.Millisecond || r.Max < r.Min || r.Max > maxRecrawl {
		return bad("has intervals from %v to %v, must be of 1ms to %v, the longest last", r.Min, r.Max, maxRecrawl)
	}
	re, err := regexp.Compile(rule[:at])
	if err != nil {
		return bad("begins with no regular expression: %w", err)
	}
	return re, r, nil
}

// maxRecrawl bounds intervals: ten years.
const maxRecrawl = 10 * 365 * 24 * time.Hour

// Recrawler compiles rules of recrawl; the first that matches a URL counts. It is
// nil when there are none.
func Recrawler(rules []string) (func(url []byte) (r RecrawlInterval, ok bool), error) {
	if len(rules) == 0 {
		return nil, nil
	}
	expressions, intervals := make([]*regexp.Regexp, len(rules)), make([]RecrawlInterval, len(rules))
	for i, text := range rules {
		var err error
		if expressions[i], intervals[i], err = ParseRecrawl(text); err != nil {
			return nil, err
		}
	}
	return func(url []byte) (RecrawlInterval, bool) {
		for i, re := range expressions {
			if re.Match(url) {
				return intervals[i], true
			}
		}
		return RecrawlInterval{}, false
	}, nil
}
