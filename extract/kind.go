package extract

import (
	"fmt"
	"strings"
)

// Kind says where in a document a link stood.
type Kind uint8

// The kinds of link.
const (
	Anchor     Kind = iota // a href, in svg too
	Area                   // area href
	Frame                  // frame src
	IFrame                 // iframe src
	Refresh                // meta refresh, Refresh header
	Canonical              // link rel=canonical
	Next                   // link rel=next
	Prev                   // link rel=prev or previous
	Header                 // Link header, page requisites aside
	Alternate              // link rel=alternate, xhtml:link of a sitemap
	Feed                   // link rel=alternate with the type of a feed
	AMP                    // link rel=amphtml
	SitemapRel             // link rel=sitemap
	LinkOther              // link with any other rel
	Stylesheet             // link rel=stylesheet
	Icon                   // link rel=icon, apple-touch-icon, mask-icon
	Preload                // link rel=preload, modulepreload, prefetch
	Image                  // img src and data-src, image src
	Srcset                 // one candidate of a srcset, data-srcset or imagesrcset
	Source                 // source src and data-src
	Video                  // video src and poster
	Audio                  // audio src
	Track                  // track src
	Embed                  // embed src
	Object                 // object data
	Input                  // src of input type=image
	Cite                   // cite of blockquote, q, ins, del
	Background             // background of body and the parts of a table
	Script                 // script src
	SVG                    // href and xlink:href of svg elements other than a
	CSS                    // url() in a style sheet, style element or attribute
	Import                 // @import in a style sheet or style element
	Loc                    // location in a sitemap
	Index                  // sitemap in a sitemap index
	Entry                  // link of a feed's item
	Enclosure              // enclosure of a feed's item
	Home                   // the page that a feed speaks for
	Base                   // base href, for whoever resolves

	numKinds
)

// Kinds is a set of kinds.
type Kinds uint64

// Sets of kinds.
const (
	// Navigation is what leads from page to page; the default.
	Navigation = Kinds(1<<Anchor | 1<<Area | 1<<Frame | 1<<IFrame | 1<<Refresh | 1<<Canonical | 1<<Next | 1<<Prev | 1<<Header)
	// Requisites is what a browser loads to show a page.
	Requisites = Kinds(1<<Stylesheet | 1<<Icon | 1<<Preload | 1<<Image | 1<<Srcset | 1<<Source | 1<<Video | 1<<Audio |
		1<<Track | 1<<Embed | 1<<Object | 1<<Input | 1<<Background | 1<<Script | 1<<SVG | 1<<CSS | 1<<Import)
	// Syndication is what sitemaps and feeds list.
	Syndication = Kinds(1<<Loc | 1<<Index | 1<<Entry | 1<<Enclosure | 1<<Home)
	// All is every kind.
	All = Kinds(1<<numKinds - 1)
)

// Of returns the set of ks.
func Of(ks ...Kind) Kinds {
	var s Kinds
	for _, k := range ks {
		s |= 1 << k
	}
	return s
}

// Has reports whether k is in s.
func (s Kinds) Has(k Kind) bool { return s>>k&1 != 0 }

// String is the name of k as settings and tools write it.
func (k Kind) String() string {
	names := [numKinds]string{
		"a", "area", "frame", "iframe", "refresh", "canonical", "next", "prev", "header", "alternate", "feed", "amphtml",
		"sitemap", "link", "stylesheet", "icon", "preload", "img", "srcset", "source", "video", "audio", "track", "embed",
		"object", "input", "cite", "background", "script", "svg", "css", "import", "loc", "index", "entry", "enclosure", "home", "base",
	}
	if k >= numKinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return names[k]
}

// ParseKinds reads a list of kinds by name; "navigation", "requisites",
// "syndication" and "all" name sets. An empty list is Navigation.
func ParseKinds(names []string) (Kinds, error) {
	var s Kinds
next:
	for _, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		switch name {
		case "navigation":
			s |= Navigation
			continue
		case "requisites":
			s |= Requisites
			continue
		case "syndication":
			s |= Syndication
			continue
		case "all":
			s |= All
			continue
		}
		for k := range numKinds {
			if k.String() == name {
				s |= 1 << k
				continue next
			}
		}
		all := []string{"navigation", "requisites", "syndication", "all"}
		for k := range numKinds {
			all = append(all, k.String())
		}
		return 0, fmt.Errorf("extract: no kind of link is called %q; there are %s", name, strings.Join(all, ", "))
	}
	if s == 0 {
		s = Navigation
	}
	return s, nil
}
