package shard

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Wait is a call that has not got through for a while and goes on trying.
type Wait struct {
	Shard  int    // negative: a key that belongs to no shard
	Op     string // name of the script or command
	Master string // address of who was asked last, "" when nobody is known to own the key
	For    time.Duration
	Err    error // of the last try
}

func (w Wait) String() string {
	who := w.Master
	if who == "" {
		who = "whoever owns the key"
	}
	if w.Shard >= 0 {
		who += fmt.Sprintf(", master of shard %d", w.Shard)
	}
	return fmt.Sprintf("waiting for %s since %s; this goes on by itself when it answers or another master takes over", who, w.For.Round(time.Second))
}

const (
	// waitsAfter is how long a call tries before Config.Waits is told of it.
	waitsAfter = 5 * time.Second
	// waitsAgain is how often Config.Waits is told of one master.
	waitsAgain = 30 * time.Second
)

// tellWait tells of a call that waits, seldom.
func (c *Client) tellWait(k int, op string, n *redis.Client, began time.Time, err error) {
	waited := time.Since(began)
	if c.cfg.Waits == nil || waited < waitsAfter {
		return
	}
	w := Wait{Shard: k, Op: op, For: waited, Err: err}
	if n != nil {
		w.Master = n.Options().Addr
	}
	c.mu.Lock()
	last, told := c.waits[w.Master]
	due := !told || time.Since(last) >= waitsAgain
	if due {
		c.waits[w.Master] = time.Now()
	}
	c.mu.Unlock()
	if due {
		c.cfg.Waits(w)
	}
}
