//go:build linux

package scale

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"

	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/frontiertest"
)

// exponent: the r-th largest site has r^-exponent of the URLs of the largest.
const exponent = 0.8

// firstSite is the address of the largest site, firstLone that of the sites that a
// measurement alone uses. Both have room for 30 million.
var firstSite, firstLone = addressOf(127, 1), addressOf(127, 128)

func addressOf(a, b byte) uint32 { return uint32(a)<<24 | uint32(b)<<16 }

func nameOf(addr uint32) string {
	return netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}).String()
}

// part is the sites of one shard, the largest first. It is for one goroutine at a
// time.
type part struct {
	f     frontier.Frontier
	shard int
	port  string // ":80" and the like

	names  []string
	hashes []uint64  // of the names
	upTo   []float64 // share of the URLs that sites up to this one have together
	next   []uint32  // URLs made of each
	gone   []uint32  // of these, settled
	places map[string]int

	random uint64
	text   []byte
	batch  []frontier.Candidate
	ends   []int

	known, settled int64
	wrong          int64 // new URLs that were taken for known
}

// partsOf divides the sites among the shards of a crawl.
func partsOf(f frontier.Frontier, sites, port int) []*part {
	parts := make([]*part, f.Shards())
	for k := range parts {
		parts[k] = &part{f: f, shard: k, port: ":" + strconv.Itoa(port), random: uint64(k), places: make(map[string]int)}
	}
	for rank := range sites {
		name := nameOf(firstSite + uint32(rank))
		print := canon.FingerprintOf([]byte(name), nil)
		p := parts[f.Of(print)]
		p.places[name] = len(p.names)
		p.names, p.hashes = append(p.names, name), append(p.hashes, print.Site)
		before := 0.0
		if n := len(p.upTo); n > 0 {
			before = p.upTo[n-1]
		}
		p.upTo = append(p.upTo, before+math.Pow(float64(rank+1), -exponent))
	}
	for _, p := range parts {
		p.next, p.gone = make([]uint32, len(p.names)), make([]uint32, len(p.names))
	}
	return parts
}

// number is a random one: splitmix64.
func (p *part) number() uint64 {
	p.random += 0x9e3779b97f4a7c15
	return mix(p.random)
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// pick is a random site, large ones more often.
func (p *part) pick() int {
	all := p.upTo[len(p.upTo)-1]
	i, _ := slices.BinarySearch(p.upTo, all*float64(p.number()>>11)/(1<<53))
	return min(i, len(p.upTo)-1)
}

// start begins another batch.
func (p *part) start() { p.text, p.batch, p.ends = p.text[:0], p.batch[:0], p.ends[:0] }

// add adds the next n URLs of a site to the batch, about 92 bytes each, in the order in
// which a crawl meets them: pages of one section together.
func (p *part) add(site, n int) {
	for range n {
		p.write(p.names[site], p.hashes[site], p.next[site])
		p.next[site]++
	}
}

// write adds the i-th URL of a site.
func (p *part) write(name string, hash uint64, i uint32) {
	section := mix(hash + uint64(i/12))
	page := mix(section + uint64(i))
	begin := len(p.text)
	t := append(append(append(p.text, "http://"...), name...), p.port...)
	for b := range 7 {
		mark, from := byte('/'), section>>(8*b)
		if b >= 2 {
			from = page >> (8 * b)
		}
		if b > 2 {
			mark = '-'
		}
		t = append(append(t, mark), frontiertest.Words[from%256*uint64(len(frontiertest.Words))/256]...)
	}
	t = append(strconv.AppendUint(append(t, '-'), uint64(100_000+7*i), 10), ".html"...)
	p.text = t
	print := canon.FingerprintOf(nil, t[begin:])
	print.Site = hash
	p.ends = append(p.ends, len(t))
	p.batch = append(p.batch, frontier.Candidate{Site: name, Fingerprint: print, Priority: 2, Depth: 2 + i/5000})
}

// made is the batch: its URLs are parts of one string.
func (p *part) made() []frontier.Candidate {
	all, from := string(p.text), 0
	for i, end := range p.ends {
		p.batch[i].URL, from = all[from:end], end
	}
	return p.batch
}

// sound holds the URLs of a part against what the program makes of them.
func (p *part) sound() error {
	p.start()
	p.write(p.names[0], p.hashes[0], 12_345_678)
	have := p.made()[0]
	want, err := frontier.NewMaker(p.f.Layout()).Make(have.URL)
	if err != nil {
		return err
	}
	if want.URL != have.URL || want.Site != have.Site || want.Fingerprint != have.Fingerprint {
		return fmt.Errorf("%+v is not %+v", have, want)
	}
	return nil
}
