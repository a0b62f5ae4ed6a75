package shard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// sentinels tell which of some servers is master, one that they watch under a name
// with its replicas. go-redis' own client of that kind hides which server answers;
// here each has its client, so that epochs, fitness and filters know it. A connection
// to a server is used only if the sentinels, asked after it was made, name that server:
// a master that was replaced, and comes back, calls itself master for some seconds.
type sentinels struct {
	name    string
	clients []*redis.SentinelClient
	connect func(addr string) *redis.Client

	asking  sync.Mutex // held while they are asked
	askedAt time.Time  // when they were, with success, the last time

	mu      sync.Mutex
	servers map[string]*redis.Client // that were master, by address
	master  *redis.Client            // as reported last

	stop context.CancelFunc
	done chan struct{} // closed when nobody watches any more
}

const (
	// sentinelWait is how long sentinels may take to answer.
	sentinelWait = time.Second
	// sentinelEvery is how often they are asked though all is well: a master that was
	// cut off and goes on answering is left then.
	sentinelEvery = time.Second
)

// errNoMaster: the sentinels watch nothing of this name.
var errNoMaster = errors.New("no such master")

// watched finds the master by the sentinels of c's addresses, and follows it until close.
func (c *Client) watched(ctx context.Context) (*sentinels, error) {
	s := &sentinels{name: c.cfg.Master, servers: make(map[string]*redis.Client), done: make(chan struct{}),
		connect: func(addr string) *redis.Client { return redis.NewClient(c.options(addr)) }}
	for _, addr := range c.cfg.Addrs {
		opt := c.options(addr)
		opt.Dialer = c.dialler.dial
		opt.Username, opt.Password, opt.DB = "", string(c.cfg.SentinelPassword), 0
		opt.PoolSize, opt.MaxActiveConns = 1, 1
		s.clients = append(s.clients, redis.NewSentinelClient(opt))
	}
	if err := s.find(ctx, time.Now()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	watch, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.watch(watch)
	return s, nil
}

func (s *sentinels) watch(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(sentinelEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.find(ctx, time.Now()) // while none answers, the last that was reported stays
		}
	}
}

// close ends all connections.
func (s *sentinels) close() error {
	if s.stop != nil {
		s.stop()
		<-s.done
	}
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.servers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// current is the master as reported last.
func (s *sentinels) current() *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.master
}

// confirm fails when the sentinels name another server than the one at addr. While none
// answers nobody is made master, and the last that was reported stays.
func (s *sentinels) confirm(ctx context.Context, addr string) error {
	if s.find(ctx, time.Now()) != nil {
		return nil
	}
	if now := s.current().Options().Addr; now != addr {
		return fmt.Errorf("%s is master no longer, %s is", addr, now)
	}
	return nil
}

// reportedMaster is what one sentinel says.
type reportedMaster struct {
	addr  string
	epoch int64
	err   error
}

// find asks all sentinels, unless that was done since a time. Of those that differ
// the one counts that knows of the latest failover.
func (s *sentinels) find(ctx context.Context, since time.Time) error {
	s.asking.Lock()
	defer s.asking.Unlock()
	if s.askedAt.After(since) {
		return nil
	}
	began := time.Now()
	short, cancel := context.WithTimeout(ctx, sentinelWait)
	defer cancel()
	answers := make([]reportedMaster, len(s.clients))
	var wg sync.WaitGroup
	for i, c := range s.clients {
		wg.Go(func() { answers[i] = s.ask(short, c) })
	}
	wg.Wait()
	best, errs := reportedMaster{epoch: -1}, []error(nil)
	for _, a := range answers {
		if a.err != nil {
			errs = append(errs, a.err)
		} else if a.epoch > best.epoch {
			best = a
		}
	}
	if best.addr == "" {
		return errors.Join(errs...)
	}
	s.askedAt = began
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers[best.addr] == nil {
		s.servers[best.addr] = s.connect(best.addr)
	}
	s.master = s.servers[best.addr]
	return nil
}

// ask asks one sentinel.
func (s *sentinels) ask(ctx context.Context, c *redis.SentinelClient) reportedMaster {
	m, err := c.Master(ctx, s.name).Result()
	if err != nil && strings.Contains(err.Error(), "No such master") {
		err = fmt.Errorf("%w: sentinels watch none of the name %q; see SENTINEL MASTERS there", errNoMaster, s.name)
	}
	if err != nil {
		return reportedMaster{err: err}
	}
	epoch, err := strconv.ParseInt(m["config-epoch"], 10, 64)
	return reportedMaster{addr: net.JoinHostPort(m["ip"], m["port"]), epoch: epoch, err: err}
}
