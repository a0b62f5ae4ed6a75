package frontier

import (
	"encoding/binary"
	"strings"
	"time"
)

// A stored entry starts with four bytes that scripts read and write: version
// '1', class '0'..'3', times lost '0'.., fetches that ended in retry '0'... Then
// flags, depth (uvarint), redirects (a byte, if any), meta and the host that a
// sitemap is of (uvarint length and text, if any), and the URL as the rest, with what
// is kept of its redirects as a fragment. The varying part comes last, so that
// entries of one list share a long first part, which is what list compression
// takes out; what the key of the list says already, scheme and site, is a flag.
//
// Most entries need no more flags than these. One of version '2' has more behind the
// first ones, and what they announce before the URL, in the order of the flags.
const (
	entryVersion = '1'
	entryMore    = '2'
)

// The flags of an entry.
const (
	entryFlags    = '@' // always there: keeps the byte printable
	flagSeed      = 1
	flagRedirects = 2
	flagMeta      = 4
	flagForm      = 8 // times the index into entryForms
	flagSitemap   = 32
	flagSitemapOf = 128 // with it a host; of version 2
)

// The further flags of an entry of version 2.
const (
	moreFlags    = '@' // always there
	moreLast     = 1   // interval, time and Last-Modified (uvarints), digest (8 bytes), ETag (uvarint length and text) of the last fetch
	moreReferrer = 2   // a digit for its form, and the rest of it (uvarint length and text)
	moreRequest  = 4   // uvarint length and text
	moreKnown    = moreLast | moreReferrer | moreRequest
)

// entryForms are starts of URLs that an entry leaves out; the site comes
// between the two parts.
var entryForms = [4]string{"", "https://", "https://www.", "http://"}

// AppendEntry appends the stored form of an entry of a site.
func AppendEntry(dst []byte, site string, e *Entry) []byte {
	version := len(dst)
	dst = append(dst, entryVersion, '0'+e.Priority, '0'+e.Lost, '0'+min(e.Attempts, 255-'0'))
	form, url := formOf(site, e.URL)
	flags := byte(entryFlags + form*flagForm)
	if e.Seed {
		flags |= flagSeed
	}
	if e.Redirects > 0 {
		flags |= flagRedirects
	}
	if e.Meta != "" {
		flags |= flagMeta
	}
	if e.Sitemap {
		flags |= flagSitemap
	}
	if e.SitemapOf != "" {
		flags += flagSitemapOf
	}
	dst = append(dst, flags)
	more := byte(moreFlags)
	if e.Last != (Fetched{}) {
		more |= moreLast
	}
	if e.Referrer != "" {
		more |= moreReferrer
	}
	if e.Request != "" {
		more |= moreRequest
	}
	if more != moreFlags || e.SitemapOf != "" {
		dst[version] = entryMore
		dst = append(dst, more)
	}
	dst = binary.AppendUvarint(dst, uint64(e.Depth))
	if e.Redirects > 0 {
		dst = append(dst, e.Redirects)
	}
	if e.Meta != "" {
		dst = appendText(dst, e.Meta)
	}
	if e.SitemapOf != "" {
		dst = appendText(dst, e.SitemapOf)
	}
	if more&moreLast != 0 {
		dst = appendFetched(dst, &e.Last)
	}
	if e.Referrer != "" {
		form, rest := formOf(site, e.Referrer)
		dst = appendText(append(dst, '0'+byte(form)), rest)
	}
	if e.Request != "" {
		dst = appendText(dst, string(e.Request))
	}
	dst = append(dst, url...)
	if e.Redirects > 0 && (e.Trail != "" || e.From != "") {
		dst = appendHops(dst, site, e)
	}
	return dst
}

func appendFetched(dst []byte, f *Fetched) []byte {
	dst = binary.AppendUvarint(dst, uint64(f.Interval.Milliseconds()))
	dst = binary.AppendUvarint(dst, uint64(f.At))
	dst = binary.AppendUvarint(dst, uint64(f.Modified))
	dst = binary.BigEndian.AppendUint64(dst, f.Digest)
	return appendText(dst, f.ETag)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// formOf splits what a form says off a URL.
func formOf(site, url string) (form int, rest string) {
	for i := 1; i < len(entryForms); i++ {
		if rest, ok := strings.CutPrefix(url, entryForms[i]); ok {
			if rest, ok = strings.CutPrefix(rest, site); ok {
				return i, rest
			}
		}
	}
	return 0, url
}

// DecodeEntry reads a stored entry of a site. Its strings are parts of stored
// where they can be.
func DecodeEntry(stored, site string) (Entry, error) {
	if len(stored) < 6 || stored[0] != entryVersion && stored[0] != entryMore || stored[1] < '0' || stored[1] > '3' {
		return Entry{}, ErrEntry
	}
	e := Entry{Priority: stored[1] - '0', Lost: stored[2] - '0', Attempts: stored[3] - '0'}
	flags, more, rest := stored[4]-entryFlags, byte(0), stored[5:]
	if stored[0] == entryMore {
		more, rest = rest[0]-moreFlags, rest[1:]
		if more&^moreKnown != 0 {
			return Entry{}, ErrEntry
		}
	}
	e.Seed, e.Sitemap = flags&flagSeed != 0, flags&flagSitemap != 0
	depth, rest, ok := cutUvarint(rest)
	if !ok {
		return Entry{}, ErrEntry
	}
	e.Depth = uint32(depth)
	if flags&flagRedirects != 0 {
		if rest == "" {
			return Entry{}, ErrEntry
		}
		e.Redirects, rest = rest[0], rest[1:]
	}
	if flags&flagMeta != 0 {
		if e.Meta, rest, ok = cutText(rest); !ok {
			return Entry{}, ErrEntry
		}
	}
	if flags&flagSitemapOf != 0 {
		if e.SitemapOf, rest, ok = cutText(rest); !ok {
			return Entry{}, ErrEntry
		}
	}
	if more&moreLast != 0 {
		if e.Last, rest, ok = cutFetched(rest); !ok {
			return Entry{}, ErrEntry
		}
	}
	if more&moreReferrer != 0 {
		if rest == "" {
			return Entry{}, ErrEntry
		}
		form, text := rest[:1], ""
		if text, rest, ok = cutText(rest[1:]); ok {
			e.Referrer, ok = cutForm(form+text, site)
		}
		if !ok {
			return Entry{}, ErrEntry
		}
	}
	if more&moreRequest != 0 {
		var text string
		if text, rest, ok = cutText(rest); !ok {
			return Entry{}, ErrEntry
		}
		e.Request = Request(text)
	}
	if e.Redirects > 0 {
		rest, e.Trail, e.From = cutHops(rest, site)
	}
	if form := flags / flagForm % 4; form != 0 {
		rest = entryForms[form] + site + rest
	}
	e.URL = rest
	return e, nil
}

// cutFetched is the opposite of appendFetched.
func cutFetched(s string) (f Fetched, rest string, ok bool) {
	var numbers [3]uint64
	for i := range numbers {
		if numbers[i], s, ok = cutUvarint(s); !ok || numbers[i] > maxFetched {
			return f, s, false
		}
	}
	if len(s) < 8 {
		return f, s, false
	}
	f = Fetched{Interval: time.Duration(numbers[0]) * time.Millisecond, At: int64(numbers[1]), Modified: int64(numbers[2])}
	for i := range 8 {
		f.Digest = f.Digest<<8 | uint64(s[i])
	}
	f.ETag, rest, ok = cutText(s[8:])
	return f, rest, ok
}

// maxFetched bounds the numbers of what is kept of a fetch: 285 years in
// milliseconds.
const maxFetched = 9e12

// cutForm makes a URL of a digit for its form and the rest of it.
func cutForm(s, site string) (url string, ok bool) {
	if s == "" || s[0] < '0' || int(s[0]-'0') >= len(entryForms) {
		return "", false
	}
	if form := s[0] - '0'; form != 0 {
		return entryForms[form] + site + s[1:], true
	}
	return s[1:], true
}

// cutText is the opposite of appendText.
func cutText(s string) (text, rest string, ok bool) {
	n, rest, ok := cutUvarint(s)
	if !ok || n > uint64(len(rest)) {
		return "", s, false
	}
	return rest[:n], rest[n:], true
}

// cutUvarint is binary.Uvarint on a string.
func cutUvarint(s string) (v uint64, rest string, ok bool) {
	for i := 0; i < len(s) && i < binary.MaxVarintLen64; i++ {
		v |= uint64(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			return v, s[i+1:], true
		}
	}
	return 0, s, false
}
