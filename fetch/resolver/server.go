package resolver

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	maxSockets    = 8                // of a server
	perSocket     = 1024             // questions under way on one socket
	maxAsked      = 2048             // questions of one socket before it is replaced
	maxAge        = time.Minute      // of a socket that is in use
	firstRest     = time.Second      // of a server that is silent, doubling
	maxRest       = 30 * time.Second // at most
	udpSize       = 1232             // as DNS flag day 2020 has it: no fragments
	receiveBuffer = 1 << 20          // bytes, as far as the system lets us
)

// server is one DNS server: how it fares, and its sockets.
type server struct {
	r    *Resolver
	addr netip.AddrPort
	room chan struct{} // one token a question under way

	mu       sync.Mutex
	socks    []*socket
	closed   bool
	plain    bool      // it does not know EDNS (RFC 6891, section 7)
	failures int       // in a row
	until    time.Time // rests until
	good     time.Time // when it last resolved something
	answered time.Time // when it last answered at all
}

func newServer(r *Resolver, addr netip.AddrPort) *server {
	return &server{r: r, addr: addr, room: make(chan struct{}, maxSockets*perSocket)}
}

// pick chooses the server of a try: in order, or in turn; those that rest are left
// out as long as another does not.
func (up *upstream) pick(from uint32, try int) *server {
	n := len(up.servers)
	at := try
	if up.inTurn {
		at += int(from % uint32(n))
	}
	now := time.Now()
	for i := range n {
		if s := up.servers[(at+i)%n]; !s.resting(now) {
			return s
		}
	}
	return up.servers[at%n]
}

// workedSince says whether a server has resolved anything since then.
func (up *upstream) workedSince(t time.Time) bool {
	for _, s := range up.servers {
		s.mu.Lock()
		good := s.good.After(t)
		s.mu.Unlock()
		if good {
			return true
		}
	}
	return false
}

func (s *server) resting(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.until)
}

// worked notes that the server resolved something.
func (s *server) worked() {
	s.mu.Lock()
	s.failures, s.until = 0, time.Time{}
	s.good = time.Now()
	s.answered = s.good
	s.mu.Unlock()
}

// answers notes that the server answered, be it that it failed.
func (s *server) answers() {
	s.mu.Lock()
	s.failures, s.until, s.answered = 0, time.Time{}, time.Now()
	s.mu.Unlock()
}

// failed lets the server rest if it answered nobody since a question was
// put: silence about one name is the name's.
func (s *server) failed(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.answered.After(since) || now.Before(s.until) {
		return
	}
	s.until = now.Add(min(firstRest<<min(s.failures, 10), maxRest))
	s.failures++
}

// pending is a question under way.
type pending struct {
	sock    *socket
	id      uint16
	name    string
	qtype   uint16
	sent    time.Time
	answers chan<- reply // has room for one of each pending
}

// silent notes that the question was not answered in time.
func (p *pending) silent() { p.sock.server.failed(p.sent) }

// forget ends the wait for an answer.
func (p *pending) forget() {
	k := p.sock
	s := k.server
	s.mu.Lock()
	if k.asked[p.id] == p {
		delete(k.asked, p.id)
		<-s.room
	}
	idle := k.retired && len(k.asked) == 0
	s.mu.Unlock()
	if idle {
		k.conn.Close()
	}
}

// send puts a question. Its answer, or the server's refusal to listen, goes to
// answers unless forget comes first.
func (s *server) send(ctx context.Context, name string, qtype uint16, answers chan<- reply) (*pending, error) {
	select {
	case s.room <- struct{}{}:
	case <-ctx.Done():
		return nil, errTimeout
	}
	p := &pending{name: name, qtype: qtype, answers: answers, sent: time.Now()}
	plain, err := s.assign(p)
	if err != nil {
		<-s.room
		return nil, err
	}
	m := question(p.id, name, qtype, plain)
	text, err := m.Pack()
	if err == nil {
		_, err = p.sock.conn.Write(text)
	}
	if err != nil {
		p.forget()
		return nil, err
	}
	return p, nil
}

func question(id uint16, name string, qtype uint16, plain bool) *dns.Msg {
	m := &dns.Msg{
		MsgHdr:   dns.MsgHdr{Id: id, RecursionDesired: true},
		Question: []dns.Question{{Name: name, Qtype: qtype, Qclass: dns.ClassINET}},
	}
	if !plain {
		m.SetEdns0(udpSize, false)
	}
	return m
}

// assign gives a question a socket and an id that no other has there.
func (s *server) assign(p *pending) (plain bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, errClosed
	}
	k := s.chooseLocked()
	if k == nil {
		if k, err = s.openLocked(); err != nil {
			return false, err
		}
	}
	for {
		var b [2]byte
		rand.Read(b[:]) //nolint:errcheck // it never fails
		p.id = binary.BigEndian.Uint16(b[:])
		if _, taken := k.asked[p.id]; !taken {
			break
		}
	}
	p.sock = k
	k.asked[p.id] = p
	if k.count++; k.count >= maxAsked || time.Since(k.born) > maxAge {
		k.retired = true
		for i := range s.socks {
			if s.socks[i] == k {
				s.socks = append(s.socks[:i], s.socks[i+1:]...)
				break
			}
		}
	}
	return s.plain, nil
}

// chooseLocked returns a socket, nil if a new one is better: there is none yet, or
// too much goes through one.
func (s *server) chooseLocked() *socket {
	n := len(s.socks)
	if n == 0 {
		return nil
	}
	k := s.socks[mathrand.IntN(n)]
	if n < maxSockets && len(k.asked) >= perSocket/8 {
		return nil
	}
	return k
}

// openLocked opens a socket at a port that the kernel draws.
func (s *server) openLocked() (*socket, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(s.addr))
	if err != nil {
		if n := len(s.socks); n > 0 {
			return s.socks[mathrand.IntN(n)], nil
		}
		return nil, err
	}
	conn.SetReadBuffer(receiveBuffer) //nolint:errcheck // as much as we may have
	k := &socket{server: s, conn: conn, asked: make(map[uint16]*pending), born: time.Now()}
	s.socks = append(s.socks, k)
	s.r.wg.Go(k.read)
	return k, nil
}

func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	socks := s.socks
	s.socks = nil
	s.mu.Unlock()
	for _, k := range socks {
		k.conn.Close()
	}
}

// overTCP asks again for an answer that fits no datagram.
func (s *server) overTCP(ctx context.Context, name string, qtype uint16) reply {
	c := dns.Client{Net: "tcp", Timeout: s.r.cfg.Timeout}
	m := question(dns.Id(), name, qtype, false)
	got, _, err := c.ExchangeContext(ctx, m, s.addr.String())
	if err == nil && !answersTo(got, name, qtype) {
		err = errors.New("answer to another question")
	}
	if err != nil {
		return reply{from: s, err: err}
	}
	got.Truncated = false
	return reply{from: s, msg: got}
}

// socket is one UDP socket; its maps are guarded by the server's mutex.
type socket struct {
	server  *server
	conn    *net.UDPConn // connected: the kernel drops what others send
	asked   map[uint16]*pending
	count   int
	born    time.Time
	retired bool // closed when nothing is under way any more
}

// read hands answers out until the socket is closed.
func (k *socket) read() {
	buf := make([]byte, 4096)
	for {
		n, err := k.conn.Read(buf)
		if errors.Is(err, net.ErrClosed) {
			k.failAll(err)
			return
		}
		if err != nil { // an ICMP message: nobody listens there
			k.failAll(err)
			continue
		}
		if n < 12 || buf[2]&0x80 == 0 {
			continue
		}
		if p := k.takeQuestion(binary.BigEndian.Uint16(buf)); p != nil {
			k.answer(p, buf[:n])
		}
	}
}

// takeQuestion finds the question with an id.
func (k *socket) takeQuestion(id uint16) *pending {
	k.server.mu.Lock()
	defer k.server.mu.Unlock()
	return k.asked[id]
}

// answer hands an answer on if it is one to that question. A wrong one may be
// forged: the wait goes on.
func (k *socket) answer(p *pending, text []byte) {
	m := new(dns.Msg)
	if err := m.Unpack(text); err != nil && !m.Truncated || !answersTo(m, p.name, p.qtype) {
		return
	}
	s := k.server
	s.mu.Lock()
	if m.Rcode == dns.RcodeFormatError {
		s.plain = true
	}
	mine := k.asked[p.id] == p
	s.mu.Unlock()
	if mine {
		p.forget()
		p.answers <- reply{from: s, msg: m}
	}
}

// answersTo says whether m answers that question. A server that does not
// understand a question may leave it out.
func answersTo(m *dns.Msg, name string, qtype uint16) bool {
	if !m.Response {
		return false
	}
	if len(m.Question) == 0 {
		return m.Rcode == dns.RcodeFormatError
	}
	q := &m.Question[0]
	return len(m.Question) == 1 && q.Qtype == qtype && q.Qclass == dns.ClassINET && strings.EqualFold(q.Name, name)
}

// failAll ends all questions under way: nobody answers here.
func (k *socket) failAll(err error) {
	s := k.server
	s.mu.Lock()
	var all []*pending
	for _, p := range k.asked {
		all = append(all, p)
	}
	s.mu.Unlock()
	for _, p := range all {
		s.mu.Lock()
		mine := k.asked[p.id] == p
		s.mu.Unlock()
		if mine {
			p.forget()
			p.answers <- reply{from: s, err: err}
		}
	}
}
