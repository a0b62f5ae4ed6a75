// Package frontier says what the queue of a crawl and its memory of known URLs
// promise, whoever keeps them: in Redis package redis does, in one process package
// memory. It has no driver in it, and both pass the suite of frontiertest.
//
// A crawl is split into shards. A Candidate is a discovered URL; Admit makes it
// known and says a Verdict. Tick names sites that are due, each with a Ticket, a
// claim that holds for a few seconds. Visit turns tickets into visits: some URLs
// of a site, leased with the whole site to one fetcher under a token until a
// deadline. Settle says by an Outcome what became of each URL, and gives the site
// back with the time before which nobody may ask it again. Reap takes back what a
// fetcher that died held.
//
// Calls may be repeated and may arrive late; the effect is that of once. Time is
// the driver's and never behind the last tick; callers send and get durations. A
// crash of a fetcher loses nothing: what it held comes back when its lease ends.
package frontier

import (
	"context"
	"io"

	"seine/frontier/canon"
)

// Frontier is what every driver keeps: one crawl, safe for concurrent use. It is
// composed of what its users need.
type Frontier interface {
	Crawl
	Queue
	Contents
	Rules
	Admin
	Counts
	Membership
	Pages
	Insight
	io.Closer
}

// Crawl is what a crawl is built on, and its settings.
type Crawl interface {
	// Shards is the number of shards.
	Shards() int
	// Of is the shard that owns a fingerprint.
	Of(canon.Fingerprint) int
	// Layout is what the crawl is built on.
	Layout() Layout
	// Settings is the crawl's settings as last read; do not change what it points to.
	Settings() *Settings
	// Refresh reads the settings again. Call it when Tick answers another revision.
	Refresh(context.Context) (*Settings, error)
}

// Queue is the way of a URL: admitted, due, leased, settled, or taken back from a
// fetcher that is gone. Calls may be repeated and may arrive late; the effect is
// that of once.
type Queue interface {
	// Admit makes the candidates known to their shard and queues what is new, in
	// order, and writes what became of each to verdicts, which must be as long. A URL
	// that comes twice gets its first's verdict. It keeps nothing of batch. After an
	// error the verdicts say nothing and the batch may be sent again; with
	// ErrNotAcked they are filled, but may be lost with the master.
	Admit(ctx context.Context, shard int, batch []Candidate, verdicts []Verdict) error
	// NoteSeeds is as of Admitter.
	NoteSeeds(ctx context.Context, shard int, urls []string) error
	// Tick extends the leases of a fetcher and names those that are gone, names
	// sites that are due, and leases that nobody extended. Where the server's clock
	// was set back it lets the time of the shard go on.
	Tick(ctx context.Context, shard int, req TickRequest) (TickReply, error)
	// Visit turns tickets of Tick into visits and returns those that were granted.
	Visit(ctx context.Context, shard int, tickets []Ticket, limits VisitLimits) ([]Visit, error)
	// Settle takes outcomes of visits and frees sites. Each outcome counts once. It
	// returns tickets of the sites that are kept for the caller: an offer, void as soon
	// as anything else places the site.
	Settle(ctx context.Context, shard int, settlements []Settlement) ([]Settled, error)
	// Renew brings forward when URLs are recrawled; what does not wait for that, or
	// is due sooner, stays as it is. Those of one site stand together. A late copy may
	// bring forward once more what was fetched since.
	Renew(ctx context.Context, shard int, renewals []Renewal) error
	// Reap takes back leases that nobody extended and returns how many.
	Reap(ctx context.Context, shard int, expired []Expired) (int, error)
	// Reserve asks the clock of a site for a time at which one request may be made to
	// it, by whoever works on another site whose robots.txt leads there. The site is
	// not leased until that time is over. No time is given while the site is leased, nor
	// more than a visit's worth of them while its own URLs wait.
	Reserve(ctx context.Context, shard int, req ReserveRequest) (Reservation, error)
}

// Rules keeps the robots.txt rules of origins for the whole fleet. All of a call
// belong to sites of one shard.
type Rules interface {
	// Rules fills in what SetRules stored of each origin, Rules and TTL; TTL is 0
	// where nothing is stored or it holds no longer.
	Rules(ctx context.Context, shard int, origins []OriginRules) error
	// SetRules stores the rules of each origin for its TTL. It is not bound to: they
	// are forgotten where memory is short, and whoever needs them asks the origin.
	SetRules(ctx context.Context, shard int, origins []OriginRules) error
}

// Admin is what an operator does to a crawl.
type Admin interface {
	// Set applies change to the settings and raises their revision.
	Set(ctx context.Context, change func(*Settings) error) (before, after *Settings, err error)
	// Pause stops or resumes leasing: of one shard, or of all when shard is negative.
	Pause(ctx context.Context, shard int, paused bool) error
	// PausedShards names the shards that are paused.
	PausedShards(context.Context) ([]int, error)
	// Alter changes what a shard keeps for one site.
	Alter(ctx context.Context, shard int, site string, change SiteChange) error
	// DeadLetters returns count dead letters of a cause from offset on, the oldest first.
	DeadLetters(ctx context.Context, shard int, cause string, offset, count int64) ([]DeadLetter, error)
	// DeadCounts is the number of dead letters by cause.
	DeadCounts(ctx context.Context, shard int) (map[string]int64, error)
	// RetryDead puts dead letters back at the end of their queues, as if they had never
	// failed, and returns how many were still there.
	RetryDead(ctx context.Context, shard int, dead []DeadLetter) (int, error)
	// DropDead forgets dead letters and returns how many were still there.
	DropDead(ctx context.Context, shard int, dead []DeadLetter) (int, error)
}

// Counts says how much there is, and whether anything is left to do.
type Counts interface {
	// Stats counts every shard.
	Stats(context.Context) ([]ShardStats, error)
	// RecentStats is what some program of the crawl counted within the last second
	// or two, so that any number of them may ask all the time. A shard that did not
	// answer is Silent, which is no error.
	RecentStats(context.Context) ([]ShardStats, error)
	// Finished reports whether nothing is left to do; paused sites do not count.
	Finished(context.Context) (bool, error)
}

// Membership is the list of programs that are at work on a crawl.
type Membership interface {
	// Announce says that a member is at work and returns who is. Call it every
	// AnnounceEvery.
	Announce(context.Context, Member) (Present, error)
	// Leave takes a member off the list. Its Ended stays on record.
	Leave(context.Context, Member) error
	// Members lists who is at work, by kind and start.
	Members(context.Context) ([]Member, error)
	// Runs are the last RunsKept runs of fetchers, those of members at work among them,
	// as they were when they were heard of first or, where they ended with a word, last;
	// ordered by that time, which is Seen, the last first.
	Runs(context.Context) ([]Member, error)
}

// Pages hands out the page limit of a crawl, Settings.MaxPages, in pieces: a fleet
// of any size ends at it, and nobody reads all shards for it.
type Pages interface {
	// ClaimPages settles what a fetcher holds of the limit. It holds what it was
	// granted until it gives it back by wanting less; what a killed one held comes
	// back in time.
	ClaimPages(context.Context, PageClaim) (PageGrant, error)
}

// PageClaim is what a fetcher says and wants of the page limit.
type PageClaim struct {
	Limit   int64  // pages of the whole crawl
	Fetcher string // its Member.ID
	Seq     int64  // raised by one for each call; a late copy of an older one changes nothing
	Settled int64  // pages that it settled since its first claim
	Want    int64  // pages that it would hold in all, the settled ones among them
}

// PageGrant is what a fetcher got.
type PageGrant struct {
	Granted int64 // pages that it holds, the settled ones among them; fewer than it wants where little is left
	Left    int64 // pages of the limit that nobody holds
}
