package audit_test

import (
	"strconv"
	"strings"

	"seine/frontier"
	"seine/frontier/redis"
)

// breaks is every way to break a shard, and where it shows.
var breaks = []struct {
	name  string
	do    func(s *scene)
	fault string // part of a fault
	mend  string // part of what was mended
}{
	{"lease of a visit lost", func(s *scene) { s.do("ZREM", s.keys.Leases(), redis.MemberOf(s.leased.Lease)) },
		"s:b.example: leased to", "s:b.example: the lease of"},
	{"lease of a freed visit lost", func(s *scene) { s.do("ZREM", s.keys.Leases(), redis.MemberOf(s.freed.Lease)) },
		"open without a lease, of g.example", "s:g.example: the lease of"},
	{"lease and token of a visit lost", func(s *scene) {
		s.do("ZREM", s.keys.Leases(), redis.MemberOf(s.leased.Lease))
		s.do("HDEL", s.keys.Site("b.example"), "token")
	}, "open without a lease, of b.example", "s:b.example: the lease of"},
	{"all leases lost", func(s *scene) { s.do("DEL", s.keys.Leases()) }, "open without a lease", "s:b.example: the lease of"},
	{"leased by a token of nothing", func(s *scene) {
		s.do("HSET", s.keys.Site("a.example"), "token", "bogus")
		s.do("ZREM", s.keys.Ready(0), "a.example")
	}, "s:a.example: leased to bogus", "s:a.example: is no longer leased to bogus"},
	{"lease of nothing", func(s *scene) { s.do("ZADD", s.keys.Leases(), 99e12, "bogus a.example") },
		"leases: bogus of a.example holds no URL", "s:a.example: the lease of bogus"},
	{"in no ready set", func(s *scene) { s.do("ZREM", s.keys.Ready(0), "a.example") },
		"ready:0: a.example does not stand", "s:a.example: stands where"},
	{"in a wrong ready set", func(s *scene) {
		s.do("ZREM", s.keys.Ready(0), "a.example")
		s.do("ZADD", s.keys.Ready(2), 1, "a.example")
	}, "ready:2: a.example stands there", "s:a.example: stands where"},
	{"in two ready sets", func(s *scene) { s.do("ZADD", s.keys.Ready(1), 1, "a.example") },
		"ready:1: a.example stands there", "s:a.example: stands where"},
	{"leased and ready", func(s *scene) { s.do("ZADD", s.keys.Ready(1), 1, "b.example") },
		"ready:1: b.example stands there", "s:b.example: stands where"},
	{"ready without work", func(s *scene) { s.do("ZADD", s.keys.Ready(1), 1, "z.example") },
		"ready:1: z.example stands there", "s:z.example: stands where"},
	{"due before its time", func(s *scene) { s.do("ZADD", s.keys.Ready(s.readyIn("c.example")), 1, "c.example") },
		"c.example is due at 1, before", "s:c.example: stands where"},
	{"due long after its time", func(s *scene) { s.do("ZADD", s.keys.Ready(0), 99e12, "a.example") },
		"long after its time", "s:a.example: stands where"},
	{"paused but not in ready:paused", func(s *scene) { s.do("DEL", s.keys.PausedReady()) },
		"ready:paused: d.example does not stand", "s:d.example: stands where"},
	{"ready though paused", func(s *scene) { s.do("ZADD", s.keys.Ready(0), 1, "d.example") },
		"ready:0: d.example stands there", "s:d.example: stands where"},
	{"blocked with work", func(s *scene) {
		s.do("RPUSH", s.keys.Queue("e.example", 2), stored("e.example", 0))
		s.do("HINCRBY", s.keys.Stats(), "queued", 1)
		s.do("HINCRBY", s.keys.Stats(), "known", 1)
	}, "s:e.example: blocked, with work", "is blocked: 1 URLs dropped"},
	{"an entry that cannot be read", func(s *scene) {
		s.do("RPUSH", s.keys.Queue("a.example", 0), "bad")
		s.do("ZADD", s.keys.Wait("a.example"), 1, "bad\x00")
		s.do("HSET", s.keys.Visit(s.leased.Token), "7", "bad")
		s.do("RPUSH", s.keys.Dead("gone"), "bad")
	}, "q:a.example:0: an entry cannot be read", "is kept in"},
	{"queued and not in its filter", func(s *scene) {
		s.do("RPUSH", s.keys.Queue("a.example", 0), stored("a.example", 77))
		s.left[candidate("a.example", 77).URL] = true
	}, "page/77 is not in its filter", "page/77 is in its filter"},
	{"waiting and not in its filter", func(s *scene) {
		s.do("ZADD", s.keys.Wait("a.example"), 1, stored("a.example", 77))
		s.left[candidate("a.example", 77).URL] = true
	}, "w:a.example: https://a.example/page/77 is not in its filter", "page/77 is in its filter"},
	{"leased and not in its filter", func(s *scene) {
		s.do("HSET", s.keys.Visit(s.leased.Token), "7", stored("b.example", 77))
		s.left[candidate("b.example", 77).URL] = true
	}, "page/77 is not in its filter", "page/77 is in its filter"},
	{"dead and not in its filter", func(s *scene) {
		s.do("RPUSH", s.keys.Dead("gone"), "a.example\t\t"+stored("a.example", 77))
	}, "dead:gone: https://a.example/page/77 is not in its filter", "page/77 is in its filter"},
	{"time of a recrawl lost", func(s *scene) {
		s.keepRecrawl("a.example", 77)
		s.do("ZREM", s.keys.Recrawls("a.example"), "77")
	}, "a:a.example: 0 URLs have a time of their recrawl, and 1 their entry", "a:a.example: 1 recrawls"},
	{"entry of a recrawl lost", func(s *scene) {
		s.keepRecrawl("z.example", 77)
		s.do("DEL", s.keys.RecrawlEntries("z.example"))
		delete(s.left, candidate("z.example", 77).URL)
	}, "a:z.example: 1 URLs have a time of their recrawl, and 0 their entry", "a:z.example: 1 recrawls"},
	{"to be recrawled and not in its filter", func(s *scene) {
		s.keepRecrawl("a.example", 77)
	}, "e:a.example: https://a.example/page/77 is not in its filter", "page/77 is in its filter"},
	{"to be recrawled and unreadable", func(s *scene) {
		s.do("ZADD", s.keys.Recrawls("a.example"), 1, "bad")
		s.do("HSET", s.keys.RecrawlEntries("a.example"), "bad", "bad")
		s.do("HINCRBY", s.keys.Stats(), "recrawls", 1)
	}, "e:a.example: an entry cannot be read", "is kept in"},
	{"recrawls of a wrong type", func(s *scene) { s.do("SET", s.keys.RecrawlEntries("a.example"), "x") },
		"e:a.example: is of type string", "is kept as"},
	{"queue lost", func(s *scene) {
		for class := range 3 {
			s.do("DEL", s.keys.Queue("a.example", class))
		}
		for url := range s.left {
			if strings.Contains(url, "a.example") {
				delete(s.left, url)
			}
		}
	}, "stats: queued is", "missing set to 7"},
	{"counters wrong", func(s *scene) {
		for i, name := range []string{"queued", "waiting", "open", "known", "done", "dead"} {
			s.do("HINCRBY", s.keys.Stats(), name, 10+i)
		}
	}, "stats: queued is", "queued set to"},
	{"counter no number", func(s *scene) { s.do("HSET", s.keys.Stats(), "queued", "x") },
		`stats: queued is "x"`, "queued set to"},
	{"counters lost", func(s *scene) { s.do("DEL", s.keys.Stats()) }, "stats: dead:gone is 0", "dead:gone set to 1"},
	{"epoch lost", func(s *scene) { s.do("DEL", s.keys.Meta()) }, "meta: the epoch is missing", "epoch, revision and pause"},
	{"revision lost", func(s *scene) { s.do("HDEL", s.keys.Meta(), "rev") }, "meta: the revision is missing", "epoch, revision and pause"},
	{"paused for no reason", func(s *scene) { s.do("HSET", s.keys.Meta(), "paused", "1") }, "meta: the pause differs", "epoch, revision and pause"},
	{"rules forgotten", func(s *scene) { s.do("HDEL", s.keys.Meta(), "ruled") }, "and e.example has one", "rules of sites bind"},
	{"site forgotten", func(s *scene) {
		s.do("DEL", s.keys.Site("c.example"))
		for class := range 4 {
			s.do("DEL", s.keys.Ready(class))
		}
	},
		"c.example does not stand there", "s:c.example: stands where"},
}

// keepRecrawl has the i-th URL of a site wait for a recrawl; it was done before.
func (s *scene) keepRecrawl(site string, i int) {
	name := strconv.Itoa(i)
	s.do("ZADD", s.keys.Recrawls(site), 1, name)
	s.do("HSET", s.keys.RecrawlEntries(site), name, stored(site, i))
	s.do("HINCRBY", s.keys.Stats(), "recrawls", 1)
	s.left[candidate(site, i).URL] = true
}

// stored is the i-th URL of a site as it is stored.
func stored(site string, i int) string {
	c := candidate(site, i)
	return string(frontier.AppendEntry(nil, site, &frontier.Entry{URL: c.URL, Priority: 0}))
}
