package shard

import (
	"strconv"
	"strings"
)

// Keys builds every key name of one shard of one crawl. All share one hash
// tag and so one slot. Sites, tokens and causes go into names as they are; a
// brace in them does no harm, for the first pair of braces is the tag's.
type Keys struct{ prefix string }

// KeysOf returns the names of the shard with this tag. A crawl's name must not
// hold a brace.
func KeysOf(crawl, tag string) Keys { return Keys{crawl + ":{" + tag + "}:"} }

// Never is a name that no key ever has. A script that declares it runs on no
// node while its slot is moving; there it could see some of its keys only, or be
// broken off after it emptied one of them. It tells which script ran where only
// keys are shown, as in SLOWLOG.
func (k Keys) Never(script string) string { return k.prefix + "never:" + script }

// Meta is a hash: epoch, rev and paused as copied from the root, last tick and
// quiet time, and how many keys each filter has. It is KEYS[1] of every script.
func (k Keys) Meta() string { return k.prefix + "meta" }

// Stats is a hash of counters.
func (k Keys) Stats() string { return k.prefix + "stats" }

// Filter is the j-th Bloom filter of known fingerprints: its first key.
func (k Keys) Filter(j int) string { return k.prefix + "filter:" + strconv.Itoa(j) }

// FilterKey is the i-th key of the j-th filter. The 0th is Filter; meta says how
// many there are.
func (k Keys) FilterKey(j, i int) string {
	if i == 0 {
		return k.Filter(j)
	}
	return k.Filter(j) + ":" + strconv.Itoa(i)
}

// Contents is the i-th key of the Bloom filter of pages' contents. meta says how
// many there are.
func (k Keys) Contents(i int) string {
	if i == 0 {
		return k.prefix + "contents"
	}
	return k.prefix + "contents:" + strconv.Itoa(i)
}

// Probes is a hash: per filter what probing has found out about it.
func (k Keys) Probes() string { return k.prefix + "probes" }

// Probing is a string that lives for as long as nobody else may probe the
// shard's filters.
func (k Keys) Probing() string { return k.prefix + "probing" }

// Ready is a zset: the sites of a class, 0 .. 3, that have work and are not
// leased, by the time they are due.
func (k Keys) Ready(class int) string { return k.prefix + "ready:" + strconv.Itoa(class) }

// PausedReady is a zset: paused sites with work.
func (k Keys) PausedReady() string { return k.prefix + "ready:paused" }

// Paused is a hash: per paused site when and why. It lists; what counts is in s.
func (k Keys) Paused() string { return k.prefix + "paused" }

// Blocked is a hash: per blocked site when and why.
func (k Keys) Blocked() string { return k.prefix + "blocked" }

// Walled is a zset: sites whose last answers were walls, by when the fleet's back-off from
// them ends. It lists; what counts is in s.
func (k Keys) Walled() string { return k.prefix + "walled" }

// Leases is a zset: "token site" by deadline.
func (k Keys) Leases() string { return k.prefix + "leases" }

// Site is a hash: what is kept of one site.
func (k Keys) Site(site string) string { return k.prefix + "s:" + site }

// Queue is a list: the queued entries of a class, 0 .. 3, of one site.
func (k Keys) Queue(site string, class int) string {
	return k.prefix + "q:" + site + ":" + strconv.Itoa(class)
}

// Wait is a zset: retries of one site by the time they may run.
func (k Keys) Wait(site string) string { return k.prefix + "w:" + site }

// Recrawls is a zset: URLs of one site that are recrawled, by the time that is due.
func (k Keys) Recrawls(site string) string { return k.prefix + "a:" + site }

// RecrawlEntries is a hash: the entries of the URLs in Recrawls.
func (k Keys) RecrawlEntries(site string) string { return k.prefix + "e:" + site }

// AppendSite appends Site, the Queues, Wait, Recrawls and RecrawlEntries of one site: parts of one
// text, for nearly every call has those of many sites.
func (k Keys) AppendSite(keys []string, site string) []string {
	var text strings.Builder
	text.Grow(8*(len(k.prefix)+2+len(site)) + 4*2)
	begin := func(kind string) int {
		at := text.Len()
		text.WriteString(k.prefix)
		text.WriteString(kind)
		text.WriteString(site)
		return at
	}
	end := func(at int) { keys = append(keys, text.String()[at:]) }
	end(begin("s:"))
	for class := range 4 {
		at := begin("q:")
		text.WriteByte(':')
		text.WriteByte('0' + byte(class))
		end(at)
	}
	end(begin("w:"))
	end(begin("a:"))
	end(begin("e:"))
	return keys
}

// Visit is a hash: what is still open of one visit, index -> entry.
func (k Keys) Visit(token string) string { return k.prefix + "v:" + token }

// Dead is a list: dead letters of one cause.
func (k Keys) Dead(cause string) string { return k.prefix + "dead:" + cause }

// Counters is a hash of counters, for reports.
func (k Keys) Counters() string { return k.prefix + "counters" }

// Seeds is a hash: what became of the first seeds, by URL without credentials.
func (k Keys) Seeds() string { return k.prefix + "seeds" }

// Top is a zset: the first sites by pages, dead or queued.
func (k Keys) Top(by string) string { return k.prefix + "top:" + by }

// Rights is a name that is tried for what a user of Redis may do.
func (k Keys) Rights() string { return k.prefix + "rights" }

// Broken is a list: what a repair took out because nobody can read it.
func (k Keys) Broken() string { return k.prefix + "broken" }

// Rules is a hash: our agent's rules of robots.txt by origin, of one site.
func (k Keys) Rules(site string) string { return k.prefix + "r:" + site }

// Pattern matches every key of the shard, as SCAN takes it.
func (k Keys) Pattern() string {
	escaped := make([]byte, 0, len(k.prefix)+8)
	for i := range len(k.prefix) {
		switch c := k.prefix[i]; c {
		case '*', '?', '[', ']', '\\', '^':
			escaped = append(escaped, '\\', c)
		default:
			escaped = append(escaped, c)
		}
	}
	return string(append(escaped, '*'))
}

// RootKey is a hash: layout, settings, rev, epoch and state of a crawl. Like
// FeedKey and LiveKey it belongs to no shard and has a slot of its own.
func RootKey(crawl string) string { return crawl + ":root" }

// FeedKey is the default list that URLs from outside are pushed to.
func FeedKey(crawl string) string { return crawl + ":feed" }

// LiveKey is a zset: fetchers and seeders by deadline.
func LiveKey(crawl string) string { return crawl + ":live" }
