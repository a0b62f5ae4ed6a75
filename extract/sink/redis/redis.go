// Package redis hands records to consumers through Redis: a list that they pop,
// as those of scrapy-redis do, or a stream.
//
// Workers encode records as JSON and add them to a sink.Queue, whose committer
// appends a batch of them by one script. The script first looks at the size of the
// list or stream, and at the server's memory where it is shared with the
// frontier; above a bound it appends nothing, Err names the bound, and the crawl waits
// for its consumers. A record is in the sink when the master acknowledged it. A
// call whose reply was lost is repeated with the effect of once; after a crash of
// the fetcher records may be there twice, and a master that is lost takes with it
// what its replicas did not have.
package redis

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"seine/extract/sink"
	"seine/shard"
)

// Config of a Sink. Server and Key are required; the zero value of another field
// is the default it names.
type Config struct {
	Server shard.Config
	Key    string // of the list or stream
	Stream bool   // it is a stream, with the record in the field record
	// MaxBytes is how much memory the list or stream may take in Redis before the
	// crawl waits for its consumers, give or take a batch. Default 64 MB.
	MaxBytes int64
	// MemoryHigh is the per cent of the server's maxmemory above which nothing is
	// appended. Default: no bound but maxmemory.
	MemoryHigh int
	// Fields are the optional fields of records. Default none.
	Fields sink.Fields
	// MaxPending is how many bytes may wait here before Write blocks. Default 64 MB.
	MaxPending int64
	// Drop makes the sink drop records that find no room.
	Drop bool
}

const (
	defaultMaxBytes = 64 << 20
	batchLen        = 1000 // under Lua's unpack limit of some 8,000
	commitTimeout   = 30 * time.Second
)

//go:embed push.lua
var pushText string

var push = shard.NewScript("push", pushText)

// Parse reads an address as of the command line into c, which has the defaults: redis:
// is the server of c, redis://host and rediss://host are others. Those have a password
// of their own and no MemoryHigh, unless they are the same server. The query may have
// key, stream, max_bytes and password_file.
func Parse(address string, c Config) (Config, error) {
	server, query, _ := strings.Cut(address, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return c, fmt.Errorf("redis: %w", err)
	}
	if strings.Contains(server, "://") {
		own := c.Server
		c.Server = shard.Config{Addrs: []string{server}, Name: own.Name}
		if c.Server.Shares(own) {
			c.Server.Password = own.Password
		} else {
			c.MemoryHigh = 0 // nor does it get the password of ours
		}
	} else if server != "redis:" {
		return c, fmt.Errorf("redis: %q is no address: redis: is the crawl's own server, redis://HOST another", server)
	}
	for name := range q {
		value := q.Get(name)
		switch name {
		case "key":
			c.Key = value
		case "stream":
			c.Key, c.Stream = value, true
		case "max_bytes":
			if c.MaxBytes, err = strconv.ParseInt(value, 10, 64); err != nil || c.MaxBytes < 1 {
				return c, fmt.Errorf("redis: max_bytes is %q, must be a number of bytes", value)
			}
		case "password_file":
			text, err := os.ReadFile(value)
			if err != nil {
				return c, fmt.Errorf("redis: password_file: %w", err)
			}
			c.Server.Password = shard.Secret(strings.TrimRight(string(text), "\r\n"))
		default:
			return c, fmt.Errorf("redis: unknown parameter %q: there are key, stream, max_bytes and password_file", name)
		}
	}
	return c, c.Validate()
}

// Validate names all that is wrong with c.
func (c *Config) Validate() error {
	errs := []error{c.Server.Validate()}
	if c.Key == "" {
		errs = append(errs, errors.New("redis: no key for the records"))
	}
	if c.MaxBytes < 0 || c.MaxPending < 0 || c.MemoryHigh < 0 || c.MemoryHigh > 100 {
		errs = append(errs, errors.New("redis: MaxBytes, MaxPending or MemoryHigh are out of their range"))
	}
	return errors.Join(errs...)
}

// Sink hands records to Redis. It is safe for concurrent use.
type Sink struct {
	cfg    Config
	client *shard.Client
	keys   []string
	id     string // of this sink, in the hash of batches
	queue  *sink.Queue

	// The committer's:
	number int64
	last   *sink.Batch // the batch that has the number, until it is kept
	args   []any
}

var _ sink.Sink = (*Sink)(nil)

// Open connects and starts the sink. A key of another kind is refused.
func Open(ctx context.Context, cfg Config) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	client, err := shard.Open(ctx, cfg.Server)
	if err != nil {
		return nil, err
	}
	want := "list"
	if cfg.Stream {
		want = "stream"
	}
	kind, err := client.Redis().Type(ctx, cfg.Key).Result()
	if err == nil && kind != "none" && kind != want {
		err = fmt.Errorf("key %s holds a %s, not a %s: choose another", cfg.Key, kind, want)
	}
	if err == nil {
		usage := client.Redis().MemoryUsage(ctx, cfg.Key, 8).Err() // nil and its error for a key that is not there yet
		if usage != nil && strings.HasPrefix(usage.Error(), "NOPERM") {
			err = fmt.Errorf("MEMORY USAGE of %s, which bounds what waits for consumers, is refused; give the user the right +memory|usage: %w", cfg.Key, usage)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("redis: %w", err), client.Close())
	}
	s := &Sink{cfg: cfg, client: client, keys: []string{cfg.Key, beside(cfg.Key)}, id: rand.Text(), args: []any{want, cfg.MaxBytes, cfg.MemoryHigh}}
	s.queue = sink.NewQueue(sink.QueueConfig{Name: "redis", Commit: s.commit, End: client.Close, BatchLen: batchLen, MaxPending: cfg.MaxPending, Drop: cfg.Drop})
	return s, nil
}

// beside is a key in the slot of key.
func beside(key string) string {
	if i := strings.IndexByte(key, '{'); i >= 0 && strings.IndexByte(key[i:], '}') > 1 {
		return key + ":sent"
	}
	return "{" + key + "}:sent"
}

// Write implements sink.Sink.
func (s *Sink) Write(r *sink.Record, done func(error)) {
	s.queue.AddRecord(r, s.cfg.Fields, "", done)
}

// Why the script appends nothing.
var (
	errLag  = errors.New("consumers lag")
	errHigh = errors.New("the server's memory is over the watermark of --memory-high")
)

// commit appends a batch.
func (s *Sink) commit(ctx context.Context, b *sink.Batch) error {
	if s.last != b { // else it may have been appended by a call whose reply was lost
		s.number++
		s.last = b
	}
	args := append(s.args[:3], s.id, s.number)
	for i := range b.Len() {
		_, line := b.Entry(i)
		args = append(args, line)
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	reply, err := s.client.Run(ctx, 0, push, s.keys, args...)
	clear(args[3:])
	s.args = args[:3]
	if err != nil {
		return err
	}
	switch reply {
	case "ok":
		s.last = nil
		return nil
	case "lag":
		return fmt.Errorf("%w: %s holds more than %d bytes", errLag, s.cfg.Key, s.cfg.MaxBytes)
	case "high":
		return errHigh
	}
	return fmt.Errorf("unexpected reply %v", reply)
}

// Err is why nothing can be written just now, or nil. Records wait meanwhile.
func (s *Sink) Err() error { return s.queue.Err() }

// QueueStats returns the counts of the queue.
func (s *Sink) QueueStats() sink.QueueStats { return s.queue.Stats() }

// Close sends what waits, trying once, and disconnects.
func (s *Sink) Close() error { return s.queue.Close() }
