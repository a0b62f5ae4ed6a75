package redis_test

import (
	"context"
	"crypto/sha1"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"seine/frontier"
	"seine/frontier/audit"
	"seine/frontier/canon"
	"seine/frontier/frontiertest"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

// denier takes rights away: a hook of go-redis that runs each script without the
// right to some command of it first. The script must then be refused, and no key of it
// be another; or do without.
type denier struct {
	t     *testing.T
	admin *goredis.Client
	on    atomic.Bool

	mu    sync.Mutex
	rand  *rand.Rand
	texts map[string]string         // scripts by SHA-1
	tried map[string]map[string]int // per script, how often without each command
	held  map[string]int            // how often a script was refused
}

func (d *denier) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (d *denier) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return next(ctx, cmds)
	}
}

func (d *denier) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		d.mu.Lock() // others lack no right meanwhile
		defer d.mu.Unlock()
		if cmd.Name() != "eval" && cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		all := words(cmd)
		text := fmt.Sprint(all[1])
		if cmd.Name() == "evalsha" {
			if text = d.texts[text]; text == "" { // it is sent whole next
				return next(ctx, cmd)
			}
		}
		d.texts[fmt.Sprintf("%x", sha1.Sum([]byte(text)))] = text
		name := scriptName(text)
		if !d.on.Load() || name == "" || name == "rights" { // of a test; or made to find what is missing
			return next(ctx, cmd)
		}
		var n int
		fmt.Sscan(fmt.Sprint(all[2]), &n)
		keys := all[3 : 3+n]
		for _, command := range d.some(name, commandsOf(text)) {
			before := d.state(keys)
			d.acl("-" + command)
			try := goredis.NewCmd(ctx, all...)
			err := next(ctx, try)
			d.acl("+" + command)
			d.tried[name][command]++
			if err == nil || err == goredis.Nil || answers.MatchString(err.Error()) { // it did without
				cmd.SetErr(err)
				cmd.(*goredis.Cmd).SetVal(try.Val())
				return err
			}
			if !refused.MatchString(err.Error()) {
				d.t.Errorf("%s without %s: %v", name, command, err)
			}
			d.held[name]++
			if name == "duplicates" && commandsBefore[command] { // nothing was written yet; another program may just make the filter
				continue
			}
			if after := d.state(keys); !maps.Equal(after, before) {
				d.t.Errorf("%s without %s broke off in the middle (%v)", name, command, err)
				for key, was := range before {
					if after[key] != was {
						d.t.Logf("%s: %q, was %q", key, after[key], was)
					}
				}
			}
		}
		return next(ctx, cmd)
	}
}

// some are the commands that a script is run without now: those that it was not yet,
// and a few of the others.
func (d *denier) some(name string, commands []string) (list []string) {
	if d.tried[name] == nil {
		d.tried[name] = make(map[string]int)
	}
	for _, c := range commands {
		if d.tried[name][c] < 2 || d.rand.IntN(len(commands)) < 2 {
			list = append(list, c)
		}
	}
	return list
}

func (d *denier) acl(rule string) {
	if err := d.admin.Do(context.Background(), "acl", "setuser", "app", rule).Err(); err != nil {
		d.t.Error(rule, err)
	}
}

// state is what keys hold, and when they go.
func (d *denier) state(keys []any) map[string]string {
	ctx := context.Background()
	state := make(map[string]string)
	pipe := d.admin.Pipeline()
	for _, k := range keys {
		pipe.Do(ctx, "dump", k)
		pipe.Do(ctx, "pexpiretime", k)
		pipe.HGetAll(ctx, fmt.Sprint(k))
	}
	replies, _ := pipe.Exec(ctx)
	for i, k := range keys {
		held := fmt.Sprint(replies[3*i].(*goredis.Cmd).Val())
		if fields := replies[3*i+2].(*goredis.MapStringStringCmd); fields.Err() == nil && len(fields.Val()) > 0 {
			held = fmt.Sprint(fields.Val()) // the dump of a hash has its fields in any order
		}
		state[fmt.Sprint(k)] = fmt.Sprint(held, replies[3*i+1].(*goredis.Cmd).Val())
	}
	return state
}

// commandsBefore are those that duplicates runs before its one write.
var commandsBefore = map[string]bool{"HMGET": true, "TIME": true, "HGET": true, "EXISTS": true, "BF.MEXISTS": true, "BF.CARD": true, "BF.INFO": true}

// answers are the error replies of scripts themselves.
var answers = regexp.MustCompile(`^(ERR )?(STALE|EMPTY|KEYS|GROW|LOST|OPEN|UNSET) `)

var (
	refused    = regexp.MustCompile(`user executing the script|ACL failure|NOPERM`)
	nameLine   = regexp.MustCompile(`(?m)^-- ([a-z]+): `)
	ranCommand = regexp.MustCompile(`p?call\('([A-Z.]+)'|ipairs \{('[A-Z', ]+)\} do call`)
)

// scriptName is the last file that a script is put together of, "" of one that is not ours.
func scriptName(text string) string {
	all := nameLine.FindAllStringSubmatch(text, -1)
	if len(all) == 0 || !strings.Contains(text, "\n-- Repeat ") {
		return ""
	}
	return all[len(all)-1][1]
}

// commandsOf are the commands that a script runs.
func commandsOf(text string) []string {
	set := make(map[string]bool)
	for _, m := range ranCommand.FindAllStringSubmatch(text, -1) {
		for _, c := range strings.Split(m[1]+m[2], ",") {
			set[strings.Trim(c, "' ")] = true
		}
	}
	if strings.Contains(text, "call(push,") {
		set["RPUSH"], set["LPUSH"] = true, true
	}
	return slices.Sorted(maps.Keys(set))
}

// TestEachRightMissing runs every script without each command that it runs, all the
// way through the conformance suite: what lacks a right changes nothing.
func TestEachRightMissing(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		s := shardtest.Start(t, shardtest.Config{Kind: kind})
		d := &denier{t: t, admin: s.Nodes[0].Client(), rand: rand.New(rand.NewPCG(1, 2)),
			texts: make(map[string]string), tried: make(map[string]map[string]int), held: make(map[string]int)}
		s.Nodes[0].Do(t, "acl", "setuser", "app", "reset", "on", ">secret", "~*", "&*", "+@all")
		client, err := shard.Open(t.Context(), shard.Config{Addrs: []string{"redis://app:secret@" + s.Addrs[0]}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		fl := &fleet{client: client, shards: 2, repeat: &repeater{rand: rand.New(rand.NewPCG(1, 2))}}
		each(t, client, func(n *goredis.Client) { n.AddHook(d) })
		frontiertest.Run(t, func(t testing.TB) frontiertest.Backend {
			d.on.Store(false)
			b := fl.open(t)
			// Eight callers at once make a filter there, over connections that this hook
			// does not see: they must not lack the right that another's script is denied.
			d.on.Store(!strings.HasSuffix(t.Name(), "/duplicates/at_once"))
			t.Cleanup(func() { d.on.Store(false) })
			return b
		})
		d.on.Store(false)
		b := fl.openWide(t).Frontier.(*redis.Frontier)
		d.on.Store(true)
		further(t, b, s.Nodes[0].Client())
		d.on.Store(false)
		for _, name := range writers {
			for _, c := range slices.Sorted(maps.Keys(d.tried[name])) {
				if d.tried[name][c] == 0 {
					t.Errorf("%s was never run without %s", name, c)
				}
			}
			if d.held[name] == 0 {
				t.Errorf("%s was never refused", name)
			}
		}
		t.Log(d.held)
	})
}

// further runs the scripts that the suite does not.
func further(t *testing.T, f *redis.Frontier, rdb *goredis.Client) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	print := canon.FingerprintOf([]byte("a.example"), []byte("http://a.example/"))
	k := f.Of(print)
	for i := range 40 { // one that does without a command ends the trials of its call
		_, _, err := f.Set(ctx, func(s *frontier.Settings) error { s.Delay = time.Duration(1+i) * time.Second; return nil }) // swap
		must(err)
		must(f.SetRules(ctx, k, []frontier.OriginRules{{Site: "a.example", Origin: "http://a.example:80", Rules: []byte("1"), TTL: time.Hour},
			{Site: "a.example", Origin: "https://a.example:443", Rules: []byte("2"), TTL: time.Hour}}))
		_, err = f.Remember(ctx, k, 0, []any{fmt.Sprintf("%016d", i)})
		must(err)
		must(f.Renew(ctx, k, []frontier.Renewal{{Site: "a.example", Key: uint64(i)}}))
	}

	// peek and take, with an element that is put aside, tried again and done.
	must(rdb.LPush(ctx, shard.FeedKey(f.Crawl()), `{"url":"http://b.example/1"}`, `{"url":"http://b.example/2"}`).Err())
	for _, late := range [][]int{{0}, {0}, nil} {
		_, err := f.DrainFeed(ctx, func(context.Context, []frontier.FeedItem) ([]int, error) { return late, nil })
		must(err)
	}
	if n, err := f.FeedLen(ctx); n != 0 || err != nil {
		t.Errorf("%d elements of the feed are left: %v", n, err)
	}

	// pages and rebook: f1 is gone with the whole limit.
	_, err := f.Announce(ctx, frontier.Member{ID: "f1", Kind: frontier.KindFetcher})
	must(err)
	for seq := range int64(3) {
		_, err = f.ClaimPages(ctx, frontier.PageClaim{Limit: 2, Fetcher: "f1", Seq: seq + 1, Want: 2})
		must(err)
	}
	must(f.Leave(ctx, frontier.Member{ID: "f1"}))
	if g, err := f.ClaimPages(ctx, frontier.PageClaim{Limit: 2, Fetcher: "f2", Seq: 1}); g.Left != 2 || err != nil {
		t.Errorf("%+v, want 2 pages left: %v", g, err)
	}

	// mend and evict: a site is in no zset, and holds what nobody can read.
	must(f.Admit(ctx, k, []frontier.Candidate{{URL: "http://a.example/", Site: "a.example", Fingerprint: print}}, make([]frontier.Verdict, 1)))
	must(rdb.Del(ctx, f.Keys(k).Ready(0)).Err())
	must(rdb.RPush(ctx, f.Keys(k).Queue("a.example", 0), "no entry").Err())
	must(rdb.HIncrBy(ctx, f.Keys(k).Stats(), "queued", 1).Err())
	must(rdb.HIncrBy(ctx, f.Keys(k).Stats(), "known", 1).Err())
	report, err := audit.Repair(ctx, f, k, true)
	must(err)
	if again, err := audit.Check(ctx, f, k, true); err != nil || len(again.Faults) > 0 {
		t.Errorf("%+v after %+v: %v", again, report, err)
	}
}

// writers are the scripts that change keys.
var writers = []string{"admit", "remember", "duplicates", "tick", "visit", "settle", "renew", "reap", "deadletters", "site",
	"reserve", "note", "credentials", "setrules", "live", "peekfeed", "takefeed", "pages", "rebook", "swap", "mend", "evict"}
