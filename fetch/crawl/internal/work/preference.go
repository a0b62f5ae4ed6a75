package work

import (
	"errors"

	"github.com/cespare/xxhash/v2"

	"seine/fetch"
)

// What a site refuses for the purposes of the crawl is read as far as needed to learn so,
// and nothing of it is kept: neither its content nor, but for Settings.RefusedLinks, its
// links. The header may say it, before the body is read, or the page itself while it is
// scanned. Nothing of a page is admitted before its Result is there.

// errRefused ends the body of a page that turns out to be refused.
var errRefused = errors.New("crawl: the site refuses the page for the purposes of the crawl")

// refusedDigest stands for the content of a page that is refused: one that stays so is
// unchanged. No validators are kept, so that the page comes when it is refused no more.
var refusedDigest = xxhash.Sum64String("refused")

// readPreferences takes what the header says, and reports whether the body is needed: of an
// error page its start may tell a wall. A redirect has no content that could be refused.
func (j *job) readPreferences(r *fetch.Response) bool {
	j.said.AddHeader(r.Header, j.cfg.Agent(), r.Type)
	if r.Location == "" || r.Status < 300 || r.Status >= 400 {
		j.refuses = j.said.Refused(j.policy.purpose)
	}
	return !j.isRefused() || r.Status >= 400 && !j.judged
}

// checkPreferences looks at what the page said so far.
func (j *job) checkPreferences() {
	if j.policy.purpose != 0 && j.refuses == 0 {
		j.refuses = j.scanner.Facts().Said.Refused(j.policy.purpose)
	}
}

// isRefused reports whether nothing more of the page is wanted.
func (j *job) isRefused() bool { return j.refuses != 0 && !j.followsRefused() }

// followsRefused reports whether links of the page are followed though it is refused:
// those of a sitemap are what its site has it for.
func (j *job) followsRefused() bool {
	return j.item.Sitemap || j.policy.Settings.FollowsRefused()
}

// recordPreferences records what the site wants done with the page, and drops what it
// refuses before anybody sees it.
func (j *job) recordPreferences() {
	if j.isWalled() { // it says nothing of the page
		j.said, j.refuses = j.permit.Said, 0
	}
	if j.scan {
		j.said = j.scanner.Facts().Said
	}
	if !j.said.IsEmpty() {
		j.rec.Preferences = j.said.AppendJSON(nil)
	}
	if j.refuses == 0 {
		return
	}
	j.rec.Withheld = j.refuses.Names()[0]
	j.res.Facts.Withheld = j.rec.Withheld
	j.body, j.links, j.linkText, j.linksOut, j.rules = j.body[:0], j.links[:0], j.linkText[:0], nil, nil
}
