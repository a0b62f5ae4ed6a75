// Command frontier manages crawls: it creates, seeds, shows, changes, pauses
// and deletes them. One file a verb; what a verb does is in the packages that
// it calls.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"seine/cmd/internal/boot"
	"seine/frontier/redis"
	"seine/shard"
)

const about = "Manages crawls in Redis. A value comes from its flag, else the environment (SEINE_ and the flag's name), else the file of --config. " +
	"Exit codes: 0 done, 1 failed, 2 wrong flags, 3 refused because of what is there, 130 aborted."

// cli is the grammar of the program.
type cli struct {
	boot.Common
	boot.RedisFlags
	boot.NameFlag
	JSON bool `group:"program" help:"Answer in JSON."`

	Create  createCmd  `cmd:"" help:"Create a crawl."`
	Seed    seedCmd    `cmd:"" help:"Feed URLs to start from."`
	Stats   statsCmd   `cmd:"" help:"Show how far a crawl is and who works on it."`
	List    listCmd    `cmd:"" help:"List the crawls of a Redis."`
	Set     setCmd     `cmd:"" help:"Change settings; running fetchers follow within seconds."`
	Shards  shardsCmd  `cmd:"" help:"Show the shards, where they are and how full."`
	Pause   pauseCmd   `cmd:"" help:"Stop lending: the crawl, a shard or a site."`
	Resume  resumeCmd  `cmd:"" help:"Take a pause back."`
	Block   blockCmd   `cmd:"" help:"Drop a site's queue, for good, and admit nothing more of it."`
	Unblock unblockCmd `cmd:"" help:"Admit a blocked site again; what block dropped stays dropped, and known: seed it with --again."`
	Dead    deadCmd    `cmd:"" help:"List, count, retry or drop what was given up."`
	Bloom   bloomCmd   `cmd:"" help:"Show, measure, dump or load the filters."`
	Check   checkCmd   `cmd:"" help:"Compare the shards with the rules that hold them together."`
	Inspect inspectCmd `cmd:"" help:"Show what a crawl would make of some input."`
	Plan    planCmd    `cmd:"" help:"Plan machines, memory, time and cost of a crawl from measured unit costs."`
	Delete  deleteCmd  `cmd:"" help:"Delete a crawl."`
}

func main() { os.Exit(boot.Main("frontier", about, &cli{})) }

// client connects without asking much of the servers.
func (c *cli) client(env *boot.Env) (*shard.Client, error) {
	return c.RedisFlags.Open(env.Stop, "frontier", env.Log)
}

// fit connects for a verb that creates a crawl or admits to one: wrong flags and
// servers that would lose data are refused, uneven shards warned of.
func (c *cli) fit(env *boot.Env, crawl *boot.CrawlFlags) (*shard.Client, error) {
	if err := errors.Join(c.NameFlag.Check(), crawl.Check()); err != nil {
		return nil, err
	}
	client, err := c.OpenFit(env.Stop, "frontier", env.Log)
	if err != nil {
		return nil, err
	}
	if err := crawl.WarnShards(env.Stop, client, env.Log); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// open opens the crawl as it is and calls do with it.
func (c *cli) open(env *boot.Env, do func(context.Context, *redis.Frontier) error) error {
	if err := c.NameFlag.Check(); err != nil {
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

// siteOf is the site that a person means.
func siteOf(f *redis.Frontier, text string) (string, error) {
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
