package crawl

import (
	"encoding/hex"
	"strings"
	"time"

	"seine/extract/sink"
	"seine/frontier"
)

// record fills the record of the page in hand. asked says whether a request was
// made for it.
func (h *hand) record(err error, asked bool) {
	r, resp := &h.rec, &h.resp
	r.V = sink.Version
	r.FetchedAt = time.Now().UTC()
	r.Depth = h.item.Depth
	r.Site = h.loan.visit.Site
	r.Attempts = int(h.item.Attempts)
	r.Redirects = int(h.item.Redirects)
	if h.item.Meta != "" {
		r.Meta = []byte(h.item.Meta)
	}
	o := &h.page.outcome
	if o.Kind == frontier.Dead {
		r.Error = &sink.Error{Class: o.Cause, Text: o.Text}
	}
	if o.Cause == causeInvalid {
		r.URL = redacted(h.item.URL) // h.url is none
	} else {
		r.URL = string(h.url.AppendRedacted(nil))
	}
	if !asked {
		return
	}
	r.Attempts++
	if !resp.Start.IsZero() {
		r.FetchedAt = resp.Start.UTC()
	}
	r.Status = resp.Status
	r.ContentType = resp.ContentType
	r.Bytes, r.WireBytes = resp.Bytes, resp.WireBytes
	r.Seconds = resp.Took.Seconds()
	r.Truncated = resp.Truncated
	if resp.Status > 0 && err == nil {
		h.answer()
	}
}

// answer fills in what a complete answer says.
func (h *hand) answer() {
	r, resp, fields := &h.rec, &h.resp, h.w.cfg.Fields
	if resp.Bytes > 0 {
		var sum [32]byte
		var text [7 + 64]byte
		copy(text[:], "sha256:")
		hex.Encode(text[7:], h.digest.Sum(sum[:0]))
		r.Digest = string(text[:])
	}
	if h.scan {
		f := h.links.Facts()
		r.Title, r.Text = string(f.Title), string(f.Text)
		r.Charset, r.NoIndex, r.Links = f.Charset, f.NoIndex, h.links.Counts().Found
	}
	r.LinksOut = h.out
	if fields.Has(sink.FieldBody) {
		r.SetBody(h.body)
	}
	if resp.Header == nil {
		return
	}
	r.ETag = resp.Header.Get("ETag")
	r.Modified = resp.Header.Get("Last-Modified")
	if fields.Has(sink.FieldHeaders) {
		resp.Header.Each(func(name, value string) { r.Headers = append(r.Headers, [2]string{name, value}) })
	}
}

// flushCounts counts the page in hand and what became of its links.
func (h *hand) flushCounts() {
	c := h.w.count
	c.page(&h.resp)
	c.known.Add(h.known)
	h.known = 0
	if h.scan {
		n := h.links.Counts()
		h.refused[refusedInvalid] += n.Invalid
		h.refused[refusedScheme] += n.Other
		h.refused[refusedGuard] += n.Guarded
		h.refused[refusedOver] += n.Over
		c.links.Add(n.Found)
	}
	for i, n := range h.refused {
		if n > 0 {
			c.refusals[i].Add(n)
		}
	}
	clear(h.refused[:])
}

// clip bounds a text from the web and makes it valid UTF-8.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
