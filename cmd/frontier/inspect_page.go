package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"seine/cmd/internal/boot"
	"seine/extract"
	"seine/fetch"
)

type inspectPageCmd struct {
	Target   string         `arg:"" help:"URL to fetch, or a file; - is stdin."`
	Base     string         `default:"http://localhost/" placeholder:"URL" help:"URL of a page that is a file (${default})."`
	AllowNet []netip.Prefix `placeholder:"CIDR" help:"Private networks from which Seine may fetch (none)."`
	response
}

// pageFacts is what a page has of itself.
type pageFacts struct {
	Status      int             `json:"status,omitempty"`
	Location    string          `json:"location,omitempty"`
	ContentType string          `json:"content_type"`
	Title       string          `json:"title"`
	Lang        string          `json:"lang"`
	Description string          `json:"description"`
	Canonical   string          `json:"canonical"`
	Base        string          `json:"base"`
	Charset     string          `json:"charset"`
	CharsetBy   string          `json:"charset_by"`
	Feeds       []string        `json:"feeds"`
	NoIndex     bool            `json:"noindex"`
	NoFollow    bool            `json:"nofollow"`
	Preferences json.RawMessage `json:"preferences,omitempty"`
	Cut         int             `json:"cut"`
	LateBase    int             `json:"late_base"`
	Links       []link          `json:"links"`
}

// Run shows a page. robots.txt is not asked: one page that a person names.
func (c *inspectPageCmd) Run(env *boot.Env, g *cli) error {
	page := everyLink()
	var facts pageFacts
	emit := func(f *extract.Found) { facts.Links = append(facts.Links, linkOf(f)) }
	err := c.read(env, page, &facts, emit)
	if err != nil {
		return err
	}
	f := page.Facts()
	facts.Title, facts.Lang, facts.Description = string(f.Title), string(f.Lang), string(f.Description)
	facts.Canonical, facts.Base = string(f.Canonical), string(f.Base)
	facts.Charset, facts.CharsetBy = f.Charset, f.CharsetBy.String()
	facts.NoIndex, facts.NoFollow, facts.Cut, facts.LateBase = f.Said.NoIndex, f.Said.NoFollow, f.Cut, f.LateBase
	if !f.Said.IsEmpty() {
		facts.Preferences = f.Said.AppendJSON(nil)
	}
	for _, feed := range f.Feeds {
		facts.Feeds = append(facts.Feeds, string(feed.Href))
	}
	return g.answer(env, facts, func(w io.Writer) { printFacts(w, &facts) })
}

// read pushes the page through, from a file or the network.
func (c *inspectPageCmd) read(env *boot.Env, page *extract.Page, facts *pageFacts, emit func(*extract.Found)) error {
	isURL := strings.HasPrefix(c.Target, "http://") || strings.HasPrefix(c.Target, "https://")
	base := c.Base
	if isURL {
		base = c.Target
	}
	url, err := parse(base)
	if err != nil {
		return err
	}
	doc, err := c.doc(url)
	if err != nil {
		return err
	}
	if !isURL {
		facts.ContentType = doc.ContentType
		file := document{File: c.Target}
		return file.scan(env, page, doc, emit)
	}
	client, err := fetch.New(fetch.Config{UserAgent: "seine/" + boot.Version(), AllowNet: c.AllowNet, FetchAll: true})
	if err != nil {
		return err
	}
	defer client.Close()
	var got fetch.Response
	h := &arriving{page: page, doc: doc, emit: emit}
	if err := client.Do(env.Stop, &fetch.Request{URL: string(url.Fetch())}, &got, h); err != nil {
		return err
	}
	facts.Status, facts.Location, facts.ContentType = got.Status, got.Location, got.ContentType
	return page.Close()
}

// arriving feeds a response to a page.
type arriving struct {
	page *extract.Page
	doc  extract.Doc
	emit func(*extract.Found)
}

func (a *arriving) Begin(r *fetch.Response) bool {
	if a.doc.ContentType == "" {
		a.doc.ContentType = r.Type
	}
	addHeader(&a.doc, r.Header)
	a.page.Reset(a.doc, a.emit)
	return true
}

func (a *arriving) Write(b []byte) (int, error) { return a.page.Write(b) }

// printFacts writes for people; texts of the page are quoted, so that a
// terminal gets none of its control bytes.
func printFacts(w io.Writer, f *pageFacts) {
	if f.Status != 0 {
		row(w, "status", f.Status)
	}
	for _, line := range [][2]string{{"location", f.Location}, {"content type", f.ContentType}, {"title", f.Title}, {"lang", f.Lang},
		{"description", f.Description}, {"canonical", f.Canonical}, {"base", f.Base}} {
		if line[1] != "" {
			row(w, line[0], fmt.Sprintf("%q", line[1]))
		}
	}
	row(w, "charset", f.Charset+" by "+f.CharsetBy)
	for _, feed := range f.Feeds {
		row(w, "feed", fmt.Sprintf("%q", feed))
	}
	row(w, "noindex", f.NoIndex)
	row(w, "nofollow", f.NoFollow)
	if f.Preferences != nil {
		row(w, "preferences", string(f.Preferences))
	}
	if f.LateBase > 0 {
		row(w, "late base", fmt.Sprintf("%d links in front of the base element were resolved without it", f.LateBase))
	}
	row(w, "links", len(f.Links))
	for _, l := range f.Links {
		url := "no URL to crawl"
		if l.URL != nil {
			url = *l.URL
		}
		raw, err := json.Marshal(l.Raw)
		if err != nil {
			raw = nil // a string always has a form
		}
		row(w, "  "+l.Kind, map[bool]string{true: "follow", false: "-"}[l.Follow], url, string(raw))
	}
}
