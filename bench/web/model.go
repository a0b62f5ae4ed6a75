package web

import (
	"bytes"
	"strconv"
	"strings"
)

// kind is what stands behind a URL.
type kind uint8

const (
	kindNone     kind = iota
	kindPage          // a page of the tree
	kindRedirect      // leads to a page, in step more redirects
	kindLoop          // leads to another that leads back
	kindGone          // 404 or 410
	kindSoft          // 200, saying that nothing is there
	kindSecret        // behind a nofollow link
	kindBusy          // 429 or 503 for some requests, then a page
	kindBroken        // 500 for ever
	kindSlow          // answers late
	kindDrip          // a byte a second, for ever
	kindReset         // resets the connection
	kindCalendar      // endless, step is the month
	kindSession       // every answer makes new links
	kindEcho          // longer queries without end
	kindDeep          // any path, deeper without end
	kindHops          // redirects without end, step is the hop
	kindImage         // linked as an image only
	kinds
)

// names begin the path of each kind but pages: /name/number or /name/number/step.
var names = [kinds]string{kindRedirect: "r", kindLoop: "loop", kindGone: "gone", kindSoft: "soft", kindSecret: "secret",
	kindBusy: "busy", kindBroken: "broken", kindSlow: "slow", kindDrip: "drip", kindReset: "reset", kindCalendar: "calendar",
	kindSession: "session", kindEcho: "search", kindDeep: "any", kindHops: "hops", kindImage: "img"}

// stepped are the kinds whose path has a step.
var stepped = [kinds]bool{kindRedirect: true, kindLoop: true, kindCalendar: true, kindHops: true}

// roll hashes seed, site, page and a purpose (SplitMix64's finish).
func (w *Web) roll(site, n int, purpose uint64) uint64 {
	return mix(mix(w.cfg.Seed+uint64(site)*0x9e3779b97f4a7c15+purpose) + uint64(n)*0xd1342543de82ef95)
}

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// The purposes of rolls.
const (
	forTraits = iota + 1
	forPath
	forLinks
	forSite
	forText
	forExtras
)

// dice is a small sequence of random numbers.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	return mix(uint64(*d))
}

// below returns a number below n.
func (d *dice) below(n int) int { return int(d.next() >> 33 % uint64(n)) }

// chance is true in permille of all cases.
func (d *dice) chance(permille int) bool { return d.below(1000) < permille }

// traits are what page n is like.
type traits struct {
	private  bool // its path is one that robots.txt files forbid
	hops     int  // redirects before it, 0 to 3
	nofollow bool // says so in a meta tag
	noindex  bool
	tiny     bool // an empty body
	huge     int  // bytes added
	charset  int  // into w.sets, 0 is UTF-8
	coding   int  // of the body, into codings
}

// traits of a page. The root is plain.
func (w *Web) traits(site, n int) traits {
	var t traits
	if n == 0 {
		return t
	}
	d := dice(w.roll(site, n, forTraits))
	// Every die is cast whatever the features, so that a feature changes only its own pages.
	private, hops, hopCount := d.chance(40), d.chance(60), d.below(3)+1
	nofollow, noindex := d.chance(20), d.chance(40)
	tiny, huge, over := d.chance(10), d.chance(4), d.chance(250)
	set, coding := d.below(len(w.sets)), d.below(len(codings))
	f := w.cfg.Features
	t.private = f&Robots != 0 && private
	if f&Redirects != 0 && hops && !t.private {
		t.hops = hopCount
	}
	t.nofollow, t.noindex = f&Nofollow != 0 && nofollow, f&Nofollow != 0 && noindex
	if f&Sizes != 0 {
		t.tiny = tiny
		if huge && !tiny {
			t.huge = 2 << 20
			if over {
				t.huge = 12 << 20
			}
		}
	}
	if f&Charsets != 0 {
		t.charset = set
	}
	if f&Encodings != 0 {
		t.coding = coding
	}
	return t
}

// extras are the kinds of special URLs that page n links to; each carries the
// page's number.
func (w *Web) extras(site, n int, yield func(kind)) {
	d := dice(w.roll(site, n, forExtras))
	for _, e := range [...]struct {
		kind     kind
		feature  Features
		permille int
	}{
		{kindLoop, Redirects, 8}, {kindGone, Missing, 40}, {kindSoft, Missing, 20}, {kindSecret, Nofollow, 80},
		{kindBusy, Failures, 15}, {kindBroken, Failures, 4}, {kindSlow, Slow, 10}, {kindDrip, Slow, 2}, {kindReset, Slow, 4},
		{kindCalendar, Traps, 6}, {kindSession, Traps, 6}, {kindEcho, Traps, 6}, {kindDeep, Traps, 6}, {kindHops, Traps, 6},
		{kindImage, AllFeatures, 300},
	} {
		if d.chance(e.permille) && w.cfg.Features&e.feature != 0 {
			yield(e.kind)
		}
	}
}

// parent of page n > 0 in the tree.
func (w *Web) parent(n int) int { return (n - 1) / w.fanout }

// depth of page n: links from the root.
func (w *Web) depth(n int) int {
	d := 0
	for ; n > 0; n = w.parent(n) {
		d++
	}
	return d
}

// reachable reports whether a right crawl comes to page n from its root.
func (w *Web) reachable(site, n int, v view) bool {
	if w.cfg.Features&(Robots|Nofollow|Sizes) == 0 {
		return true
	}
	forbids := !v.anyRobots && robotsOf(w, site).forbids()
	for a := n; a > 0; a = w.parent(a) {
		t := w.traits(site, a)
		if t.private && forbids {
			return false
		}
		if a != n && (t.tiny || (t.nofollow && !v.anyFollow)) {
			return false
		}
	}
	return true
}

// view is how obedient a crawl is.
type view struct{ anyRobots, anyFollow bool }

var words = strings.Fields("news shop blog docs about team forum media archive guide tools data photos events travel music sport science health books")

// appendPath appends the canonical path of a URL, with its query.
func (w *Web) appendPath(dst []byte, site int, k kind, n, step int) []byte {
	if k != kindPage {
		dst = append(append(append(dst, '/'), names[k]...), '/')
		dst = strconv.AppendInt(dst, int64(n), 10)
		if stepped[k] {
			dst = strconv.AppendInt(append(dst, '/'), int64(step), 10)
		}
		return dst
	}
	if n == 0 {
		return append(dst, '/')
	}
	num := func(before, after string) {
		dst = append(dst, before...)
		dst = strconv.AppendInt(dst, int64(n), 10)
		dst = append(dst, after...)
	}
	if w.cfg.Features&Robots != 0 && w.traits(site, n).private {
		num("/private/p", ".html")
		return dst
	}
	d := dice(w.roll(site, n, forPath))
	start := len(dst)
	dst = append(append(dst, '/'), words[d.below(len(words))]...)
	if w.cfg.URLBytes > 0 {
		dst = w.appendSlug(dst, &d, start)
	}
	switch d.below(5) {
	case 0, 1:
		dst = append(append(dst, '/'), words[d.below(len(words))]...)
		num("/p", ".html")
	case 2:
		num("/item?id=", "")
	case 3:
		num("/p", "/")
	case 4:
		dst = append(append(dst, '/'), words[d.below(len(words))]...)
		num("/list?sort=name&id=", "")
	}
	return dst
}

// appendSlug makes the path that begins at start so long that URLs come to
// URLBytes on average, a quarter more or less.
func (w *Web) appendSlug(dst []byte, d *dice, start int) []byte {
	const others = len("http://s0"+domain) + len("/science/p1234.html")
	want := w.cfg.URLBytes*3/4 + d.below(w.cfg.URLBytes/2+1) - others
	sep := byte('/')
	for len(dst)-start < want {
		dst = append(append(dst, sep), words[d.below(len(words))]...)
		sep = '-'
	}
	return dst
}

// appendURL appends the canonical URL.
func (w *Web) appendURL(dst []byte, site int, k kind, n, step int) []byte {
	dst = append(append(dst, w.cfg.Scheme...), "://s"...)
	dst = append(strconv.AppendInt(dst, int64(site), 10), domain...)
	return w.appendPath(dst, site, k, n, step)
}

// resolve finds what stands behind a path with query, in normal form.
func (w *Web) resolve(site int, path []byte) (k kind, n, step int) {
	if string(path) == "/" {
		return kindPage, 0, 0
	}
	if len(path) < 2 || path[0] != '/' {
		return kindNone, 0, 0
	}
	first, rest, _ := bytes.Cut(path[1:], []byte("/"))
	for c := kindRedirect; c < kinds; c++ {
		if string(first) != names[c] {
			continue
		}
		rest, _, _ = bytes.Cut(rest, []byte("?")) // only traps are asked with one
		num, tail, more := bytes.Cut(rest, []byte("/"))
		if n = digits(num); n < 0 || n >= w.sizes[site] || (more && !stepped[c] && c != kindDeep) {
			return kindNone, 0, 0
		}
		if stepped[c] {
			if step = digits(tail); step < 0 {
				return kindNone, 0, 0
			}
		}
		return c, n, step
	}
	if n = pageNumber(path); n <= 0 || n >= w.sizes[site] {
		return kindNone, 0, 0
	}
	var mem [128]byte
	if !bytes.Equal(w.appendPath(mem[:0], site, kindPage, n, 0), path) {
		return kindNone, 0, 0
	}
	return kindPage, n, 0
}

// pageNumber finds the number in the path of a page.
func pageNumber(path []byte) int {
	if i := bytes.LastIndex(path, []byte("id=")); i >= 0 {
		return digits(path[i+3:])
	}
	i := bytes.LastIndex(path, []byte("/p"))
	if i < 0 {
		return -1
	}
	rest := bytes.TrimSuffix(bytes.TrimSuffix(path[i+2:], []byte(".html")), []byte("/"))
	return digits(rest)
}

// appendNormal appends path with the escapes of unreserved characters decoded
// and the others in upper case: the spelling by which it is known.
func appendNormal(dst []byte, path string) []byte {
	for i := 0; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			if v, err := strconv.ParseUint(path[i+1:i+3], 16, 8); err == nil {
				c := byte(v)
				if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
					dst = append(dst, c)
				} else {
					dst = append(append(dst, '%'), strings.ToUpper(path[i+1:i+3])...)
				}
				i += 2
				continue
			}
		}
		dst = append(dst, path[i])
	}
	return dst
}
