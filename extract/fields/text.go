package fields

import (
	"net/url"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"codeberg.org/readeck/go-readability/v2/render"
	"github.com/andybalholm/cascadia"
)

var bodySelector = cascadia.MustCompile("body")

// Whole is the text of the page's body, white space folded.
func (p *Page) Whole() string {
	if p.whole == "" {
		if body := cascadia.Query(p.Tree, bodySelector); body != nil {
			p.whole = textOf(body, p.MaxText)
		}
	}
	return p.whole
}

// Main is the text of the page's article, a paragraph a line, as go-readability
// finds it; "" when there is none. It costs a copy of the tree and several walks
// over it.
func (p *Page) Main() string {
	if p.main != nil {
		return *p.main
	}
	text := ""
	address := new(url.URL)
	if p.url != nil {
		if u, err := url.Parse(string(p.url.AppendRedacted(nil))); err == nil {
			address = u
		}
	}
	if article, err := readability.FromDocument(p.Tree, address); err == nil && article.Node != nil {
		text = strings.TrimSpace(render.InnerText(article.Node))
	}
	p.main = &text
	return text
}
