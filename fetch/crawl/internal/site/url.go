package site

import "seine/frontier"

// leasedURL is a URL of a visit. A fetcher has many more of them than requests under way,
// so it keeps what nearly all have, and the whole item only where that has more.
type leasedURL struct {
	url                           string
	whole                         *frontier.Item
	index                         int32
	depth                         uint32
	priority, attempts, redirects uint8
	seed                          bool
}

// leasedURLs takes the items of a visit over.
func leasedURLs(items []frontier.Item) []leasedURL {
	all := make([]leasedURL, len(items))
	var copied frontier.Item
	for i := range items {
		it := &items[i]
		all[i] = leasedURL{url: it.URL, index: int32(it.Index), depth: it.Depth, priority: it.Priority, attempts: it.Attempts, redirects: it.Redirects, seed: it.Seed}
		if all[i].item(&copied); copied != *it {
			whole := *it // the others of its visit are let go
			all[i].whole = &whole
		}
	}
	return all
}

// item fills in the item.
func (u *leasedURL) item(to *frontier.Item) {
	if u.whole != nil {
		*to = *u.whole
		return
	}
	*to = frontier.Item{Index: int(u.index), Entry: frontier.Entry{
		URL: u.url, Priority: u.priority, Depth: u.depth, Redirects: u.redirects, Seed: u.seed, Attempts: u.attempts,
	}}
}
