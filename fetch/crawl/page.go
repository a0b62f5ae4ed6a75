package crawl

import (
	"fmt"
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
	size    int64        // what the links hold
	bytes   int64        // of size: what flow control knows of
	pending atomic.Int32 // links not answered yet
	turned  atomic.Bool  // a link found no room and will not be asked for again
	counted bool         // holds a page of the budget
}

const (
	// linkOverhead is what a waiting link costs beside its text.
	linkOverhead = 160
	// chargeStep is how far a page may grow before flow control is told.
	chargeStep = 64 << 10
)

// addLink takes a candidate that the page's links brought up.
func (p *page) addLink(c frontier.Candidate) {
	p.links = append(p.links, link{Candidate: c, from: p})
	p.size += int64(len(c.URL)+len(c.Meta)) + linkOverhead
}

// charge tells flow control what the page holds, once it has grown by step.
func (p *page) charge(w *Worker, step int64) {
	if more := p.size - p.bytes; more > 0 && more >= step {
		w.flow.add(more)
		p.bytes = p.size
	}
}

// drop lets go of the links of a page that failed.
func (p *page) drop(w *Worker) {
	w.flow.add(-p.bytes)
	p.links, p.size, p.bytes = nil, 0, 0
}

// sunk is called when the page's record is in the sink, or cannot get there: a
// sink that loses records ends the worker in order, and the URL goes back.
func (p *page) sunk(err error) {
	w := p.loan.lane.w
	w.sinking.Add(-1)
	if err != nil {
		w.endWith(fmt.Errorf("crawl: the sink lost a record, so its page was not settled: %w", err))
		p.turned.Store(true)
		w.linking.Add(1)
		p.finish()
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

// acknowledge counts one answered link. Full says that it will not be asked for
// again.
func (p *page) acknowledge(v frontier.Verdict) {
	if v == frontier.Full && !p.turned.Swap(true) {
		p.loan.lane.w.count.turned.Add(1)
	}
	if p.pending.Add(-1) == 0 {
		p.finish()
	}
}

// finish settles the page: one whose record or links were refused goes back
// to be fetched again.
func (p *page) finish() {
	w := p.loan.lane.w
	w.linking.Add(-1)
	w.flow.add(-p.bytes)
	if p.turned.Load() {
		if p.counted {
			w.giveBack()
		}
		p.outcome = frontier.Outcome{Index: p.outcome.Index, Kind: frontier.Requeue}
	}
	p.loan.settle(p.outcome)
}
