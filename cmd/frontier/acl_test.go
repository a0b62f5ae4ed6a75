package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"seine/shard"
	"seine/shard/shardtest"
)

// The roles of deploy/acl, as deploy/README.md has them.
var roles = []string{"read", "seed", "fetch", "operate"}

// acl writes an ACL file of all roles for a crawl, and of a default user who may
// do everything, and returns its name.
func acl(t *testing.T, crawl string) string {
	t.Helper()
	text := "user default on nopass ~* &* +@all\n"
	for _, role := range roles {
		file, err := os.ReadFile(filepath.Join("..", "..", "deploy", "acl", role+".acl"))
		if err != nil {
			t.Fatal(err)
		}
		text += strings.NewReplacer("CRAWL", crawl, "PASSWORD", "secret-of-"+role).Replace(string(file))
	}
	name := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// as is an operator who logs in as a role of a crawl.
func (d *operator) as(crawl, role string) *operator {
	other := *d
	other.addr = fmt.Sprintf("redis://%s-%s:secret-of-%s@%s", crawl, role, role, d.addr)
	return &other
}

// Each role does all of its own work, with the real programs, and nothing else;
// what it may not do ends with a message that names the user.
func TestRoles(t *testing.T) {
	t.Parallel()
	fetcher := filepath.Join(t.TempDir(), "fetcher")
	if out, err := exec.Command("go", "build", "-o", fetcher, "../fetcher").CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch {
		case r.URL.Path == "/robots.txt":
			w.Write([]byte("User-agent: *\nDisallow: /dead\n"))
		case r.URL.Path == "/":
			for i := range 30 {
				fmt.Fprintf(w, "<a href=/p%d>", i)
			}
		}
	}))
	defer web.Close()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		s := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 2, Replicas: 1, Directives: []string{"aclfile " + acl(t, "news")}})

		d := newOperator(t, s)
		read, seed, operate := d.as("news", "read"), d.as("news", "seed"), d.as("news", "operate")
		secret := strings.Replace(web.URL, "://", "://usr:sesame@", 1) + "/"
		urls := " --seed " + secret + " --seed " + web.URL + "/dead"
		dump := t.TempDir()

		seed.refused(3, "seed --crawl news --shards 2"+urls, "user news-seed")
		operate.ok("create --crawl news --shards 2 --plan-urls 100 --delay 1ms --duplicates mark")
		operate.refused(3, "create --crawl other --shards 2", "user news-operate")
		seed.ok("seed --crawl news --ack replica"+urls, "admitted 2")

		read.ok("report --crawl news", "seeds 0 settled, 2 not yet; all of them listed", "queued "+web.URL+"/dead")

		run := func(role string) (code int, log string) {
			cmd := exec.Command(fetcher, "--crawl", "news", "--redis", d.as("news", role).addr, "--out", filepath.Join(t.TempDir(), "out.jsonl"),
				"--allow-net", "127.0.0.0/8", "--exit-when-done", "--ack", "replica", "--lease", "5s")
			out, _ := cmd.CombinedOutput()
			return cmd.ProcessState.ExitCode(), string(out)
		}
		for _, role := range []string{"read", "seed"} {
			if code, log := run(role); code == 0 || !strings.Contains(log, "news-"+role) && !strings.Contains(log, "this user of Redis") {
				t.Errorf("a fetcher as %s: code %d, %s", role, code, log)
			}
		}
		feed := shard.FeedKey("news")
		client := d.open("news").Client()
		if _, err := client.Do(t.Context(), 0, feed, "LPUSH", feed, secret); err != nil {
			t.Fatal(err)
		}
		if code, log := run("fetch"); code != 0 {
			t.Errorf("a fetcher: code %d, %s", code, log)
		}
		if left, err := client.Do(t.Context(), 0, feed, "LLEN", feed); left != int64(0) || err != nil {
			t.Errorf("%v elements are left in the feed: %v", left, err)
		}

		read.ok("stats --crawl news", "done 31", "dead 1")
		read.ok("report --crawl news", "finished: nothing is left", "fetchers 1 finished", "seeds 2 settled; all of them listed", "200 "+web.URL+"/")
		read.ok("sites --crawl news", "127.0.0.1")
		d.ok("create --crawl other --shards 2 --plan-urls 100")
		for _, role := range roles { // its own crawl in full, others by name
			d.as("news", role).ok("list", "news ready 2 20", "other forbidden - -")
		}
		read.ok("shards --crawl news")
		read.ok("dead list --crawl news", "/dead")
		read.ok("dead count --crawl news")
		read.ok("block --list --crawl news")
		read.ok("bloom info --crawl news --probe 10")
		operate.ok("bloom dump --crawl news " + dump)
		read.ok("why --crawl news "+web.URL+"/dead", "robots")
		read.ok("export --crawl news "+t.TempDir()+"/news.zst", "queued")
		t.Run("exporter", func(t *testing.T) {
			e := *read
			e.t = t
			code, text := page(t, "http://"+e.serve("exporter", "--crawl", "news", "--listen", "127.0.0.1:0")+"/metrics")
			for _, metric := range []string{"seine_frontier_known_urls", "seine_redis_", "seine_frontier_programs"} {
				if code != http.StatusOK || !strings.Contains(text, "\n"+metric) {
					t.Errorf("code %d, no %s in %s", code, metric, text)
				}
			}
		})
		read.ok("check --urls --crawl news")
		changes := []string{
			"set --delay 2s", "pause", "pause --shard 1", "pause x.example", "resume", "block --reason test x.example",
			"unblock x.example", "dead retry --cause robots", "dead drop --cause robots", "bloom load --force " + dump, "check --repair", "delete news --yes",
		}
		for _, verb := range changes {
			if verb == "resume" || verb == "check --repair" {
				continue // there is nothing to take back, nor to mend
			}
			for _, role := range []string{"read", "seed", "fetch"} {
				d.as("news", role).forbidden(verb, "news-"+role)
			}
		}
		read.refused(3, "seed --crawl news --seed http://x.example/", "user")
		for _, verb := range changes {
			code, out, errs := operate.run(append(strings.Fields(verb), "--crawl", "news")...)
			if code != 0 {
				t.Errorf("operate: %s: code %d, %s%s", verb, code, out, errs)
			}
		}

		for _, role := range roles { // what is not a verb's
			for _, command := range []string{"flushall", "config get masterauth", "acl list", "keys *", "shutdown nosave", "get other:x", "hset other:root epoch 1", "sadd seine:crawls x", "client list",
				"script flush", "debug sleep 0", "replicaof no one", "cluster reset", "migrate 127.0.0.1 1 k 0 1", "monitor", "publish a b"} {
				n := s.Nodes[0].Client().Conn()
				n.AuthACL(t.Context(), "news-"+role, "secret-of-"+role)
				var args []any
				for word := range strings.FieldsSeq(command) {
					args = append(args, word)
				}
				if role == "operate" && command == "sadd seine:crawls x" {
					continue // it makes crawls
				}
				if err := n.Do(t.Context(), args...).Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") {
					t.Errorf("%s: %s: %v", role, command, err)
				}
				n.AuthACL(t.Context(), "default", "")
				n.Close()
			}
		}
	})
}

// forbidden runs a verb that the user may not run.
func (d *operator) forbidden(verb, user string) {
	d.t.Helper()
	if code, out, errs := d.run(append(strings.Fields(verb), "--crawl", "news")...); code != 3 || !strings.Contains(errs, user+" ") && !strings.Contains(errs, "this user of Redis") {
		d.t.Errorf("%s as %s: code %d, %s%s", verb, user, code, out, errs)
	}
}

// Every script of a shard is one that seed or fetch have a right to, or one of those
// that only verbs for people run. A new one stands here or in a file.
func TestRolesKnowEveryScript(t *testing.T) {
	t.Parallel()
	people := []string{"check", "deadletters", "entries", "evict", "leases", "listentries", "look", "mend", "remember", "site"}
	given := map[string]bool{}
	for _, role := range roles {
		file, err := os.ReadFile(filepath.Join("..", "..", "deploy", "acl", role+".acl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`:never:(\w+)`).FindAllStringSubmatch(string(file), -1) {
			given[m[1]] = true
		}
	}
	known := map[string]bool{}
	for _, dir := range []string{"redis", "audit"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "frontier", dir, "lua", "*.lua"))
		if err != nil || len(files) == 0 {
			t.Fatal(err, files)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".lua")
			known[name] = true
			if strings.Contains(string(text), "as in the prelude") && !given[name] && !slices.Contains(people, name) {
				t.Errorf("no file of deploy/acl has never:%s of %s", name, file)
			}
		}
	}
	for name := range given {
		if !known[name] {
			t.Errorf("deploy/acl has never:%s, and there is no such script", name)
		}
	}
}
