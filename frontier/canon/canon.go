// Package canon decides what counts as the same URL.
//
// A page writes a link; a Parser resolves it against the page's own URL as
// browsers do (the WHATWG URL standard) and leaves a URL: the fetch form, which
// goes on the wire with the bytes that the page wrote, and the key, which says
// what counts as the same URL. From the host a Sites finds the site, the unit
// of politeness and of routing. Site and key, hashed, make the Fingerprint by
// which the whole fleet knows the URL.
//
// Three things hold whatever is parsed, and fuzz tests hold them: parsing the
// fetch form again gives the fetch form, taking the key of a key gives the key,
// and no user name or password ever reaches a key or an origin.
//
// Almost every link of the real web is plain: a known scheme, an ASCII host, a
// path and a query. One pass over its bytes resolves it without allocating.
// What that pass does not understand it leaves to the library
// nlnwa/whatwg-url, which is thorough and slow. Both give the same answer
// wherever both answer.
//
// Parser, URL and Sites belong to one goroutine each. Nothing here blocks,
// reads a clock or touches the network.
package canon

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Version names the canonical form and the key rules of this package. It is
// part of a crawl's layout: programs of different versions would disagree about
// which URLs are known.
const Version = 2

// Fingerprint is the 128-bit identity of a URL: the hash of its site, which
// picks the shard, and the hash of its key.
type Fingerprint struct {
	Site uint64 // XXH64 of the site
	Key  uint64 // XXH64 of the key
}

// FingerprintOf hashes a site and a key.
func FingerprintOf(site, key []byte) Fingerprint {
	return Fingerprint{Site: xxhash.Sum64(site), Key: xxhash.Sum64(key)}
}

// Shard is which of n shards owns f: multiply-shift on the site's half, so that each
// of n shards splits into m of n*m.
func (f Fingerprint) Shard(n int) int {
	hi, _ := bits.Mul64(f.Site, uint64(n))
	return int(hi)
}

// Append appends the 16 bytes of f, big endian, site first.
func (f Fingerprint) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, f.Site), f.Key)
}

// The reasons why a text is no URL to crawl. They are returned bare: the text
// that failed may hold a password, so no error repeats it.
var (
	// ErrInvalid: browsers would not follow it either.
	ErrInvalid = errors.New("canon: not a URL")
	// ErrNotCrawlable: mailto, javascript, data, ftp and so on.
	ErrNotCrawlable = errors.New("canon: not crawlable: scheme is not http or https")
	// ErrTooLong: the fetch form is longer than Config.MaxLength.
	ErrTooLong = errors.New("canon: URL too long")
	// ErrTooDeep: the path has more segments than Config.MaxSegments.
	ErrTooDeep = errors.New("canon: path too deep")
	// ErrRepeats: a segment stands in the path more often than Config.MaxRepeats.
	ErrRepeats = errors.New("canon: path repeats a segment")
	// ErrTooManyArgs: the query has more parameters than Config.MaxArgs.
	ErrTooManyArgs = errors.New("canon: too many query parameters")
)
