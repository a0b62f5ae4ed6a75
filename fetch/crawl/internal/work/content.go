package work

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"seine/fetch"
	"seine/frontier"
)

// noteFacts fills in what reports count of the URL.
func (j *job) noteFacts() {
	f := &j.res.Facts
	f.Bytes, f.Known, f.Refetched = j.rec.Bytes, int64(j.known), j.item.Last.At > 0
	if j.item.Begins() {
		f.Seed = j.res.Name
	}
	if j.scan {
		n := j.scanner.Counts()
		j.refused[RefusedInvalid] += n.Invalid
		j.refused[RefusedScheme] += n.Other
		j.refused[RefusedTooLong] += n.TooLong
		j.refused[RefusedGuard] += n.Guarded
		j.refused[RefusedOver] += n.Over
		f.Links = int64(n.Found)
	}
	for i, n := range j.refused {
		f.Refused[i] = uint32(n)
	}
	j.charge(0)
	if n := len(j.res.Candidates); n > 0 {
		j.likely = n
	}
}

// noteContent fills in the content of the page where it is compared with those of
// others: a whole text with status 200, no list of links to pages.
func (j *job) noteContent() {
	if !j.policy.looks || !j.scan || j.listing || j.err != nil || j.refuses != 0 {
		return
	}
	o, r := &j.res.Outcome, &j.resp
	if o.Kind != frontier.Done && o.Kind != frontier.Recrawl || r.Status != 200 || r.Truncated || r.Bytes == 0 || !isText(r) {
		return
	}
	skips := j.policy.Settings.DuplicatesRule() == frontier.DuplicatesSkip
	j.res.Compare = true
	key := j.permit.URL.Key()
	if !j.item.Request.IsGet() {
		key = j.fingerprint().Append(bytes.Clone(key))
	}
	j.res.Content = frontier.NewContent(j.contentDigest(skips), key)
	j.res.Skip = skips && !j.item.Seed
}

// isText reports whether a body is of a type of text.
func isText(r *fetch.Response) bool {
	return strings.HasPrefix(r.Type, "text/") || strings.Contains(r.Type, "xml") || r.Type == ""
}

// contentDigest is what the content of the page at hand is known by. Where links of
// duplicates are skipped, pages that differ in which links the crawl follows are no
// duplicates: one at the greatest depth must not hide the links of another.
func (j *job) contentDigest(skips bool) []byte {
	digest := j.digest.bytes()
	if !skips || j.refusedHash == 0 {
		return digest
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(digest, j.refusedHash))
	return sum[:]
}

// KeepRecord gives the caller the memory that the record of a Result shows of s: it stays
// valid then. The next URL gets other memory.
func (s *Scratch) KeepRecord(r *Result) {
	if e := r.Record.Exchange; e != nil {
		own := *e
		r.Record.Exchange = &own
		s.wire = fetch.Wire{}
	}
}
