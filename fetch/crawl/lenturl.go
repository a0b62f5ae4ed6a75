package crawl

import "seine/frontier"

// lentURL is a URL of a visit. A fetcher holds many more of them than it asks for at
// a time, so it has what nearly all have, and the whole item only where that has more.
type lentURL struct {
	url                           string
	whole                         *frontier.Item
	index                         int32
	depth                         uint32
	priority, attempts, redirects uint8
	seed                          bool
}

// lentURLs takes the items of a visit over.
func lentURLs(items []frontier.Item) []lentURL {
	all := make([]lentURL, len(items))
	var back frontier.Item
	for i := range items {
		it := &items[i]
		all[i] = lentURL{url: it.URL, index: int32(it.Index), depth: it.Depth, priority: it.Priority, attempts: it.Attempts, redirects: it.Redirects, seed: it.Seed}
		if all[i].item(&back); back != *it {
			whole := *it // the others of its visit are let go
			all[i].whole = &whole
		}
	}
	return all
}

// item fills in the item.
func (u *lentURL) item(to *frontier.Item) {
	if u.whole != nil {
		*to = *u.whole
		return
	}
	*to = frontier.Item{Index: int(u.index), Entry: frontier.Entry{
		URL: u.url, Priority: u.priority, Depth: u.depth, Redirects: u.redirects, Seed: u.seed, Attempts: u.attempts,
	}}
}
