package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

type connKey struct{}

// ConnContext is the one for an http.Server on a stamped listener, so that
// Arrival knows when its requests did: under TLS, when the last bytes of them did.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// Arrival is when a request arrived: as its connection says, else now.
func Arrival(r *http.Request) time.Time {
	if c, ok := r.Context().Value(connKey{}).(interface{ Arrived() time.Time }); ok {
		return c.Arrived()
	}
	return time.Now()
}
