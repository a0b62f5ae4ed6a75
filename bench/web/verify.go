package web

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"seine/extract/sink"
)

// Finding counts faults of one kind and shows the first of them.
type Finding struct {
	Count    int
	Examples []string
}

const maxExamples = 20

func (f *Finding) add(format string, args ...any) {
	if f.Count++; len(f.Examples) < maxExamples {
		f.Examples = append(f.Examples, fmt.Sprintf(format, args...))
	}
}

// Report is what Verify found.
type Report struct {
	Expected int // URLs of the key
	Requests int // in the log, without robots.txt, traps, gates, and what was sent once more after a reset
	Records  int // read, without traps and gates
	Robots   int // requests for robots.txt
	Traps    int // requests behind traps
	Gates    int // requests without the cookie that their site wants

	Missing   Finding // URLs never asked for, or fewer times than they should be
	Extra     Finding // requests that no right crawl makes
	Repeated  Finding // requests beyond those the key wants
	Early     Finding // requests closer to the last one of their site than its delay
	Wrong     Finding // records that do not say what the key says
	Unwritten Finding // URLs without a record
	Doubled   Finding // records beyond the first of a URL
}

// OK reports whether nothing at all was found. Doubled records count too:
// callers for whom they are allowed look at the findings.
func (r *Report) OK() bool {
	for _, f := range r.findings() {
		if f.Count > 0 {
			return false
		}
	}
	return true
}

// findings in the order in which they are printed.
func (r *Report) findings() []*Finding {
	return []*Finding{&r.Missing, &r.Extra, &r.Repeated, &r.Early, &r.Wrong, &r.Unwritten, &r.Doubled}
}

var findingNames = []string{"missing", "extra", "repeated", "early", "wrong", "no record", "records repeated"}

// String is the report as lines for a person.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "key: %d URLs; %d requests (and %d for robots.txt, %d in traps), %d records\n", r.Expected, r.Requests, r.Robots, r.Traps, r.Records)
	for i, f := range r.findings() {
		fmt.Fprintf(&b, "%-17s%d\n", findingNames[i]+":", f.Count)
		for _, e := range f.Examples {
			b.WriteString("    " + e + "\n")
		}
		if more := f.Count - len(f.Examples); more > 0 {
			fmt.Fprintf(&b, "    and %d more\n", more)
		}
	}
	return b.String()
}

// wanted is one URL of the key and what was seen of it.
type wanted struct {
	Expected
	requests, records int
}

// resentWithin is how soon after a reset a crawler sends a request once more
// because it takes the kept-alive connection for one that was closed before;
// retries come later.
const resentWithin = time.Second

// attempt is the last request of a URL that resets the connection.
type attempt struct {
	at     time.Time
	resent bool
}

// verifier compares one crawl with the key.
type verifier struct {
	web    *Web
	plan   Plan
	urls   map[string]*wanted
	resets map[string]attempt // by URL
	report Report
}

// Verify compares a crawl with the key: the server's log, in any order, and
// the crawl's records, nil to look at the log alone. An error is one of the plan
// or of reading records. The key is held in memory, some 300 bytes a URL.
func (w *Web) Verify(p Plan, log []Request, records iter.Seq2[*sink.Record, error]) (*Report, error) {
	if err := w.Validate(p); err != nil {
		return nil, err
	}
	v := &verifier{web: w, plan: p.withDefaults(w), urls: map[string]*wanted{}, resets: map[string]attempt{}}
	for e := range w.Expect(p) {
		v.urls[e.URL] = &wanted{Expected: e}
	}
	v.report.Expected = len(v.urls)
	v.readLog(log)
	if records != nil {
		for r, err := range records {
			if err != nil {
				return nil, err
			}
			v.readRecord(r)
		}
	}
	for e := range w.Expect(p) { // again, for the order
		v.judge(v.urls[e.URL], records != nil)
	}
	return &v.report, nil
}

// readLog counts requests and measures gaps.
func (v *verifier) readLog(log []Request) {
	last := map[string]Request{}
	ordered := slices.SortedStableFunc(slices.Values(log), func(a, b Request) int { return a.At.Compare(b.At) })
	for _, r := range ordered {
		path := string(appendNormal(nil, r.Target))
		if path == "/robots.txt" || path == "/robots-moved.txt" {
			v.report.Robots++
			continue
		}
		site := v.web.siteOf(r.Host)
		if v.isResent(&r, site, path) {
			last[r.Host] = r
			continue
		}
		if before, ok := last[r.Host]; ok && site >= 0 {
			delay := max(v.plan.Delay, v.web.delayOf(site))
			if v.plan.IgnoreRobots {
				delay = v.plan.Delay
			}
			if gap := r.At.Sub(before.At); gap < delay-v.plan.Slack {
				v.report.Early.add("%s%s came %v after %s, not %v", r.Host, r.Target, gap.Round(time.Microsecond), before.Target, delay)
			}
		}
		last[r.Host] = r
		if v.web.trapped(site, path) {
			v.report.Traps++
			continue
		}
		if v.web.stopped(site, path, r.Status) {
			v.report.Gates++
			continue
		}
		v.report.Requests++
		if u := v.urls[v.web.cfg.Scheme+"://"+r.Host+path]; u != nil {
			u.requests++
		} else {
			v.report.Extra.add("%s%s (%d): %s", r.Host, r.Target, r.Status, v.why(site, path))
		}
	}
}

// isResent reports whether a request is the second and last of one attempt at a
// URL that resets the connection: whether that was kept alive too long cannot be
// told from there, so one more request at once is right. No other URL has it.
func (v *verifier) isResent(r *Request, site int, path string) bool {
	if site < 0 {
		return false
	}
	if k, _, _ := v.web.resolve(site, []byte(path)); k != kindReset {
		return false
	}
	url := r.Host + path
	before, ok := v.resets[url]
	again := ok && !before.resent && r.At.Sub(before.at) < resentWithin
	v.resets[url] = attempt{r.At, again}
	return again
}

// why says why a URL is not in the key.
func (v *verifier) why(site int, path string) string {
	if site < 0 {
		return "no such host"
	}
	k, n, _ := v.web.resolve(site, []byte(path))
	switch {
	case k == kindNone:
		return "no such URL"
	case k == kindSecret:
		return "behind a nofollow link, or no link at all"
	case k == kindImage:
		return "an image"
	case k == kindPage && v.web.traits(site, n).private && robotsOf(v.web, site).forbids():
		return "forbidden by robots.txt"
	case k == kindPage && n > 0 && !v.web.reachable(site, n, view{}):
		return "behind a page that is not to be fetched or followed"
	case !slices.Contains(v.plan.Sites, site):
		return "out of scope"
	}
	return "not linked, or too deep"
}

// trapped reports whether a URL is one of a trap.
func (w *Web) trapped(site int, path string) bool {
	if site < 0 {
		return false
	}
	k, _, _ := w.resolve(site, []byte(path))
	return k >= kindCalendar && k <= kindHops
}

// readRecord compares one record with the key.
func (v *verifier) readRecord(r *sink.Record) {
	host, path := splitURL(r.URL)
	site := v.web.siteOf(host)
	if v.web.trapped(site, path) || v.web.stopped(site, path, r.Status) && r.Error == nil {
		return
	}
	v.report.Records++
	u := v.urls[v.web.cfg.Scheme+"://"+host+path]
	if u == nil {
		if r.Error == nil { // what was refused without a request may have a record
			v.report.Wrong.add("%s has a record: %s", r.URL, v.why(v.web.siteOf(host), path))
		}
		return
	}
	u.records++
	switch {
	case u.Status != 0 && r.Status != u.Status:
		v.report.Wrong.add("%s: status %d, not %d", r.URL, r.Status, u.Status)
	case u.Title != "" && r.Title != u.Title:
		v.report.Wrong.add("%s: title %q, not %q", r.URL, r.Title, u.Title)
	case r.NoIndex != u.NoIndex:
		v.report.Wrong.add("%s: noindex %v, not %v", r.URL, r.NoIndex, u.NoIndex)
	case r.Truncated != u.Truncated && u.Status == 200:
		v.report.Wrong.add("%s: truncated %v, not %v", r.URL, r.Truncated, u.Truncated)
	case !v.plan.AnyScope && int(r.Depth) < u.Depth: // more, when a longer way was the first
		v.report.Wrong.add("%s: depth %d, less than %d", r.URL, r.Depth, u.Depth)
	}
}

// splitURL takes a URL apart: host without port, and path in normal form.
func splitURL(u string) (host, path string) {
	_, rest, _ := strings.Cut(u, "://")
	host, path, _ = strings.Cut(rest, "/")
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	return host, string(appendNormal(nil, "/"+path))
}

// judge adds up what was seen of one URL.
func (v *verifier) judge(u *wanted, records bool) {
	switch {
	case u.requests == 0:
		v.report.Missing.add("%s (depth %d)", u.URL, u.Depth)
	case u.requests < u.Requests:
		v.report.Missing.add("%s: %d requests, not %d", u.URL, u.requests, u.Requests)
	case u.requests > u.Requests:
		v.report.Repeated.add("%s: %d requests, not %d", u.URL, u.requests, u.Requests)
	}
	switch {
	case !records:
	case u.records == 0:
		v.report.Unwritten.add("%s", u.URL)
	case u.records > 1:
		v.report.Doubled.add("%s: %d records", u.URL, u.records)
	}
}
