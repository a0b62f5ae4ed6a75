// Package simulate runs a whole fleet in one process and in virtual time: real
// fetchers (seine/fetch/crawl), a simulated web, and shards that are frontiers in memory
// behind a simulated wire. Hours of a crawl pass in seconds.
//
// A plan, which a seed draws, says what is simulated: how many fetchers, shards and
// sites, what the sites are like, and which faults happen when. All calls to shards and
// all requests to the web pass through one ordered queue (queue). One goroutine takes
// what it has one by one, at the virtual time that the seed chose for it, so the queue is
// the only place where things happen. Each step is written down, and a failure comes with
// its plan and its steps. A replay runs them in that order again.
//
// What holds is checked in each step and not only at the end: each shard keeps a book of
// its URLs beside its frontier (book), and the web knows who asked when (web). At the
// end the answer key of the web is compared with what the crawl did.
package simulate
