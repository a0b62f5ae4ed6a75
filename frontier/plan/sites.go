package plan

import (
	"math"
	"slices"
)

// sizes is how the pages of a crawl are spread over its sites.
type sizes struct {
	largest float64
	// above is how many sites have more than so many pages.
	above func(pages float64) float64
}

// newSizes spreads pages as they are asked for. A site has at least one page.
func newSizes(a *Asked) sizes {
	if len(a.Sizes) > 0 {
		sorted := slices.Sorted(slices.Values(a.Sizes))
		return sizes{sorted[len(sorted)-1], func(pages float64) float64 {
			i, _ := slices.BinarySearchFunc(sorted, pages, func(have, than float64) int {
				if have > than {
					return 1
				}
				return -1
			})
			return float64(len(sorted) - i)
		}}
	}
	if a.Exponent == 0 {
		each := a.Pages / a.Sites
		return sizes{each, func(pages float64) float64 {
			if pages < each {
				return a.Sites
			}
			return 0
		}}
	}
	spread := func(largest float64) sizes {
		return sizes{largest, func(pages float64) float64 {
			switch {
			case pages >= largest:
				return 0
			case pages < 1:
				return a.Sites
			}
			return min(a.Sites, math.Pow(largest/pages, 1/a.Exponent))
		}}
	}
	low, high := 1.0, a.Pages
	for range 100 {
		middle := math.Sqrt(low * high)
		if spread(middle).total() < a.Pages {
			low = middle
		} else {
			high = middle
		}
	}
	return spread(high)
}

// steps are levels from 0 up to the largest site, close where sites are many.
const steps = 4000

// each walks the levels: from one to the next, with the sites that have pages
// between them.
func (s sizes) each(f func(from, to, sites float64) (more bool)) {
	first := min(0.5, s.largest/2)
	from := 0.0
	for i := range steps + 1 {
		to := first * math.Pow(s.largest/first, float64(i)/steps)
		if i == steps {
			to = s.largest
		}
		if sites := (s.above(from) + s.above(math.Nextafter(to, 0))) / 2; !f(from, to, sites) {
			return
		}
		from = to
	}
}

func (s sizes) total() (pages float64) {
	s.each(func(from, to, sites float64) bool {
		pages += (to - from) * sites
		return true
	})
	return pages
}

// point is when a share of the pages is done.
type point struct {
	Share   float64 `json:"share"`
	Seconds float64 `json:"seconds"`
}

// timing is how a crawl goes on.
type timing struct {
	seconds float64
	curve   []point
	peak    float64 // pages a second at most
	// bound is the part of the time in which machines hold it up, as against the
	// sites' delays.
	machines float64
	pace     []stretch
}

// stretch is a part of a crawl: pages, and pages a second.
type stretch struct{ pages, rate float64 }

// take times the crawl with sites that are asked every so many seconds, by
// machines that do so many pages a second.
func (s sizes) take(interval, rate float64) timing {
	var t timing
	total, done := s.total(), 0.0
	shares := []float64{0.5, 0.9, 0.99, 1}
	s.each(func(from, to, sites float64) bool {
		politely, busy := (to-from)*interval, (to-from)*sites/rate
		spent := max(politely, busy)
		if busy > politely {
			t.machines += spent
		}
		pages := (to - from) * sites
		if spent > 0 {
			t.peak = max(t.peak, pages/spent)
			t.pace = append(t.pace, stretch{pages, pages / spent})
		}
		for len(t.curve) < len(shares) && pages > 0 && done+pages >= shares[len(t.curve)]*total*(1-1e-9) {
			share := shares[len(t.curve)]
			t.curve = append(t.curve, point{share, t.seconds + spent*min(1, (share*total-done)/pages)})
		}
		done += pages
		t.seconds += spent
		return true
	})
	return t
}

// rateFor is the least rate of machines that ends the crawl in time, and how
// long it takes at least.
func (s sizes) rateFor(interval, seconds float64) (rate float64, possible bool) {
	low, high := s.total()/seconds*0.99, s.total()/seconds*1.01
	if interval == 0 {
		return s.total() / seconds, true
	}
	if s.take(interval, math.Inf(1)).seconds > seconds {
		return 0, false
	}
	high = max(high, s.above(0)/interval)
	for range 100 {
		middle := (low + high) / 2
		if s.take(interval, middle).seconds > seconds {
			low = middle
		} else {
			high = middle
		}
	}
	return high, true
}
