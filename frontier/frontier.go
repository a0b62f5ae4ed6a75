package frontier

import (
	"sync/atomic"

	"seine/shard"
)

// Frontier is one crawl in Redis. It is safe for concurrent use.
type Frontier struct {
	client   *shard.Client
	crawl    string
	layout   Layout
	epoch    string // of this creation of the crawl; scripts answer stale to another
	shards   shard.Map
	keys     []shard.Keys
	settings atomic.Pointer[Settings]
}

// attach binds a client to a crawl whose root was read.
func attach(client *shard.Client, crawl string, layout Layout, epoch string) *Frontier {
	f := &Frontier{client: client, crawl: crawl, layout: layout, epoch: epoch, shards: shard.NewMap(layout.Shards)}
	for k := range layout.Shards {
		f.keys = append(f.keys, shard.KeysOf(crawl, f.shards.Tag(k)))
	}
	f.settings.Store(&Settings{})
	return f
}

// Settings is the crawl's settings as last read; do not change what it points to.
func (f *Frontier) Settings() *Settings { return f.settings.Load() }
