package redis

import (
	"embed"

	"context"
	"fmt"
	"slices"
	"strings"

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

// The scripts of a shard. What runs is the prelude and then the file; those that
// look at memory have marks between.
var (
	admitScript    = script("admit", "", "marks", "filters")
	rememberScript = script("remember", "", "filters")
	tickScript     = script("tick", allowOOM)
	visitScript    = script("visit", allowOOM)
	settleScript   = script("settle", allowOOM)
	reapScript     = script("reap", allowOOM)
	lettersScript  = script("letters", allowOOM)
	siteScript     = script("site", allowOOM)
	rulesScript    = script("rules", readOnly)
	setRulesScript = script("setrules", "")
	statsScript    = bare("stats", readOnly, "marks")
)

// The scripts of a crawl's other keys stand alone, and what tries them all.
var (
	liveScript    = bare("live", allowOOM)
	membersScript = bare("members", readOnly)
	peekScript    = bare("peek", allowOOM)
	takeScript    = bare("take", allowOOM)

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

// rights fails with shard.ErrUnfit where our user of Redis may not run what
// scripts do. Rights taken away later are not noticed before they are missed.
// Cost: a call a shard.
func (f *Frontier) rights(ctx context.Context) error {
	for k := range f.keys {
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
			continue
		}
		slices.Sort(no)
		return &shard.Error{Shard: k, Op: "open", Err: fmt.Errorf("%w: this user of Redis may not run %s on keys such as %s, and scripts would break off in the middle; allow it (ACL SETUSER … +%s)",
			shard.ErrUnfit, strings.Join(no, ", "), f.keys[k].Meta(), strings.ToLower(strings.Join(no, " +")))}
	}
	return nil
}
