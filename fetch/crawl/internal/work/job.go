package work

import (
	"log/slog"
	"sync"
	"time"

	"seine/extract"
	"seine/extract/fields"
	"seine/extract/preference"
	"seine/extract/sink"
	"seine/fetch"
	"seine/fetch/wall"
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
	Walls        *wall.Set // that tell walls from pages, while the crawl's settings want it
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
	URL      *canon.URL     // what the item's URL parsed to, in the memory of the Scratch's Reader
	Cookies  *Cookies       // of the site; nil where the crawl keeps none
	Said     preference.Set // what robots.txt says of what may be done with the page
	Err      error          // why the request cannot be made, which counts as if it had been; nil: it can
}

// Reply is what a request that ended says about its site.
type Reply struct {
	Began    time.Time
	Latency  time.Duration // to the first byte, 0 = none came
	Sent     bool          // the clock moved when the request went out
	Answered bool          // as a site does that is well
	Signs    bool          // the site asks for signed requests, and this was none
	Failure  *Failure      // as one that is not; nil and not answered: it says nothing
	Wall     string        // vendor of the certain wall that answered in place of the site, "" = none
	Page     bool          // a page of the site answered, and no wall
}

// Failure is what a request that failed says about its site.
type Failure struct {
	Slower bool          // the site wants, or needs, fewer requests: 429, 503, a timeout, a reset
	After  time.Duration // how long it asks for no request, 0 = it does not
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
	Within time.Duration // a known URL is refetched so soon at the latest, 0 = as it is anyway
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
	first    []byte // of the body, until it is judged
	signs    wall.Scratch
	body     []byte
	links    []foundLink // where there is a Handler, and their text
	linkText []byte
	likely   int // candidates of the last page that had some
	job      job
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
	judged  bool          // whether the answer is a wall is known
	wall    wall.Verdict  // what it is then

	said    preference.Set     // what is to be done with the page, as far as is known
	refuses preference.Purpose // of those of the crawl: what the site refuses

	rules       fields.Rules // that make its fields
	parsed      *fields.Page // the tree, once rules wanted it
	linksOut    []string     // links, where the record wants them
	given       string       // of its request, where the crawl keeps cookies: the Cookie header of the site's rule
	cookies     string       // and the whole
	refused     [Refusals]int
	known       int
	met         uint64 // links of it that foundLink was called with
	refusedHash uint64 // hash of those of them that the crawl does not follow, 0 for none

	size int64 // bytes that candidates and text hold
	res  Result
}

// foundLink is a link as a Handler sees it: the end of its text in Scratch.linkText.
type foundLink struct {
	end    int
	kind   extract.Kind
	follow bool
}
