// Command frontier manages crawls: it creates, seeds, shows, changes, pauses
// and deletes them. One file a verb; what a verb does is in the packages that
// it calls.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/memory"
	"seine/frontier/redis"
	"seine/shard"
)

const about = "Manages crawls, in Redis or in a directory. A value comes from its flag, else the environment (SEINE_ and the flag's name), else the file of --config. " +
	"Exit codes: 0 done, 1 failed, 2 wrong flags, 3 refused because of what is there, 130 aborted."

// cli is the grammar of the program.
type cli struct {
	boot.Common
	boot.RedisFlags
	boot.NameFlag
	JSON  bool   `group:"program" help:"Answer in JSON."`
	State string `group:"program" placeholder:"DIR" help:"Work on the crawl that fetcher --embedded keeps in DIR, whether it runs or not, instead of one in Redis."`

	Create   createCmd   `cmd:"" help:"Create a crawl."`
	Seed     seedCmd     `cmd:"" help:"Queue URLs to start from. It creates the crawl if there is none; beside other crawls only with --create or --shards."`
	Stats    statsCmd    `cmd:"" help:"Show the progress of a crawl and its programs."`
	List     listCmd     `cmd:"" help:"List the crawls in a Redis."`
	Set      setCmd      `cmd:"" help:"Change settings. Running fetchers adopt them within seconds."`
	Shards   shardsCmd   `cmd:"" help:"Show each shard, its server and how full it is."`
	Export   exportCmd   `cmd:"" help:"Write the URLs that are left and the dead letters to a file that seed --file reads."`
	Why      whyCmd      `cmd:"" help:"Explain why a URL was fetched or not."`
	Sites    sitesCmd    `cmd:"" help:"Show the largest or slowest sites."`
	Report   reportCmd   `cmd:"" help:"Show the totals of a whole crawl."`
	Pause    pauseCmd    `cmd:"" help:"Stop leasing sites: of the crawl, a shard or one site."`
	Resume   resumeCmd   `cmd:"" help:"Lease sites again after a pause."`
	Block    blockCmd    `cmd:"" help:"Drop the queue of a site and admit no more of its URLs."`
	Unblock  unblockCmd  `cmd:"" help:"Admit URLs of a blocked site again. The URLs that block dropped stay known: queue them with seed --refetch."`
	Forget   forgetCmd   `cmd:"" help:"Remove the stored credentials of a site, which its seeds had."`
	Dead     deadCmd     `cmd:"" help:"List, count, retry or drop dead letters."`
	Bloom    bloomCmd    `cmd:"" help:"Show, measure, dump or load the Bloom filters."`
	Check    checkCmd    `cmd:"" help:"Check the data of every shard, and repair it."`
	Doctor   doctorCmd   `cmd:"" help:"Check the servers and this machine before a crawl runs, and say what to change."`
	Inspect  inspectCmd  `cmd:"" help:"Show how a crawl reads some input."`
	Identity identityCmd `cmd:"" help:"Make and publish the key that signs requests, check what is published, and write a page about the crawler."`
	Exporter exporterCmd `cmd:"" help:"Serve metrics of a crawl for Prometheus, even if no fetcher runs."`
	Web      webCmd      `cmd:"" help:"Serve a web page with rates, shards, fetchers, sites and dead letters."`
	Plan     planCmd     `cmd:"" help:"Plan machines, memory, time and cost of a crawl from measured unit costs."`
	Delete   deleteCmd   `cmd:"" help:"Delete a crawl."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
}

func main() { os.Exit(boot.Main("frontier", about, &cli{})) }

// client connects without asking much of the servers.
func (c *cli) client(env *boot.Env) (*shard.Client, error) {
	return c.RedisFlags.Open(env.Stop, "frontier", env)
}

// fit connects for a verb that creates a crawl or admits to one: wrong flags and
// servers that would lose data are refused, uneven shards warned of.
func (c *cli) fit(env *boot.Env, crawl *boot.CrawlFlags) (*shard.Client, error) {
	if err := errors.Join(c.NameFlag.Check(), crawl.Check()); err != nil {
		return nil, err
	}
	client, err := c.OpenFit(env.Stop, "frontier", env)
	if err != nil {
		return nil, err
	}
	if crawl.Shards > 0 {
		if err := client.WarnUneven(env.Stop, crawl.Shards); err != nil {
			return nil, errors.Join(err, client.Close())
		}
	}
	return client, nil
}

// open opens the crawl as it is, in Redis or in the directory of --state, and calls
// do with it.
func (c *cli) open(env *boot.Env, do func(context.Context, frontier.Operated) error) error {
	if c.State == "" {
		return c.openRedis(env, func(ctx context.Context, f *redis.Frontier) error { return do(ctx, f) })
	}
	if err := c.fits(env); err != nil {
		return err
	}
	f, err := memory.Open(env.Stop, c.State, env.Log)
	if err != nil {
		return err
	}
	return errors.Join(do(env.Stop, f), f.Close())
}

// openRedis is open for verbs that only Redis has.
func (c *cli) openRedis(env *boot.Env, do func(context.Context, *redis.Frontier) error) error {
	if err := errors.Join(c.onlyRedis(env), c.NameFlag.Check()); err != nil {
		return err
	}
	client, err := c.client(env)
	if err != nil {
		return err
	}
	defer client.Close()
	f, err := redis.Open(env.Stop, client, c.Crawl, nil)
	if err != nil {
		return err
	}
	return do(env.Stop, f)
}

// fits refuses flags that mean nothing to a directory. The file and the
// environment may serve other programs too.
func (c *cli) fits(env *boot.Env) error {
	for _, name := range env.Given {
		if strings.HasPrefix(name, "redis") || slices.Contains(ofRedis, name) {
			return boot.Usage("--%s is for a crawl in Redis, --state for one in a directory: leave one of them out", name)
		}
	}
	return nil
}

// ofRedis names flags that mean nothing to a directory, beside those that begin
// with redis.
var ofRedis = []string{"ack", "crawl", "urls", "shards", "plan-urls", "error-rate", "feed-key", "feed-refetch", "memory-high", "memory-low"}

// onlyRedis refuses --state on the command line where it means nothing.
func (c *cli) onlyRedis(env *boot.Env) error {
	if slices.Contains(env.Given, "state") {
		return boot.Usage("--state: this verb is for crawls in Redis, one in a directory has nothing of the kind")
	}
	return nil
}

// name is that of the crawl: in Redis, or its directory.
func (c *cli) name() string { return cmp.Or(c.State, c.Crawl) }

// siteOf is the site that a person means.
func siteOf(f frontier.Operated, text string) (string, error) {
	site, err := f.Layout().SiteOf(text)
	if err != nil {
		return "", boot.Usage("%w", err)
	}
	return site, nil
}

// answer writes v as JSON, or calls text to write it for people.
func (c *cli) answer(env *boot.Env, v any, text func(w io.Writer)) error {
	if c.JSON {
		e := json.NewEncoder(env.Out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	t := tabwriter.NewWriter(env.Out, 0, 0, 2, ' ', 0)
	text(t)
	return t.Flush()
}

// line writes one answer of several: v as a line of JSON, or text.
func (c *cli) line(w io.Writer, v any, text string) error {
	if c.JSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// row writes cells of a table.
func row(w io.Writer, cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, cell)
	}
	fmt.Fprintln(w)
}
