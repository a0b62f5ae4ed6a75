package watch

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"seine/fetch"
	"seine/frontier"
)

// What bounds a crawler's rate, as seine_crawl_limited_by names it.
const (
	LimitEmpty       = "empty"
	LimitPoliteness  = "politeness"
	LimitUnreachable = "unreachable" // no site answers
	LimitRefused     = "refused"     // all answers are refusals: 429, 503 and the like
	LimitWalls       = "walls"       // all answers are walls, or the fleet backs off from all sites for them
	LimitWorkers     = "workers"     // all of --concurrency are busy
	LimitNetwork     = "network"     // answers are waited for
	LimitDNS         = "dns"
	LimitFiles       = fetch.ClassFiles
	LimitPorts       = fetch.ClassPorts
	LimitBind        = fetch.ClassBind // this machine lacks the addresses that requests are to leave from
	LimitAddress     = "address"       // hosts wait for their share of an address
	LimitCPU         = "cpu"
	LimitRedis       = "redis"
	LimitReplica     = frontier.LimitReplica
	LimitMemory      = "memory" // there is no memory for more leased sites
	LimitSink        = "sink"
	LimitHandler     = "handler" // workers wait for the Handler
)

// Limits are all of them.
var Limits = []string{LimitEmpty, LimitPoliteness, LimitAddress, LimitUnreachable, LimitRefused, LimitWalls, LimitWorkers, LimitNetwork, LimitDNS, LimitFiles, LimitPorts, LimitBind, LimitCPU, LimitRedis, LimitReplica, LimitMemory, LimitSink, LimitHandler}

// Sight is how a crawler looks at one moment.
type Sight struct {
	Workers, Busy     int
	Handlers, Hanging int    // calls of the Handler, and those that take very long
	Lack              string // what this machine lacks for fetching, a class of fetch, or ""
	SinkStalls        bool   // pages wait for the sink, the overflow or the disk of the crawl
	Unacked           bool   // pages wait for replicas to acknowledge their candidates
	ShardsStall       bool   // requests wait for pages to go on, or a shard is slow or full
	LateShards        bool   // most of the time went into leases that came late
	CPUBusy           bool
	VisitsFull        bool // sites are due, and there is no memory to lease them
	Waiting           bool // visits wait for their clock, or sites are due later
	Unreachable       bool
	Refused           bool
	Left              bool // all sites that it leased lately were left to other fetchers
	Walled            bool
	AddressesBind     bool // most visits that wait do so for their share of an address
}

// Limit names what bounds the rate. It looks from the end of a page's path to its start,
// since what waits at the end holds up the rest.
func (s *Sight) Limit() string {
	switch {
	case s.SinkStalls:
		return LimitSink
	case 2*s.Handlers > s.Workers:
		return LimitHandler
	case s.Lack == fetch.ClassResolver:
		return LimitDNS
	case s.Lack != "":
		return s.Lack
	case s.Unacked:
		return LimitReplica
	case s.ShardsStall:
		return LimitRedis
	case s.CPUBusy:
		return LimitCPU
	case s.Busy >= s.Workers:
		return LimitWorkers
	case s.VisitsFull:
		return LimitMemory
	case s.LateShards:
		return LimitRedis
	case s.Hanging > 0, s.Handlers > 0 && s.Handlers == s.Busy:
		return LimitHandler
	case s.Left && s.Busy == 0:
		return LimitBind
	case !s.Waiting && s.Busy == 0:
		return LimitEmpty
	case s.Unreachable:
		return LimitUnreachable
	case s.Walled:
		return LimitWalls
	case s.Refused:
		return LimitRefused
	case s.AddressesBind:
		return LimitAddress
	case s.Waiting:
		return LimitPoliteness
	}
	return LimitNetwork
}

// Limit is what bounds the rate, as found last.
type Limit struct{ name atomic.Pointer[string] }

// Set takes a new finding.
func (l *Limit) Set(name string) { l.name.Store(&name) }

// Get is the last one.
func (l *Limit) Get() string {
	if name := l.name.Load(); name != nil {
		return *name
	}
	return LimitEmpty
}

// Found is another pointer after each Set.
func (l *Limit) Found() *string { return l.name.Load() }

// CPUMeter measures the processor time of this process between two calls.
type CPUMeter struct {
	Used time.Duration // at the last call
	At   time.Time     // of it
}

// IsBusy reports whether this process used 85% of the processors it may use since the
// last call.
func (m *CPUMeter) IsBusy(now time.Time) bool {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return false
	}
	used := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	spent, wall := used-m.Used, now.Sub(m.At)
	m.Used, m.At = used, now
	return float64(spent) > 0.85*float64(wall)*float64(runtime.GOMAXPROCS(0))
}

// LateMeter measures how much of the time went into late answers of shards.
type LateMeter struct {
	late []time.Duration // by shard, as last read
	at   time.Time
}

// AnyLate reports whether late answers of one shard filled most of the time since the last
// call; late is what they took so far, by shard. There is work then and there are workers,
// and both wait for Redis.
func (m *LateMeter) AnyLate(late []time.Duration, now time.Time) (any bool) {
	wall := now.Sub(m.at)
	for i := range m.late {
		any = any || float64(late[i]-m.late[i]) > 0.8*float64(wall)
	}
	m.late, m.at = late, now
	return any
}
