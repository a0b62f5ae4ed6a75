package work

import (
	"time"

	"seine/extract"
	"seine/frontier"
)

const (
	// CandidateOverhead is what a candidate on its way costs beside its text, in a
	// list that has grown to hold it, and restOverhead what one costs that is more
	// than a link.
	CandidateOverhead = 128
	restOverhead      = 256
	// maxLikely is for how many candidates a page makes room at once.
	maxLikely = 128
	// chargeStep is how far a page may grow before that is counted.
	chargeStep = 64 << 10
)

// addLink keeps a URL that the page links to.
func (j *job) addLink(ln *extract.Found, class uint8) {
	j.keepCandidate(Candidate{Fingerprint: ln.Fingerprint, URL: string(ln.URL.Fetch()), Site: ln.Site, Class: class}, 0)
}

// addCandidate keeps one that is more than a link. If it is known, it is to be fetched
// again within so long at the latest, 0 = as it is anyway.
func (j *job) addCandidate(c frontier.Candidate, within time.Duration) {
	l := CandidateOf(c)
	l.Rest.Within = within
	j.keepCandidate(l, restOverhead+len(c.Meta)+len(c.Request))
}

// keepCandidate keeps a candidate, which holds more bytes beside its own.
func (j *job) keepCandidate(c Candidate, more int) {
	if j.res.Candidates == nil {
		j.res.Candidates = make([]Candidate, 0, min(max(j.likely, 1), maxLikely))
	}
	j.res.Candidates = append(j.res.Candidates, c)
	j.size += int64(CandidateOverhead + len(c.URL) + more)
	j.charge(chargeStep)
}

// holdText notes how many bytes of text the page holds until its record is in the sink.
func (j *job) holdText(n int) {
	if more := int64(n) - j.res.Text; more > 0 {
		j.res.Text += more
		j.size += more
		j.charge(chargeStep)
	}
}

// charge counts what the page holds, once it has grown by step.
func (j *job) charge(step int64) {
	if more := j.size - j.res.Held; more > 0 && more >= step {
		j.cfg.Hold(more)
		j.res.Held = j.size
	}
}

// dropCandidates lets go of what a page that failed brought up.
func (j *job) dropCandidates() {
	if j.res.Held > 0 {
		j.cfg.Hold(-j.res.Held)
	}
	j.res.Candidates, j.size, j.res.Held, j.res.Text = nil, 0, 0, 0
}

// releaseScanner gives back the scanner, if the page has one.
func (j *job) releaseScanner() {
	if j.scan {
		j.policy.scanners.Put(j.scanner)
		j.scan, j.scanner = false, nil
	}
}
