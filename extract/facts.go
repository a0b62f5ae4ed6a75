package extract

import (
	"seine/extract/charset"
	"seine/extract/preference"
)

// Facts is what a document says of itself. Its memory is valid until the
// Scanner is Reset; slices are UTF-8, nil when the document is silent.
type Facts struct {
	Title       []byte            // first title, entities decoded, white space folded
	Lang        []byte            // lang of the html element
	Description []byte            // meta description, white space folded
	Canonical   []byte            // first link rel=canonical, as written; else the Link header's
	Base        []byte            // first base href, as written
	LateBase    int               // links resolved before the base element came, too many to wait for it; see Page
	Charset     string            // encoding it was read in, WHATWG name in lower case
	CharsetBy   charset.Authority // what declared it
	Declared    string            // encoding that header or meta declare, "" when none does
	Feeds       []FeedLink        // the first of them
	Said        preference.Set    // what is to be done with it, by Doc.Said and by itself
	Text        []byte            // visible text, with Config.Text, as far as it was decoded
	TextCut     bool              // the text goes on behind MaxText
	SimHash     uint64            // of all visible text, with Config.SimHash; 0 without a word
	Markup      bool              // it was read as HTML or XHTML, and was not gzip in itself
	Cut         int               // tags and tokens longer than MaxTag
	Truncated   bool              // a sitemap went over MaxLocs, it or what was gzipped over MaxBytes, or is broken
}

// FeedLink is a feed that a page names, as written.
type FeedLink struct {
	Href, Type, Title []byte
}

// maxFeeds bounds Facts.Feeds.
const maxFeeds = 16

// maxKeptText is the largest text whose memory is kept for the next document.
const maxKeptText = 128 << 10

// reset empties f and keeps its memory.
func (f *Facts) reset() {
	if cap(f.Text) > maxKeptText {
		f.Text = nil
	}
	*f = Facts{Feeds: f.Feeds[:0], Text: f.Text[:0]}
}

// fold appends b to dst with runs of white space made one space, none at
// either end, up to max bytes of whole runes.
func fold(dst, b []byte, max int) []byte {
	start := len(dst)
	for _, c := range b {
		if charset.IsSpace(c) {
			if len(dst) > start && dst[len(dst)-1] != ' ' {
				dst = append(dst, ' ')
			}
			continue
		}
		dst = append(dst, c)
		if len(dst)-start > max+4 {
			break
		}
	}
	return trimTo(dst, start, max)
}

// trimTo cuts dst[start:] to max bytes at the start of a rune, and a space at its end.
func trimTo(dst []byte, start, max int) []byte {
	if len(dst)-start > max {
		n := start + max
		for n > start && dst[n]&0xC0 == 0x80 {
			n--
		}
		dst = dst[:n]
	}
	if len(dst) > start && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	return dst
}
