package frontier

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"seine/frontier/canon"
)

// Contents remembers which contents pages brought, for Settings.Duplicates. The
// shard of a content is that of its digest, whatever site it is of.
type Contents interface {
	// Duplicates says of each content whether another URL brought it before, and
	// remembers those that are new, with the URL that brings them: asked again, by
	// whoever, that URL gets the same answer, and never that it is a duplicate of
	// itself. Contents of a call are looked at in order. All belong to the shard;
	// duplicate must be as long. Where there is no memory for what is new it is not
	// remembered and no duplicate, so that nothing is missed.
	Duplicates(ctx context.Context, shard int, contents []Content, duplicate []bool) error
}

// Content is what a page brought, in the form that is remembered.
type Content struct {
	Digest canon.Fingerprint // of the content alone; decides the shard
	Page   canon.Fingerprint // of the content and the URL that brings it
}

// NewContent is that of a page with this digest, of 16 bytes or more, and this key
// of its URL. Both halves are in one filter, so that of the page is a SHA-256
// whatever the digest is: nobody can choose a URL whose half is the digest of
// somebody else's page.
func NewContent(digest, key []byte) Content {
	var c Content
	c.Digest = fingerprintAt(digest)
	h := sha256.New()
	h.Write(digest) //nolint:errcheck // it never fails
	h.Write(key)    //nolint:errcheck // it never fails
	var sum [sha256.Size]byte
	c.Page = fingerprintAt(h.Sum(sum[:0]))
	return c
}

func fingerprintAt(b []byte) canon.Fingerprint {
	return canon.Fingerprint{Site: binary.BigEndian.Uint64(b), Key: binary.BigEndian.Uint64(b[8:])}
}

// What is done about pages whose content another URL brought before.
const (
	DuplicatesOff  = "off"  // nobody looks
	DuplicatesMark = "mark" // their records say so
	DuplicatesSkip = "skip" // and their links are not followed
)
