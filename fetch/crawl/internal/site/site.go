// Package site keeps what a fetcher knows of sites while it visits them, apart from their
// URLs.
//
// The nouns: a Clock says when the site may be asked next, and how its delay follows from
// settings, robots.txt and answers. The Agenda has the visits that wait for their clock,
// and the workers that serve them. RulesCache has rules of robots.txt by origin. DeadSites
// are those that were given up. A LeaseWatch says whether the leases that a fetcher holds
// in a shard can be relied on.
//
// The owner of a visit moves its clock, under the visit's lock; the Agenda hands a visit to
// one worker at a time. A clock never moves back.
//
// A crash loses all of it: shards keep delays, failures and rules between visits.
package site
