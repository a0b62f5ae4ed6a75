package crawl

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"seine/extract/sink"
	"seine/fetch/crawl/internal/flow"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// page is the result of a URL on its way to being settled: where the crawl looks for
// duplicates its content is first compared with others (dedupBatch); its record reaches
// the sink, then verdicts come on its candidates, then its outcome is settled. A
// crash before the last step brings the URL back, so sinks see a record at least
// once.
type page struct {
	visit      *visit
	outcome    frontier.Outcome
	candidates []work.Candidate
	linkDepth  uint32       // of the links
	referrer   string       // that the links keep of it
	text       int64        // of bytes: until the record is in the sink
	bytes      int64        // that the gate counts
	pending    atomic.Int32 // candidates without a verdict
	returned   atomic.Bool  // it goes back to be fetched again, for its record or a candidate found no place
	silent     atomic.Bool  // that is because a shard is silent
	counted    bool         // holds a page of the budget
	facts      frontier.Facts
	seen       atomic.Int64 // candidates that were known
	dropRecord bool         // its handler wants none
	added      int          // of candidates, those that its handler added, the last

	sinkWait flow.Waiting // for the sink
}

// newPage is the page of a result.
func newPage(v *visit, r *work.Result) *page {
	return &page{
		visit: v, outcome: r.Outcome, candidates: r.Candidates, linkDepth: r.LinkDepth, referrer: r.Referrer,
		text: r.Text, bytes: r.Held, counted: true, facts: r.Facts, dropRecord: r.DropRecord, added: r.Added,
	}
}

// silentPause is how long a page waits that went back for a silent shard's sake,
// and up to half as long again.
const silentPause = time.Minute

// countAnswer counts the request just made, whatever becomes of its URL: a site that
// refuses every request shows in the metrics. A request that this machine could not
// make is none.
func (p *page) countAnswer(r *work.Result) {
	cs := p.visit.loop.crawler.count
	if r.Unchanged {
		cs.Unchanged.Inc()
	}
	if r.Response.Status > 0 {
		p.facts.Status, p.facts.Media = cs.CountAnswer(r.Response)
	} else if p.outcome.Kind == frontier.Requeue {
		return
	}
	cs.CountPage(r.Response)
	if !r.GoesBack() || p.outcome.Kind == frontier.Retry && r.Response.Status > 0 {
		p.outcome.Facts = &p.facts
	}
}

// sendOn sends the page with its record on its way: to be compared with others, or to
// the sink.
func (p *page) sendOn(s *work.Scratch, r *work.Result) {
	c := p.visit.loop.crawler
	c.count.CountLinks(&p.facts)
	if !r.Compare {
		p.write(r.Record)
		return
	}
	s.KeepRecord(r)
	q := &comparison{page: p, record: *r.Record, skip: r.Skip, content: r.Content}
	q.size = sizeOf(&q.record) - p.text // that the page counts already
	p.bytes += q.size
	c.gate.Add(q.size)
	c.loopOf(q.content.Digest).deduper.batch.Add(q)
}

// write sends the record to the sink, which copies what it keeps.
func (p *page) write(r *sink.Record) {
	c := p.visit.loop.crawler
	c.gate.Write(&p.sinkWait)
	if p.dropRecord {
		p.recorded(nil)
		return
	}
	c.writing.Add(1)
	c.cfg.Sink.Write(r, p.recorded)
	c.writing.Add(-1)
}

// outcomeNames are the kinds of outcome, as the log has them.
var outcomeNames = [...]string{frontier.Done: "done", frontier.Retry: "retry", frontier.Dead: "dead", frontier.Requeue: "requeue", frontier.Recrawl: "again"}

// logURL writes at level debug what became of a URL.
func (v *visit) logURL(r *work.Result, item *frontier.Item) {
	log := v.loop.crawler.cfg.Log
	if !log.Enabled(v.ctx, slog.LevelDebug) {
		return
	}
	o := &r.Outcome
	attrs := []any{"url", r.Name, "outcome", outcomeNames[o.Kind], "status", r.Response.Status, "ms", r.Response.Took.Milliseconds()}
	if o.Cause != "" {
		attrs = append(attrs, "cause", o.Cause)
	}
	if o.Text != "" {
		attrs = append(attrs, "err", o.Text)
	}
	if item.Referrer != "" {
		attrs = append(attrs, "referrer", item.Referrer)
	}
	log.Debug("url", attrs...)
}

// dropText lets go of the text: it is in the sink.
func (p *page) dropText() {
	p.visit.loop.crawler.gate.Add(-p.text)
	p.bytes -= p.text
	p.text = 0
}

// recorded is called when the page's record is in the sink, or cannot get
// there: a sink that loses records ends the crawler in order, and the URL goes
// back.
func (p *page) recorded(err error) {
	c := p.visit.loop.crawler
	c.gate.Wrote(&p.sinkWait)
	p.dropText()
	c.admitting.Add(1)
	if err != nil {
		c.endWith(fmt.Errorf("crawl: the sink lost a record, so its page was not settled: %w", err))
		p.returned.Store(true)
		p.candidates = nil
	}
	candidates := p.candidates
	p.candidates = nil
	if len(candidates) == 0 {
		p.settle()
		return
	}
	p.pending.Store(int32(len(candidates)))
	for len(candidates) > 0 { // in runs of one shard
		l := c.loopOf(candidates[0].Fingerprint)
		end := 1
		for end < len(candidates) && c.loopOf(candidates[end].Fingerprint) == l {
			end++
		}
		l.admitter.add(p, false, candidates[:end])
		candidates = candidates[end:]
	}
}

// answered counts the verdict on one candidate. Full says that nobody will ask
// for room again.
func (p *page) answered(v frontier.Verdict) {
	if v == frontier.Seen {
		p.seen.Add(1)
	}
	if v == frontier.Full && !p.returned.Swap(true) && !p.silent.Load() {
		p.visit.loop.crawler.count.Returned.Add(1)
	}
	if p.pending.Add(-1) == 0 {
		p.settle()
	}
}

// settle hands the outcome to the visit: a page whose record or candidates found
// no place goes back to be fetched again.
func (p *page) settle() {
	c := p.visit.loop.crawler
	c.admitting.Add(-1)
	c.gate.Add(-p.bytes)
	if p.returned.Load() {
		if p.counted {
			c.giveBack()
		}
		p.outcome = frontier.Outcome{Index: p.outcome.Index, Kind: frontier.Requeue}
		if p.silent.Load() {
			p.outcome.Kind, p.outcome.Blameless, p.outcome.Cause = frontier.Retry, true, work.CauseSilent
			p.outcome.NotBefore = work.RetryDelay(silentPause, 0)
		}
	} else if p.counted {
		c.budget.Settle()
	}
	p.outcome.Unasked = !p.counted && p.outcome.Kind == frontier.Dead
	p.facts.Known += p.seen.Load()
	p.visit.settle(p.outcome)
}
