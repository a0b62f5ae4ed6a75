package main

import (
	"errors"
	"slices"
	"strings"

	"seine/cmd/internal/boot"
)

// check finds what is wrong with the flags before anything is opened.
func (g *grammar) check(env *boot.Env) error {
	err := errors.Join(g.NameFlag.Check(), g.CrawlFlags.Check(), g.ProcessFlags.Check(), g.FetchFlags.Check())
	if err == nil && slices.Contains(env.Given, "out") && slices.ContainsFunc(g.Out, hasPassword) {
		return boot.Usage("out: a password on the command line is seen by all users of the machine: put it into the environment or a file, see extract/sink/README.md")
	}
	if err == nil {
		_, err = g.destinations()
	}
	if settings := g.ToSettings(); err == nil && (g.Embedded || g.Shards > 0) { // else the crawl may know more
		err = boot.CheckAgent(&settings)
	}
	if err != nil || !g.Embedded {
		return err
	}
	// The file and the environment may serve other programs too.
	for _, name := range env.Given {
		if strings.HasPrefix(name, "redis") || slices.Contains(ofRedis, name) {
			return boot.Usage("--%s is for a crawl in Redis, --embedded crawls without: leave one of them out", name)
		}
	}
	return nil
}

// ofRedis names the flags that mean nothing to a crawl in one process, beside
// those that begin with redis.
var ofRedis = []string{"ack", "crawl", "shards", "plan-urls", "error-rate", "feed-key", "feed-refetch", "overflow", "memory-high", "memory-low"}

// redirects is --max-redirects as the crawler wants it, where 0 is the default.
func (g *grammar) redirects() int {
	if g.MaxRedirects == 0 {
		return -1
	}
	return g.MaxRedirects
}
