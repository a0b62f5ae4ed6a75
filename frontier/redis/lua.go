package redis

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"seine/shard"
)

//go:embed lua/*.lua
var texts embed.FS

// allowOOM lets a script run above maxmemory: all but admission give memory
// back sooner or later. Admission has no such line, and no line of this form at
// all, so that it runs there until its first write is refused.
const allowOOM = "#!lua flags=allow-oom\n"

// readOnly lets a script that only reads run also where a server takes no writes:
// above maxmemory, without replicas, or with a disk that fails.
const readOnly = "#!lua flags=no-writes\n"

// The scripts of a shard. What runs is the prelude and then the file; some
// have other files between.
var (
	admitScript       = script("admit", "", "tries", "watermarks", "filters", "bytes")
	rememberScript    = script("remember", "", "filters")
	duplicatesScript  = script("duplicates", "", "filters")
	tickScript        = script("tick", allowOOM)
	visitScript       = script("visit", allowOOM, "tries", "choose")
	settleScript      = script("settle", allowOOM, "tries", "counters", "release", "walls")
	renewScript       = script("renew", allowOOM, "tries")
	reapScript        = script("reap", allowOOM, "tries")
	deadLettersScript = script("deadletters", allowOOM, "tries")
	siteScript        = script("site", allowOOM, "tries")
	reserveScript     = script("reserve", allowOOM, "tries")
	noteScript        = script("note", "")
	credentialsScript = script("credentials", "", "tries")
	rulesScript       = script("rules", readOnly)
	lookScript        = script("look", readOnly)
	listEntriesScript = script("listentries", readOnly)
	setRulesScript    = script("setrules", "")
	statsScript       = bare("stats", readOnly, "watermarks")
)

// The scripts of a crawl's other keys stand alone, and what tries them all.
var (
	liveScript     = bare("live", allowOOM)
	membersScript  = bare("members", readOnly)
	peekFeedScript = bare("peekfeed", allowOOM)
	takeFeedScript = bare("takefeed", allowOOM)

	pagesScript  = bare("pages", allowOOM)
	rebookScript = bare("rebook", allowOOM)
	rightsScript = bare("rights", allowOOM)
)

func script(name, flags string, with ...string) *shard.Script {
	return bare(name, flags, append([]string{"prelude"}, with...)...)
}

// bare is a script that runs without the prelude.
func bare(name, flags string, with ...string) *shard.Script {
	var parts []shard.ScriptPart
	for _, file := range append(with, name) {
		parts = append(parts, part(file))
	}
	return shard.JoinScript(name, flags, parts...)
}

// part is one of the embedded files.
func part(name string) shard.ScriptPart {
	return shard.ScriptPart{File: "frontier/redis/lua/" + name + ".lua", Text: text(name)}
}

// text is one of the embedded files; a missing one is a fault of the build.
func text(name string) string {
	b, err := texts.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// rightsWait is how long a program that starts waits for the rights on a shard.
const rightsWait = 5 * time.Second

// rights fails with shard.ErrUnfit where our user of Redis may not run what
// scripts do. A shard that does not answer now is asked before the first script
// there. A right taken away later is missed before the first write of a script, see
// lua/tries.lua. Cost: a call a shard, side by side.
func (f *Frontier) rights(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, rightsWait)
	defer cancel()
	errs := make([]error, len(f.keys))
	var wg sync.WaitGroup
	for k := range f.keys {
		wg.Go(func() { errs[k] = f.rightsOn(short, k) })
	}
	wg.Wait()
	for k, err := range errs {
		if isLate(ctx, err) && !errors.Is(err, shard.ErrUnfit) {
			errs[k] = nil
			f.rightsUntried[k].Store(true)
		}
	}
	return errors.Join(errs...)
}

// rightsOn is rights on shard k.
func (f *Frontier) rightsOn(ctx context.Context, k int) error {
	raw, err := f.run(ctx, k, rightsScript, []string{f.keys[k].Rights(), f.keys[k].Never(rightsScript.Name)}, 0)
	var no []string
	switch {
	case err != nil && strings.Contains(err.Error(), "NOPERM"):
		no = []string{"EVALSHA"}
	case err != nil:
		return err
	}
	for _, v := range shard.Array(raw) {
		no = append(no, shard.Text(v))
	}
	if len(no) == 0 {
		return nil
	}
	slices.Sort(no)
	return &shard.Error{Shard: k, Op: "open", Err: fmt.Errorf("%w: this user of Redis may not run %s on keys such as %s, which scripts need; allow it (ACL SETUSER … +%s)",
		shard.ErrUnfit, strings.Join(no, ", "), shard.KeysOf(f.crawl, "…").Meta(), strings.ToLower(strings.Join(no, " +")))}
}

// awaitRights waits until our user has its rights on a shard that was silent
// when the program started. The client tells of it.
func (f *Frontier) awaitRights(ctx context.Context, k int) error {
	if !f.rightsUntried[k].Load() {
		return nil
	}
	return f.client.Await(ctx, k, "rights", f.keys[k].Meta(), func(ctx context.Context) error {
		err := f.rightsOn(ctx, k)
		if err == nil {
			f.rightsUntried[k].Store(false)
		}
		return err
	})
}
