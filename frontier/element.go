package frontier

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// element is the JSON form of a feed's element. One with other keys is refused: who
// wrote them meant something by them.
type element struct {
	V         json.RawMessage `json:"v"` // version, 1 where it is left out
	URL       string          `json:"url"`
	Priority  *uint8          `json:"priority"`
	Depth     uint32          `json:"depth"`
	Meta      json.RawMessage `json:"meta"`
	Refetch   bool            `json:"refetch"`
	Seed      *bool           `json:"seed"` // false: a link, that scope binds
	Redirects uint8           `json:"redirects"`
	Trail     string          `json:"trail"`            // of them
	Sitemap   bool            `json:"sitemap"`          // read it as a sitemap or feed, whatever its type
	SitemapOf string          `json:"sitemap_of"`       // host that named it as its own
	Referrer  string          `json:"referrer"`         // page that linked to it
	Request   json.RawMessage `json:"request"`          // method, header, body; null = a plain GET
	From      string          `json:"from"`             // URL that redirects to it
	Attempts  uint8           `json:"attempts"`         // of an exported one: what it had behind it; it begins anew
	Cause     string          `json:"cause"`            // of an exported dead letter; it is tried anew
	Kept      bool            `json:"keep_credentials"` // of an exported link: those in its URL are for its origin, as a seed's are
	Error     string          `json:"error"`            // its last
}

// The bounds of an element.
const (
	maxElement = 256 << 10 // bytes: three URLs and meta
	maxDepth   = 1 << 31   // its links must count on, not start at 0 again
	maxMeta    = 16 << 10  // bytes of its meta
)

// refetchAnew asks whoever reads an element for a request id of his own.
const refetchAnew = "refetch"

// WantsID reports whether an element is to be refetched under a request id
// that its reader makes.
func (it *FeedItem) WantsID() bool { return it.Refetch == refetchAnew }

// FeedItem is one readable element of a feed, ready to be admitted.
type FeedItem struct {
	Candidate        // seed scope; Refetch is set when the element asks for it, see WantsID
	HasPriority bool // Priority was given; else the crawl's rules decide
}

// AppendElement appends a candidate as a line of JSON, in the form of an element
// of a feed, so that a feed or a Seeder makes the same candidate of it, one that
// waits where memory is scarce; a request id is made anew. Credentials in its URL are kept, as in the
// queue; the line belongs where only its owner reads.
func AppendElement(dst []byte, c *Candidate) []byte {
	dst = appendString(append(dst, `{"v":1,"url":`...), withUserinfo(c.URL, c.Credentials))
	dst = append(dst, `,"priority":`...)
	dst = strconv.AppendUint(dst, uint64(c.Priority), 10)
	dst = append(dst, `,"depth":`...)
	dst = strconv.AppendUint(dst, uint64(c.Depth), 10)
	if !c.Seed {
		dst = append(dst, `,"seed":false`...)
	}
	if c.Credentials != "" && (!c.Seed || c.Redirects > 0) {
		dst = append(dst, `,"keep_credentials":true`...)
	}
	if c.Redirects > 0 {
		dst = append(dst, `,"redirects":`...)
		dst = strconv.AppendUint(dst, uint64(c.Redirects), 10)
		if c.Trail != "" {
			dst = appendString(append(dst, `,"trail":`...), string(c.Trail))
		}
	}
	if c.Sitemap {
		dst = append(dst, `,"sitemap":true`...)
	}
	if c.SitemapOf != "" {
		dst = appendString(append(dst, `,"sitemap_of":`...), c.SitemapOf)
	}
	if c.Referrer != "" {
		dst = appendString(append(dst, `,"referrer":`...), c.Referrer)
	}
	if c.From != "" {
		dst = appendString(append(dst, `,"from":`...), c.From)
	}
	if c.Request != "" {
		dst = append(append(dst, `,"request":`...), c.Request...)
	}
	if c.Refetch != "" && !strings.HasPrefix(c.Refetch, sitemapRequest) {
		dst = append(dst, `,"refetch":true`...)
	}
	if c.Meta != "" {
		dst = append(append(dst, `,"meta":`...), c.Meta...)
	}
	return append(dst, "}\n"...)
}

// AppendExported appends an entry as a line of JSON, as AppendElement does, with the
// attempts it had and, of a dead letter, the cause and its last error, which readers
// of elements pass over. credentials are those that its site keeps for its origin.
func AppendExported(dst []byte, e *Entry, credentials, cause, text string) []byte {
	c := Candidate{URL: e.URL, Priority: e.Priority, Depth: e.Depth, Redirects: e.Redirects, Trail: e.Trail, Seed: e.Seed, Meta: e.Meta,
		Sitemap: e.Sitemap, SitemapOf: e.SitemapOf, Referrer: e.Referrer, From: e.From, Request: e.Request, Credentials: credentials}
	dst = bytes.TrimSuffix(AppendElement(dst, &c), []byte("}\n"))
	if e.Attempts > 0 {
		dst = strconv.AppendUint(append(dst, `,"attempts":`...), uint64(e.Attempts), 10)
	}
	if cause != "" {
		dst = appendString(append(dst, `,"cause":`...), strings.ToValidUTF8(cause, "?"))
		dst = appendString(append(dst, `,"error":`...), strings.ToValidUTF8(text, "?"))
	}
	return append(dst, "}\n"...)
}

// appendString appends a URL, which is ASCII, as a JSON string.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// Element reads an element of a feed: a plain URL or a JSON object. Refetch is set
// when asked for, and of sitemaps, see SitemapRequest.
func (m *Maker) Element(text string) (FeedItem, error) {
	e := element{URL: strings.TrimSpace(text)}
	if len(text) > maxElement {
		return FeedItem{}, fmt.Errorf("longer than %d bytes", maxElement)
	}
	if strings.HasPrefix(e.URL, "{") {
		var err error
		if e, err = readElement(text); err != nil {
			return FeedItem{}, err
		}
	}
	if v := string(e.V); v != "" && v != "1" {
		return FeedItem{}, fmt.Errorf("%w: it is %s, must be 1", ErrElement, v)
	}
	if e.Priority != nil && *e.Priority > 3 {
		return FeedItem{}, fmt.Errorf("priority is %d, must be 0 to 3", *e.Priority)
	}
	if e.Depth > maxDepth {
		return FeedItem{}, fmt.Errorf("depth is %d, must be at most %d", e.Depth, maxDepth)
	}
	if e.Trail != "" && (!isTrail(e.Trail) || e.Redirects == 0) {
		return FeedItem{}, errors.New("trail is not that of redirects")
	}
	meta, err := CompactMeta(e.Meta)
	if err != nil {
		return FeedItem{}, err
	}
	request, err := readRequest(e.Request)
	if err != nil {
		return FeedItem{}, err
	}
	e.URL = strings.TrimSpace(e.URL)
	if err := checkText(e.URL); err != nil {
		return FeedItem{}, err
	}
	begins := (e.Seed == nil || *e.Seed) && e.Redirects == 0
	c, err := m.make(e.URL, begins || e.Kept)
	if err != nil {
		return FeedItem{}, err
	}
	item := FeedItem{Candidate: c}
	item.Waits = true
	item.Depth, item.Meta, item.Redirects, item.Trail = e.Depth, meta, e.Redirects, Trail(e.Trail)
	item.Sitemap, item.SitemapOf = e.Sitemap, e.SitemapOf
	item.Referrer, item.From = e.Referrer, e.From
	item.Request, item.Fingerprint = request, request.Fingerprint(item.Fingerprint)
	if e.Seed != nil {
		item.Seed = *e.Seed
	}
	if e.Priority != nil {
		item.Priority, item.HasPriority = *e.Priority, true
	}
	switch {
	case e.Refetch:
		item.Refetch = refetchAnew
	case e.Sitemap:
		item.Refetch = SitemapRequest(cmp.Or(e.SitemapOf, string(m.url.Host())))
	}
	return item, nil
}

// Why the text of a URL is refused. What a browser would make of it is another URL
// than the one that somebody meant.
var (
	errBreak   = errors.New("there is a line break inside the URL: give each URL an element of its own")
	errControl = errors.New("there is a control byte inside the URL: escape it, such as %09 for a tab")
	errNotUTF8 = errors.New("the URL is no UTF-8: convert it, or escape it as a browser would")
)

// checkText refuses the text of a URL that was put together or encoded by mistake.
func checkText(url string) error {
	switch {
	case strings.ContainsAny(url, "\r\n"):
		return errBreak
	case strings.ContainsFunc(url, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errControl
	case strings.ContainsRune(url, utf8.RuneError): // or what decoders write for it, and for half a pair of surrogates
		return errNotUTF8
	}
	return nil
}

// readElement reads the JSON of an element. One of another version is returned with
// the keys that are known, to be refused for that.
func readElement(text string) (e element, err error) {
	in := json.NewDecoder(strings.NewReader(text))
	in.DisallowUnknownFields()
	if err = in.Decode(&e); err == nil {
		if _, err = in.Token(); err != io.EOF {
			return e, errors.New("something stands behind the JSON object")
		}
		return e, nil
	}
	e = element{}
	if json.Unmarshal([]byte(text), &e) != nil {
		return e, err // no JSON, or of other types
	}
	if v := string(e.V); v != "" && v != "1" {
		return e, nil
	}
	return e, fmt.Errorf("%s; there are %s", strings.Replace(strings.TrimPrefix(err.Error(), "json: "), "field", "key", 1), elementKeys)
}

// elementKeys names the keys of an element.
var elementKeys = func() string {
	var names []string
	for i, t := 0, reflect.TypeFor[element](); i < t.NumField(); i++ {
		names = append(names, t.Field(i).Tag.Get("json"))
	}
	return strings.Join(names, ", ")
}()

// CompactMeta checks that meta is a JSON object of at most 16 KB, or nothing,
// and returns it without blanks. What is no UTF-8 in it, and half a pair of
// surrogates, which not all readers of JSON take, becomes U+FFFD.
func CompactMeta(meta []byte) (string, error) {
	if len(meta) == 0 || string(meta) == "null" {
		return "", nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, meta); err != nil {
		return "", fmt.Errorf("meta: %w", err)
	}
	if b.Len() > maxMeta || b.Bytes()[0] != '{' {
		return "", fmt.Errorf("meta must be a JSON object of at most %d bytes", maxMeta)
	}
	return strings.ToValidUTF8(repairSurrogates(b.String()), "\ufffd"), nil
}

// escaped is what a backslash begins in a string of JSON. Of those only half a pair of
// surrogates is six bytes long.
var escaped = regexp.MustCompile(`\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u[dD][89a-fA-F]..|.)`)

// repairSurrogates makes each half of a pair of surrogates U+FFFD where the other is not.
func repairSurrogates(json string) string {
	if !strings.Contains(json, `\ud`) && !strings.Contains(json, `\uD`) {
		return json
	}
	return escaped.ReplaceAllStringFunc(json, func(s string) string {
		if len(s) == len(`\ud800`) {
			return `\ufffd`
		}
		return s
	})
}
