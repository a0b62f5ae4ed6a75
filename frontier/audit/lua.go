package audit

import (
	"embed"

	"seine/frontier/redis"
)

//go:embed lua/*.lua
var texts embed.FS

// The scripts of a check only read; those of a repair give memory back sooner or
// later, so they run above maxmemory too.
var (
	checkScript = redis.PreludeScript(texts, "check", true)
	loansScript = redis.PreludeScript(texts, "loans", true)
	mendScript  = redis.PreludeScript(texts, "mend", false)
	evictScript = redis.PreludeScript(texts, "evict", false)
)
