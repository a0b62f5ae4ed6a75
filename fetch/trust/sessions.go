package trust

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
)

// Sessions are what TLS connections can be resumed with, by the name of the server: the
// ticket, the secret and the identity, 300 to 450 bytes with the record of it. The
// server's chain is left out. When there is no room, the session that was asked for
// longest ago is dropped. It is safe for any number of goroutines.
type Sessions struct {
	most int64 // bytes

	mu   sync.Mutex
	used int64
	all  map[string]*session
	ring session // of all, the latest is ring.next
}

// session is one of them, in one piece of memory: name, identity, the length of the
// ticket, the ticket, and the state around the chain.
type session struct {
	prev, next *session
	data       string
	name, gap  uint16 // where the name ends, and where the chain was in the state
}

// sessionBytes is what a session takes beside its data: the record, and its part of
// the map.
const sessionBytes = 48 + 48

func (e *session) bytes() int64 { return int64(len(e.data))*17/16 + sessionBytes }

// NewSessions makes a memory of at most size bytes.
func NewSessions(size int64) *Sessions {
	s := &Sessions{most: size, all: make(map[string]*session)}
	s.ring.prev, s.ring.next = &s.ring, &s.ring
	return s
}

// Bytes is how much memory the sessions take now.
func (s *Sessions) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *Sessions) dropLocked(e *session) {
	delete(s.all, e.data[:e.name])
	e.prev.next, e.next.prev = e.next, e.prev
	s.used -= e.bytes()
}

func (s *Sessions) frontLocked(e *session) {
	e.prev, e.next = &s.ring, s.ring.next
	e.prev.next, e.next.prev = e, e
}

// dropSession forgets the session with a server.
func (s *Sessions) dropSession(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all[name]; e != nil {
		s.dropLocked(e)
	}
}

// putSession remembers a session. One whose form is not known is dropped.
func (s *Sessions) putSession(name string, id *Identity, cs *tls.ClientSessionState) {
	ticket, state, err := cs.ResumptionState()
	if err != nil || state == nil || len(name) > 255 {
		return
	}
	whole, err := state.Bytes()
	if err != nil {
		return
	}
	before, after, ok := withoutChain(whole)
	if !ok || len(before) > 1<<15 || len(ticket) > 1<<15-300 {
		return
	}
	var b strings.Builder
	b.Grow(len(name) + len(id) + 2 + len(ticket) + len(before) + len(after))
	b.WriteString(name)
	b.Write(id[:])
	b.WriteByte(byte(len(ticket) >> 8))
	b.WriteByte(byte(len(ticket)))
	b.Write(ticket)
	b.Write(before)
	e := &session{name: uint16(len(name)), gap: uint16(b.Len())}
	b.Write(after)
	e.data = b.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.all[name]; old != nil {
		s.dropLocked(old)
	}
	s.all[e.data[:e.name]] = e
	s.frontLocked(e)
	for s.used += e.bytes(); s.used > s.most; {
		s.dropLocked(s.ring.prev)
	}
}

// getSession makes the session with a server, and says whose it is.
func (s *Sessions) getSession(name string, resumable func(id *Identity, version uint16) bool) (cs *tls.ClientSessionState, id Identity) {
	s.mu.Lock()
	e := s.all[name]
	if e != nil && s.ring.next != e {
		e.prev.next, e.next.prev = e.next, e.prev
		s.frontLocked(e)
	}
	s.mu.Unlock()
	if e == nil {
		return nil, id
	}
	rest := []byte(e.data[e.name:])
	rest = rest[copy(id[:], rest):]
	n := binary.BigEndian.Uint16(rest)
	ticket, rest := rest[2:2+n:2+n], rest[2+n:]
	if !resumable(&id, binary.BigEndian.Uint16(rest)) {
		return nil, id
	}
	gap := len(rest) - (len(e.data) - int(e.gap))
	whole := make([]byte, 0, len(rest)+len(placeholder))
	whole = append(append(append(whole, rest[:gap]...), placeholder...), rest[gap:]...)
	state, err := tls.ParseSessionState(whole)
	if err != nil {
		return nil, id
	}
	if cs, err = tls.NewResumptionState(ticket, state); err != nil {
		return nil, id
	}
	return cs, id
}

// withoutChain cuts the certificates and the verified chains out of a session, which
// lie side by side in what SessionState.Bytes makes (its type is described at
// tls.SessionState).
func withoutChain(whole []byte) (before, after []byte, ok bool) {
	at := 2 + 1 + 2 + 8 // version, type, cipher suite, time
	skip := func(width int) bool {
		n := 0
		for range width {
			if at >= len(whole) {
				return false
			}
			n = n<<8 | int(whole[at])
			at++
		}
		at += n
		return at <= len(whole)
	}
	if !skip(1) || !skip(3) { // secret, extra
		return nil, nil, false
	}
	at += 2 // extended master secret, early data
	gap := at
	for range 2 {
		if !skip(3) {
			return nil, nil, false
		}
	}
	return whole[:gap], whole[at:], true
}

// placeholder stands where the chain was, for ParseSessionState demands a certificate:
// one that no authority signed and nobody has the key of, valid until the year 9999,
// as a list of one without extensions, and no verified chain.
var placeholder = func() []byte {
	cert, err := hex.DecodeString("3048303c0201013005060355040330003020170d3730303130313030303030305a180f39393939313233313233353935395a3000300a3005060355040303010030050603550403030100")
	if err != nil {
		panic(err)
	}
	b := []byte{0, 0, byte(3 + len(cert) + 2), 0, 0, byte(len(cert))}
	return append(append(b, cert...), 0, 0, 0, 0, 0)
}()

// errForgotten ends a resumed connection to a server that is not known any more.
var errForgotten = errors.New("trust: the server of this session is not known any more")

// Forgotten says whether err ended a resumed connection because what was known of the
// server stopped to count meanwhile. The session is gone: the next handshake is a full one.
func Forgotten(err error) bool { return errors.Is(err, errForgotten) }
