package work

import (
	"net/http"
	"time"

	"github.com/cespare/xxhash/v2"

	"seine/frontier"
)

const (
	// maxETag is the longest ETag that is kept with a URL.
	maxETag = 256
	// lastClass is the class of URLs that are recrawled, where they come into a
	// queue: new ones go first.
	lastClass = 3
)

// planRecrawl has the URL at hand recrawled when a rule of the crawl says so: what
// was fetched well, and what was before and failed now for a cause that may pass. A
// request that may change something on its server is not made again by itself.
func (j *job) planRecrawl() {
	o := &j.res.Outcome
	failed := o.Kind == frontier.Dead
	if !j.asked || !j.item.Request.IsSafe() || j.policy.recrawl == nil && !j.isRecrawl() {
		return
	}
	if failed && (!j.isRecrawl() || !j.mayPass()) {
		return
	}
	now, unchanged := j.fetchedNow(failed)
	j.rec.Unchanged, j.res.Unchanged = unchanged, unchanged
	if j.policy.recrawl == nil {
		return
	}
	rule, ok := j.policy.recrawl(j.permit.URL.Fetch())
	if !ok {
		return
	}
	if now.Interval = rule.Next(now.Interval, unchanged); failed {
		now.Interval = min(max(j.item.Last.Interval, rule.Min), rule.Max)
	}
	e := j.item.Entry
	e.Priority, e.Lost, e.Attempts, e.Last = lastClass, 0, 0, now
	if e.From == j.res.Name { // it redirected to itself for its cookies' sake, as it may the next time
		e.Redirects, e.Trail, e.From = 0, "", ""
	}
	o.Kind, o.NotBefore, o.Next = frontier.Recrawl, now.Interval, &frontier.Next{Entry: e, Key: j.placeKey()}
}

// fetchedNow is what is kept of the fetch that just ended, and whether the page is
// as it was: the server says so, or its digest or, where there is none, its validators.
// That of a redirect is of where it leads. A fetch that failed says nothing.
func (j *job) fetchedNow(failed bool) (now frontier.Fetched, unchanged bool) {
	last, resp := j.item.Last, &j.resp
	now = last
	now.At = time.Now().Unix()
	if failed {
		return now, false
	}
	if j.refuses != 0 {
		now.ETag, now.Modified, now.Digest = "", 0, refusedDigest
		return now, j.isRecrawl() && last.Digest == refusedDigest
	}
	notModified := resp.Status == http.StatusNotModified && j.isRecrawl()
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
	case j.digest != nil:
		now.Digest = j.digest.start()
	}
	if now.Digest == 0 && last.Digest == 0 {
		sameTag, sameTime := now.ETag != "" && now.ETag == last.ETag, now.Modified > 0 && now.Modified == last.Modified
		return now, j.isRecrawl() && (sameTag || sameTime && now.ETag == last.ETag)
	}
	return now, j.isRecrawl() && now.Digest == last.Digest
}

// isETag reports whether an ETag can be sent back as a condition: If-None-Match reads
// a bare * as any content there is (RFC 9110, section 13.1.2).
func isETag(tag string) bool {
	return tag != "" && len(tag) <= maxETag && tag != "*"
}

// mayPass reports whether the cause of a death may be over the next time.
func (j *job) mayPass() bool {
	cause := j.res.Outcome.Cause
	if j.err == nil {
		return cause == CauseStatus || cause == frontier.CauseWall || cause == frontier.CausePayment
	}
	_, retry := ErrorClass(j.err)
	return retry || cause == CauseUnreachable
}

// placeKey is what the URL at hand is known by among those of its site that are
// fetched again.
func (j *job) placeKey() uint64 {
	fp := j.fingerprint()
	if !j.item.Sitemap {
		return fp.Key
	}
	c := frontier.Candidate{Fingerprint: fp, Refetch: frontier.SitemapRequest(string(j.src.host))}
	return c.RefetchFingerprint().Key
}
