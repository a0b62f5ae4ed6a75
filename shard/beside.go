package shard

import "strings"

// RootFieldKey is a name that no key ever has, in the slot of the root: a call that
// changes a field of the root declares it, so that an ACL can tell who may.
func RootFieldKey(crawl, field string) string { return beside(RootKey(crawl), field) }

// LiveInfoKey holds what is known of the members of LiveKey, in its slot.
func LiveInfoKey(crawl string) string { return beside(LiveKey(crawl), "info") }

// LiveGoneKey holds those that vanished lately, in the slot of LiveKey.
func LiveGoneKey(crawl string) string { return beside(LiveKey(crawl), "gone") }

// LiveCrowdedKey and LiveRoomKey hold the members of LiveKey that say so of
// themselves, in its slot.
func LiveCrowdedKey(crawl string) string { return beside(LiveKey(crawl), "crowded") }
func LiveRoomKey(crawl string) string    { return beside(LiveKey(crawl), "room") }

// RunsKey holds the runs of fetchers that are on record, and RunsInfoKey what is known of
// each, in the slot of LiveKey.
func RunsKey(crawl string) string     { return beside(LiveKey(crawl), "runs") }
func RunsInfoKey(crawl string) string { return beside(LiveKey(crawl), "runs:info") }

// PagesKey holds the books of the page limit, in the slot of LiveKey.
func PagesKey(crawl string) string { return beside(LiveKey(crawl), "pages") }

// RecentKey holds what all shards were counted to lately, and RecentClaimKey says
// that somebody is counting, in the slot of LiveKey.
func RecentKey(crawl string) string      { return beside(LiveKey(crawl), "recent") }
func RecentClaimKey(crawl string) string { return beside(LiveKey(crawl), "recent:claim") }

// DeadFeedKey holds the elements of the feed that could not be read.
func DeadFeedKey(crawl string) string { return crawl + ":dead:feed" }

// FeedSeqKey counts what was taken from the feed of this key, in its slot;
// FeedLockKey says that somebody takes from it now; FeedLateKey holds elements
// that were taken while their shards did not take them.
func FeedSeqKey(feed string) string  { return beside(feed, "seq") }
func FeedLockKey(feed string) string { return beside(feed, "lock") }
func FeedLateKey(feed string) string { return beside(feed, "late") }

// CrawlsKey holds the names of all crawls of a Redis.
func CrawlsKey() string { return "seine:crawls" }

// beside names a key that is in the slot of another key.
func beside(key, name string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 && strings.IndexByte(key[open:], '}') > 1 {
		return key + ":" + name
	}
	return "{" + key + "}:" + name
}
