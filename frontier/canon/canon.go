// Package canon decides what counts as the same URL.
package canon

import (
	"errors"

	"github.com/cespare/xxhash/v2"
)

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

// Append appends the 16 bytes of f, big endian, site first.
func (f Fingerprint) Append(dst []byte) []byte {
	for _, h := range [2]uint64{f.Site, f.Key} {
		dst = append(dst, byte(h>>56), byte(h>>48), byte(h>>40), byte(h>>32), byte(h>>24), byte(h>>16), byte(h>>8), byte(h))
	}
	return dst
}

// The reasons why a text is no URL to crawl; errors wrap one of them.
var (
	ErrInvalid      = errors.New("canon: not a URL")
	ErrNotCrawlable = errors.New("canon: not crawlable: scheme is not http or https")
	ErrTooLong      = errors.New("canon: URL too long")
	ErrTooDeep      = errors.New("canon: path too deep")
	ErrRepeats      = errors.New("canon: path repeats a segment")
	ErrTooManyArgs  = errors.New("canon: too many query parameters")
)
