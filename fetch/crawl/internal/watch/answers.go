package watch

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"

	"seine/fetch"
	"seine/frontier"
)

// answers counts what sites answered to requests for pages and robots.txt: by status code,
// and the pages of class 2xx by the kind of their content. Both are bounded, whatever
// sites send.
type answers struct {
	codes [600]atomic.Uint64 // 0 counts the codes that nobody registered
	media [len(mediaKinds)]atomic.Uint64
}

// mediaKinds are kinds of content, as seine_crawl_media_total names them.
var mediaKinds = [...]string{"none", "html", "feed", "xml", "json", "text", "css", "script", "pdf", "image", "audio", "video", "font", "archive", "other"}

type mediaPrefix struct{ prefix, kind string }

// mediaPrefixes give the kind of a media type by how it begins, the first that fits.
var mediaPrefixes = []mediaPrefix{
	{"text/html", "html"}, {"application/xhtml", "html"},
	{"application/rss", "feed"}, {"application/atom", "feed"}, {"application/rdf", "feed"},
	{"text/xml", "xml"}, {"application/xml", "xml"}, {"image/svg", "image"},
	{"application/json", "json"}, {"application/ld+json", "json"}, {"application/feed+json", "feed"},
	{"text/css", "css"}, {"text/javascript", "script"}, {"application/javascript", "script"}, {"application/x-javascript", "script"},
	{"application/pdf", "pdf"}, {"text/", "text"}, {"image/", "image"}, {"audio/", "audio"}, {"video/", "video"}, {"font/", "font"},
	{"application/font", "font"}, {"application/zip", "archive"}, {"application/gzip", "archive"}, {"application/x-gzip", "archive"}, {"application/x-tar", "archive"},
}

// kindOf is the index in mediaKinds of a type in lower case, with or without parameters.
// Cost: a few comparisons, no memory.
func kindOf(mediaType string) int {
	if mediaType == "" {
		return 0
	}
	name := "other"
	if i := slices.IndexFunc(mediaPrefixes, func(p mediaPrefix) bool { return strings.HasPrefix(mediaType, p.prefix) }); i >= 0 {
		name = mediaPrefixes[i].kind
	}
	return slices.Index(mediaKinds[:], name)
}

// CountAnswer counts one answer, and returns its status and the kind of its content, ""
// for none, in the small sets of frontier.Facts.
func (a *answers) CountAnswer(r *fetch.Response) (status int, media string) {
	if r.Status >= 200 && r.Status < 300 {
		kind := kindOf(r.Type)
		a.media[kind].Add(1)
		media = mediaKinds[kind]
	}
	return a.CountStatus(r.Status), media
}

// CountStatus counts the status of one answer, and returns it as frontier.Facts has it.
func (a *answers) CountStatus(status int) int {
	if !isRegistered(status) {
		a.codes[0].Add(1)
		return frontier.StatusOther
	}
	a.codes[status].Add(1)
	return status
}

// isRegistered reports whether a status code has a series of its own: it is of IANA's
// registry, or one that proxies of the web answer with.
func isRegistered(code int) bool {
	return http.StatusText(code) != "" || code >= 520 && code < 530
}

// writeAnswers writes the counters. Codes that never came are left out.
func (a *answers) writeAnswers(out io.Writer) {
	for code := range a.codes {
		if n := a.codes[code].Load(); n > 0 {
			name := "other"
			if code > 0 {
				name = strconv.Itoa(code)
			}
			metrics.WriteCounterUint64(out, fmt.Sprintf("seine_crawl_answers_total{code=%q}", name), n)
		}
	}
	for i, kind := range mediaKinds {
		metrics.WriteCounterUint64(out, fmt.Sprintf("seine_crawl_media_total{kind=%q}", kind), a.media[i].Load())
	}
}
