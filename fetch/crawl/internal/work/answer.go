package work

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"seine/fetch"
	"seine/frontier"
)

// readAnswer notes when the request just made began, and how soon it was answered.
func (j *job) readAnswer(began time.Time, err error) {
	if !j.judged && j.resp.Status > 0 {
		j.endHoldBack()
	}
	if j.scan {
		j.scanner.Close() //nolint:errcheck // a broken end is in the facts
		j.checkPreferences()
	}
	if j.isRefused() {
		j.dropCandidates()
		if err == errRefused {
			err = nil
		}
	}
	j.err = err
	j.res.Reply = ReplyOf(&j.resp, began, err, j.permit.Parallel)
}

// ReplyOf is what a request says of when it began, and how soon it was answered. It
// was made at began; resp may know better.
func ReplyOf(resp *fetch.Response, began time.Time, err error, parallel bool) Reply {
	r := Reply{Began: began, Signs: resp.WantsSign}
	if !resp.Start.IsZero() {
		r.Began, r.Sent = resp.Start, parallel
	}
	if err == nil {
		r.Latency = resp.FirstByte
	}
	return r
}

// keepCookies takes over what the answer set.
func (j *job) keepCookies() {
	if j.permit.Cookies == nil || j.resp.Status == 0 || j.resp.Header == nil {
		return
	}
	if lines := j.resp.Header.Values("Set-Cookie"); lines != nil {
		j.permit.Cookies.store(j.permit.URL, lines, j.resp.Header.Get("Date"))
	}
}

// decideOutcome makes the outcome of what the request brought, but for where a redirect
// leads, and what it says of the site.
func (j *job) decideOutcome() {
	res, status := &j.res, j.resp.Status
	switch {
	case j.err != nil:
		j.dropCandidates()
		class, retry := ErrorClass(j.err)
		switch {
		case fetch.Local(class): // the URL goes back as if it had not been tried
			res.Outcome.Kind = frontier.Requeue
		case !retry:
			res.Outcome = Dead(j.item, class, j.err.Error())
		default:
			res.Unreachable = true
			res.Reply.Failure = &Failure{Slower: true, Cause: class, Text: j.err.Error()}
			res.Outcome = j.cfg.Retry(j.item, class, j.err.Error(), 0)
		}
	case res.Reply.Signs && (status == http.StatusUnauthorized || status == http.StatusForbidden) && int(j.item.Attempts)+1 < j.cfg.MaxTries:
		res.Reply.Answered = true
		res.Outcome = j.cfg.Retry(j.item, CauseStatus, StatusText(status), 0) // with a signature
	case j.isWalled():
		j.refuseWall()
	case j.cfg.isRetryCode(status):
		after, _ := fetch.RetryAfter(j.resp.Header, time.Now())
		f := &Failure{Slower: status == 429 || status == 503, After: after, Cause: CauseStatus, Text: StatusText(status)}
		res.Reply.Failure = f
		res.Outcome = j.cfg.Retry(j.item, CauseStatus, f.Text, after)
	case status == http.StatusPaymentRequired: // nothing is paid, so another try brings the same
		res.Reply.Answered = true
		res.Outcome = Dead(j.item, frontier.CausePayment, "the site wants money for the page")
	default:
		res.Reply.Answered, res.Reply.Page = true, j.isOwn()
	}
	res.Outcome.Tries = 1
}

// isRetryCode reports whether a status is worth another attempt.
func (cfg *Config) isRetryCode(status int) bool {
	if cfg.RetryCodes != nil {
		return slices.Contains(cfg.RetryCodes, status)
	}
	switch status {
	case 408, 425, 429, 500, 502, 503, 504:
		return true
	}
	return status >= 520 && status < 530
}

// ErrorClass is the class of a fetch error, and whether another try may do.
func ErrorClass(err error) (class string, retry bool) {
	if e, ok := errors.AsType[*fetch.Error](err); ok {
		return e.Class, e.Retry
	}
	return CauseOther, true
}
