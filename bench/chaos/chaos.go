// Package chaos breaks what a crawl runs on, and counts what is lost.
//
// It is a kit of tests. Each crawls a synthetic web, whose answer key is known,
// with real fetchers on real Redis, and meanwhile kills, freezes, fills or moves
// one part of it: a scenario. The web outlasts the last blow, or else the
// scenario fails. At its end every URL of the key must have been asked for and
// have its record, repeated requests must be explained by the URLs that came
// back from lost leases, no request may have come sooner than the delay of its
// site, and `frontier check` must find each shard in order.
//
// By default the scenarios are short, for make check. With
// SEINE_CHAOS=long they break more, more often and on a larger cluster, and the
// soak runs too. What is random follows from a seed, which is printed with the
// counts of each scenario; SEINE_CHAOS_SEED sets it. SEINE_CHAOS_RESULTS names a
// file for these counts.
//
// The tests need Linux: they look at processes through /proc.
package chaos
