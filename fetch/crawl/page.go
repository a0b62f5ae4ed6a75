package crawl

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"seine/extract/sink"
	"seine/fetch/crawl/internal/flow"
	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// page is the result of a URL on its way to being settled. Where the crawl looks for
// duplicates, its content is first compared with others. Then its record reaches the sink,
// verdicts come on its candidates, and its outcome is settled. A crash before the last
// step brings the URL back, so sinks see a record at least once.
type page struct {
	crawler    *Crawler
	visit      *site.Visit
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
func newPage(c *Crawler, v *site.Visit, r *work.Result) *page {
	return &page{
		crawler: c, visit: v, outcome: r.Outcome, candidates: r.Candidates, linkDepth: r.LinkDepth, referrer: r.Referrer,
		text: r.Text, bytes: r.Held, counted: true, facts: r.Facts, dropRecord: r.DropRecord, added: r.Added,
	}
}

// countAnswer counts the request just made, whatever becomes of its URL: a site that
// refuses every request shows in the metrics. A request that this machine could not
// make is none.
func (p *page) countAnswer(r *work.Result) {
	n := p.crawler.count
	if r.Unchanged {
		n.Unchanged.Inc()
	}
	if r.Response.Status > 0 {
		p.facts.Status, p.facts.Media = n.CountAnswer(r.Response)
	} else if p.outcome.Kind == frontier.Requeue {
		return
	}
	n.CountPage(r.Response)
	if !r.GoesBack() || p.outcome.Kind == frontier.Retry && r.Response.Status > 0 {
		p.outcome.Facts = &p.facts
	}
	if p.facts.Withheld != "" {
		n.Withheld.Inc()
	}
}

// outcomeNames are the kinds of outcome, as the log has them.
var outcomeNames = [...]string{frontier.Done: "done", frontier.Retry: "retry", frontier.Dead: "dead", frontier.Requeue: "requeue", frontier.Recrawl: "recrawl"}

// logURL logs the outcome of a URL at level debug.
func (c *Crawler) logURL(v *site.Visit, item *frontier.Item, r *work.Result) {
	log := c.cfg.Log
	if !log.Enabled(v.Ctx, slog.LevelDebug) {
		return
	}
	o := &r.Outcome
	attrs := []any{"url", r.Name, "outcome", outcomeNames[o.Kind], "status", r.Response.Status, "ms", r.Response.Took.Milliseconds()}
	if item.Request != "" {
		attrs = append(attrs, "method", item.Request.String())
	}
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

// send sends the page with its record to be compared with others, or to the sink.
func (p *page) send(s *work.Scratch, r *work.Result) {
	c := p.crawler
	c.count.CountLinks(&p.facts)
	if !r.Compare {
		p.writeRecord(r.Record)
		return
	}
	s.KeepRecord(r)
	record, skip := *r.Record, r.Skip // of its own: no worker holds them meanwhile
	size := sizeOf(&record) - p.text  // that the page counts already
	p.holdBytes(size)
	c.shardOf(r.Content.Digest).deduper.AddContent(flow.Comparison{Content: r.Content, Done: func(duplicate bool) {
		p.holdBytes(-size)
		if duplicate {
			record.Duplicate = true
			p.countDuplicate(skip)
		}
		p.writeRecord(&record)
	}})
}

// recordOverhead is what a record that waits takes beside its texts.
const recordOverhead = 2 << 10

// sizeOf is about what a record that waits takes.
func sizeOf(r *sink.Record) int64 {
	n := recordOverhead + len(r.Body) + len(r.Text) + len(r.Title) + len(r.Fields) + len(r.Meta)
	if e := r.Exchange; e != nil {
		n += cap(e.Request) + cap(e.Response)
	}
	for i := range r.Items {
		n += len(r.Items[i].Value)
	}
	for _, l := range r.LinksOut {
		n += len(l) + 16
	}
	for _, h := range r.Headers {
		n += len(h[0]) + len(h[1]) + 32
	}
	return int64(n)
}

// holdBytes counts n more bytes of the page, or fewer.
func (p *page) holdBytes(n int64) {
	p.bytes += n
	p.crawler.gate.AddBytes(n)
}

// countDuplicate counts the page as a duplicate, whose links are not followed if skip says
// so.
func (p *page) countDuplicate(skip bool) {
	n := p.crawler.count
	n.Duplicates.Inc()
	if !skip {
		return
	}
	links := len(p.candidates) - p.added
	p.candidates = append([]work.Candidate(nil), p.candidates[links:]...)
	p.facts.Refused[work.RefusedDuplicate] += uint32(links)
	n.Refusals[work.RefusedDuplicate].Add(links)
}

// writeRecord sends the record to the sink, which copies what it keeps.
func (p *page) writeRecord(r *sink.Record) {
	c := p.crawler
	c.gate.EnterSink(&p.sinkWait)
	if p.dropRecord {
		p.recorded(nil)
		return
	}
	c.writing.Add(1)
	c.cfg.Sink.Write(r, p.recorded)
	c.writing.Add(-1)
}

// recorded is called when the page's record is in the sink, or cannot get
// there: a sink that loses records ends the crawler in order, and the URL goes
// back.
func (p *page) recorded(err error) {
	c := p.crawler
	c.gate.LeaveSink(&p.sinkWait)
	p.holdBytes(-p.text)
	c.admitting.Add(1)
	if err != nil {
		c.stopWith(fmt.Errorf("crawl: the sink lost a record, so its page was not settled: %w", err))
		p.returned.Store(true)
		p.candidates = nil
	}
	p.admitCandidates()
}

// admitCandidates has the shards admit the candidates. Then, or if there are none, the
// page is settled.
func (p *page) admitCandidates() {
	candidates := p.candidates
	p.candidates = nil
	if len(candidates) == 0 {
		p.settlePage()
		return
	}
	p.pending.Store(int32(len(candidates)))
	for len(candidates) > 0 { // in runs of one shard
		s := p.crawler.shardOf(candidates[0].Fingerprint)
		end := 1
		for end < len(candidates) && p.crawler.shardOf(candidates[end].Fingerprint) == s {
			end++
		}
		s.admitter.AddCandidates(p, false, candidates[:end])
		candidates = candidates[end:]
	}
}

// Common implements flow.Page.
func (p *page) Common() (depth uint32, referrer string) { return p.linkDepth, p.referrer }

// ShardSilent implements flow.Page.
func (p *page) ShardSilent() { p.silent.Store(true) }

// Answered implements flow.Acknowledger.
func (p *page) Answered(v frontier.Verdict) {
	if v == frontier.Seen {
		p.seen.Add(1)
	}
	if v == frontier.Full && !p.returned.Swap(true) && !p.silent.Load() {
		p.crawler.count.Returned.Add(1)
	}
	if p.pending.Add(-1) == 0 {
		p.settlePage()
	}
}

// silentPause is how long a page waits that went back since a shard is silent, and up to
// half as long again.
const silentPause = time.Minute

// settlePage hands the outcome to the visit: a page whose record or candidates found
// no place goes back to be fetched again.
func (p *page) settlePage() {
	c := p.crawler
	c.admitting.Add(-1)
	c.gate.AddBytes(-p.bytes)
	if p.returned.Load() {
		if p.counted {
			c.returnPage()
		}
		p.outcome = frontier.Outcome{Index: p.outcome.Index, Kind: frontier.Requeue}
		if p.silent.Load() {
			p.outcome.Kind, p.outcome.Blameless, p.outcome.Cause = frontier.Retry, true, work.CauseSilent
			p.outcome.NotBefore = work.RetryDelay(silentPause, 0)
		}
	} else if p.counted {
		c.budget.SettlePage()
	}
	p.outcome.Unasked = !p.counted && p.outcome.Kind == frontier.Dead
	p.facts.Known += p.seen.Load()
	c.settleURL(p.visit, p.outcome)
}
