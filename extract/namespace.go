package extract

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
)

// namespace is what an XML namespace means in a listing.
type namespace uint8

const (
	nsOther namespace = iota // nothing
	nsNone                   // there is none
	nsSitemap
	nsRSS // 0.90, 1.0 and those that RSS 2.0 is mistakenly given
	nsAtom
	nsDC
	nsXHTML
)

// namespaceOf reads a namespace's name.
func namespaceOf(uri []byte) namespace {
	switch string(uri) {
	case "":
		return nsNone
	case "http://www.sitemaps.org/schemas/sitemap/0.9", "https://www.sitemaps.org/schemas/sitemap/0.9", "http://www.google.com/schemas/sitemap/0.84":
		return nsSitemap
	case "http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/", "http://channel.netscape.com/rdf/simple/0.9/", "http://backend.userland.com/rss2":
		return nsRSS
	case "http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#":
		return nsAtom
	case "http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/":
		return nsDC
	case "http://www.w3.org/1999/xhtml":
		return nsXHTML
	}
	return nsOther
}

// scope is the namespaces that are declared where a listing is being read.
type scope struct {
	bound []binding
	root  uint64 // name of the root's namespace: its elements are the list's own
}

// binding is what a prefix stands for. Prefix and name are kept as hashes.
type binding struct {
	prefix, uri uint64
	ns          namespace
}

// maxBound bounds the declarations in force; those beyond it are not seen.
const maxBound = 256

func (s *scope) bind(prefix, uri []byte) {
	if len(s.bound) < maxBound {
		s.bound = append(s.bound, binding{xxhash.Sum64(prefix), xxhash.Sum64(uri), namespaceOf(uri)})
	}
}

// resolve splits the name of an element into what its namespace is and its
// local name. A prefix that is not declared, which no XML parser would accept,
// is taken for what it is by habit.
func (s *scope) resolve(name []byte) (b binding, local []byte) {
	prefix, local, ok := bytes.Cut(name, []byte{':'})
	if !ok {
		prefix, local = nil, name
	}
	key := xxhash.Sum64(prefix)
	for i := len(s.bound) - 1; i >= 0; i-- {
		if s.bound[i].prefix == key {
			return s.bound[i], local
		}
	}
	b = binding{key, key, nsOther}
	switch string(prefix) {
	case "":
		b.ns = nsNone
	case "atom":
		b.ns = nsAtom
	case "dc":
		b.ns = nsDC
	case "xhtml":
		b.ns = nsXHTML
	}
	return b, local
}

// grammar is what a list is: it decides what the names of elements mean.
type grammar uint8

const (
	noList grammar = iota // its first known element decides
	sitemapList
	feedList
)

// listTag names the elements that mean something.
type listTag uint8

const (
	listOther listTag = iota
	listRoot          // urlset, sitemapindex, rss, RDF
	listURL           // url
	listSitemap
	listLoc
	listLastMod
	listPriority
	listChangeFreq
	listItemTag // item of RSS, entry of Atom
	listChannel // channel of RSS, feed of Atom
	listLink
	listGUID
	listDate
	listEnclosure
)

// tagOf recognizes an element by its name and namespace. The first that is
// known says which kind of list it is, and that its namespace is the list's own,
// misspelled or not.
func (l *listing) tagOf(name []byte) listTag {
	b, local := l.names.resolve(name)
	var fold [12]byte
	if len(local) > len(fold) {
		return listOther
	}
	for i, c := range local {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		fold[i] = c
	}
	key := string(fold[:len(local)])
	if l.grammar == noList {
		switch {
		case sitemapTag(key) != listOther:
			l.grammar = sitemapList
		case feedTag(key) == listRoot, feedTag(key) == listChannel, feedTag(key) == listItemTag:
			l.grammar = feedList
		}
		l.names.root = b.uri
	}
	own := b.ns == nsNone || b.uri == l.names.root
	switch {
	case l.grammar == sitemapList && (own || b.ns == nsSitemap):
		return sitemapTag(key)
	case l.grammar == feedList && (own || b.ns == nsRSS || b.ns == nsAtom):
		return feedTag(key)
	case l.grammar == sitemapList && b.ns == nsXHTML && key == "link":
		return listLink
	case l.grammar == feedList && b.ns == nsDC && key == "date":
		return listDate
	}
	return listOther
}

func sitemapTag(name string) listTag {
	switch name {
	case "urlset", "sitemapindex":
		return listRoot
	case "url":
		return listURL
	case "sitemap":
		return listSitemap
	case "loc":
		return listLoc
	case "lastmod":
		return listLastMod
	case "priority":
		return listPriority
	case "changefreq":
		return listChangeFreq
	}
	return listOther
}

func feedTag(name string) listTag {
	switch name {
	case "rss", "rdf":
		return listRoot
	case "item", "entry":
		return listItemTag
	case "channel", "feed":
		return listChannel
	case "link":
		return listLink
	case "guid":
		return listGUID
	case "pubdate", "updated", "published", "modified":
		return listDate
	case "enclosure":
		return listEnclosure
	}
	return listOther
}
