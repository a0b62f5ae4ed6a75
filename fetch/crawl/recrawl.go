package crawl

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"seine/extract"
	"seine/fetch"
	"seine/frontier"
)

// maxETag is the longest ETag that is kept with a URL.
const maxETag = 256

// isAgain reports whether the URL at hand was fetched before by a rule of recrawl.
func (w *worker) isAgain() bool { return w.item.Last.Interval > 0 }

// askChanged makes a request for the URL at hand one for what changed since its
// last fetch.
func (w *worker) askChanged() {
	last := &w.item.Last
	if !w.isAgain() {
		return
	}
	header := slices.Clone(w.req.Header)
	if last.ETag != "" {
		header = append(header, [2]string{"If-None-Match", last.ETag})
	}
	if last.Modified > 0 {
		header = append(header, [2]string{"If-Modified-Since", time.Unix(last.Modified, 0).UTC().Format(http.TimeFormat)})
	}
	w.req.Header = header
}

// fetchedNow is what is kept of the fetch that just ended, and whether the page is
// as it was: the server says so, or its digest or, where there
// is none, its validators.
// That of a redirect is of where it leads. A fetch that failed says nothing.
func (w *worker) fetchedNow(failed bool) (now frontier.Fetched, unchanged bool) {
	last, resp := w.item.Last, &w.resp
	now = last
	now.At = time.Now().Unix()
	if failed {
		return now, false
	}
	notModified := resp.Status == http.StatusNotModified && w.isAgain()
	if !notModified {
		now.ETag, now.Modified, now.Digest = "", 0, 0
	}
	if resp.Header == nil {
		return now, notModified
	}
	if tag := resp.Header.Get("ETag"); isETag(tag) {
		now.ETag = tag
	}
	if t, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil && t.Unix() > 0 {
		now.Modified = t.Unix()
	}
	switch {
	case notModified:
		return now, true
	case resp.Location != "" && resp.Status >= 300 && resp.Status < 400:
		now.Digest = xxhash.Sum64String(resp.Location)
	case w.digest != nil:
		now.Digest = w.digest.start()
	}
	if now.Digest == 0 && last.Digest == 0 {
		sameTag, sameTime := now.ETag != "" && now.ETag == last.ETag, now.Modified > 0 && now.Modified == last.Modified
		return now, w.isAgain() && (sameTag || sameTime && now.ETag == last.ETag)
	}
	return now, w.isAgain() && now.Digest == last.Digest
}

// isETag reports whether an ETag can be sent back as a condition: If-None-Match reads
// a bare * as any content there is (RFC 9110, section 13.1.2).
func isETag(tag string) bool {
	return tag != "" && len(tag) <= maxETag && tag != "*"
}

// planNext has the URL at hand fetched again when a rule of the crawl says so: what
// was fetched well, and what was before and failed now for a cause that may pass.
func (w *worker) planNext(err error) {
	o := &w.page.outcome
	failed := o.Kind == frontier.Dead
	if w.policy.recrawl == nil && !w.isAgain() {
		return
	}
	if failed && (!w.isAgain() || !mayPass(o.Cause, err)) {
		return
	}
	now, unchanged := w.fetchedNow(failed)
	w.rec.Unchanged = unchanged
	if unchanged {
		w.crawler.count.same.Inc()
	}
	if w.policy.recrawl == nil {
		return
	}
	rule, ok := w.policy.recrawl(w.url.Fetch())
	if !ok {
		return
	}
	if now.Interval = rule.Next(now.Interval, unchanged); failed {
		now.Interval = min(max(w.item.Last.Interval, rule.Min), rule.Max)
	}
	e := w.item.Entry
	e.Priority, e.Lost, e.Attempts, e.Last = lastClass, 0, 0, now
	if e.From == w.shown() { // it redirected to itself for its cookies' sake, as it may the next time
		e.Redirects, e.Trail, e.From = 0, "", ""
	}
	o.Kind, o.NotBefore, o.Next = frontier.Again, now.Interval, &frontier.Next{Entry: e, Key: w.placeKey()}
}

// lastClass is the class of URLs that are fetched again, where they come into a
// queue: new ones go first.
const lastClass = 3

// mayPass reports whether a cause of death may be over the next time.
func mayPass(cause string, err error) bool {
	if err == nil {
		return cause == causeStatus
	}
	_, retry := errorClass(err)
	return retry || cause == causeUnreachable
}

// placeKey is what the URL at hand is known by among those of its site that are
// fetched again.
func (w *worker) placeKey() uint64 {
	_, fp := w.sites.Fingerprint(&w.url)
	if !w.item.Sitemap {
		return fp.Key
	}
	c := frontier.Candidate{Fingerprint: fp, Again: frontier.SitemapRequest(string(w.src.host))}
	return c.Request().Key
}

// within is when a URL that a sitemap or feed lists is fetched again at the latest,
// 0 for when it is anyway: now if it changed since the list was read last, else as
// often as the list says that it changes, but not more often than the crawl's rule.
func (w *worker) within(ln *extract.Found) time.Duration {
	if w.policy.recrawl == nil || ln.LastMod == nil && ln.ChangeFreq == nil {
		return 0
	}
	rule, ok := w.policy.recrawl(ln.URL.Fetch())
	if !ok {
		return 0
	}
	if read := w.item.Last.At; read > 0 && changedBy(string(ln.LastMod)).After(time.Unix(read, 0)) {
		return time.Millisecond
	}
	if often, ok := changeFreqs[strings.ToLower(string(ln.ChangeFreq))]; ok {
		return max(often, rule.Min)
	}
	return 0
}

const day = 24 * time.Hour

// changeFreqs are what sitemaps.org has a page's rate of change called; never says
// nothing about what is sooner.
var changeFreqs = map[string]time.Duration{
	"always": time.Millisecond, "hourly": time.Hour, "daily": day, "weekly": 7 * day, "monthly": 30 * day, "yearly": 365 * day,
}

// changedBy is the latest moment that a date of a sitemap or feed may mean, zero for
// none: of a day its end.
func changedBy(text string) time.Time {
	for _, layout := range []struct {
		form string
		end  func(time.Time) time.Time
	}{
		{time.RFC3339, nil},
		{"2006-01-02T15:04Z07:00", func(t time.Time) time.Time { return t.Add(time.Minute) }},
		{time.DateOnly, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
		{"2006-01", func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }},
		{"2006", func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }},
		{time.RFC1123Z, nil},
		{time.RFC1123, nil},
	} {
		t, err := time.Parse(layout.form, text)
		if err == nil && layout.end != nil {
			return layout.end(t)
		}
		if err == nil {
			return t
		}
	}
	return time.Time{}
}

// renew brings forward when URLs of a group that are known are fetched again. It is
// a hint: a shard that is silent meanwhile does not get it.
func (a *admitter) renew(ctx context.Context, g *admitGroup) error {
	var list []frontier.Renewal
	for i := range g.candidates {
		c := g.candidates[i].rest
		if c == nil || c.within == 0 || g.verdicts[g.of[i]] != frontier.Seen {
			continue
		}
		key := c.Fingerprint.Key
		if c.Sitemap {
			key = c.Request().Key
		}
		list = append(list, frontier.Renewal{Site: c.Site, Key: key, Within: c.within})
	}
	if list == nil {
		return nil
	}
	slices.SortStableFunc(list, func(x, y frontier.Renewal) int { return strings.Compare(x.Site, y.Site) })
	short, cancel := context.WithTimeout(ctx, admitPatience)
	defer cancel()
	err := a.loop.crawler.cfg.Frontier.Renew(short, a.loop.shard, list)
	if err != nil && ctx.Err() == nil && short.Err() != nil && !errors.Is(err, frontier.ErrStale) {
		return nil
	}
	return err
}

// isUnmodified reports whether an answer says that a page is as it was.
func isUnmodified(r *fetch.Response) bool { return r.Status == http.StatusNotModified }
