package site

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"seine/fetch"
	"seine/fetch/crawl/internal/work"
	"seine/fetch/robots"
)

const (
	// RulesTTL is how long rules of robots.txt hold at most.
	RulesTTL    = 24 * time.Hour
	minRulesTTL = 10 * time.Minute // however short the site wants it
)

// CacheTime is how long an answer may be kept by its Cache-Control, at most max.
func CacheTime(h fetch.Header, max time.Duration) time.Duration {
	for _, v := range h.Values("Cache-Control") {
		for _, d := range strings.Split(v, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
			switch {
			case strings.EqualFold(name, "no-store"), strings.EqualFold(name, "no-cache"):
				return minRulesTTL
			case strings.EqualFold(name, "max-age"):
				if s, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil {
					return min(max, time.Duration(s)*time.Second+minRulesTTL)
				}
			}
		}
	}
	return max
}

// DecodeRules undoes the codings of a robots.txt. Where they do not decode, the
// file was often never coded: it counts as it is if it looks like text. Else
// nothing is known of what it says, as when the server fails.
func DecodeRules(body []byte, h fetch.Header) ([]byte, error) {
	coding := strings.Join(h.Values("Content-Encoding"), ",")
	if coding == "" {
		return body, nil
	}
	text, _, err := fetch.Decode(coding, body, robots.MaxBytes)
	switch {
	case err == nil:
		return text, nil
	case strings.HasPrefix(fetch.Sniff(body), "text/"):
		return body, nil
	}
	return nil, fmt.Errorf("%w: its body does not decode as %s: %w", ErrRulesServer, work.Clip(coding, 60), err)
}

// ReadRules reads rules as a shard keeps them; nil when they are not ours.
func ReadRules(data []byte, agent string) *robots.Rules {
	rules, name, _, err := robots.LoadKept(data)
	if err != nil || name != agent {
		return nil
	}
	return rules
}

// rulesOverhead is what an origin takes beside its name and rules, bytes.
const rulesOverhead = 256

// RulesCache remembers rules by origin, in this process only; the shard keeps
// them for the fleet.
type RulesCache struct {
	mu      sync.Mutex
	origins map[string]rulesEntry
	bytes   int // they take
	most    int
}

type rulesEntry struct {
	rules   *robots.Rules
	agent   string // they were read for
	expires time.Time
	bytes   int
}

// mostRules is what the cache takes at most, bytes: some hundred thousand origins.
// Rules of others are asked of their shard, many at a time, which takes it 2 us each;
// most sites of a wide crawl are visited once, and would only fill the memory.
const mostRules = 64 << 20

// NewRulesCache returns an empty cache.
func NewRulesCache() *RulesCache {
	return &RulesCache{origins: make(map[string]rulesEntry), most: mostRules}
}

// Get returns the rules of origin for agent, nil when they are not there.
func (rc *RulesCache) Get(origin []byte, agent string) *robots.Rules {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	e, ok := rc.origins[string(origin)]
	if !ok || e.agent != agent || time.Now().After(e.expires) {
		return nil
	}
	return e.rules
}

// StoreRules remembers the rules of an origin, which were read for agent.
func (rc *RulesCache) StoreRules(origin, agent string, r *robots.Rules, ttl time.Duration) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	e := rulesEntry{r, agent, time.Now().Add(ttl), len(origin) + r.Bytes() + rulesOverhead}
	rc.drop(origin)
	for len(rc.origins) > 0 && rc.bytes+e.bytes > rc.most {
		rc.drop(rc.victim())
	}
	rc.origins[origin] = e
	rc.bytes += e.bytes
}

// victim is the largest of a few at random, as map order is: a site
// with huge rules for each of its many origins shall not drive out all others.
func (rc *RulesCache) victim() (origin string) {
	n, most := 0, 0
	for o, e := range rc.origins {
		if e.bytes > most {
			origin, most = o, e.bytes
		}
		if n++; n == 8 {
			break
		}
	}
	return origin
}

// drop forgets an origin. The lock is held.
func (rc *RulesCache) drop(origin string) {
	rc.bytes -= rc.origins[origin].bytes
	delete(rc.origins, origin)
}
