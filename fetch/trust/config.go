package trust

import "crypto/tls"

// Configure lets v verify the connection that t is for, to the server called name; a
// nil v verifies nothing. verified, unless nil, is called with what the verdict rests on
// where the handshake is a full one. A session of sessions, unless nil, is resumed while v
// knows the name and chain that it was made with; else the handshake is a full one.
// A resumed connection shows no certificate of its server.
func (v *Verifier) Configure(t *tls.Config, name string, sessions *Sessions, verified func(By)) {
	t.ServerName = name
	t.InsecureSkipVerify = true // VerifyConnection verifies in its place
	c := &sessionCache{sessions: sessions, v: v, renegotiates: t.Renegotiation != tls.RenegotiateNever}
	if sessions != nil {
		t.ClientSessionCache = c
	}
	if v == nil {
		return
	}
	t.Time = v.now
	t.VerifyConnection = func(s tls.ConnectionState) error {
		if s.DidResume {
			if !v.Knows(c.id) {
				return errForgotten
			}
			return nil
		}
		id, by, err := v.Verify(name, s.PeerCertificates)
		if err != nil {
			return err
		}
		c.id = id
		if verified != nil {
			verified(by)
		}
		return nil
	}
}

// sessionCache is Sessions as one connection sees them.
type sessionCache struct {
	sessions     *Sessions
	v            *Verifier
	id           Identity // what this connection showed, or resumes; set before a ticket comes
	renegotiates bool
	kept         bool // a ticket of this connection: others are as good
}

// Get finds a session that may be resumed. Under TLS 1.2 a renegotiation compares
// certificates with those of the handshake before, which a resumed session lacks.
func (c *sessionCache) Get(key string) (*tls.ClientSessionState, bool) {
	cs, id := c.sessions.getSession(key, func(id *Identity, version uint16) bool {
		return (c.v == nil || c.v.Knows(*id)) && (version >= tls.VersionTLS13 || !c.renegotiates)
	})
	c.id = id
	return cs, cs != nil
}

func (c *sessionCache) Put(key string, cs *tls.ClientSessionState) {
	switch {
	case cs == nil:
		c.sessions.dropSession(key)
	case !c.kept:
		c.kept = true
		c.sessions.putSession(key, &c.id, cs)
	}
}
