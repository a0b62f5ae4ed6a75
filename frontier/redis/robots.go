package redis

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"seine/shard"
)

// maxRobots bounds what Robots inflates, bytes.
const maxRobots = 4 << 20

// maxKept is how much of the shard's memory the rules of one origin may take,
// bytes. Rules that take more are rare, and one site may have any number of
// origins.
const maxKept = 16 << 10

// robotsVersion is the first byte of stored rules; deflate follows.
const robotsVersion = 1

// Robots returns the rules of an origin as SetRobots stored them, and how long
// they hold; ok is false when there are none or they are too old. rules is the
// caller's. Cost: two small calls.
func (f *Frontier) Robots(ctx context.Context, k int, origin string) (rules []byte, ttl time.Duration, ok bool, err error) {
	key := f.keys[k].Robots(origin)
	reply, err := f.client.Do(ctx, k, key, "GET", key)
	if err != nil || reply == nil {
		return nil, 0, false, err
	}
	left, err := f.client.Do(ctx, k, key, "PTTL", key)
	if err != nil {
		return nil, 0, false, err
	}
	ms := shard.Int(left)
	if ms <= 0 { // it ended between the calls
		return nil, 0, false, nil
	}
	stored := shard.Text(reply)
	if stored == "" || stored[0] != robotsVersion {
		return nil, 0, false, nil // of another version: fetched anew
	}
	r := flate.NewReader(bytes.NewReader([]byte(stored[1:])))
	rules, err = io.ReadAll(io.LimitReader(r, maxRobots))
	if err != nil {
		return nil, 0, false, &shard.Error{Shard: k, Op: "robots", Err: fmt.Errorf("frontier: rules of %s are broken: %w", origin, err)}
	}
	return rules, time.Duration(ms) * time.Millisecond, true, nil
}

// SetRobots stores the rules of an origin (scheme, host and port) for ttl, for
// the whole fleet. rules is not kept. Above maxmemory, or when they take more than
// 16 KB packed, nothing is stored, which is no error: each fetcher then asks the
// origin itself.
func (f *Frontier) SetRobots(ctx context.Context, k int, origin string, rules []byte, ttl time.Duration) error {
	if ttl < time.Millisecond {
		return nil
	}
	packed := bytes.NewBuffer([]byte{robotsVersion})
	w, err := flate.NewWriter(packed, flate.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := w.Write(rules); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if packed.Len() > maxKept {
		return nil
	}
	key := f.keys[k].Robots(origin)
	_, err = f.client.Do(ctx, k, key, "SET", key, packed.Bytes(), "PX", ttl.Milliseconds())
	if isFull(err) {
		return nil
	}
	return err
}

// isFull says whether a server refused a command for want of memory.
func isFull(err error) bool {
	return err != nil && strings.Contains(err.Error(), "OOM command not allowed")
}
