package redis

import (
	"context"

	"seine/shard"
)

// What package audit needs of a crawl beyond its verbs.

// Client is what the crawl is reached by.
func (f *Frontier) Client() *shard.Client { return f.client }

// Crawl is the name of the crawl.
func (f *Frontier) Crawl() string { return f.crawl }

// Epoch is that of this creation of the crawl, as each of its shards says.
func (f *Frontier) Epoch() string { return f.epoch }

// Config is how this program works on the crawl, with all defaults.
func (f *Frontier) Config() Config { return f.cfg }

// Keys are the names of the keys of shard k.
func (f *Frontier) Keys(k int) shard.Keys { return f.keys[k] }

// RootOf is what the root of a crawl says of a shard.
type RootOf struct {
	Rev      string
	Layout   string
	Paused   bool
	Deleting bool
}

// Root reads what the root says of shard k. Another creation of the crawl, or
// none, is ErrStale.
func (f *Frontier) Root(ctx context.Context, k int) (RootOf, error) {
	r, err := f.root(ctx)
	if err != nil {
		return RootOf{}, err
	}
	return RootOf{Rev: r.raw["rev"], Layout: r.raw["layout"], Paused: r.pausedIn(k), Deleting: r.state == stateDeleting}, nil
}

// PreludeScript is a script that starts with the prelude of this package. reads
// says that it only reads; else it can try what it needs before it writes.
func PreludeScript(name string, file shard.ScriptPart, reads bool) *shard.Script {
	if reads {
		return shard.JoinScript(name, readOnly, part("prelude"), file)
	}
	return shard.JoinScript(name, allowOOM, part("prelude"), part("tries"), file)
}
