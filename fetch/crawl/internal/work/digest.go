package work

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/zeebo/xxh3"

	"seine/frontier"
)

// digest sums up the body of a page as it arrives, by the kind that the crawl's
// settings ask for. What a kind needs is made when it is first asked for.
type digest struct {
	kind string
	sha  hash.Hash
	xxh  *xxh3.Hasher

	sum, hex []byte // made once
}

// begin starts with another page.
func (d *digest) begin(kind string) {
	d.kind = kind
	switch {
	case kind == frontier.DigestXXH3 && d.xxh == nil:
		d.xxh = xxh3.New()
	case kind == frontier.DigestXXH3:
		d.xxh.Reset()
	case kind == frontier.DigestSHA256 && d.sha == nil:
		d.sha = sha256.New()
	case kind == frontier.DigestSHA256:
		d.sha.Reset()
	}
}

func (d *digest) write(p []byte) {
	switch d.kind {
	case frontier.DigestXXH3:
		d.xxh.Write(p) //nolint:errcheck // it never fails
	case frontier.DigestSHA256:
		d.sha.Write(p)
	}
}

// start is the first 64 bits of the digest; 0 for none.
func (d *digest) start() uint64 {
	switch d.kind {
	case frontier.DigestXXH3:
		return d.xxh.Sum128().Hi
	case frontier.DigestSHA256:
		d.sum = d.sha.Sum(d.sum[:0])
		return binary.BigEndian.Uint64(d.sum)
	}
	return 0
}

// bytes is the whole digest, valid until the next page; nil for none.
func (d *digest) bytes() []byte {
	switch d.kind {
	case frontier.DigestXXH3:
		sum := d.xxh.Sum128().Bytes()
		d.sum = append(d.sum[:0], sum[:]...)
	case frontier.DigestSHA256:
		d.sum = d.sha.Sum(d.sum[:0])
	default:
		return nil
	}
	return d.sum
}

// text is the digest as records have it, such as sha256:… in hexadecimal digits;
// empty for none.
func (d *digest) text() string {
	sum := d.bytes()
	if sum == nil {
		return ""
	}
	d.hex = append(append(d.hex[:0], d.kind...), ':')
	d.hex = hex.AppendEncode(d.hex, sum)
	return string(d.hex)
}
