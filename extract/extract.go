// Package extract finds links and page facts in a stream of bytes.
//
// A document is pushed through a Scanner in chunks of any size, as they come
// off the wire:
//
//	Write(chunk) -> charset -> markup, style sheet, sitemap, feed or text -> emit(*Link)
//
// The Scanner tokenizes HTML as browsers do where links are concerned (WHATWG
// HTML, section 13.2.5) and builds no tree: it jumps from '<' to '<', steps
// over raw text and comments, and looks only inside tags that may bear a link.
// What a tree would decide, it keeps in a few words: the stack of elements
// inside svg and math, the depth of templates, whether the head has ended.
//
// The same bytes give the same links whatever the chunks were. Memory is
// bounded by Config, never by the document: a tag longer than MaxTag is cut and
// counted, a link is passed on when its tag ends, not kept.
//
// A Page is the whole way from bytes to URLs: a Scanner, the document's base,
// canonical form, one copy of each URL of a page, and the rules on nofollow.
//
// Scanners and Pages are made once per worker and Reset for each document; they
// are not for use by several goroutines at once. All memory they hand out is
// valid during the call that hands it out, facts until the next Reset.
package extract

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"seine/extract/preference"
	"seine/frontier/canon"
)

// Link is one link as the document wrote it. Its memory is valid during the
// call that hands it over.
type Link struct {
	Kind       Kind
	Raw        []byte  // entities decoded, UTF-8, spaces around it kept; not resolved
	Rel        []byte  // rel attribute as written, entities decoded
	Type       []byte  // type attribute, of link elements, Link headers and feeds
	Base       []byte  // sitemaps and feeds: the xml:base in force, resolved; nil when there is none
	NoFollow   bool    // rel holds nofollow, ugc or sponsored
	LastMod    []byte  // sitemaps and feeds: date as written, nil when none
	ChangeFreq []byte  // sitemaps: as written, nil when not given
	Priority   float32 // sitemaps: 0.0 to 1.0, -1 when not given
}

// Doc is what is known of a document before its first byte.
type Doc struct {
	ContentType string         // header as sent, "" when missing
	Link        []string       // Link header values (RFC 8288)
	Refresh     []string       // Refresh header values
	Said        preference.Set // what its header and its site say of what is to be done with it
	Base        *canon.URL     // the document's URL, after redirects; a Scanner needs it for a relative xml:base only
	Sitemap     bool           // read it as a sitemap or feed: the content decides which; what is typed and looks like HTML is a page
	SitemapOf   []byte         // host whose sitemap it is, nil = that of Base
}

// Config of a Scanner; zero fields are the documented defaults.
type Config struct {
	Kinds    Kinds  // links to look for, default Navigation; Base is always passed on
	Robots   string // our name in robots meta tags, besides "robots"; default none
	Text     bool   // collect the visible text
	SimHash  bool   // make the simhash of all visible text
	MaxTag   int    // bytes of one tag, of one token of a style sheet or sitemap; default 65536
	MaxText  int    // bytes of visible text, default 1048576
	MaxTitle int    // bytes of title and description each, default 1024
	MaxLocs  int    // locations of one sitemap or feed, default 50000 (sitemaps.org)
	MaxBytes int64  // decoded bytes of one sitemap, and of any body that is gzip itself, default 52428800 (sitemaps.org)
}

// Validate says everything that is wrong with c.
func (c Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		v    int64
		min  int64
	}{
		{"MaxTag", int64(c.MaxTag), 256}, {"MaxText", int64(c.MaxText), 0}, {"MaxTitle", int64(c.MaxTitle), 0},
		{"MaxLocs", int64(c.MaxLocs), 0}, {"MaxBytes", c.MaxBytes, 0},
	} {
		if f.v != 0 && f.v < f.min {
			errs = append(errs, fmt.Errorf("extract: %s is %d; set it to 0 for the default or to %d at least", f.name, f.v, max(f.min, 1)))
		}
	}
	if c.Kinds&^All != 0 {
		errs = append(errs, fmt.Errorf("extract: Kinds %#x names links that do not exist; use the Kind constants", uint64(c.Kinds)))
	}
	return errors.Join(errs...)
}

// wantsText reports whether visible text is looked for.
func (c *Config) wantsText() bool { return c.Text || c.SimHash }

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	if c.Kinds == 0 {
		c.Kinds = Navigation
	}
	c.Robots = strings.ToLower(c.Robots)
	c.MaxTag = cmp.Or(c.MaxTag, 64<<10)
	c.MaxText = cmp.Or(c.MaxText, 1<<20)
	c.MaxTitle = cmp.Or(c.MaxTitle, 1<<10)
	c.MaxLocs = cmp.Or(c.MaxLocs, 50_000)
	c.MaxBytes = cmp.Or(c.MaxBytes, 50<<20)
	return c
}
