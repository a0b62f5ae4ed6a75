package shard

import "strconv"

// Keys builds every key name of one shard of one crawl. All share one hash
// tag and so one slot.
type Keys struct{ prefix string }

// KeysOf returns the names of the shard with this tag.
func KeysOf(crawl, tag string) Keys { return Keys{crawl + ":{" + tag + "}:"} }

// The keys of a shard; DESIGN names what each holds.
func (k Keys) Meta() string                { return k.prefix + "meta" }
func (k Keys) Stats() string               { return k.prefix + "stats" }
func (k Keys) Filter(j int) string         { return k.prefix + "filter:" + strconv.Itoa(j) }
func (k Keys) Ready(class int) string      { return k.prefix + "ready:" + strconv.Itoa(class) }
func (k Keys) Held() string                { return k.prefix + "held" }
func (k Keys) Leases() string              { return k.prefix + "leases" }
func (k Keys) Site(site string) string     { return k.prefix + "s:" + site }
func (k Keys) Wait(site string) string     { return k.prefix + "w:" + site }
func (k Keys) Visit(token string) string   { return k.prefix + "v:" + token }
func (k Keys) Dead(cause string) string    { return k.prefix + "dead:" + cause }
func (k Keys) Robots(origin string) string { return k.prefix + "robots:" + origin }

// Never is a name that no key ever has. A script that declares it runs on no
// node while its slot is moving: there it would see some of its keys, and be
// broken off when it empties one of them.
func (k Keys) Never() string { return k.prefix + "never" }

// Queue is the list of one class of a site.
func (k Keys) Queue(site string, class int) string {
	return k.prefix + "q:" + site + ":" + strconv.Itoa(class)
}

// The keys of a crawl that belong to no shard.
func RootKey(crawl string) string { return crawl + ":root" }
func FeedKey(crawl string) string { return crawl + ":feed" }
func LiveKey(crawl string) string { return crawl + ":live" }
