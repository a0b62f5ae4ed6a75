package audit

import (
	_ "embed"

	"seine/frontier/redis"
	"seine/shard"
)

var (
	//go:embed lua/check.lua
	checkText string
	//go:embed lua/entries.lua
	entriesText string
	//go:embed lua/leases.lua
	leasesText string
	//go:embed lua/mend.lua
	mendText string
	//go:embed lua/evict.lua
	evictText string
)

// The scripts of a check only read; those of a repair give memory back sooner or
// later, so they run above maxmemory too.
var (
	checkScript   = script("check", checkText, true)
	entriesScript = script("entries", entriesText, true)
	leasesScript  = script("leases", leasesText, true)
	mendScript    = script("mend", mendText, false)
	evictScript   = script("evict", evictText, false)
)

func script(name, text string, reads bool) *shard.Script {
	return redis.PreludeScript(name, shard.ScriptPart{File: "frontier/audit/lua/" + name + ".lua", Text: text}, reads)
}
