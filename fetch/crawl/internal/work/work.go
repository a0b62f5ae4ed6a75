// Package work takes one URL on its way: Do makes its request, reads what comes
// back and returns one value, the Result. It knows no visit, no shard and no other
// URL, and nothing of a URL outlives its Result.
//
// The nouns: an item is the URL as the frontier leased it. A Permit is leave to ask
// for it now; it carries the request and the site's cookies. A Policy is the crawl's
// settings, compiled. A Scratch is memory that a worker uses again. A Result is what
// came of the URL: its outcome, its record, its candidates and what the site's clock
// should learn.
//
// Do passes the files in this order: request, body with preference and wall, answer,
// redirect, recrawl, record, handler, content. Each step reads what those before it left in the job, which
// Do begins anew for each URL.
//
// Invariants: a URL that goes back has neither record nor candidates. The bytes that
// Config.Hold counted are those of Result.Held. Of the site only its cookies change
// here: whether a redirect is a loop depends on those that its other answers set
// meanwhile, as with the jar of net/http.
//
// A crash loses nothing: all of this is in memory, and the URL comes back when its
// lease ends.
package work

import (
	"context"
	"time"

	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier"
)

// Do asks for item, as permit has it, and returns what came of it. What it returns is
// valid until Release, which must follow.
func Do(ctx context.Context, s *Scratch, item *frontier.Item, permit *Permit) Result {
	j := s.begin(item, permit, true)
	j.prepareRequest()
	began, err := time.Now(), permit.Err
	if err == nil {
		err = s.cfg.Fetcher.Do(ctx, &s.req, &s.resp, j)
	}
	j.readAnswer(began, err)
	if j.res.Ended = err != nil && ctx.Err() != nil; !j.res.Ended {
		j.keepCookies()
		j.decideOutcome()
		j.followRedirect()
	}
	return j.conclude(ctx)
}

// conclude fills in what is left of the result once the outcome is known.
func (j *job) conclude(ctx context.Context) Result {
	if !j.res.Ended && !j.res.GoesBack() {
		j.planRecrawl()
		j.fillRecord()
		j.callHandler(ctx)
	}
	if j.res.Ended || j.res.GoesBack() {
		j.dropCandidates()
		j.res.Record = nil
		if !j.asked {
			j.noteFacts()
		}
		return j.res
	}
	j.noteFacts()
	j.noteContent()
	return j.res
}

// GiveUp makes the URL of the last Do dead, whose site is given up since it did not
// answer.
func GiveUp(ctx context.Context, s *Scratch, cause, text string) Result {
	j := &s.job
	j.res.Outcome = Dead(j.item, cause, text)
	j.res.Outcome.Tries = 1
	return j.conclude(ctx)
}

// NotAsked is the Result of an item that no request was made for; tries is how often
// it counts as tried. Of its permit site and URL count, which is nil where the item's
// does not parse.
func NotAsked(ctx context.Context, s *Scratch, item *frontier.Item, permit *Permit, o frontier.Outcome, tries int) Result {
	j := s.begin(item, permit, false)
	o.Tries = uint8(tries)
	j.res.Outcome = o
	return j.conclude(ctx)
}

// NewScratch returns memory for work under cfg. It reads URLs with r.
func NewScratch(cfg *Config, r *Reader) *Scratch {
	s := &Scratch{cfg: cfg, Reader: r}
	s.onLink = s.job.foundLink
	return s
}

// maxKeptBody is the largest body buffer that is kept for the next page.
const maxKeptBody = 1 << 20

// begin readies the memory for one URL.
func (s *Scratch) begin(item *frontier.Item, permit *Permit, asked bool) *job {
	if cap(s.body) > maxKeptBody {
		s.body = nil
	}
	if cap(s.wire.Response) > maxKeptBody {
		s.wire.Response = nil
	}
	if cap(s.linkText) > maxKeptBody {
		s.links, s.linkText = nil, nil
	}
	s.first, s.body, s.links, s.linkText = s.first[:0], s.body[:0], s.links[:0], s.linkText[:0]
	s.rec = sink.Record{}
	s.resp = fetch.Response{Header: s.resp.Header} // whose memory is used again
	j := &s.job
	*j = job{Scratch: s, item: item, permit: permit, policy: s.cfg.Policy(), asked: asked}
	j.judged = !j.policy.Settings.SeesWalls()
	j.res = Result{Outcome: frontier.Outcome{Index: item.Index, Tries: 1}, Response: &s.resp}
	if permit.URL == nil {
		j.res.Name = frontier.HideCredentials(item.URL)
		return j
	}
	var room [256]byte
	j.res.Name = string(permit.URL.AppendRedacted(room[:0]))
	j.res.LinkDepth = item.Depth + 1
	if j.policy.Settings.Referrer {
		j.res.Referrer = j.res.Name
	}
	j.said = permit.Said
	j.src = Source{site: permit.Site, host: permit.URL.Host()}
	if item.SitemapOf != "" {
		j.src = Source{host: []byte(item.SitemapOf)}
		j.src.site = s.Sites.Of(j.src.host).Name
	}
	return j
}

// Release gives back what the last Result needed beside the memory of s.
func (s *Scratch) Release() {
	j := &s.job
	if j.digest != nil {
		s.cfg.digests.Put(j.digest)
		j.digest = nil
	}
	j.releaseScanner()
}
