package fetch

import (
	"context"
	"net/netip"
)

type addr = netip.Addr

// resolverFunc is a Resolver made of a function.
type resolverFunc func(ctx context.Context, name string) ([]addr, error)

func (f resolverFunc) LookupNetIP(ctx context.Context, _, name string) ([]addr, error) {
	return f(ctx, name)
}
