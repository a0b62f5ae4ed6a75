package crawl

import (
	"sync/atomic"

	"seine/frontier"
)

// page is a fetched URL on its way to being settled: first its record reaches
// the sink, then its links are admitted, then its outcome is settled. A crash
// before the last step brings the URL back, so sinks see a record at least once.
type page struct {
	loan    *loan
	outcome frontier.Outcome
	links   []link
	bytes   int64        // what it holds while it waits, for flow control
	pending atomic.Int32 // links not answered yet
}

// linkOverhead is what a waiting link costs beside its text.
const linkOverhead = 160

// addLink takes a candidate that the page's links brought up.
func (p *page) addLink(c frontier.Candidate) {
	p.links = append(p.links, link{Candidate: c, from: p})
	p.bytes += int64(len(c.URL)+len(c.Meta)) + linkOverhead
}

// sunk is called when the page's record is in the sink, or cannot get there: then
// nothing is settled, and the URL comes back when its lease ends.
func (p *page) sunk(err error) {
	w := p.loan.lane.w
	w.sinking.Add(-1)
	if err != nil {
		w.flow.add(-p.bytes)
		return
	}
	w.linking.Add(1)
	n := len(p.links)
	if n == 0 {
		p.finish()
		return
	}
	p.pending.Store(int32(n))
	links := p.links
	p.links = nil
	for len(links) > 0 { // hand over runs of links of one shard
		lane := w.laneOf(links[0].Fingerprint)
		end := 1
		for end < len(links) && w.laneOf(links[end].Fingerprint) == lane {
			end++
		}
		lane.admits.add(links[:end])
		links = links[end:]
	}
}

// acknowledge counts one answered link.
func (p *page) acknowledge(frontier.Verdict) {
	if p.pending.Add(-1) == 0 {
		p.finish()
	}
}

// finish settles the page.
func (p *page) finish() {
	w := p.loan.lane.w
	w.linking.Add(-1)
	w.flow.add(-p.bytes)
	p.loan.settle(p.outcome)
}
