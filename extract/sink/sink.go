// Package sink keeps the record of each fetch that ended.
//
// A worker fills a Record and Writes it to a Sink. The page is settled when the
// sink acknowledges the record, and not before: what is in an output may be
// there twice after a crash, and is never missing. Each output is a Sink, and so
// is a Fan of several; most are built on a Queue, which gathers records into
// batches, commits them one after the other, and retries until the output
// has them. Package sinktest holds a Sink to its contract.
package sink

import (
	"encoding/json"
	"time"
)

// Record is what one fetch that ended, done or dead, leaves behind.
type Record struct {
	V           int             `json:"v"` // 1
	URL         string          `json:"url"`
	Method      string          `json:"method,omitempty"`  // but for GET
	Request     string          `json:"request,omitempty"` // 16 hexadecimal digits that tell requests with this URL apart by method and body; "" = a GET without body
	Status      int             `json:"status"`
	FetchedAt   time.Time       `json:"fetched_at"`
	Depth       uint32          `json:"depth"`
	Site        string          `json:"site"`
	ContentType string          `json:"content_type,omitempty"`
	Charset     string          `json:"charset,omitempty"`
	Bytes       int64           `json:"bytes"`
	WireBytes   int64           `json:"wire_bytes"`
	Seconds     float64         `json:"seconds"`
	Title       string          `json:"title,omitempty"`
	Links       int             `json:"links"`
	Truncated   bool            `json:"truncated,omitempty"`
	NoIndex     bool            `json:"noindex,omitempty"`
	Error       *Error          `json:"error,omitempty"`
	Attempts    int             `json:"attempts"`
	Redirects   int             `json:"redirects,omitempty"`
	Location    string          `json:"location,omitempty"`         // of a 3xx, resolved
	Seen        bool            `json:"location_seen,omitempty"`    // Location was known before; not set where that is not sure
	Refused     string          `json:"location_refused,omitempty"` // why Location is not followed: a reason as of links, such as too_long
	From        string          `json:"from,omitempty"`             // URL that redirects to this one
	Referrer    string          `json:"referrer,omitempty"`         // page that linked to it, where the crawl keeps that
	Meta        json.RawMessage `json:"meta,omitempty"`
	Digest      string          `json:"digest,omitempty"`    // xxh3:… or sha256:… of the decoded body
	Unchanged   bool            `json:"unchanged,omitempty"` // it was fetched before, and is as it was
	Duplicate   bool            `json:"duplicate,omitempty"` // another URL brought the same content before, where the crawl looks for that
	Wall        *Wall           `json:"wall,omitempty"`      // a protection service answered in place of the page, or likely did
	WallHint    string          `json:"wall_hint,omitempty"` // the service whose server refused
	Price       [][2]string     `json:"price,omitempty"`     // of an answer 402: headers that say what the page costs
	ETag        string          `json:"etag,omitempty"`
	Modified    string          `json:"last_modified,omitempty"`
	Preferences json.RawMessage `json:"preferences,omitempty"` // what the site wants done with the page, an object
	Withheld    string          `json:"withheld,omitempty"`    // purpose of the crawl that the site refuses: nothing of the content is here
	Items       []Item          `json:"items,omitempty"`       // what handlers made of the page
	Fields      json.RawMessage `json:"fields,omitempty"`      // what rules made of it, an object

	// With --fields.
	Body          string      `json:"body,omitempty"`
	BodyEncoding  string      `json:"body_encoding,omitempty"` // base64, or absent for UTF-8
	LinksOut      []string    `json:"links_out,omitempty"`
	Headers       [][2]string `json:"headers,omitempty"`
	Text          string      `json:"text,omitempty"`
	TextTruncated bool        `json:"text_truncated,omitempty"` // text, or a value of Fields, goes on behind the crawl's bound
	SimHash       string      `json:"simhash,omitempty"`        // of the text, 16 hexadecimal digits
	IP            string      `json:"ip,omitempty"`             // that answered; none behind a proxy
	Protocol      string      `json:"protocol,omitempty"`       // of the answer: http/1.1 or http/1.0

	// Exchange is there where Config of the crawl asks for it, else nil.
	Exchange *Exchange `json:"-"`
	// ArchiveOnly is set on a fetch of robots.txt, which is no page: only outputs that archive
	// want it.
	ArchiveOnly bool `json:"-"`
}

// HasContent reports whether the record has what is at its URL. One of a fetch that
// failed, or of an answer that the page is as it was, replaces no earlier record. One that
// the site refuses by now does.
func (r *Record) HasContent() bool {
	return r.Error == nil && (r.Status != 304 || r.Withheld != "")
}

// Error is why a fetch ended dead.
type Error struct {
	Class string `json:"class"`
	Text  string `json:"text"`
}

// Wall is an answer of a protection service.
type Wall struct {
	Vendor string `json:"vendor"`
	Sure   bool   `json:"sure"` // else the page may be the site's own
}

// Item is what a handler or a rule made of a page.
type Item struct {
	// Key is unique among the items of the crawl, and the same when the page is
	// refetched, so that a reader of repeats can keep one.
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Exchange is a request and its answer as they were on the wire, for outputs
// that archive. Its memory belongs to the fetch.
type Exchange struct {
	Request  []byte   // request line, header and body
	Secrets  []string // names of headers of it that are secrets, beside those of IsSecret
	Response []byte   // status line, header and body, transfer and content codings as sent
	Body     int      // where in Response the body begins; 0: no whole header came
	Chunked  bool     // the body is in chunks, as its reader found, whatever the header says
	Cut      string   // why the body is not whole: length, time, disconnect or unspecified; "" when it is
	Addr     string   // IP address of the server, or of the proxy; "" when unknown
}

// Sink keeps records. It is safe for concurrent use.
type Sink interface {
	// Write takes r, of which it keeps no byte after it returned, and calls done
	// once: with nil when the record is in the sink, which for files is when
	// write(2) returned for the complete frame that holds it, and for a server
	// when it acknowledged the record; with an error when the record will not get
	// there, which ends the crawl in order. A sink that cannot write just now
	// retries by itself and calls done later. Write blocks while as
	// many bytes wait in the sink as may. done is called by Write or by a goroutine of the
	// sink, in any order; it does not block and does not call the sink.
	Write(r *Record, done func(error))
	// Err is why nothing can be written just now, or nil. The crawl waits
	// meanwhile and reports it.
	Err() error
	// Close tries once to write what waits, calls the done functions that are left, and
	// ends the sink. It returns the first error that cost records. Records that
	// come later fail with ErrClosed.
	Close() error
}
