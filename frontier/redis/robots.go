package redis

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"

	"seine/frontier"
	"seine/shard"
)

const (
	// rulesMost is how many origins one call takes.
	rulesMost = 100
	// maxInflated bounds what Rules inflates of one origin, bytes.
	maxInflated = 4 << 20
	// maxOriginRules is how much of the shard's memory the rules of one origin may
	// take, bytes. Rules that take more are rare.
	maxOriginRules = 16 << 10
	// maxSiteRules is what those of all origins of a site may take, bytes: some have
	// a host name for each of a million users.
	maxSiteRules = 128 << 10
)

// The first byte of stored rules says what follows.
const (
	rulesDeflated = 1
	rulesPlain    = 2 // too short to be worth packing, as those of most sites are
	plainBelow    = 128
)

// Rules fills in what SetRules stored of each origin, Rules and TTL; TTL is 0
// where nothing is stored or it holds no longer. Cost: one script call for each
// 100 origins, some 2 us of the server each.
func (f *Frontier) Rules(ctx context.Context, k int, origins []frontier.OriginRules) error {
	for part := range slices.Chunk(origins, rulesMost) {
		keys, args := make([]string, len(part)), make([]any, len(part))
		for i := range part {
			keys[i], args[i] = f.keys[k].Rules(part[i].Site), part[i].Origin
		}
		raw, err := f.Call(ctx, k, rulesScript, keys, args)
		if err != nil {
			return err
		}
		reply := shard.Array(raw)
		if len(reply) != 2*len(part) {
			return Malformed(k, "rules", raw)
		}
		for i := range part {
			o := &part[i]
			o.TTL = time.Duration(shard.Int(reply[2*i])) * time.Millisecond
			if o.Rules, err = inflateRules(shard.Text(reply[2*i+1])); err != nil {
				return &shard.Error{Shard: k, Op: "rules", Err: fmt.Errorf("frontier: rules of %s are broken: %w", o.Origin, err)}
			}
			if o.Rules == nil {
				o.TTL = 0
			}
		}
	}
	return nil
}

// inflaters take 44 KB each.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// inflateRules returns nil for what another version stored: it is fetched anew.
func inflateRules(stored string) ([]byte, error) {
	if stored == "" {
		return nil, nil
	}
	switch stored[0] {
	case rulesPlain:
		return []byte(stored[1:]), nil
	case rulesDeflated:
		z := inflaters.Get().(io.Reader)
		defer inflaters.Put(z)
		if err := z.(flate.Resetter).Reset(strings.NewReader(stored[1:]), nil); err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(z, maxInflated))
	}
	return nil, nil
}

// SetRules stores the rules of each origin for its TTL, for the whole fleet; it
// keeps nothing of origins. Above maxmemory, or when the rules of an origin take
// more than 16 KB packed, they are not stored, which is no error: each fetcher
// then asks the origin itself. Cost: one script call for each 100 origins.
func (f *Frontier) SetRules(ctx context.Context, k int, origins []frontier.OriginRules) error {
	for part := range slices.Chunk(origins, rulesMost) {
		var keys []string
		args := []any{maxSiteRules}
		for i := range part {
			packed, err := deflateRules(part[i].Rules)
			if err != nil {
				return err
			}
			if part[i].TTL < time.Millisecond || len(packed) > maxOriginRules {
				continue
			}
			keys = append(keys, f.keys[k].Rules(part[i].Site))
			args = append(args, part[i].Origin, part[i].TTL.Milliseconds(), packed)
		}
		if len(keys) == 0 {
			continue
		}
		if _, err := f.Call(ctx, k, setRulesScript, keys, args); err != nil {
			return err
		}
	}
	return nil
}

// deflateRules packs without state, which takes no memory between calls.
func deflateRules(rules []byte) ([]byte, error) {
	if len(rules) < plainBelow {
		return append([]byte{rulesPlain}, rules...), nil
	}
	packed := bytes.NewBuffer([]byte{rulesDeflated})
	err := flate.StatelessDeflate(packed, rules, true, nil)
	return packed.Bytes(), err
}

// isFull reports whether a server refused a command for want of memory.
func isFull(err error) bool {
	return err != nil && strings.Contains(err.Error(), "OOM command not allowed")
}
