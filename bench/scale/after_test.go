//go:build linux

package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"seine/frontier"
	"seine/shard/shardtest"
)

// program runs one of the programs on the crawl.
func (b *bench) program(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), append(args, "--redis", strings.Join(b.addrs(), ","), "--crawl", "seine")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// spent is what a process that ended has used.
func spent(cmd *exec.Cmd) string {
	s := cmd.ProcessState
	most := float64(s.SysUsage().(*syscall.Rusage).Maxrss) * 1024
	return fmt.Sprintf("%.1f s of a processor, %s at most", (s.UserTime() + s.SystemTime()).Seconds(), plainBytes(most))
}

// fetch has a fetcher work on the crawl.
func (b *bench) fetch(ctx context.Context) error {
	before, cpu := b.total(), b.cpu()
	cmd := b.program(ctx, "fetcher", "--allow-net", "127.0.0.0/8", "--out", filepath.Join(b.dir, "records"), "--log-level", "error")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		return err
	}
	began, ended := time.Now(), make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return fmt.Errorf("it ended by itself: %w: %s", err, log.String())
	case <-time.After(*crawlS):
	}
	for end := time.Now().Add(time.Minute); b.total().Done == before.Done && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond) // on a busy machine it may only just have started
	}
	took := time.Since(began).Seconds()
	cmd.Process.Signal(syscall.SIGTERM)
	stopping := time.Now()
	if err := <-ended; err != nil {
		return fmt.Errorf("%w: %s", err, log.String())
	}
	after := b.total()
	pages := float64(after.Done - before.Done)
	if pages == 0 || after.Open > 0 {
		return fmt.Errorf("it settled %.0f pages, %d are open: %s", pages, after.Open, log.String())
	}
	b.say("a fetcher for %.1f s: %.0f pages/s, %.1f new URLs a page, %d retries, %d dead; Redis %.0f us a page; %s; it stopped in %.1f s", took,
		pages/took, float64(after.Known-before.Known)/pages, after.Retried-before.Retried, after.Dead-before.Dead, (b.cpu()-cpu)/pages, spent(cmd), time.Since(stopping).Seconds())
	if strings.Contains(log.String(), "level=ERROR") {
		b.say("  its log: %.500s", log.String())
	}
	return nil
}

// check has frontier check look at the crawl, also at each URL where these are not
// too many.
func (b *bench) check(ctx context.Context) error {
	ways := [][]string{{"check"}}
	if b.total().Queued <= *checkURLs {
		ways = append(ways, []string{"check", "--urls"})
	}
	for _, args := range ways {
		cpu, began := b.cpu(), time.Now()
		cmd := b.program(ctx, "frontier", args...)
		text, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, text)
		}
		b.say("frontier %s: in order after %.1f s; Redis %.1f s of a processor, it %s", strings.Join(args, " "), time.Since(began).Seconds(), (b.cpu()-cpu)/1e6, spent(cmd))
	}
	return nil
}

// restarts kills the master of the first shard and starts it again, from its
// append-only file and from a snapshot. One that has a replica is replaced instead,
// see failover.
func (b *bench) restarts(ctx context.Context) error {
	if b.watched() {
		return nil
	}
	node, p := b.master(0), b.parts[0]
	wait := func(name string) error { return b.until(ctx, node, name) }
	began := time.Now()
	node.Do(b.t, "config", "set", "appendonly", "yes")
	if err := errors.Join(wait("aof_rewrite_in_progress"), wait("aof_rewrite_scheduled")); err != nil {
		return err
	}
	node.Do(b.t, "config", "rewrite")
	wrote, base := time.Since(began), sizeOf(filepath.Join(node.Dir, "appendonlydir"))
	if err := p.load(ctx, p.known+p.known/50, &b.full); err != nil && !errors.Is(err, errFull) {
		return err
	}
	b.say("a master with %s: its append-only file is written in %.1f s, %s, and %s of commands behind it", b.holds(node),
		wrote.Seconds(), plainBytes(base), plainBytes(sizeOf(filepath.Join(node.Dir, "appendonlydir"))-base))
	if err := b.restart(ctx, node, "append-only file"); err != nil {
		return err
	}
	node.Do(b.t, "config", "set", "appendonly", "no")
	node.Do(b.t, "config", "rewrite")
	began = time.Now()
	node.Do(b.t, "bgsave")
	if err := wait("rdb_bgsave_in_progress"); err != nil {
		return err
	}
	b.say("its snapshot is written in %.1f s, %s", time.Since(began).Seconds(), plainBytes(sizeOf(filepath.Join(node.Dir, "dump.rdb"))))
	return b.restart(ctx, node, "snapshot")
}

// holds is what a server's data takes.
func (b *bench) holds(n *shardtest.Node) string {
	info, err := infoOf(b.t.Context(), n, "memory")
	if err != nil {
		return err.Error()
	}
	return plainBytes(info["used_memory"])
}

// until waits until a number of INFO is 0.
func (b *bench) until(ctx context.Context, n *shardtest.Node, name string) error {
	for {
		info, err := infoOf(ctx, n, "persistence")
		if err != nil || info[name] == 0 {
			return err
		}
		time.Sleep(50 * time.Millisecond) // INFO is all that tells
	}
}

// sizeOf is what a file or a directory takes on disk.
func sizeOf(path string) (bytes float64) {
	filepath.Walk(path, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			bytes += float64(info.Size())
		}
		return nil
	})
	return bytes
}

// restart kills a server, starts it again, and says when it answers who waited.
func (b *bench) restart(ctx context.Context, n *shardtest.Node, from string) error {
	before := b.total()
	n.Kill(b.t)
	answered := b.awaits(ctx)
	began := time.Now()
	n.Restart(b.t)
	loaded := time.Since(began)
	if err := <-answered; err != nil {
		return err
	}
	b.say("killed and restarted from its %s: it has loaded after %.1f s, a waiting call is answered after %.1f s", from, loaded.Seconds(), time.Since(began).Seconds())
	return b.same(before)
}

// awaits calls the first shard, and says when it answers.
func (b *bench) awaits(ctx context.Context) <-chan error {
	answered := make(chan error, 1)
	go func() {
		_, err := b.f.Tick(ctx, 0, frontier.TickRequest{})
		answered <- err
	}()
	return answered
}

// same says whether nothing was lost or doubled.
func (b *bench) same(before frontier.ShardStats) error {
	after := b.total()
	if after.Known != before.Known || after.Queued != before.Queued || after.Done != before.Done {
		return fmt.Errorf("known, queued, done were %d, %d, %d and are %d, %d, %d", before.Known, before.Queued, before.Done, after.Known, after.Queued, after.Done)
	}
	return nil
}

// move moves the first shard to another master.
func (b *bench) move(ctx context.Context) error {
	if len(b.parts) == 1 {
		return nil
	}
	stats, err := b.f.Stats(ctx)
	if err != nil {
		return err
	}
	before, from, to := frontier.Total(stats), b.master(0), b.master(1)
	had := b.holds(from)
	pinging, stop := context.WithCancel(ctx)
	stills := make(chan time.Duration, 2)
	for _, n := range []*shardtest.Node{from, to} {
		go func() { stills <- standsStill(pinging, n.Addr) }()
	}
	used := func() float64 {
		one, err1 := usedBy(ctx, from)
		other, err2 := usedBy(ctx, to)
		err = errors.Join(err, err1, err2)
		return (one.us + other.us) / 1e6
	}
	cpu, began := used(), time.Now()
	m := b.server.BeginMove(b.t, stats[0].Slot, to)
	answered := b.awaits(ctx)
	m.Finish(b.t)
	moved := time.Since(began)
	err = errors.Join(err, <-answered)
	took := time.Since(began)
	stop()
	still := max(<-stills, <-stills)
	if err != nil {
		return err
	}
	b.say("a slot with %s moved in %.1f s, 100 keys a call, and %.1f s of a processor of both; a waiting call was answered after %.1f s; the masters stood still for %.2f s at most",
		had, moved.Seconds(), used()-cpu, took.Seconds(), still.Seconds())
	return b.same(before)
}

// standsStill is the longest that a server did not answer.
func standsStill(ctx context.Context, addr string) (longest time.Duration) {
	client := goredis.NewClient(&goredis.Options{Addr: addr, ReadTimeout: time.Minute, MaxRetries: -1})
	defer client.Close()
	often := time.NewTicker(5 * time.Millisecond)
	defer often.Stop()
	for ; ctx.Err() == nil; <-often.C {
		began := time.Now()
		if client.Ping(ctx).Err() == nil {
			longest = max(longest, time.Since(began))
		}
	}
	return longest
}

// failover kills the master of the last shard, which has a replica: in a cluster, one
// that it is given now.
func (b *bench) failover(ctx context.Context) error {
	last := len(b.parts) - 1
	old := b.master(last)
	replica := b.server.Nodes[len(b.server.Nodes)-1]
	switch {
	case len(b.server.Nodes) == 1:
		return nil
	case b.watched():
		if err := inStep(ctx, replica); err != nil {
			return err
		}
		b.say("the replica has %s", b.holds(replica))
	default:
		replica = b.server.AddMaster(b.t)
		began := time.Now()
		replica.Do(b.t, "cluster", "replicate", old.ID())
		if err := inStep(ctx, replica); err != nil {
			return err
		}
		b.say("a replica of %s is in step after %.1f s", b.holds(replica), time.Since(began).Seconds())
	}
	before := b.total()
	began := time.Now()
	old.Kill(b.t)
	if _, err := b.f.Tick(ctx, last, frontier.TickRequest{}); err != nil {
		return err
	}
	b.say("it answered for its killed master after %.1f s (node timeout %v)", time.Since(began).Seconds(), *timeout)
	if err := b.same(before); err != nil {
		return err
	}
	return b.check(ctx)
}

// inStep waits until a replica has all that its master had.
func inStep(ctx context.Context, replica *shardtest.Node) error {
	for {
		info, err := replica.Client().Info(ctx, "replication").Result()
		if err != nil || strings.Contains(info, "master_link_status:up") {
			return err
		}
		time.Sleep(50 * time.Millisecond) // INFO is all that tells
	}
}
