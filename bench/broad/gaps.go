package main

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"seine/bench/load"
)

// slack is by how much requests may come closer than the delay: a fetcher that
// has just taken its time may lose the processor before it writes.
const slack = 5 * time.Millisecond

// gaps is how politely sites were asked.
type gaps struct {
	short   int           // certainly shorter than the delay
	unknown int           // that cannot be judged
	least   time.Duration // as long as it may have been
}

// judge looks at all pairs of requests to one site. A request came at most late
// before it was seen, so a gap was at most the one that was seen and the lateness
// of its first request.
func judge(hits []hit, delay time.Duration) gaps {
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(a.site.Compare(b.site), a.at.Compare(b.at))
	})
	g := gaps{least: time.Hour}
	var last hit
	for _, h := range hits {
		if h.site == last.site {
			gap := h.at.Sub(last.at)
			switch {
			case last.late < 0:
				g.unknown++
			default:
				gap += last.late
				g.least = min(g.least, gap)
				if gap < delay-slack {
					g.short++
				}
			}
		}
		last = h
	}
	return g
}

// asked is how many requests came from one time to another, where one is divided
// over the time until the site's next: sites that are asked in step would else
// count once more or once less, by where the time begins. Hits are in the order of
// judge, and go on until after the end.
func asked(hits []hit, from, to time.Time) float64 {
	n := 0.0
	for i := 1; i < len(hits); i++ {
		a, b := hits[i-1], hits[i]
		if a.site != b.site || !a.at.Before(b.at) {
			continue
		}
		begin, end := a.at, b.at
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		n += max(0, end.Sub(begin).Seconds()/b.at.Sub(a.at).Seconds())
	}
	return n
}

const (
	probePath  = "/probe-"
	probeEvery = 20 * time.Millisecond
)

// probe keeps asking a server, with the time in the path, so that the
// server's log has how late it was.
type probe struct {
	end  chan struct{}
	done sync.WaitGroup
	mu   sync.Mutex
	err  error
}

// startProbe asks so many times at once: a server of several workers gives
// connections to any of these. Half of them connect anew each time.
func startProbe(server *load.Server, connections int) *probe {
	p := &probe{end: make(chan struct{})}
	for i := range connections {
		p.done.Go(func() { p.run(server, byte(i), i%2 == 0) })
	}
	return p
}

// probeAddress is where a probe asks, from 1 to probeTurn.
func probeAddress(number, turn byte) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 0, number, turn})
}

const probeTurn = 250

// probeAddresses are all of them.
func probeAddresses(probes int) (all []netip.Addr) {
	for i := range probes {
		for x := 1; x <= probeTurn; x++ {
			all = append(all, probeAddress(byte(i), byte(x)))
		}
	}
	return all
}

// run asks 127.0.number.x, where x changes for who connects anew: there are ports
// for some 470 connections a second to one address.
func (p *probe) run(server *load.Server, number byte, anew bool) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: anew, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for x := byte(1); ; {
		select {
		case <-p.end:
			return
		case <-tick.C:
		}
		answer, err := client.Get(fmt.Sprintf("%s://%s:%d%s%d", server.Scheme(), probeAddress(number, x), server.Port, probePath, time.Now().UnixNano()))
		if err != nil {
			p.mu.Lock()
			p.err = fmt.Errorf("probe: %w", err)
			p.mu.Unlock()
			return
		}
		io.Copy(io.Discard, answer.Body) //nolint:errcheck // else the connection is not kept
		answer.Body.Close()
		if anew {
			x = x%probeTurn + 1
		}
	}
}

func (p *probe) stop() error {
	close(p.end)
	p.done.Wait()
	return p.err
}

// way is how a request comes to its server: to a worker, by its process id, on a
// connection that is to be accepted first or on one that the worker knows. Requests
// of one way are seen in the order they came in, as the kernel hands them out.
type way struct {
	worker int
	first  bool
}

// lateness is the probes of each way.
type lateness map[way][]sighting

// sighting is one probe.
type sighting struct {
	at, sent time.Time // it was seen; it, or one seen before, was sent last
}

func (l lateness) add(w way, at time.Time, sent string) error {
	ns, err := strconv.ParseInt(sent, 10, 64)
	if err != nil {
		return fmt.Errorf("probe %q: %w", sent, err)
	}
	l[w] = append(l[w], sighting{at, time.Unix(0, ns)})
	return nil
}

func (l lateness) sort() {
	for _, seen := range l {
		slices.SortFunc(seen, func(a, b sighting) int { return a.at.Compare(b.at) })
		for i := 1; i < len(seen); i++ {
			if seen[i-1].sent.After(seen[i].sent) {
				seen[i].sent = seen[i-1].sent
			}
		}
	}
}

// near is how late a request may have been at most to be judged.
const near = 250 * time.Millisecond

// at is how late a request was at most that was seen at a time: a probe that was
// seen before it came before it, and was sent before; and a millisecond, the unit
// of the log. Without such a probe soon before it is not known, which is negative.
// Nor is it after the last one: then nobody asked any more.
func (l lateness) at(w way, at time.Time) time.Duration {
	seen := l[w]
	i, _ := slices.BinarySearchFunc(seen, at, func(s sighting, t time.Time) int { return s.at.Compare(t) })
	if i == 0 || i == len(seen) {
		return -1
	}
	late := at.Sub(seen[i-1].sent) + time.Millisecond
	if late > near {
		return -1
	}
	return late
}
