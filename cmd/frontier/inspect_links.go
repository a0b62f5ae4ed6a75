package main

import (
	"bufio"
	"encoding/json"
	"errors"

	"seine/cmd/internal/boot"
	"seine/extract"
)

type inspectLinksCmd struct {
	Base string `required:"" placeholder:"URL" help:"URL of the document."`
	response
	document
}

// link is one link as it is printed. URL is null where it is none to crawl.
type link struct {
	Kind   string  `json:"kind"`
	Raw    string  `json:"raw"`
	URL    *string `json:"url"`
	Rel    string  `json:"rel"`
	Follow bool    `json:"follow"`
}

func linkOf(f *extract.Found) link {
	l := link{Kind: f.Kind.String(), Raw: string(f.Raw), Rel: string(f.Rel), Follow: f.Follow}
	if f.URL != nil {
		url := string(f.URL.Fetch())
		l.URL = &url
	}
	return l
}

// Run lists every link as it stands in the document.
func (c *inspectLinksCmd) Run(env *boot.Env) error {
	base, err := parse(c.Base)
	if err != nil {
		return err
	}
	doc, err := c.doc(base)
	if err != nil {
		return err
	}
	return printLines(env, func(print func(any)) error {
		return c.scan(env, everyLink(), doc, func(f *extract.Found) { print(linkOf(f)) })
	})
}

type inspectSitemapCmd struct {
	URL string `name:"url" required:"" placeholder:"URL" help:"URL of the sitemap."`
	document
}

// location is one entry of a sitemap or feed.
type location struct {
	Kind     string   `json:"kind"`
	URL      *string  `json:"url"`
	Raw      string   `json:"raw"`
	LastMod  string   `json:"lastmod,omitempty"`
	Priority *float32 `json:"priority,omitempty"`
}

// Run lists the locations in order.
func (c *inspectSitemapCmd) Run(env *boot.Env) error {
	base, err := parse(c.URL)
	if err != nil {
		return err
	}
	page := everyLink()
	found := 0
	err = printLines(env, func(print func(any)) error {
		return c.scan(env, page, extract.Doc{Base: base, Sitemap: true}, func(f *extract.Found) {
			l := linkOf(f)
			at := location{Kind: l.Kind, URL: l.URL, Raw: l.Raw, LastMod: string(f.LastMod)}
			if priority := f.Priority; priority >= 0 {
				at.Priority = &priority
			}
			print(at)
			found++
		})
	})
	if found == 0 && err == nil {
		env.Log.Warn("no locations in it: it is no sitemap, feed, llms.txt or text list of URLs, or an empty one")
	}
	if page.Facts().Truncated {
		env.Log.Warn("sitemap is broken or over its bounds; what came before is printed")
	}
	return err
}

type inspectCharsetCmd struct {
	ContentType string `placeholder:"TYPE" help:"Content-Type header."`
	document
}

// Run shows name TAB authority.
func (c *inspectCharsetCmd) Run(env *boot.Env, g *cli) error {
	page := everyLink()
	base, err := parse("http://localhost/")
	if err != nil {
		return err
	}
	if err := c.scan(env, page, extract.Doc{ContentType: c.ContentType, Base: base}, func(*extract.Found) {}); err != nil {
		return err
	}
	name, by := page.Facts().Charset, page.Facts().CharsetBy.String()
	return g.line(env.Out, map[string]string{"charset": name, "by": by}, name+"\t"+by)
}

// printLines gives list a function that writes JSON lines.
func printLines(env *boot.Env, list func(print func(any)) error) error {
	buffer := bufio.NewWriter(env.Out)
	out := json.NewEncoder(buffer)
	out.SetEscapeHTML(false)
	var failed error
	err := list(func(v any) {
		if failed == nil {
			failed = out.Encode(v)
		}
	})
	return errors.Join(err, failed, buffer.Flush())
}
