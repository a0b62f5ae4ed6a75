package work

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"seine/extract/fields"
	"seine/extract/sink"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/canon"
)

// fillRecord fills the record of the URL.
func (j *job) fillRecord() {
	r, resp, o := &j.rec, &j.resp, &j.res.Outcome
	at := resp.Start
	if at.IsZero() {
		at = time.Now()
	}
	j.res.Record = r
	r.V = sink.Version
	r.URL = j.res.Name
	if q := j.item.Request; !q.IsGet() {
		r.Request = fmt.Sprintf("%016x", q.Fingerprint(canon.Fingerprint{}).Key)
		if method := q.String(); method != "GET" {
			r.Method = method
		}
	}
	r.FetchedAt = at.UTC()
	r.Depth = j.item.Depth
	r.Site = j.permit.Site
	r.Attempts = int(j.item.Attempts) + int(o.Tries)
	r.Redirects = int(j.item.Redirects)
	r.Referrer, r.From = j.item.Referrer, j.item.From
	if j.item.Meta != "" {
		r.Meta = []byte(j.item.Meta)
	}
	if o.Kind == frontier.Dead || o.Kind == frontier.Recrawl && o.Cause != "" {
		r.Error = &sink.Error{Class: o.Cause, Text: o.Text}
	}
	r.Status = resp.Status
	r.ContentType = resp.ContentType
	r.Bytes, r.WireBytes = resp.Bytes, resp.WireBytes
	r.Seconds = resp.Took.Seconds()
	r.Truncated = resp.Truncated
	j.recordPreferences()
	if j.refuses == 0 && j.cfg.Exchanges && !resp.Start.IsZero() {
		j.recordExchange()
	}
	if resp.Status > 0 && j.err == nil {
		j.recordAnswer()
	}
}

// recordExchange records what was on the wire, in the memory of the Scratch.
func (j *job) recordExchange() {
	_, header, _ := j.item.Request.Parts()
	j.exchange = ExchangeOf(&j.wire, &j.resp, j.permit.Request.Header, j.err)
	j.exchange.Secrets = appendSecrets(j.exchange.Secrets, header)
	j.rec.Exchange = &j.exchange
}

// appendSecrets appends the names of headers of a site's rule or of an item's request, whose
// values may be secrets.
func appendSecrets(secrets []string, header [][2]string) []string {
	for _, h := range header {
		if !strings.EqualFold(h[0], "Content-Type") && !strings.EqualFold(h[0], "User-Agent") {
			secrets = append(secrets, h[0])
		}
	}
	return secrets
}

// ExchangeOf is what was on the wire, in its memory, of a request with these headers of its
// site that ended with err.
func ExchangeOf(w *fetch.Wire, resp *fetch.Response, header [][2]string, err error) sink.Exchange {
	e := sink.Exchange{Request: w.Request, Response: w.Response, Body: w.Body, Chunked: w.Chunked, Addr: w.Addr, Secrets: appendSecrets(nil, header)}
	if w.Whole {
		return e
	}
	cut := resp.Cut
	if fe, ok := errors.AsType[*fetch.Error](err); ok {
		cut = fe.Class
	}
	switch cut {
	case fetch.ClassBodySize, fetch.ClassBodyWire:
		e.Cut = "length"
	case fetch.ClassTimeout, fetch.ClassIdle:
		e.Cut = "time"
	case fetch.ClassShort, fetch.ClassReset:
		e.Cut = "disconnect"
	default: // not wanted, or broken inside its coding
		e.Cut = "unspecified"
	}
	return e
}

// recordAnswer fills in what a complete answer says.
func (j *job) recordAnswer() {
	r, resp := &j.rec, &j.resp
	j.recordWall()
	if j.refuses == 0 {
		j.recordContent()
	}
	if resp.Header == nil {
		return
	}
	if j.recordPrice(); !j.isWalled() { // those of a wall are not of the page
		r.ETag = resp.Header.Get("ETag")
		r.Modified = resp.Header.Get("Last-Modified")
	}
	r.Protocol = resp.Protocol
	if j.cfg.Fields.Has(sink.FieldIP) && resp.Addr.IsValid() {
		r.IP = resp.Addr.String()
	}
	if j.cfg.Fields.Has(sink.FieldHeaders) {
		resp.Header.Each(func(name, value string) { r.Headers = append(r.Headers, [2]string{name, value}) })
	}
}

// recordContent fills in what is at the URL.
func (j *job) recordContent() {
	r, wanted := &j.rec, j.cfg.Fields
	if j.digest != nil {
		r.Digest = j.digest.text()
	}
	if j.scan {
		f := j.scanner.Facts()
		r.Title, r.Text, r.TextTruncated = string(f.Title), string(f.Text), f.TextCut
		r.Charset, r.NoIndex, r.Links = f.Charset, f.Said.NoIndex, j.scanner.Counts().Found
		if wanted.Has(sink.FieldSimHash) && f.SimHash != 0 {
			r.SimHash = fmt.Sprintf("%016x", f.SimHash)
		}
		if j.rules != nil && f.Markup {
			j.applyRules(f.Charset)
		}
		j.holdText(len(r.Text) + len(r.Fields))
	}
	r.LinksOut = j.linksOut
	if wanted.Has(sink.FieldBody) {
		r.SetBody(j.body)
	}
}

// applyRules makes the fields of the page at hand. Rules run through libraries
// that walk whatever trees the web has: one that panics costs the page its
// fields, and not the program.
func (j *job) applyRules(encoding string) {
	log := j.cfg.Log.With("url", j.rec.URL)
	defer func() {
		if v := recover(); v != nil {
			log.Error("rules of fields panicked; the page has none", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	var err error
	if j.parsed, err = fields.NewPage(j.body, encoding, j.permit.URL); err != nil {
		log.Error("rules of fields cannot read the page; it has none", "err", err)
		return
	}
	j.parsed.MaxText = j.cfg.MaxText
	result := j.rules.Apply(j.parsed)
	j.rec.Fields = result.AppendJSON(nil)
	j.rec.TextTruncated = j.rec.TextTruncated || result.Truncated
}
