package audit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard/shardtest"
)

// chance is a shard that was worked on at random.
type chance struct {
	*stand
	r     *rand.Rand
	gone  map[string]bool // URLs that are done
	seeds int
}

// work admits, leases and settles at random.
func (c *chance) work(steps int) {
	var out []frontier.Visit
	for range steps {
		switch n := c.r.IntN(10); {
		case n < 4:
			site := c.r.IntN(12)
			name := fmt.Sprintf("s%d.example", site)
			var batch []frontier.Candidate
			for range 1 + c.r.IntN(4) {
				x := candidate(name, site*1000+c.seeds)
				x.Priority = uint8(c.r.IntN(4))
				batch, c.seeds = append(batch, x), c.seeds+1
			}
			c.admit(batch...)
		case n < 7:
			c.pass(3 * time.Second)
			out = append(out, c.visit(frontier.VisitLimits{URLs: 1 + c.r.IntN(4)}, c.tick(frontier.TickRequest{Want: 2}).Due...)...)
		case len(out) > 0:
			v := out[c.r.IntN(len(out))]
			st := frontier.Settlement{Lease: v.Lease}
			for _, it := range v.Items {
				kind := []frontier.Kind{frontier.Done, frontier.Done, frontier.Retry, frontier.Dead, frontier.Requeue}[c.r.IntN(5)]
				st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index, Kind: kind, Cause: "gone", NotBefore: time.Minute})
			}
			st.Outcomes = st.Outcomes[:c.r.IntN(len(st.Outcomes)+1)]
			if c.r.IntN(2) == 0 {
				st.Release = &frontier.Release{Remain: time.Second, Delay: time.Second}
			}
			for i, ok := range c.settle(st)[0].Outcomes {
				if ok && st.Outcomes[i].Kind == frontier.Done {
					c.gone[v.Items[i].URL] = true
				}
			}
		}
	}
	c.sound()
}

// hurt deletes something: a key, a field of a hash or a member of a zset. Filters
// stay, and so does what holds URLs now and then.
func (c *chance) hurt() string {
	keys := c.do("KEYS", c.keys.Pattern()).([]any)
	key := keys[c.r.IntN(len(keys))].(string)
	kind := c.do("TYPE", key).(string)
	if kind != "hash" && kind != "zset" && kind != "list" {
		return ""
	}
	if c.r.IntN(3) == 0 || kind == "list" {
		c.do("DEL", key)
		return key
	}
	list, del := "HKEYS", "HDEL"
	if kind == "zset" {
		list, del = "ZRANGE", "ZREM"
	}
	args := []any{list, key}
	if kind == "zset" {
		args = append(args, 0, -1)
	}
	names := c.do(args...).([]any)
	name := names[c.r.IntN(len(names))]
	c.do(del, key, name)
	return fmt.Sprint(key, " ", name)
}

// holds is what the shard stores of URLs, by path, for a visit without a site
// does not say more: queued, waiting and open ones, or dead ones.
func (c *chance) holds(dead bool) map[string]bool {
	paths := map[string]bool{}
	add := func(raw any) {
		text := raw.(string)
		paths[text[strings.Index(text, "/page/"):]] = true
	}
	for _, v := range c.do("KEYS", c.keys.Pattern()).([]any) {
		key := v.(string)
		var list []any
		switch name := strings.TrimPrefix(key, strings.TrimSuffix(c.keys.Meta(), "meta")); {
		case !dead && strings.HasPrefix(name, "q:"), dead && strings.HasPrefix(name, "dead:"):
			list = c.do("LRANGE", key, 0, -1).([]any)
		case !dead && strings.HasPrefix(name, "w:"):
			list = c.do("ZRANGE", key, 0, -1).([]any)
		case !dead && strings.HasPrefix(name, "v:"):
			list = c.do("HVALS", key).([]any)
		}
		for _, raw := range list {
			add(raw)
		}
	}
	return paths
}

// TestRepairRandom deletes at random from shards that were worked on at random.
// Afterwards a repair leaves nothing wrong, but for visits of which nothing says
// whose they are, and whatever was stored still is dead, or fetched once.
func TestRepairRandom(t *testing.T) {
	server := shardtest.One(t)
	hurt, nameless := 0, 0
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := made(t, server)
			defer s.do("FLUSHALL")
			c := &chance{stand: s, r: rand.New(rand.NewPCG(seed, 7)), gone: map[string]bool{}}
			c.work(120)
			var what []string
			for range 1 + c.r.IntN(8) {
				if key := c.hurt(); key != "" {
					what = append(what, key)
				}
			}
			t.Logf("deleted: %q", what)
			want, dead := c.holds(false), c.holds(true)
			found := s.repair()
			if found.Repairs > 0 {
				hurt++
			}
			for _, fault := range found.Faults {
				if !strings.Contains(fault, "of a site that nothing names") {
					t.Errorf("left: %s", fault)
				}
				nameless++
			}
			if found.Faulted == 0 {
				s.sound()
			}
			c.drain(t, want, dead, found.Faulted > 0)
		})
	}
	if hurt < 15 || nameless > 20 {
		t.Errorf("%d shards were mended, %d visits stay nameless: nothing is shown", hurt, nameless)
	}
	t.Logf("%d shards were mended, %d visits stay nameless", hurt, nameless)
}

// drain fetches what is left, and holds it against what was stored.
func (c *chance) drain(t *testing.T, want, dead map[string]bool, nameless bool) {
	got := map[string]int{}
	for range 200 {
		c.pass(15 * time.Second)
		r := c.tick(frontier.TickRequest{Want: 100, MaxExpired: 100})
		c.reap(r.Expired...)
		for _, v := range c.visit(frontier.VisitLimits{URLs: 3}, r.Due...) {
			for _, it := range v.Items {
				got[it.URL[strings.Index(it.URL, "/page/"):]]++
				if c.gone[it.URL] {
					t.Errorf("%s was done, and is fetched again", it.URL)
				}
			}
			c.settle(all(v, frontier.Done))
		}
	}
	stuck := map[string]bool{}
	if nameless {
		stuck = c.holds(false)
	}
	for path := range want {
		if got[path] != 1 && !stuck[path] {
			t.Errorf("%s was fetched %d times", path, got[path])
		}
	}
	after := c.holds(true)
	for path := range dead {
		if !after[path] {
			t.Errorf("the dead letter of %s is lost", path)
		}
	}
	if !nameless {
		c.sound()
	}
}
