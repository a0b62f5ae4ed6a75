// Command fetcher is one of any number of identical members of a crawl's fleet.
package main

import (
	"os"

	"seine/cmd/internal/boot"
)

// grammar is the fetcher's flags.
type grammar struct {
	boot.Common
	boot.RedisFlags
	boot.NameFlag
	boot.CrawlFlags
	boot.SeedFlags
	boot.ProcessFlags
	boot.FetchFlags
	MaxLinks int `least:"1" group:"net" default:"20000" placeholder:"N" help:"Most links taken from one page (${default})."`
}

func main() {
	os.Exit(boot.Main("fetcher", "Fetches the URLs of a crawl: a member of a fleet that shares Redis, or with --embedded a whole crawl in one process.", new(grammar)))
}
