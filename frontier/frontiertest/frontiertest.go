// Package frontiertest tests frontiers against their contract: the one in Redis and
// the one in memory must not differ in anything that a fetcher can see.
//
// Run goes through the contract clause by clause; Drive lets simulated fetchers
// crash, stall and repeat themselves at random and counts what was lost or
// doubled; Compare makes two frontiers take the same random steps and compares
// what they say after each.
package frontiertest

import (
	"testing"
	"time"

	"seine/frontier"
)

// Backend is an empty crawl with a lease of a minute, whose time stands still
// between calls of Advance.
type Backend struct {
	Frontier frontier.Frontier
	Advance  func(time.Duration) // whole milliseconds
	// Silent lets time pass in which nobody ticks, and returns by how much it
	// moved the deadlines of the leases of a.example to do so. nil when the
	// backend cannot show such a gap: its Advance may count as ticks.
	Silent  func(time.Duration) (moved time.Duration)
	MaxList int // entries a list holds, 0 = too many to test; then MaxBytes of bytes, too
	MaxDead int // dead letters a cause and shard holds, 0 = too many to test
}

// lease is how long a visit lives without a tick. A claim is shorter than
// claimed.
const (
	lease   = time.Minute
	claimed = 15 * time.Second
)

// MaxBytes is how many bytes a list holds of a backend that has a MaxList.
const MaxBytes = 30_000

// clauses is the contract.
var clauses = []struct {
	name string
	test func(*kit)
}{
	{"admit/once", admitOnce},
	{"admit/at once", admitAtOnce},
	{"admit/refetch", admitRefetch},
	{"admit/refetch and plain in one batch", admitRefetchMerged},
	{"admit/requests", admitRequests},
	{"admit/cap", admitCap},
	{"admit/cap of a rule", admitCapOfRule},
	{"admit/list is full", admitListFull},
	{"admit/list is full of bytes", admitListFullOfBytes},
	{"admit/order depth", admitOrderDepth},
	{"admit/past the plan", admitPastPlan},
	{"tick/claims", tickClaims},
	{"tick/shares", tickShares},
	{"tick/no class starves", tickNoClassStarves},
	{"tick/next", tickNext},
	{"tick/patience", tickPatience},
	{"tick/extends", tickExtends},
	{"tick/quiet after a gap", tickQuiet},
	{"visit/ticket is exact", visitTicketExact},
	{"visit/late copy of a ticket", visitLateCopy},
	{"visit/limits", visitLimits},
	{"visit/classes within a site", visitClasses},
	{"visit/carries everything", visitCarries},
	{"settle/repeated", settleRepeated},
	{"settle/late copy", settleLateCopy},
	{"settle/freed before the last outcome", settleFreedEarly},
	{"settle/clock and values", settleClock},
	{"settle/requeue", settleRequeue},
	{"settle/retry", settleRetry},
	{"settle/retry only and new work", settleRetryOnly},
	{"settle/late outcomes of a freed site", settleLateOutcomes},
	{"settle/kept for the caller", settleKept},
	{"settle/kept until something places it", settleKeptPlaced},
	{"credentials/kept by origin", credentialsKept},
	{"cookies/stay", cookiesStay},
	{"cookies/late", cookiesLate},
	{"recrawl/waits", recrawlWaits},
	{"recrawl/once", recrawlOnce},
	{"recrawl/order", recrawlOrder},
	{"recrawl/lost", recrawlLost},
	{"recrawl/blocked and paused", recrawlBlocked},
	{"recrawl/brought forward", recrawlRenewed},
	{"walls/in a row", wallsInRow},
	{"walls/late", wallsLate},
	{"walls/fetcher lost before the release", wallsLost},
	{"walls/page beside the last", wallsBeside},
	{"walls/stopped", wallsStopped},
	{"walls/ended", wallsEnded},
	{"walls/what comes to the site", wallsAdmitted},
	{"walls/counted", wallsCounted},
	{"reap/lost reply of a visit", reapLostReply},
	{"reap/refused after extend", reapRefused},
	{"reap/settle after it is gone", reapThenSettle},
	{"reap/lost goes alone and dies", reapLostAlone},
	{"reap/a last chance is not for everyone", reapSafe},
	{"reap/one last chance at a time", reapOneChance},
	{"reap/outcome clears the count of losses", reapLossCleared},
	{"reap/of a freed site", reapFreed},
	{"reap/keeps the delay of a rule", reapDelayOfRule},
	{"reserve/times", reserveTimes},
	{"reserve/not while it is leased", reserveLeased},
	{"reserve/its own URLs have their turn", reserveOwn},
	{"reserve/stopped", reserveStopped},
	{"dead/letters", deadLetters},
	{"dead/retried", deadRetried},
	{"dead/bound", deadBound},
	{"site/pause", sitePause},
	{"site/block", siteBlock},
	{"site/override", siteOverride},
	{"crawl/pause", crawlPause},
	{"crawl/settings", crawlSettings},
	{"crawl/pages", crawlPages},
	{"duplicates/own", duplicatesOwn},
	{"duplicates/many", duplicatesMany},
	{"duplicates/at once", duplicatesAtOnce},
	{"duplicates/refused", duplicatesRefused},
	{"crawl/rules", crawlRules},
	{"crawl/rules of many origins", crawlRulesBounded},
	{"crawl/gauges", crawlGauges},
	{"crawl/finished", crawlFinished},
	{"crawl/members", crawlMembers},
	{"crawl/at once", crawlAtOnce},
	{"insight/states", insightStates},
	{"insight/entries", insightEntries},
	{"insight/knows", insightKnows},
	{"insight/sums", insightSums},
	{"insight/sample", insightSample},
}

// Run tests backends that open makes, one for each clause of the contract.
func Run(t *testing.T, open func(testing.TB) Backend) {
	for _, c := range clauses {
		t.Run(c.name, func(t *testing.T) { c.test(newKit(t, open(t))) })
	}
}
