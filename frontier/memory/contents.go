package memory

import (
	"context"
	"fmt"

	"seine/frontier"
)

// Duplicates says of each content whether another URL brought it before. It is
// exact, and keeps 32 bytes of each new one, and slack.
func (f *Frontier) Duplicates(ctx context.Context, k int, contents []frontier.Content, duplicate []bool) error {
	p, err := f.shard(ctx, k, "duplicates")
	if err != nil {
		return err
	}
	if len(duplicate) != len(contents) {
		return fmt.Errorf("memory: duplicates: %d answers for %d contents", len(duplicate), len(contents))
	}
	for i := range contents {
		if own := f.Of(contents[i].Digest); own != k {
			return fmt.Errorf("memory: duplicates: content %d belongs to shard %d, not %d", i, own, k)
		}
	}
	p.lock()
	for i, c := range contents {
		if duplicate[i] = p.contents.isDuplicate(c); !duplicate[i] && p.contents.add(c) {
			p.keepContent(c)
		}
	}
	return p.unlock(ctx, "duplicates")
}

// contents are those of a shard: digests, and with them the URLs that brought them.
type contents struct {
	known *known // nil while there are none
	n     int64
}

// isDuplicate reports whether the digest is known and came by another URL.
func (cs *contents) isDuplicate(c frontier.Content) bool {
	return cs.known != nil && cs.known.has(c.Digest) && !cs.known.has(c.Page)
}

// add remembers a content and reports whether it was new.
func (cs *contents) add(c frontier.Content) bool {
	if cs.known == nil {
		k := newKnown()
		cs.known = &k
	}
	if !cs.known.add(c.Digest) {
		return false
	}
	cs.known.add(c.Page)
	cs.n++
	return true
}

// keepContent stores a content.
func (p *shardState) keepContent(c frontier.Content) {
	if p.tx != nil {
		p.key = c.Page.Append(c.Digest.Append(p.newKey(keyContent)))
		p.tx.Set(p.key, nil)
	}
}

func (l *loader) loadContent(key, _ []byte) bool {
	r := reader{b: key[3:]}
	c := frontier.Content{Digest: r.fingerprint(), Page: r.fingerprint()}
	l.contents.add(c)
	return !r.bad && len(r.b) == 0
}
