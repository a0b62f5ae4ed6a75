// Command fetcher is one of any number of identical workers of a crawl.
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
	FetchFlags
}

func main() {
	os.Exit(boot.Main("fetcher", "Fetches the URLs of a crawl: a member of a fleet that shares Redis, or with --embedded a whole crawl in one process.", new(grammar)))
}
