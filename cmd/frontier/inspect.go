package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"seine/cmd/internal/boot"
	"seine/extract"
	"seine/extract/preference"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/canon"
)

type inspectCmd struct {
	Canon   inspectCanonCmd   `cmd:"" help:"Print canonical forms of URLs. It reads lines of URL TAB base. It writes fetch form TAB key, or ERR TAB reason. The fetch form includes credentials."`
	Links   inspectLinksCmd   `cmd:"" help:"Print each link of a document as a JSON line: kind, raw, url, rel, follow."`
	Charset inspectCharsetCmd `cmd:"" help:"Print the character encoding of a document and where it is declared."`
	Sitemap inspectSitemapCmd `cmd:"" help:"Print each location of a sitemap or feed as a JSON line."`
	Page    inspectPageCmd    `cmd:"" help:"Print the facts and links of a page for reading."`
	Fields  inspectFieldsCmd  `cmd:"" help:"Print what each rule of a YAML file finds in a page as a JSON line: name, at, from, values or error."`
	Wall    inspectWallCmd    `cmd:"" help:"Print whether a saved answer is a wall of a protection service: vendor TAB certain, likely, hint or none."`
	Robots  inspectRobotsCmd  `cmd:"" help:"Print whether a robots.txt allows each URL of stdin: 1 or 0."`
}

// document is a file to inspect, or stdin.
type document struct {
	File string `arg:"" optional:"" help:"The document (stdin)."`
}

// open returns the bytes of the document and the function that closes it.
func (d *document) open(env *boot.Env) (io.Reader, func() error, error) {
	if d.File == "" || d.File == "-" {
		return env.In, func() error { return nil }, nil
	}
	f, err := env.Open(d.File)
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}

// response is what a server would say of the document.
type response struct {
	ContentType string   `placeholder:"TYPE" help:"Content-Type header (guessed from the content)."`
	Header      []string `sep:"none" placeholder:"'NAME: VALUE'" help:"Link, Refresh, Content-Type, X-Robots-Tag, Content-Usage or TDM-Reservation header. Repeatable."`
}

// doc reads the headers into what extract knows of a document.
func (r *response) doc(base *canon.URL) (extract.Doc, error) {
	doc := extract.Doc{ContentType: fetch.ReadType(r.ContentType), Base: base}
	header := http.Header{}
	for _, line := range r.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return doc, boot.Usage("header %q must be NAME: VALUE", line)
		}
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if t := header.Get("Content-Type"); t != "" {
		doc.ContentType = fetch.ReadType(t)
	}
	addHeader(&doc, header)
	return doc, nil
}

// addHeader adds what extract knows of a header but for its type.
func addHeader(doc *extract.Doc, h preference.Header) {
	doc.Link = append(doc.Link, h.Values("Link")...)
	doc.Refresh = append(doc.Refresh, h.Values("Refresh")...)
	doc.Said.AddHeader(h, "", doc.ContentType)
}

// parse parses the URL of a document.
func parse(text string) (*canon.URL, error) {
	url := new(canon.URL)
	if err := canon.NewParser(canon.Config{}).Parse(url, []byte(text)); err != nil {
		return nil, boot.Usage("%s: %w", frontier.LogText(text), err)
	}
	return url, nil
}

// everyLink is a page that hands on all that it finds.
func everyLink() *extract.Page {
	return extract.NewPage(extract.PageConfig{Config: extract.Config{Kinds: extract.All}, MaxLinks: 1 << 30, Every: true})
}

// scan pushes the document through a page.
func (d *document) scan(env *boot.Env, page *extract.Page, doc extract.Doc, emit func(*extract.Found)) error {
	in, done, err := d.open(env)
	if err != nil {
		return err
	}
	defer done()
	page.Reset(doc, emit)
	if _, err := io.Copy(page, in); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	return page.Close()
}
