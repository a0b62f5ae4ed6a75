package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
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

// probe asks a server again and again, each time saying when, so that the
// server's log tells how late it was.
type probe struct {
	end  chan struct{}
	done sync.WaitGroup
	mu   sync.Mutex
	err  error
}

// startProbe uses so many connections: a server of several workers gives them to
// any of these.
func startProbe(port, connections int) *probe {
	p := &probe{end: make(chan struct{})}
	for range connections {
		p.done.Go(func() { p.run(port) })
	}
	return p
}

func (p *probe) run(port int) {
	client := http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.end:
			return
		case <-tick.C:
		}
		answer, err := client.Get(fmt.Sprintf("http://%s:%d%s%d", netip.AddrFrom4([4]byte{127, 0, 0, 1}), port, probePath, time.Now().UnixNano()))
		if err != nil {
			p.mu.Lock()
			p.err = fmt.Errorf("probe: %w", err)
			p.mu.Unlock()
			return
		}
		answer.Body.Close()
	}
}

func (p *probe) stop() error {
	close(p.end)
	p.done.Wait()
	return p.err
}

// lateness is how late each worker of a server was, by its process id.
type lateness map[int][]lag

// lag is one probe: sent at, seen so much later.
type lag struct {
	at   time.Time // it was seen
	late time.Duration
}

func (l lateness) add(worker int, at time.Time, sent string) error {
	ns, err := strconv.ParseInt(sent, 10, 64)
	if err != nil {
		return fmt.Errorf("probe %q: %w", sent, err)
	}
	l[worker] = append(l[worker], lag{at, max(0, at.Sub(time.Unix(0, ns)))})
	return nil
}

func (l lateness) sort() {
	for _, lags := range l {
		slices.SortFunc(lags, func(a, b lag) int { return a.at.Compare(b.at) })
	}
}

// near is how far a probe may be from a request that it speaks for.
const near = 5 * probeEvery

// at is how late a worker was at most about a time: as late as the probes on
// both sides, and a millisecond, the unit of the log. Without them it is not
// known, which is negative.
func (l lateness) at(worker int, at time.Time) time.Duration {
	lags := l[worker]
	i, _ := slices.BinarySearchFunc(lags, at, func(a lag, t time.Time) int { return a.at.Compare(t) })
	if i == 0 || i == len(lags) {
		return -1
	}
	before, after := lags[i-1], lags[i]
	if at.Sub(before.at) > near+before.late || after.at.Sub(at) > near+after.late {
		return -1
	}
	return max(before.late, after.late) + time.Millisecond
}
