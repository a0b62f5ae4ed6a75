package bloom

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	redisbloom "github.com/RedisBloom/redisbloom-go"
	"github.com/gomodule/redigo/redis"

	"seine/frontier/canon"
)

// Probe is how many of N random fingerprints a filter held for known. Each hit is
// a false positive: that one of 2^128 was really admitted can be left out.
type Probe struct {
	N    int64 `json:"n"`
	Hits int64 `json:"hits"`
}

// probeBatch is the number of fingerprints in a call, about 0.15 ms of the
// server's time.
const probeBatch = 500

// Probe asks the filter that has these keys for n random fingerprints. It costs
// the server about 0.3 us each and key.
func (f *Filters) Probe(ctx context.Context, k, n int, keys ...string) (Probe, error) {
	_, p, err := f.Measure(ctx, k, n, keys...)
	return p, err
}

// Measure is Info and then Probe.
func (f *Filters) Measure(ctx context.Context, k, n int, keys ...string) (Info, Probe, error) {
	var p Probe
	info, err := f.Info(ctx, k, keys...)
	if err != nil { // a missing filter would say no to all
		return info, p, err
	}
	items := make([]string, 0, probeBatch)
	var buf [16]byte
	for p.N < int64(n) {
		items = items[:0]
		for range min(probeBatch, int64(n)-p.N) {
			fp := canon.Fingerprint{Site: rand.Uint64(), Key: rand.Uint64()}
			items = append(items, string(fp.Append(buf[:0])))
		}
		asked := int64(len(items))
		for _, key := range keys {
			if items, err = f.unknown(ctx, k, key, items); err != nil {
				return info, p, err
			}
		}
		p = p.Add(Probe{N: asked, Hits: asked - int64(len(items))})
	}
	return info, p, nil
}

// unknown leaves those of the fingerprints that the key does not hold for known.
func (f *Filters) unknown(ctx context.Context, k int, key string, items []string) ([]string, error) {
	var found []int64
	args := make([]any, 0, 1+len(items))
	args = append(args, key)
	for _, item := range items {
		args = append(args, item)
	}
	err := f.on(ctx, k, "BF.MEXISTS", key, func(c *redisbloom.Client) (err error) {
		found, err = redis.Int64s(do(ctx, c, "BF.MEXISTS", args...))
		if err == nil && len(found) != len(items) {
			err = fmt.Errorf("bloom: %d answers to %d fingerprints", len(found), len(items))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	left := items[:0]
	for i, item := range items {
		if found[i] == 0 {
			left = append(left, item)
		}
	}
	return left, nil
}

// Add counts two probes together.
func (p Probe) Add(q Probe) Probe { return Probe{N: p.N + q.N, Hits: p.Hits + q.Hits} }

// Rate is the measured rate of false positives.
func (p Probe) Rate() float64 { return float64(p.Hits) / float64(max(p.N, 1)) }

// Interval holds the true rate with a confidence of 95% (Clopper and Pearson,
// Biometrika 26, 1934, which errs on the safe side even for a handful of
// hits). Without a hit it is one-sided, from 0.
func (p Probe) Interval() (low, high float64) {
	switch {
	case p.N == 0:
		return 0, 1
	case p.Hits == 0:
		return 0, -math.Expm1(math.Log(0.05) / float64(p.N))
	case p.Hits >= p.N:
		return math.Pow(0.025, 1/float64(p.N)), 1
	}
	return quantile(p.Hits-1, p.N, 0.975), quantile(p.Hits, p.N, 0.025)
}

// Exceeds says that the filter errs more often than rate, beyond reasonable
// doubt.
func (p Probe) Exceeds(rate float64) bool {
	low, _ := p.Interval()
	return low > rate
}

func (p Probe) String() string {
	low, high := p.Interval()
	switch {
	case p.N == 0:
		return "not measured"
	case p.Hits == 0:
		return "below " + short(high)
	}
	return fmt.Sprintf("%s (95%%: %s .. %s)", short(p.Rate()), short(low), short(high))
}

func short(f float64) string { return strconv.FormatFloat(f, 'g', 2, 64) }

// quantile is the rate at which at most h of n tries hit with probability
// want. The probability falls as the rate rises; the search halves the
// logarithm's range.
func quantile(h, n int64, want float64) float64 {
	low, high := -60.0, 0.0
	for range 80 {
		mid := (low + high) / 2
		if atMost(h, n, math.Exp(mid)) > want {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp((low + high) / 2)
}

// atMost is the probability of at most h hits in n tries of rate p, summed
// from h down until the terms no longer count.
func atMost(h, n int64, p float64) float64 {
	if p >= 1 {
		return 0
	}
	hits, tries := float64(h), float64(n)
	lg := func(x float64) float64 { v, _ := math.Lgamma(x + 1); return v }
	exponent := lg(tries) - lg(hits) - lg(tries-hits) + hits*math.Log(p) + (tries-hits)*math.Log1p(-p)
	if exponent < -700 { // far out: all or nothing, and soon too small for a float64 to hold all its digits
		if hits > tries*p {
			return 1
		}
		return 0
	}
	term := math.Exp(exponent)
	sum := term
	for i := hits; i > 0; i-- {
		term *= i / (tries - i + 1) * (1 - p) / p
		sum += term
		if i < tries*p && term < sum*1e-16 {
			break
		}
	}
	return min(sum, 1)
}
