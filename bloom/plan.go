package bloom

import (
	"errors"
	"fmt"
	"math"

	"seine/frontier/canon"
	"seine/shard"
)

// MaxKeyBytes is the size that no key of a filter grows past. A key moves between
// masters as a whole: one of 256 MB blocks both for seconds, and Redis refuses one
// of more than 512 MB unless its settings are raised.
const MaxKeyBytes = 256_000_000

// Limits of one filter as planned.
const (
	maxURLs = 64_000_000
	minURLs = 1000

	// evenBytes is the size from which on a filter grows by layers of its own
	// size; smaller ones double, so that a crawl that was planned far too small
	// does not end up with hundreds of layers to probe.
	evenBytes = 64_000_000
)

// tightening is the share of the error rate that RedisBloom gives to the
// first layer; each further layer gets half of the one before.
const tightening = 0.5

// Plan says how the filters of a crawl are laid out. It follows from three
// numbers of the crawl's layout alone: URLs, error rate and shards.
type Plan struct {
	Shards    int
	Filters   int     // in each shard
	Capacity  int64   // URLs that each filter is planned for
	ErrorRate float64 // false positives a probe, growth included
	Expansion int     // how many times as large as the last a new layer is; 0: it must not grow
}

// NewPlan lays out the filters for a number of URLs over all shards. The rate
// is from 1e-12 to 0.1.
func NewPlan(urls int64, rate float64, shards int) (Plan, error) {
	var errs []error
	if urls < 1 || urls > 1<<50 {
		errs = append(errs, fmt.Errorf("bloom: planned for %d URLs, must be 1 .. 2^50", urls))
	}
	if !(rate >= 1e-12 && rate <= 0.1) {
		errs = append(errs, fmt.Errorf("bloom: error rate %v, must be 1e-12 .. 0.1", rate))
	}
	if shards < 1 {
		errs = append(errs, fmt.Errorf("bloom: %d shards, must be 1 or more", shards))
	}
	if err := errors.Join(errs...); err != nil {
		return Plan{}, err
	}
	perShard := (urls + int64(shards) - 1) / int64(shards)
	most := mostURLs(rate)
	filters := (perShard + most - 1) / most
	p := Plan{Shards: shards, Filters: int(filters), Capacity: max((perShard+filters-1)/filters, minURLs), ErrorRate: rate}
	return p.growing(), nil
}

// mostURLs is how many URLs the first layer of a filter may be planned for.
func mostURLs(rate float64) int64 {
	return min(maxURLs, int64(MaxKeyBytes*8/bitsPerURL(rate*tightening)))
}

// growing chooses the size of further layers.
func (p Plan) growing() Plan {
	if p.Expansion = 2; p.FilterBytes() >= evenBytes {
		p.Expansion = 1
	}
	return p
}

// PerContent is how many items the content of a page is in a filter: its digest, and
// that with the URL that brought it.
const PerContent = 2

// Contents lays out the filter of contents, one a shard, for as many pages as this
// plan has URLs. Where they do not fit in the first key it gets further ones as
// they come.
func (p Plan) Contents() Plan {
	items := PerContent * p.Capacity * int64(p.Filters)
	return Plan{Shards: p.Shards, Filters: 1, Capacity: min(items, mostURLs(p.ErrorRate)), ErrorRate: p.ErrorRate}.growing()
}

// Filter says which filter of its shard a fingerprint belongs to:
// multiply-shift on the second half, which the choice of shard does not use.
func (p Plan) Filter(f canon.Fingerprint) int { return shard.FilterOf(f, p.Filters) }

// URLs is what the crawl is planned for: NewPlan makes the same plan of it.
func (p Plan) URLs() int64 { return p.Capacity * int64(p.Filters) * int64(p.Shards) }

// flags are those that make a crawl of the plan.
func (p Plan) flags() string {
	return fmt.Sprintf("--shards %d --plan-urls %d --error-rate %g", p.Shards, p.URLs(), p.ErrorRate)
}

// IdealBits is log2(1/rate), the least that any structure of this rate needs for
// a URL; a Bloom filter needs 1.44 times that.
func (p Plan) IdealBits() float64 { return -math.Log2(p.ErrorRate) }

// FilterBytes is the memory of one filter as planned.
func (p Plan) FilterBytes() int64 { return p.bytes(1) }

// Bytes is the memory of all filters as planned, replicas not counted.
func (p Plan) Bytes() int64 { return p.FilterBytes() * int64(p.Filters) * int64(p.Shards) }

// Room is how many URLs the first key of a filter may get: those of its layers
// that fit in most bytes. The first layer counts as one that does.
func (p Plan) Room(most int64) int64 {
	layers := 1
	for p.bytes(layers+1) <= most {
		layers++
	}
	return p.capacity(layers)
}

// Further is the plan of the i-th further key, from 1, of a filter whose first key
// has so many layers. It is one layer more of that filter: its rate is that of the
// next layer, so that the promised rate holds for all keys together. It holds as
// many URLs as the first key if that fits in most bytes.
func (p Plan) Further(layers, i int, most int64) Plan {
	rate := p.ErrorRate * math.Pow(tightening, float64(layers+i))
	room := min(p.Room(most), int64(float64(most)*8/bitsPerURL(rate)))
	return Plan{Shards: p.Shards, Filters: p.Filters, Capacity: max(room, minURLs), ErrorRate: rate}
}

// bytes is the size of a filter that has grown to so many layers.
func (p Plan) bytes(layers int) int64 {
	total, capacity, rate := 0.0, float64(p.Capacity), p.ErrorRate*tightening
	if p.Expansion == 0 { // RedisBloom keeps nothing back for further layers
		rate = p.ErrorRate
	}
	for range layers {
		total += capacity * bitsPerURL(rate) / 8
		capacity, rate = capacity*float64(p.Expansion), rate*tightening
	}
	return int64(total)
}

// capacity is what a filter that has grown to so many layers holds.
func (p Plan) capacity(layers int) int64 {
	total, layer := int64(0), p.Capacity
	for range layers {
		total += layer
		layer *= int64(p.Expansion)
	}
	return total
}

// bitsPerURL is the size of a Bloom filter of this rate, -ln(rate) / ln(2)^2.
func bitsPerURL(rate float64) float64 { return -math.Log(rate) / (math.Ln2 * math.Ln2) }
