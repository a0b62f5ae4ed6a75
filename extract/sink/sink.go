// Package sink keeps the record of each fetch that ended.
package sink

import (
	"encoding/json"
	"time"
)

// Record is what one fetch that ended, done or dead, leaves behind.
type Record struct {
	V           int             `json:"v"` // 1
	URL         string          `json:"url"`
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
	Location    string          `json:"location,omitempty"`      // of a 3xx, resolved
	Seen        bool            `json:"location_seen,omitempty"` // Location was known before; not set where that is not sure
	Meta        json.RawMessage `json:"meta,omitempty"`
	Digest      string          `json:"digest,omitempty"` // sha256:… of the decoded body
	ETag        string          `json:"etag,omitempty"`
	Modified    string          `json:"last_modified,omitempty"`

	// With --fields.
	Body         string      `json:"body,omitempty"`
	BodyEncoding string      `json:"body_encoding,omitempty"` // base64, or absent for UTF-8
	LinksOut     []string    `json:"links_out,omitempty"`
	Headers      [][2]string `json:"headers,omitempty"`
	Text         string      `json:"text,omitempty"`
}

// Error is why a fetch ended dead.
type Error struct {
	Class string `json:"class"`
	Text  string `json:"text"`
}

// Sink keeps records. A record is in the sink when write(2) returned for the
// complete frame that holds it.
type Sink interface {
	// Write takes r (which it does not keep) and calls done once, from another
	// goroutine or its own, when the record is in the sink or failed to get there.
	// It blocks while the sink holds as much as it may.
	Write(r *Record, done func(error))
	// Close flushes, calls what is still to be called, and ends the sink.
	Close() error
}
