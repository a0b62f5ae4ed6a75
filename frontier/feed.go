package frontier

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seine/shard"
)

// The bounds of a feed.
const (
	feedBatch   = 500              // elements handled at once
	feedLock    = 10 * time.Second // how long a drainer that died keeps others away
	maxElement  = 64 << 10         // bytes of an element
	maxDepth    = 1 << 31          // of an element: its links must count on, not start at 0 again
	maxMeta     = 16 << 10         // bytes of its meta
	maxDeadFeed = 10_000           // bad elements kept
	deadText    = 1 << 10          // bytes kept of a bad element
)

// FeedItem is one readable element of a feed, ready to be admitted.
type FeedItem struct {
	Candidate        // seed standing; Again is set when the element or the crawl asks for it
	HasPriority bool // Priority was given; else the crawl's rules decide
}

// element is the JSON form of a feed's element. Unknown fields are let be, for
// other programs read the same lists.
type element struct {
	URL       string          `json:"url"`
	Priority  *uint8          `json:"priority"`
	Depth     uint32          `json:"depth"`
	Meta      json.RawMessage `json:"meta"`
	Again     bool            `json:"again"`
	Seed      *bool           `json:"seed"` // false: a link, that scope binds
	Redirects uint8           `json:"redirects"`
}

// AppendElement appends a candidate as a line of JSON, in the form of an element
// of a feed, so that a feed or a Seeder makes the same candidate of it, one that
// waits where memory is scarce; a request id is made anew. Credentials in its URL are kept, as in the
// queue; the line belongs where only its owner reads.
func AppendElement(dst []byte, c *Candidate) []byte {
	dst = appendString(append(dst, `{"v":1,"url":`...), c.URL)
	dst = append(dst, `,"priority":`...)
	dst = strconv.AppendUint(dst, uint64(c.Priority), 10)
	dst = append(dst, `,"depth":`...)
	dst = strconv.AppendUint(dst, uint64(c.Depth), 10)
	if !c.Seed {
		dst = append(dst, `,"seed":false`...)
	}
	if c.Redirects > 0 {
		dst = append(dst, `,"redirects":`...)
		dst = strconv.AppendUint(dst, uint64(c.Redirects), 10)
	}
	if c.Again != "" {
		dst = append(dst, `,"again":true`...)
	}
	if c.Meta != "" {
		dst = append(append(dst, `,"meta":`...), c.Meta...)
	}
	return append(dst, "}\n"...)
}

// appendString appends a URL, which is ASCII, as a JSON string.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

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
	return replyInt(reply), nil
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
func (f *Frontier) DrainFeed(ctx context.Context, admit func(context.Context, []FeedItem) error) (n int, err error) {
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
		return 0, nil
	}
	defer func() {
		_, unlockErr := f.client.Do(ctx, noShard, lock, "DEL", lock)
		err = errors.Join(err, unlockErr)
	}()
	return f.drain(ctx, key, admit)
}

// drain is DrainFeed under the lock.
func (f *Frontier) drain(ctx context.Context, key string, admit func(context.Context, []FeedItem) error) (int, error) {
	keys := []string{key, shard.FeedSeqKey(key)}
	reply, err := f.client.Run(ctx, noShard, peekScript, keys, feedBatch)
	if err != nil {
		return 0, feedError(key, err)
	}
	list, _ := reply.([]any)
	if len(list) < 2 {
		return 0, nil
	}
	number := replyInt(list[0])
	var items []FeedItem
	var bad []any
	maker, again := NewMaker(f.layout), f.Settings().FeedAgain
	for i, v := range list[1:] {
		text := replyText(v)
		item, err := readElement(maker, text)
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
	return int(max(0, replyInt(gone))), nil
}

// readElement reads a plain URL or a JSON object. Again is set when asked for.
func readElement(maker *Maker, text string) (FeedItem, error) {
	e := element{URL: strings.TrimSpace(text)}
	if len(text) > maxElement {
		return FeedItem{}, fmt.Errorf("longer than %d bytes", maxElement)
	}
	if strings.HasPrefix(e.URL, "{") {
		e = element{}
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return FeedItem{}, err
		}
	}
	if e.Priority != nil && *e.Priority > 3 {
		return FeedItem{}, fmt.Errorf("priority is %d, must be 0 to 3", *e.Priority)
	}
	if e.Depth > maxDepth {
		return FeedItem{}, fmt.Errorf("depth is %d, must be at most %d", e.Depth, maxDepth)
	}
	meta, err := CompactMeta(e.Meta)
	if err != nil {
		return FeedItem{}, err
	}
	c, err := maker.Make(e.URL)
	if err != nil {
		return FeedItem{}, err
	}
	item := FeedItem{Candidate: c}
	item.Waits = true
	item.Depth, item.Meta, item.Redirects = e.Depth, meta, e.Redirects
	if e.Seed != nil {
		item.Seed = *e.Seed
	}
	if e.Priority != nil {
		item.Priority, item.HasPriority = *e.Priority, true
	}
	if e.Again {
		item.Again = "again"
	}
	return item, nil
}

// CompactMeta checks that meta is a JSON object of at most 16 KB, or nothing,
// and returns it without blanks.
func CompactMeta(meta []byte) (string, error) {
	if len(meta) == 0 || string(meta) == "null" {
		return "", nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, meta); err != nil {
		return "", fmt.Errorf("meta: %w", err)
	}
	if b.Len() > maxMeta || b.Bytes()[0] != '{' {
		return "", fmt.Errorf("meta must be a JSON object of at most %d bytes", maxMeta)
	}
	return b.String(), nil
}

// deadElement is what is kept of an element that cannot be read: credentials
// are hidden, for the list is read by people and logs.
func deadElement(text string, why error) string {
	text = HideCredentials(text)
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
		out[i] = replyText(v)
	}
	return out, nil
}
