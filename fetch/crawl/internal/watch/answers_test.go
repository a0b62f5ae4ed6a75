package watch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"seine/fetch"
)

// A web that answers with every number, and with types of its own making, costs a
// bounded number of series.
func TestAnswersAreBounded(t *testing.T) {
	var a answers
	for code := 100; code < 600; code++ {
		a.CountAnswer(&fetch.Response{Status: code, Type: fmt.Sprintf("x-%d/y", code)})
	}
	var page bytes.Buffer
	a.writeAnswers(&page)
	if n := strings.Count(page.String(), "\n"); n > 100 {
		t.Errorf("%d series", n)
	}
	for _, want := range []string{`answers_total{code="200"} 1`, `answers_total{code="404"} 1`, `answers_total{code="521"} 1`, `media_total{kind="other"} 100`} {
		if !strings.Contains(page.String(), "seine_crawl_"+want+"\n") {
			t.Errorf("%s is missing in\n%s", want, &page)
		}
	}
}

func TestMediaKinds(t *testing.T) {
	for mediaType, want := range map[string]string{
		"": "none", "text/html": "html", "text/html; charset=utf-8": "html", "application/xhtml+xml": "html", "application/rss+xml": "feed", "text/xml": "xml",
		"image/svg+xml": "image", "application/ld+json": "json", "text/plain": "text", "text/css": "css", "application/pdf": "pdf", "application/octet-stream": "other",
	} {
		if got := mediaKinds[kindOf(mediaType)]; got != want {
			t.Errorf("%q is %s, want %s", mediaType, got, want)
		}
	}
}
