package frontier

import "errors"

// The errors that callers branch on.
var (
	// ErrStale: the crawl was deleted or created anew under a running program, or all
	// of its masters lost their data.
	ErrStale = errors.New("frontier: this crawl was deleted, created again, or lost with the data of its masters")
	// ErrLostShard: the master of a shard came back without its data; others have theirs.
	ErrLostShard = errors.New("frontier: the keys of this shard are gone")
	// ErrLostFilter: a filter of the shard is missing; admission stops.
	ErrLostFilter = errors.New("frontier: a Bloom filter of this shard is missing")
	// ErrLayout: the crawl was created with another layout than this program's.
	ErrLayout = errors.New("frontier: layout differs")
	// ErrNoCrawl: no crawl of this name.
	ErrNoCrawl = errors.New("frontier: no such crawl")
	// ErrExists: a crawl of this name is there already.
	ErrExists = errors.New("frontier: crawl exists")
	// ErrPartial: some shards cannot be read, and what they have is left out.
	ErrPartial = errors.New("frontier: shards that cannot be read are left out")
	// ErrNotAcked: admitted, but not acknowledged by a replica in time.
	ErrNotAcked = errors.New("frontier: not acknowledged by a replica")
	// ErrFull: Redis has no room for new URLs.
	ErrFull = errors.New("frontier: Redis is full")
	// ErrLive: programs are at work on the crawl.
	ErrLive = errors.New("frontier: crawl is in use")
	// ErrElement: an element of a feed, or a seed in that form, was written by
	// another version of the program.
	ErrElement = errors.New("frontier: this program does not know the version of an element")
	// ErrEntry: what is in a queue or a visit is no entry of this version.
	ErrEntry = errors.New("frontier: entry of an unknown version or broken")
)
