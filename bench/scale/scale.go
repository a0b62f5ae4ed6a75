// Package scale fills a crawl in Redis with as many URLs as a machine can hold,
// and measures on the way what each more costs.
//
// It is one test. It drives the frontier through its contract: URLs of as many
// sites as there are 200 URLs for, their sizes by a power law, are admitted in
// calls of 480, and a quarter of them is leased and settled, so that it is
// known and not queued. When a 200th, a 20th, a quarter, half and all of the URLs
// are there, it stops to measure: processor time of Redis and bytes of an admission,
// a visit and a settlement, beside those of a small crawl of constant size, which
// tells what the machine was worth meanwhile; what each kind of key takes; how
// often a filter was wrong. On the full crawl it then runs a fetcher, whose pages
// nginx serves on loopback addresses, `frontier check`, a restart from the
// append-only file and from a snapshot, the move of a slot, and the death of a master
// with a replica, in a cluster or watched by sentinels.
//
// Without flags it is small, for every run of the tests; scripts/bench-scale runs
// the large form. The test needs Linux: it looks at /proc.
package scale
