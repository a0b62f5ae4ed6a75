package redis

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seine/frontier"
	"seine/shard"
)

// The bounds of a feed.
const (
	feedBatch   = 500              // elements handled at once
	feedLock    = 10 * time.Second // how long a drainer that died keeps others away
	maxDeadFeed = 10_000           // bad elements kept
	deadText    = 1 << 10          // bytes kept of a bad element
)

// feedKey is the list that URLs are fed through.
func (f *Frontier) feedKey() string {
	if key := f.Settings().FeedKey; key != "" {
		return key
	}
	return shard.FeedKey(f.crawl)
}

// FeedLen is how many elements wait in the feed.
func (f *Frontier) FeedLen(ctx context.Context) (int64, error) {
	key := f.feedKey()
	reply, err := f.client.Do(ctx, noShard, key, "LLEN", key)
	if err != nil {
		return 0, feedError(key, err)
	}
	return shard.Int(reply), nil
}

func feedError(key string, err error) error {
	if strings.Contains(err.Error(), "WRONGTYPE") {
		return fmt.Errorf("frontier: feed %s is not a list; rename or delete it and push with LPUSH, or name another with feed-key: %w", key, errForeign)
	}
	return fmt.Errorf("frontier: feed %s: %w", key, err)
}

// DrainFeed takes up to 500 elements from the tail of the feed. It hands the
// readable ones to admit, and removes them all from the feed when admit has
// returned nil; what cannot be read goes to the list <crawl>:dead:feed. It
// returns how many elements it removed: none when another program drains the
// feed just now, or when Redis has no room. Call it about once a second, and again at once after 500.
//
// A drainer that dies before the removal has its elements admitted once more
// by the next, with the same effect: an `again` carries the number of its
// element as request id, which advances together with the removal. So two
// equal elements are two requests, one element read twice is one.
// Cost: four small calls, one when the feed is empty.
func (f *Frontier) DrainFeed(ctx context.Context, admit func(context.Context, []frontier.FeedItem) error) (n int, err error) {
	waits, err := f.FeedLen(ctx)
	if err != nil || waits == 0 {
		return 0, err
	}
	key := f.feedKey()
	lock, me := shard.FeedLockKey(key), rand.Text()
	got, err := f.client.Do(ctx, noShard, lock, "SET", lock, me, "NX", "PX", feedLock.Milliseconds(), "GET")
	if isFull(err) {
		return 0, nil // neither would admission have room
	}
	if err != nil {
		return 0, feedError(key, err)
	}
	if got != nil && got != me { // me: a repeat of a call whose reply was lost
		// When the server's clock was set back, the lock of one that died would last.
		_, err := f.client.Do(ctx, noShard, lock, "PEXPIRE", lock, feedLock.Milliseconds(), "LT")
		return 0, err
	}
	defer func() {
		_, unlockErr := f.client.Do(ctx, noShard, lock, "DEL", lock)
		err = errors.Join(err, unlockErr)
	}()
	return f.drain(ctx, key, admit)
}

// drain is DrainFeed under the lock.
func (f *Frontier) drain(ctx context.Context, key string, admit func(context.Context, []frontier.FeedItem) error) (int, error) {
	keys := []string{key, shard.FeedSeqKey(key)}
	reply, err := f.client.Run(ctx, noShard, peekScript, keys, feedBatch)
	if err != nil {
		return 0, feedError(key, err)
	}
	list, _ := reply.([]any)
	if len(list) < 2 {
		return 0, nil
	}
	number := shard.Int(list[0])
	var items []frontier.FeedItem
	var bad []any
	maker, again := frontier.NewMaker(f.layout), f.Settings().FeedAgain
	for i, v := range list[1:] {
		text := shard.Text(v)
		item, err := maker.Element(text)
		if err != nil {
			bad = append(bad, deadElement(text, err))
			continue
		}
		if item.Again != "" || again {
			item.Again = key + ":" + strconv.FormatInt(number+int64(i), 10)
		}
		items = append(items, item)
	}
	if len(items) > 0 {
		if err := admit(ctx, items); err != nil {
			return 0, err
		}
	}
	if err := f.buryElements(ctx, bad); err != nil {
		return 0, err
	}
	gone, err := f.client.Run(ctx, noShard, takeScript, keys, append([]any{list[0]}, list[1:]...)...)
	if err != nil {
		return 0, feedError(key, err)
	}
	return int(max(0, shard.Int(gone))), nil
}

// deadElement is what is kept of an element that cannot be read: credentials
// are hidden, for the list is read by people and logs.
func deadElement(text string, why error) string {
	text = frontier.HideCredentials(text)
	if len(text) > deadText {
		text = text[:deadText]
	}
	b, err := json.Marshal(map[string]any{"v": 1, "element": text, "error": why.Error(), "at": time.Now().UTC().Format(time.RFC3339)})
	if err != nil {
		return text
	}
	return string(b)
}

// buryElements keeps the newest of the elements that cannot be read. A repeat
// of the call may keep one twice.
func (f *Frontier) buryElements(ctx context.Context, bad []any) error {
	if len(bad) == 0 {
		return nil
	}
	key := shard.DeadFeedKey(f.crawl)
	if _, err := f.client.Do(ctx, noShard, key, append([]any{"RPUSH", key}, bad...)...); err != nil {
		return err
	}
	_, err := f.client.Do(ctx, noShard, key, "LTRIM", key, -maxDeadFeed, -1)
	return err
}

// DeadElements returns count elements of the feed that could not be read, from
// offset on, the oldest first: JSON objects with element, error and at.
func (f *Frontier) DeadElements(ctx context.Context, offset, count int64) ([]string, error) {
	if count <= 0 {
		return nil, nil
	}
	key := shard.DeadFeedKey(f.crawl)
	reply, err := f.client.Do(ctx, noShard, key, "LRANGE", key, offset, offset+count-1)
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = shard.Text(v)
	}
	return out, nil
}
