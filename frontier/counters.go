package frontier

import (
	"strconv"
	"time"
)

// Facts are what the report of a crawl counts of one outcome, beside its kind and
// cause. Names in them are of small sets, whatever sites send.
type Facts struct {
	Status    int             // of the answer that a record tells of, 0 = none
	Media     string          // kind of its content, "" = unknown
	Bytes     int64           // of its content
	Links     int64           // that the page had
	Known     int64           // of these, what led to URLs that were known
	Refused   [Reasons]uint32 // of these, what was not followed, by reason
	Refetched bool            // the URL was fetched before, and is counted as a page and a seed already
	Withheld  string          // what its site refuses the page for, of the purposes of the crawl, "" = nothing
	Seed      string          // where the URL was seeded: the URL without credentials
	Wall      string          // vendor of the certain wall that the answer was, "" = none
}

// StatusOther is the status that stands for those that nobody registered.
const StatusOther = 999

// Reasons is how many reasons there are for not following a link.
const Reasons = 15

// The reasons why a link was not followed, from 1 on, as metrics and reports name
// them.
const (
	ReasonScope     = "scope"
	ReasonDepth     = "depth"
	ReasonRule      = "rule"
	ReasonExtension = "extension"
	ReasonTooLong   = "too_long"  // the URL is longer than Settings.MaxURL
	ReasonRequest   = "request"   // a redirect would repeat a body, or a method that is not safe, at another origin
	ReasonDuplicate = "duplicate" // the page's content came before, under another URL
)

// ReasonNames are the reasons in the order of Facts.Refused; the first is none.
var ReasonNames = [Reasons]string{"", ReasonScope, ReasonDepth, ReasonRule, ReasonExtension, "nofollow", "invalid", "scheme", "guard", "over", "foreign", "handler", ReasonDuplicate, ReasonTooLong, ReasonRequest}

// Counters are what a shard counted of the outcomes that it settled, each once.
type Counters struct {
	Counts map[string]int64  // by the names of Settlement.EachCounter
	Seeds  map[string]string // what became of the first SeedsKept seeds, as of Outcome.Label; "" = not tried yet
	Pages  []TopSite         // sites with most pages, the first first
	Dead   []TopSite         // sites with most dead URLs
}

// The bounds of Counters.
const (
	SeedsKept = 100 // seeds a shard
	TopKept   = 100 // sites a list
)

// TopSite is one of a list of the first. While a crawl goes on Count may be behind
// by up to TopStep.
type TopSite struct {
	Site  string
	Count int64
}

// TopStep is by how much a site's count grows from one look at a top list to the
// next.
const TopStep = 16

// How the names of counts begin; Settlement.EachCounter says what follows.
const (
	CounterPage     = "page:"     // status, and ":" and kind of content
	CounterBytes    = "bytes:"    // the same
	CounterRetry    = "retry:"    // cause, and ":" and status where there was an answer
	CounterDead     = "gone:"     // cause; what died of lost fetchers is not in it
	CounterSeed     = "seed:"     // outcome
	CounterRefused  = "refused:"  // reason
	CounterWall     = "wall:"     // vendor of a certain wall
	CounterSite     = "site:"     // what came of the last request to a site: 2xx, or a cause
	CounterWithheld = "withheld:" // purpose that sites refuse
	CounterLinks    = "links"
	CounterKnown    = "known"
)

// statusNames are the names of statuses.
var statusNames = func() (names [StatusOther + 1]string) {
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}()

// statusName is the name of a status.
func statusName(status int) string { return statusNames[min(max(status, 0), StatusOther)] }

// EachCounter calls add with what the outcomes of a settlement add to the counters of their
// shard. The name of a count is kind, name, and behind a ":" detail, if there is
// one.
func (st *Settlement) EachCounter(add func(kind, name, detail string, n int64)) {
	for i := range st.Outcomes {
		o := &st.Outcomes[i]
		switch o.Kind {
		case Retry:
			detail := ""
			if o.Facts != nil && o.Facts.Status > 0 {
				detail = statusName(o.Facts.Status)
			}
			add(CounterRetry, o.Cause, detail, 1)
			countWall(o.Facts, add)
			continue
		case Dead:
			add(CounterDead, o.Cause, "", 1)
		case Done, Recrawl:
		default:
			continue
		}
		f := o.Facts
		if f == nil {
			continue
		}
		countWall(f, add)
		if f.Status > 0 && !f.Refetched {
			add(CounterPage, statusName(f.Status), f.Media, 1)
			add(CounterBytes, statusName(f.Status), f.Media, f.Bytes)
		}
		if f.Withheld != "" && !f.Refetched {
			add(CounterWithheld, f.Withheld, "", 1)
		}
		add(CounterLinks, "", "", f.Links)
		add(CounterKnown, "", "", f.Known)
		for reason, n := range f.Refused {
			if n > 0 {
				add(CounterRefused, ReasonNames[reason], "", int64(n))
			}
		}
		if f.Seed != "" && !f.Refetched {
			add(CounterSeed, o.Label(), "", 1)
		}
	}
}

// countWall adds the wall that an answer was.
func countWall(f *Facts, add func(kind, name, detail string, n int64)) {
	if f != nil && f.Wall != "" {
		add(CounterWall, f.Wall, "", 1)
	}
}

// CounterName is the name of a count.
func CounterName(kind, name, detail string) string {
	if detail != "" {
		return kind + name + ":" + detail
	}
	return kind + name
}

// OfSeed reports whether an outcome tells what became of a seed.
func (o *Outcome) OfSeed() bool { return o.Facts != nil && o.Facts.Seed != "" && o.Kind != Requeue }

// LabelWaiting begins the outcome of a URL that waits to be tried again; the cause follows.
const LabelWaiting = "waiting: "

// Label is what became of a URL in a word: a status, or the cause of its death, or
// that it waits.
func (o *Outcome) Label() string {
	switch {
	case o.Kind == Retry:
		return LabelWaiting + o.Cause
	case o.Kind == Dead:
		return o.Cause
	case o.Facts != nil && o.Facts.Status > 0:
		return statusName(o.Facts.Status)
	}
	return "done"
}

// Last is what came of the last request of a settlement, as far as its outcomes
// tell: a status or a cause, "" = nothing.
func (st *Settlement) Last() string {
	for i := len(st.Outcomes) - 1; i >= 0; i-- {
		switch o := &st.Outcomes[i]; {
		case o.Facts != nil && o.Facts.Status > 0:
			return statusName(o.Facts.Status)
		case o.Kind == Retry || o.Kind == Dead:
			return o.Cause
		}
	}
	return ""
}

// Counted is how many pages and dead URLs a settlement has.
func (st *Settlement) Counted() (pages, dead int64) {
	for i := range st.Outcomes {
		switch st.Outcomes[i].Kind {
		case Done, Recrawl:
			pages++
		case Dead:
			dead++
		}
	}
	return pages, dead
}

// LastClass is the class of what Last says, in which CounterSite counts sites: 2xx for
// a status, else the cause.
func LastClass(last string) string {
	if len(last) == 3 && last[0] >= '1' && last[0] <= '9' {
		return last[:1] + "xx"
	}
	return last
}

// SiteTotals is what became of a site since its shard knows it.
type SiteTotals struct {
	Pages int64
	Dead  int64
	Last  string    // as of Settlement.Last
	Since time.Time // of its first settlement
}
