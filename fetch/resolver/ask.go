package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// reply is what came of one try.
type reply struct {
	from *server
	msg  *dns.Msg
	err  error
}

// ask puts one question until a server answers it. Each try goes to another
// server if there is one; answers to earlier tries count as long as it lasts.
// The answer's code is that of success or of a missing name.
func (r *Resolver) ask(ctx context.Context, up *upstream, full string, qtype uint16) (*dns.Msg, error) {
	began := time.Now()
	answers := make(chan reply, r.cfg.Tries)
	var open []*pending
	defer func() {
		for _, p := range open {
			p.forget()
		}
	}()
	from := r.nextServer.Add(1)
	wait := time.NewTimer(0)
	defer wait.Stop()
	var fault error // of the servers, or errTimeout
	refused := true // by all that answered
	outstanding := 0
	for try := 0; ; {
		var got reply
		select {
		case got = <-answers:
			outstanding--
		case <-ctx.Done():
			if fault == nil {
				fault = errTimeout
			}
			return nil, r.judgeServer(ctx, up, full, began, fault, refused)
		case <-wait.C:
			if outstanding > 0 {
				open[len(open)-1].silent()
				fault, refused = errTimeout, false
			}
		}
		if got.msg != nil && got.msg.Truncated {
			got = got.from.overTCP(ctx, full, qtype)
		}
		if got.msg != nil {
			switch code := got.msg.Rcode; code {
			case dns.RcodeSuccess, dns.RcodeNameError:
				got.from.worked()
				return got.msg, nil
			default:
				got.from.answers()
				refused = refused && code == dns.RcodeRefused
				fault = fmt.Errorf("server %s answers %s", got.from.addr, dns.RcodeToString[code])
				if len(up.servers) == 1 && code != dns.RcodeFormatError {
					return nil, r.judgeServer(ctx, up, full, began, fault, refused)
				}
			}
		} else if got.err != nil {
			fault = got.err
			got.from.failed(began)
		}
		if try == r.cfg.Tries && outstanding > 0 && got.from != nil {
			continue // the last try may still be answered
		}
		if try == r.cfg.Tries || len(up.servers) == 0 {
			if fault == nil {
				fault = errNoServer
			}
			return nil, r.judgeServer(ctx, up, full, began, fault, refused)
		}
		s := up.pick(from, try)
		p, err := s.send(ctx, full, qtype, answers)
		if err != nil {
			answers <- reply{from: s, err: err}
		} else {
			open = append(open, p)
		}
		outstanding++
		try++
		wait.Reset(r.cfg.Timeout)
	}
}

var errNoServer = errors.New("no DNS server is configured")

// judgeServer says of a question that was not answered whether that lies with the name
// or with all servers.
func (r *Resolver) judgeServer(ctx context.Context, up *upstream, full string, began time.Time, fault error, refused bool) error {
	kind := Failed
	if errors.Is(fault, errTimeout) {
		kind = TimedOut
	}
	if _, net := errors.AsType[*net.OpError](fault); net || fault == errNoServer || fault == errClosed {
		kind = Down // nothing could be sent, or a server's machine says that nobody listens
	}
	if context.Cause(ctx) == context.Canceled {
		return ctx.Err()
	}
	if kind == Failed && !refused || up.workedSince(began) {
		if kind == Down {
			kind = TimedOut
		}
		return &Error{Kind: kind, Name: full, Err: fault}
	}
	if kind != Down && r.prober.alive(r, up, kind == Failed) {
		return &Error{Kind: kind, Name: full, Err: fault}
	}
	r.prober.since.Store(time.Now().UnixNano())
	return &Error{Kind: Down, Name: full, Err: fmt.Errorf("no DNS server answers: %w", fault)}
}

// known finds out whether servers know any name. Some call all names unknown, as in
// networks that first want a sign-in: nobody's URLs may end for that.
type known struct {
	some atomic.Bool // a name was found since the start

	mu sync.Mutex
	at time.Time // when com was asked for last
}

// any reports whether a name was found since the start, or com is known, which
// resolvers of the public DNS know. One question serves all who doubt at the same
// time. Where nothing is known yet it asks once in probeAge.
func (k *known) any(ctx context.Context, r *Resolver, up *upstream) bool {
	if k.some.Load() {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.some.Load() || time.Since(k.at) < probeAge {
		return k.some.Load()
	}
	m, err := r.ask(ctx, up, "com.", dns.TypeNS)
	if err == nil && m.Rcode == dns.RcodeSuccess {
		k.some.Store(true)
	}
	if ctx.Err() == nil {
		k.at = time.Now()
	}
	return k.some.Load()
}

// prober finds out whether servers answer anything. One probe serves all who doubt
// at the same time.
type prober struct {
	mu   sync.Mutex
	at   time.Time
	live bool

	since atomic.Int64 // when all servers were found to be silent, Unix time in ns
}

// down says whether a moment ago no server answered anything.
func (p *prober) down() bool { return time.Now().UnixNano()-p.since.Load() < int64(probeAge) }

// probeAge is how long a probe is believed.
const probeAge = time.Second

// alive asks all servers for the root's own servers, which any resolver knows. Any
// answer will do, unless strict: then it must be no refusal.
func (p *prober) alive(r *Resolver, up *upstream, strict bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < probeAge {
		return p.live
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.Timeout)
	defer cancel()
	p.live = false
	answers := make(chan reply, len(up.servers))
	asked := 0
	for _, s := range up.servers {
		if q, err := s.send(ctx, ".", dns.TypeNS, answers); err == nil {
			defer q.forget()
			asked++
		}
	}
	for range asked {
		select {
		case got := <-answers:
			p.live = got.msg != nil && (!strict || got.msg.Rcode != dns.RcodeRefused)
		case <-ctx.Done():
		}
		if p.live || ctx.Err() != nil {
			break
		}
	}
	p.at = time.Now()
	return p.live
}
