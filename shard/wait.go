package shard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
	Slot   *OpenSlot
}

// OpenSlot is a slot that has stood half moved between two masters for so long
// that nobody seems to move it any more: a move that broke off.
type OpenSlot struct {
	Slot     int
	From, To string // addresses
	For      time.Duration
}

func (w Wait) String() string {
	if s := w.Slot; s != nil {
		return fmt.Sprintf("slot %d, of shard %d, has stood half moved from %s to %s for %s, and scripts wait until it is whole; "+
			"unless somebody still moves it, end the move: redis-cli --cluster fix %s (if the move ended with IOERR, a key is too large for %s: "+
			"first CONFIG SET proto-max-bulk-len 4gb there)",
			s.Slot, w.Shard, s.From, s.To, s.For.Round(time.Second), s.From, s.To)
	}
	who := w.Master
	if who == "" {
		who = "whoever owns the key"
	}
	if w.Shard >= 0 {
		who += fmt.Sprintf(", master of shard %d", w.Shard)
	}
	if isDemoted(w.Err) {
		return fmt.Sprintf("%s is a replica since a failover; this goes on by itself when the new master is known, or when it is master again", who)
	}
	if errors.Is(w.Err, ErrUnfit) || errors.Is(w.Err, ErrNoBloom) {
		return fmt.Sprintf("%s is not fit for a crawl; nothing is done there until that is fixed", who)
	}
	return fmt.Sprintf("waiting for %s since %s; this goes on by itself when it answers or another master takes over", who, w.For.Round(time.Second))
}

// patience says when Config.Waits reports what.
type patience struct {
	first time.Duration // how long a call tries before
	again time.Duration // how often of one master
	open  time.Duration // how long a slot stands half moved before it is named as that
}

// sawOpen is when a slot was seen half moved, first and last.
type sawOpen struct{ first, last time.Time }

// reportWait tells of a call that waits, seldom.
func (c *Client) reportWait(ctx context.Context, k int, op, key string, n *redis.Client, began time.Time, err error) {
	w := Wait{Shard: k, Op: op, For: time.Since(began), Err: err}
	if n != nil {
		w.Master = n.Options().Addr
	}
	if !c.mayReport(&w) {
		return
	}
	if n != nil && c.cluster != nil && (redis.HasErrorPrefix(err, "TRYAGAIN") || redis.HasErrorPrefix(err, "ASK")) {
		w.Slot = c.openSlot(ctx, n, slotOf(key), w.For)
	}
	c.cfg.Waits(w)
}

// mayReport reports whether it is time to tell of w.
func (c *Client) mayReport(w *Wait) bool {
	if c.cfg.Waits == nil || w.For < c.patience.first {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last, reportedMaster := c.waits[w.Master]
	if reportedMaster && time.Since(last) < c.patience.again {
		return false
	}
	c.waits[w.Master] = time.Now()
	return true
}

// openSlot asks a node whether it is moving a slot, which has kept a call waiting,
// and tells of it when it has been for long enough.
func (c *Client) openSlot(ctx context.Context, n *redis.Client, slot int, waited time.Duration) *OpenSlot {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	nodes, err := n.ClusterNodes(ctx).Result()
	if err != nil {
		return nil
	}
	from, to := movesOf(nodes, slot)
	c.mu.Lock()
	defer c.mu.Unlock()
	if from == "" || to == "" {
		delete(c.open, slot)
		return nil
	}
	now, saw := time.Now(), c.open[slot]
	if now.Sub(saw.last) > 3*c.patience.again { // that was another move
		saw.first = now.Add(-waited)
	}
	saw.last = now
	c.open[slot] = saw
	if stood := now.Sub(saw.first); stood >= c.patience.open {
		return &OpenSlot{Slot: slot, From: from, To: to, For: stood}
	}
	return nil
}

// movesOf finds in the reply of CLUSTER NODES between which nodes the one that
// replied moves a slot, "" when it does not.
func movesOf(nodes string, slot int) (from, to string) {
	addrs, other, outward := make(map[string]string), "", false
	me := ""
	for line := range strings.Lines(nodes) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		addr, _, _ := strings.Cut(f[1], "@")
		addrs[f[0]] = addr
		if !strings.Contains(f[2], "myself") {
			continue
		}
		me = addr
		for _, s := range f[8:] {
			s = strings.Trim(s, "[]")
			if id, ok := strings.CutPrefix(s, strconv.Itoa(slot)+"->-"); ok {
				other, outward = id, true
			} else if id, ok := strings.CutPrefix(s, strconv.Itoa(slot)+"-<-"); ok {
				other = id
			}
		}
	}
	switch {
	case other == "":
		return "", ""
	case outward:
		return me, addrs[other]
	}
	return addrs[other], me
}
