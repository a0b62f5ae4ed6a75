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
	feedBatch      = 500              // elements handled at once, and as many of those that are late
	feedLock       = 10 * time.Second // how long a drainer that died keeps others away
	maxDeadFeed    = 10_000           // bad elements kept
	deadText       = 1 << 10          // bytes kept of a bad element
	deadLetterWait = 2 * time.Second  // how long bad elements wait for the master that keeps them
)

// feedKey is the list that URLs are fed through.
func (f *Frontier) feedKey() string {
	if key := f.Settings().FeedKey; key != "" {
		return key
	}
	return shard.FeedKey(f.crawl)
}

// FeedLen is how many elements wait in the feed, or were kept for later until their
// shards take them.
func (f *Frontier) FeedLen(ctx context.Context) (int64, error) {
	feed := f.feedKey()
	n := int64(0)
	for _, key := range []string{feed, shard.FeedLateKey(feed)} {
		reply, err := f.client.Do(ctx, noShard, key, "LLEN", key)
		if err != nil {
			return 0, feedError(key, err)
		}
		n += shard.Int(reply)
	}
	return n, nil
}

func feedError(key string, err error) error {
	if strings.Contains(err.Error(), "WRONGTYPE") {
		return fmt.Errorf("frontier: feed %s is not a list; rename or delete it and push with LPUSH, or name another with feed-key: %w", key, errForeign)
	}
	return fmt.Errorf("frontier: feed %s: %w", key, err)
}

// DrainFeed takes up to 500 elements from the tail of the feed, and as many that
// were kept for later before. It hands the readable ones to admit, and removes them
// all from the feed when admit has returned. Those that admit calls late, by
// their places, are kept for later, and handed over again by later calls, in turns: so
// one shard that takes nothing stops nobody else's elements. What cannot be read
// goes to the list <crawl>:dead:feed; while its master takes nothing it is late
// too. DrainFeed returns how many elements were handled: none when another
// program drains the feed just now, or when Redis has no room. Call it about
// once a second, and again at once while it handles any.
//
// A drainer that dies before the removal has its elements admitted once more
// by the next, with the same effect: a refetch carries the number of its
// element as request id, which an element keeps that is kept for later, and which
// advances together with the removal. So two equal elements are two requests, one
// element read twice is one. Cost: five small calls, two when the feed is empty.
func (f *Frontier) DrainFeed(ctx context.Context, admit func(context.Context, []frontier.FeedItem) (late []int, err error)) (n int, err error) {
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

// feedElement is an element that is being handled.
type feedElement struct {
	number string // of the element, since the feed began
	text   string
	isLate bool // it was kept for later before
	late   bool // it is not handled now
	dead   string
}

// entry is the element as it is kept for later.
func (e *feedElement) entry() string { return e.number + " " + e.text }

// drain is DrainFeed under the lock.
func (f *Frontier) drain(ctx context.Context, key string, admit func(context.Context, []frontier.FeedItem) ([]int, error)) (int, error) {
	keys := []string{key, shard.FeedSeqKey(key), shard.FeedLateKey(key)}
	reply, err := f.client.Run(ctx, noShard, peekFeedScript, keys, feedBatch)
	if err != nil {
		return 0, feedError(key, err)
	}
	number, elements, err := parsePeek(reply)
	if err != nil || len(elements) == 0 {
		return 0, err
	}
	var items []frontier.FeedItem
	var of []int // elements that items are
	maker, refetches := frontier.NewMaker(f.layout), f.Settings().FeedRefetch
	maker.MaxURL = f.Settings().LongestURL()
	for i := range elements {
		e := &elements[i]
		item, err := maker.Element(e.text)
		if err != nil {
			e.dead = deadElement(e.text, err)
			continue
		}
		if item.WantsID() || refetches {
			item.Refetch = key + ":" + e.number
		}
		items, of = append(items, item), append(of, i)
	}
	if len(items) > 0 {
		late, err := admit(ctx, items)
		if err != nil {
			return 0, err
		}
		for _, i := range late {
			elements[of[i]].late = true
		}
	}
	if err := f.deadLetterElements(ctx, elements); err != nil {
		return 0, err
	}
	return f.take(ctx, keys, number, elements)
}

// parsePeek reads the reply of the script.
func parsePeek(reply any) (number string, elements []feedElement, err error) {
	list := shard.Array(reply)
	if len(list) < 2 {
		return "", nil, Malformed(noShard, "peek", reply)
	}
	number = shard.Text(list[0])
	first, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return "", nil, Malformed(noShard, "peek", reply)
	}
	fresh := int(shard.Int(list[1]))
	for i, v := range list[2:] {
		e := feedElement{text: shard.Text(v)}
		if i < fresh {
			e.number = strconv.FormatInt(first+int64(i), 10)
		} else {
			e.number, e.text, _ = strings.Cut(e.text, " ")
			e.isLate = true
		}
		elements = append(elements, e)
	}
	return number, elements, nil
}

// take removes elements from the feed, keeps for later those that are late, and
// returns how many were handled.
func (f *Frontier) take(ctx context.Context, keys []string, number string, elements []feedElement) (int, error) {
	args, handled := []any{number, 0}, 0
	for i := range elements {
		if e := &elements[i]; !e.isLate {
			args = append(args, e.text)
		}
	}
	args[1] = len(args) - 2
	for i := range elements {
		e := &elements[i]
		if !e.late {
			handled++
		}
		switch {
		case e.isLate && e.late:
			args = append(args, e.entry(), "retry")
		case e.isLate:
			args = append(args, e.entry(), "gone")
		case e.late:
			args = append(args, e.entry(), "new")
		}
	}
	took, err := f.client.Run(ctx, noShard, takeFeedScript, keys, args...)
	if err != nil {
		return 0, feedError(keys[0], err)
	}
	if shard.Int(took) < 0 {
		return 0, nil
	}
	return handled, nil
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

// deadLetterElements keeps the newest of the elements that cannot be read. Where their
// list takes none, for its master has no room or is silent, they are late. A
// repeat of the call may keep one twice.
func (f *Frontier) deadLetterElements(ctx context.Context, elements []feedElement) error {
	key := shard.DeadFeedKey(f.crawl)
	push := []any{"RPUSH", key}
	for i := range elements {
		if dead := elements[i].dead; dead != "" {
			push = append(push, dead)
		}
	}
	if len(push) == 2 {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, deadLetterWait)
	defer cancel()
	_, err := f.client.Do(short, noShard, key, push...)
	if err == nil {
		f.feedRefused.Add(int64(len(push) - 2))
		_, err = f.client.Do(short, noShard, key, "LTRIM", key, -maxDeadFeed, -1)
	}
	if isFull(err) || isLate(ctx, err) {
		for i := range elements {
			elements[i].late = elements[i].late || elements[i].dead != ""
		}
		return nil
	}
	return err
}

// FeedRefused is how many elements of the feed this process refused so far.
func (f *Frontier) FeedRefused() int64 { return f.feedRefused.Load() }

// DeadFeed is how many refused elements of the feed are kept.
func (f *Frontier) DeadFeed(ctx context.Context) (int64, error) {
	key := shard.DeadFeedKey(f.crawl)
	reply, err := f.client.Do(ctx, noShard, key, "LLEN", key)
	return shard.Int(reply), err
}

// DropFeed forgets up to most refused elements of the feed, the oldest first, and
// returns how many it forgot. Cost: a call for each 500.
func (f *Frontier) DropFeed(ctx context.Context, most int64) (n int64, err error) {
	key := shard.DeadFeedKey(f.crawl)
	for n < most {
		reply, err := f.client.Do(ctx, noShard, key, "LPOP", key, min(most-n, feedBatch))
		if err != nil {
			return n, err
		}
		gone := int64(len(shard.Array(reply)))
		if n += gone; gone < feedBatch {
			break
		}
	}
	return n, nil
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
