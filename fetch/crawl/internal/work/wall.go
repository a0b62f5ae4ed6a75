package work

import (
	"fmt"
	"net/http"
	"time"

	"seine/extract/sink"
	"seine/fetch"
	"seine/fetch/wall"
	"seine/frontier"
)

// judge decides whether the answer, whose body begins with start, is a wall.
func (j *job) judge(start []byte) {
	j.judged = true
	j.wall = j.cfg.Walls.Judge(&j.signs, j.resp.Status, j.resp.Header, start)
	if j.isWalled() {
		j.releaseScanner()
	}
}

// isWalled reports whether the answer is certainly a wall: it says nothing of the page.
func (j *job) isWalled() bool { return j.wall.Sure == wall.Certain }

// refuseWall has the URL tried again whose answer is a wall. Its site counts as one that
// does not answer.
func (j *job) refuseWall() {
	res, text := &j.res, WallText(j.wall.Vendor, j.resp.Status)
	after, _ := fetch.RetryAfter(j.resp.Header, time.Now())
	res.Reply.Failure = &Failure{After: after, Cause: frontier.CauseWall, Text: text}
	res.Reply.Wall, res.Facts.Wall, res.Unreachable = j.wall.Vendor, j.wall.Vendor, true
	res.Outcome = j.cfg.Retry(j.item, frontier.CauseWall, text, after)
}

// WallText names a certain wall of vendor.
func WallText(vendor string, status int) string {
	return fmt.Sprintf("a wall of %s stands in place of the page: %d %s", vendor, status, StatusText(status))
}

// isOwn reports whether an answer is of the site itself and no wall. Walls refuse or redirect.
func (j *job) isOwn() bool {
	status := j.resp.Status
	return j.wall.Sure < wall.Likely && (status/100 == 2 || status == http.StatusNotModified || status == http.StatusNotFound || status == http.StatusGone)
}

// recordWall records what the answer was judged to be.
func (j *job) recordWall() {
	switch j.wall.Sure {
	case wall.Certain, wall.Likely:
		j.rec.Wall = &sink.Wall{Vendor: j.wall.Vendor, Sure: j.isWalled()}
	case wall.Hint:
		j.rec.WallHint = j.wall.Vendor
	}
}

// priceHeaders say what a page costs, or where that stands: pay per crawl, x402, and
// schemes of WWW-Authenticate.
var priceHeaders = [...]string{"crawler-price", "crawler-error", "payment-required", "www-authenticate"}

// maxPrice bounds what is recorded of such a header, bytes.
const maxPrice = 4 << 10

// recordPrice records what an answer 402 says of its price.
func (j *job) recordPrice() {
	if j.resp.Status != http.StatusPaymentRequired {
		return
	}
	for _, name := range priceHeaders {
		for _, value := range j.resp.Header.Values(name) {
			j.rec.Price = append(j.rec.Price, [2]string{name, Clip(value, maxPrice)})
		}
	}
}
