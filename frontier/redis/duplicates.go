package redis

import (
	"context"
	"errors"
	"fmt"

	"seine/bloom"
	"seine/frontier"
)

// duplicatesMost is how many contents one call of the script takes: as many probes
// as an admission makes.
const duplicatesMost = admitMost / 2

// Duplicates says of each content whether another URL brought it before; see
// frontier.Contents. A content that is new may be called a duplicate at the rate of
// false positives that the crawl allows. The filter is made by the first call, and
// again where it is missing. Where Redis is full what is new is not remembered. Cost: one script call for each 250 contents, some
// us of the server for each.
func (f *Frontier) Duplicates(ctx context.Context, k int, contents []frontier.Content, duplicate []bool) error {
	if len(duplicate) != len(contents) {
		return fmt.Errorf("frontier: duplicates: %d answers for %d contents", len(duplicate), len(contents))
	}
	for i := range contents {
		if own := f.shards.Of(contents[i].Digest); own != k {
			return fmt.Errorf("frontier: duplicates: content %d belongs to shard %d, not %d", i, own, k)
		}
	}
	for len(contents) > 0 {
		n := min(len(contents), duplicatesMost)
		if err := f.duplicates(ctx, k, contents[:n], duplicate[:n]); err != nil {
			return err
		}
		contents, duplicate = contents[n:], duplicate[n:]
	}
	return nil
}

// duplicates runs the script for some contents.
func (f *Frontier) duplicates(ctx context.Context, k int, contents []frontier.Content, duplicate []bool) error {
	if err := f.awaitRights(ctx, k); err != nil {
		return err
	}
	text := make([]byte, 0, 2*16*len(contents))
	for _, c := range contents {
		text = c.Digest.Append(text)
	}
	for _, c := range contents {
		text = c.Page.Append(text)
	}
	var reply any
	err := f.withRoom(ctx, &f.contents, k, "duplicates", func(each int, room int64) (keys []string, err error) {
		keys = f.sharedKeys(nil, k, duplicatesScript)
		for i := range each {
			keys = append(keys, f.keys[k].Contents(i))
		}
		args := append(make([]any, 0, 3+2*len(contents)), f.epoch, each, room)
		for i := 0; i < len(text); i += 16 {
			args = append(args, text[i:i+16])
		}
		reply, err = f.run(ctx, k, duplicatesScript, keys, args...)
		return keys, err
	})
	if isFull(err) { // there is no room for the filter itself
		clear(duplicate)
		return nil
	}
	if err != nil {
		return err
	}
	letters, _ := reply.(string)
	if len(letters) != len(contents) {
		return Malformed(k, "duplicates", reply)
	}
	for i := range duplicate {
		duplicate[i] = letters[i] == 'd'
	}
	return nil
}

// makeContents makes the filter of contents of shard k, or those of its so many keys
// that are missing. It may run in many programs at once. Where one is lost, what only
// that one held passes for new once more.
func (f *Frontier) makeContents(ctx context.Context, k, each int) error {
	// Somebody else may have made it meanwhile. Valkey's module does not tell the rate
	// of a filter and sizes it in another way, so that it seems to be of another plan;
	// what is there is of this creation of the crawl, whose keys go with it.
	err := f.reserveKeys(ctx, &f.contents, k, 0, max(each, 1))
	if err != nil && !errors.Is(err, bloom.ErrOther) {
		return err
	}
	if each > 0 {
		return nil
	}
	return f.setEach(ctx, &f.contents, k, 0, 1)
}

// LostContents names the keys of the filter of contents of shard k that are missing.
// Cost: two calls.
func (f *Frontier) LostContents(ctx context.Context, k int) (lost []string, err error) {
	set, err := f.ContentSet(ctx, k)
	if err != nil || set.Each == 0 {
		return nil, err
	}
	return f.LostFilters(ctx, set)
}

var _ frontier.Contents = (*Frontier)(nil)
