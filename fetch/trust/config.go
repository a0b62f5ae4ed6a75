package trust

import "crypto/tls"

// Configure lets v verify the connection that t is for, to the server called name.
// verified, unless nil, is called with what the verdict rests on where the handshake
// is a full one. A session of t's cache is resumed while v knows the name and chain that
// it was made with; else the handshake is a full one.
func (v *Verifier) Configure(t *tls.Config, name string, verified func(By)) {
	t.ServerName = name
	t.Time = v.now
	t.InsecureSkipVerify = true // VerifyConnection verifies in its place
	var sessions *sessionCache
	if t.ClientSessionCache != nil {
		sessions = &sessionCache{cache: t.ClientSessionCache, v: v}
		t.ClientSessionCache = sessions
	}
	t.VerifyConnection = func(s tls.ConnectionState) error {
		id, by, err := v.Verify(name, s.PeerCertificates)
		if err != nil {
			return err
		}
		if sessions != nil {
			sessions.id = id
		}
		if verified != nil && !s.DidResume {
			verified(by)
		}
		return nil
	}
}

// sessionCache is a cache as one connection sees it. With a session it keeps the
// identity that was verified, in the field that crypto/tls leaves to caches.
type sessionCache struct {
	cache tls.ClientSessionCache
	v     *Verifier
	id    Identity // what this connection showed; set before a ticket comes
}

// mine begins the entry of SessionState.Extra, which others may add to.
const mine = "seine/trust:"

func (c *sessionCache) Get(key string) (*tls.ClientSessionState, bool) {
	cs, ok := c.cache.Get(key)
	if !ok || cs == nil {
		return nil, false
	}
	_, state, err := cs.ResumptionState()
	if err != nil || state == nil {
		return nil, false
	}
	for _, e := range state.Extra {
		if len(e) == len(mine)+len(Identity{}) && string(e[:len(mine)]) == mine {
			return cs, c.v.Knows(Identity(e[len(mine):]))
		}
	}
	return nil, false
}

func (c *sessionCache) Put(key string, cs *tls.ClientSessionState) {
	if cs != nil {
		ticket, state, err := cs.ResumptionState()
		if err != nil || state == nil {
			return
		}
		state.Extra = append(state.Extra, append([]byte(mine), c.id[:]...))
		if cs, err = tls.NewResumptionState(ticket, state); err != nil {
			return
		}
	}
	c.cache.Put(key, cs)
}
