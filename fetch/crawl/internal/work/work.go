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
// Do passes the files in this order: request, body, answer, redirect, recrawl,
// record, handler, content. Each step reads what those before it left in the job, which
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
	"log/slog"
	"sync"
	"time"

	"seine/extract"
	"seine/extract/fields"
	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/canon"
)

// Config is what all Scratches of a crawler share. Its fields mean what those of
// crawl.Config mean, and stay as they are.
type Config struct {
	Fetcher      fetch.Doer
	Log          *slog.Logger
	Policy       func() *Policy               // as the settings are now
	Agent        func() string                // our name in robots metas
	Known        func(canon.Fingerprint) bool // whether its shard is known to have a URL
	Hold         func(bytes int64)            // counts more memory of pages under way, negative: less
	Handle       Handler                      // nil: none
	Fields       sink.Fields
	Rules        *fields.Set
	Exchanges    bool
	Accepts      func(*fetch.Response) bool
	RetryCodes   []int
	MaxTries     int
	MaxRedirects int
	MaxText      int
	MaxLinks     int
	Backoff      time.Duration
	Canon        canon.Config
	LimitBy      canon.LimitBy

	digests sync.Pool // of *digest
}

// Reader parses URLs in memory of its own. It is not safe for concurrent use.
type Reader struct {
	Parser *canon.Parser
	Sites  *canon.Sites
	URL    canon.URL // as parsed by Read
	Target canon.URL // that URL's page leads to
	Base   canon.URL // that sitemaps are resolved with
	raw    []byte
}

// NewReader returns a Reader of the URLs of a crawl.
func NewReader(cfg canon.Config, limitBy canon.LimitBy) *Reader {
	return &Reader{Parser: canon.NewParser(cfg), Sites: canon.NewFewSites(limitBy)}
}

// Read parses a stored URL into r.URL.
func (r *Reader) Read(text string) error {
	r.raw = append(r.raw[:0], text...)
	return r.Parser.Parse(&r.URL, r.raw)
}

// Permit is leave to ask for one URL now.
type Permit struct {
	Request  fetch.Request // with the headers of the site, without cookies and conditions
	Parallel bool          // the clock moved when the request went out, see Request.Sent
	Site     string
	URL      *canon.URL // what the item's URL parsed to, in the memory of the Scratch's Reader
	Cookies  *Cookies   // of the site; nil where the crawl keeps none
	Err      error      // why the request cannot be made, which counts as if it had been; nil: it can
}

// Reply is what a request that ended says about its site.
type Reply struct {
	Began    time.Time
	Latency  time.Duration // to the first byte, 0 = none came
	Sent     bool          // the clock moved when the request went out
	Answered bool          // as a site does that is well
	Failure  *Failure      // as one that is not; nil and not answered: it says nothing
}

// Failure is what a request that failed says about its site.
type Failure struct {
	Slower bool          // the site wants, or needs, fewer requests: 429, 503, a timeout, a reset
	After  time.Duration // how long it asked to be left alone, 0 = it did not
	Cause  string        // of a bounded set, for the log
	Text   string
}

// Candidate is a URL that a page brought up. There are many, so links keep only what
// those of one page do not have in common.
type Candidate struct {
	Fingerprint canon.Fingerprint
	URL, Site   string
	Rest        *Rest // what few have; nil: it is a plain link of a page
	Class       uint8
}

// Rest is the whole of a candidate that is more than a plain link.
type Rest struct {
	frontier.Candidate
	Within time.Duration // a known URL is fetched again so soon at the latest, 0 = as it is anyway
}

// CandidateOf keeps the whole of c.
func CandidateOf(c frontier.Candidate) Candidate {
	return Candidate{Fingerprint: c.Fingerprint, URL: c.URL, Site: c.Site, Rest: &Rest{Candidate: c}}
}

// IsRefetch reports whether the URL is to be fetched although it is known.
func (c *Candidate) IsRefetch() bool { return c.Rest != nil && c.Rest.Refetch != "" }

// Result is what came of one URL. What it points to is the Scratch's and valid until
// Release; Candidates are the caller's.
type Result struct {
	Name        string // the URL without credentials
	Ended       bool   // the context did: it is as if the URL had not been asked for
	Outcome     frontier.Outcome
	Unreachable bool // the outcome is for want of an answer, which may be the last that the site was to give
	Reply       Reply
	Response    *fetch.Response
	Record      *sink.Record // nil: the URL goes back
	DropRecord  bool         // its handler wants none
	Facts       frontier.Facts
	Unchanged   bool              // it was fetched before, and is as it was
	From        canon.Fingerprint // of the URL where it redirects, which is known then; zero where not

	Candidates []Candidate
	Added      int    // of them, those that the handler added, the last
	LinkDepth  uint32 // of the plain links among them
	Referrer   string // that these keep of their page
	Held       int64  // bytes that Config.Hold counted for the page
	Text       int64  // of them: until the record is in the sink

	Compare bool             // whether other URLs brought Content before is to be asked
	Content frontier.Content // of the page
	Skip    bool             // the links of a duplicate are not followed
}

// GoesBack reports whether the URL is to be fetched again, and has no record.
func (r *Result) GoesBack() bool {
	return r.Outcome.Kind == frontier.Retry || r.Outcome.Kind == frontier.Requeue
}

// Scratch is the memory that one worker uses for one URL after the other.
type Scratch struct {
	cfg *Config
	*Reader
	onLink   func(*extract.Found) // job.foundLink, made once
	req      fetch.Request
	resp     fetch.Response
	rec      sink.Record
	wire     fetch.Wire // where Config.Exchanges asks for it
	exchange sink.Exchange
	body     []byte
	links    []foundLink // where there is a Handler, and their text
	linkText []byte
	likely   int // candidates of the last page that had some
	job      job
}

// NewScratch returns memory for work under cfg. It reads URLs with r.
func NewScratch(cfg *Config, r *Reader) *Scratch {
	s := &Scratch{cfg: cfg, Reader: r}
	s.onLink = s.job.foundLink
	return s
}

// job is one URL under way. It implements fetch.Handler: the body passes through it
// into the scanner.
type job struct {
	*Scratch
	item    *frontier.Item
	permit  *Permit
	policy  *Policy
	asked   bool          // a request is made for it
	err     error         // of the request
	src     Source        // of its links
	scan    bool          // the body goes through the scanner
	listing bool          // as a sitemap or feed
	scanner *extract.Page // one of policy's
	digest  *digest       // one of cfg's; nil where no body came

	rules    fields.Rules // that make its fields
	parsed   *fields.Page // the tree, once rules wanted it
	linksOut []string     // links, where the record wants them
	given    string       // of its request, where the crawl keeps cookies: the Cookie header of the site's rule
	cookies  string       // and the whole
	refused  [Refusals]int
	known    int
	met      uint64 // links of it that foundLink was called with
	barred   uint64 // hash of those of them that the crawl does not follow, 0 for none

	size int64 // bytes that candidates and text hold
	res  Result
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
	s.body, s.links, s.linkText = s.body[:0], s.links[:0], s.linkText[:0]
	s.rec = sink.Record{}
	s.resp = fetch.Response{Header: s.resp.Header} // whose memory is used again
	j := &s.job
	*j = job{Scratch: s, item: item, permit: permit, policy: s.cfg.Policy(), asked: asked}
	j.res = Result{Outcome: frontier.Outcome{Index: item.Index, Tries: 1}, Response: &s.resp}
	if permit.URL == nil {
		j.res.Name = Redacted(item.URL)
		return j
	}
	var room [256]byte
	j.res.Name = string(permit.URL.AppendRedacted(room[:0]))
	j.res.LinkDepth = item.Depth + 1
	if j.policy.Settings.Referrer {
		j.res.Referrer = j.res.Name
	}
	j.src = Source{site: permit.Site, host: permit.URL.Host()}
	if item.SitemapOf != "" {
		j.src = Source{host: []byte(item.SitemapOf)}
		j.src.site = s.Sites.Of(j.src.host).Name
	}
	return j
}

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

// Release gives back what the last Result needed beside the memory of s.
func (s *Scratch) Release() {
	j := &s.job
	if j.digest != nil {
		s.cfg.digests.Put(j.digest)
		j.digest = nil
	}
	if j.scan {
		j.policy.scanners.Put(j.scanner)
		j.scan, j.scanner = false, nil
	}
}
