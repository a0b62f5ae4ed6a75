package extract

import (
	"bytes"

	"seine/extract/charset"
)

// relSet is the tokens of a rel attribute that mean something to us.
type relSet uint32

const (
	relCanonical relSet = 1 << iota
	relNext
	relPrev
	relStylesheet
	relAlternate
	relAMP
	relSitemap
	relIcon
	relPreload
	relLicense
	relNoFollow // nofollow, ugc, sponsored
)

// rels reads a rel attribute: tokens separated by white space, in any case.
func rels(b []byte) relSet {
	var s relSet
	for len(b) > 0 {
		n := 0
		for n < len(b) && !charset.IsSpace(b[n]) && b[n] != ',' { // commas are no separators by the book, but by habit
			n++
		}
		if n > 0 {
			s |= relOf(b[:n])
		}
		b = b[min(n+1, len(b)):]
	}
	return s
}

func relOf(token []byte) relSet {
	var fold [32]byte
	if len(token) > len(fold) {
		return 0
	}
	for i, c := range token {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		fold[i] = c
	}
	switch string(fold[:len(token)]) {
	case "canonical":
		return relCanonical
	case "next":
		return relNext
	case "prev", "previous":
		return relPrev
	case "stylesheet":
		return relStylesheet
	case "alternate":
		return relAlternate
	case "amphtml":
		return relAMP
	case "sitemap":
		return relSitemap
	case "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "fluid-icon":
		return relIcon
	case "preload", "modulepreload", "prefetch", "prerender":
		return relPreload
	case "license":
		return relLicense
	case "nofollow", "ugc", "sponsored":
		return relNoFollow
	}
	return 0
}

// kind is what a link element with these rels and this type is to us: the
// most telling of them.
func (s relSet) kind(typ []byte) Kind {
	switch {
	case s&relCanonical != 0:
		return Canonical
	case s&relNext != 0:
		return Next
	case s&relPrev != 0:
		return Prev
	case s&relStylesheet != 0:
		return Stylesheet
	case s&relAlternate != 0 && isFeed(typ):
		return Feed
	case s&relAlternate != 0:
		return Alternate
	case s&relAMP != 0:
		return AMP
	case s&relIcon != 0:
		return Icon
	case s&relPreload != 0:
		return Preload
	case s&relSitemap != 0:
		return SitemapRel
	}
	return LinkOther
}

// isFeed reports whether a media type is one of a feed.
func isFeed(typ []byte) bool {
	if i := bytes.IndexByte(typ, ';'); i >= 0 {
		typ = typ[:i]
	}
	typ = trim(typ)
	return charset.EqualFold(typ, "application/rss+xml") || charset.EqualFold(typ, "application/atom+xml") ||
		charset.EqualFold(typ, "application/rdf+xml") || charset.EqualFold(typ, "application/feed+json")
}

// trim cuts ASCII white space from both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && charset.IsSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && charset.IsSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}
