package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"seine/cmd/internal/boot"
	"seine/fetch"
	"seine/frontier"
	"seine/frontier/redis"
)

type deadCmd struct {
	List  deadListCmd  `cmd:"" help:"List dead letters, the oldest first."`
	Count deadCountCmd `cmd:"" help:"Count dead letters by cause."`
	Retry deadRetryCmd `cmd:"" help:"Queue dead letters once more."`
	Drop  deadDropCmd  `cmd:"" help:"Forget dead letters."`
}

// choice is which dead letters.
type choice struct {
	Cause string `placeholder:"CAUSE" help:"Only dead letters of this cause; feed: refused elements of the feed."`
	Site  string `placeholder:"SITE" help:"Only this site, or the site of this host."`
	Limit int64  `least:"0" placeholder:"N" help:"Most dead letters."`
}

// causes are those that the worker and the shards name, beside the classes of
// package fetch.
var causes = []string{"status", "robots", "preference", "redirect_loop", "unreachable", "lost", "invalid", "handler", "wall", "payment", "other"}

// noCauses are classes of package fetch that nothing dies of: the first three cut
// a body short, and what was canceled or lacked something here is tried again.
var noCauses = []string{fetch.ClassBodyWire, fetch.ClassBodySize, fetch.ClassDecode, fetch.ClassCanceled, fetch.ClassFiles, fetch.ClassPorts, fetch.ClassBind, fetch.ClassResolver}

// allCauses is what URLs die of, by name.
func allCauses() []string {
	all := slices.Concat(fetch.Classes(), causes)
	slices.Sort(all)
	return slices.DeleteFunc(all, func(c string) bool { return slices.Contains(noCauses, c) })
}

// known refuses a cause that nothing dies of, unless dead letters have it, for they
// may be of another version.
func (c choice) known(ctx context.Context, f frontier.Operated) error {
	if c.Cause == frontier.CauseFeed {
		return boot.Usage("an element of the feed that was refused is refused again; push what was meant, and `frontier dead drop --cause feed`")
	}
	if c.Cause == "" || slices.Contains(allCauses(), c.Cause) {
		return nil
	}
	counts, err := frontier.DeadTotals(ctx, f)
	if err != nil && !errors.Is(err, frontier.ErrPartial) {
		return err
	}
	if err != nil || counts[c.Cause] > 0 {
		return nil
	}
	return unknownCause(c.Cause)
}

func unknownCause(cause string) error {
	return boot.Usage("cause %q is unknown; there are %s", cause, strings.Join(allCauses(), ", "))
}

func (c choice) filter(ctx context.Context, f frontier.Operated) (frontier.DeadFilter, error) {
	filter := frontier.DeadFilter{Cause: c.Cause, Limit: c.Limit}
	if err := c.known(ctx, f); err != nil {
		return filter, err
	}
	if c.Site == "" {
		return filter, nil
	}
	site, err := siteOf(f, c.Site)
	filter.Site = site
	return filter, err
}

type deadListCmd struct{ choice }

// deadLetter is a dead letter as the verb prints it: text from the web is escaped.
type deadLetter struct {
	Shard    int             `json:"shard"`
	Method   string          `json:"method,omitempty"` // but for GET
	URL      string          `json:"url"`
	Site     string          `json:"site"`
	Cause    string          `json:"cause"`
	Error    string          `json:"error"`
	Attempts uint8           `json:"attempts"`
	Depth    uint32          `json:"depth"`
	Meta     json.RawMessage `json:"meta,omitempty"`
}

// Run lists dead letters as they come, JSON a line each.
func (c *deadListCmd) Run(env *boot.Env, g *cli) error {
	if feed, err := c.ofFeed(); err != nil {
		return err
	} else if feed {
		return c.listFeed(env, g)
	}
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		filter, err := c.filter(ctx, f)
		if err != nil {
			return err
		}
		out := json.NewEncoder(env.Out)
		out.SetEscapeHTML(false)
		_, err = frontier.WalkDead(ctx, f, filter, func(k int, batch []frontier.DeadLetter) (int, error) {
			for _, d := range batch {
				l := deadLetter{Shard: k, URL: frontier.LogURL(d.URL), Site: d.Site, Cause: d.Cause, Error: d.Text, Attempts: d.Attempts, Depth: d.Depth, Meta: json.RawMessage(d.Meta)}
				if !d.Request.IsGet() {
					l.Method = d.Request.String()
				}
				if err := g.writeDeadLetter(env.Out, out, l); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		return err
	})
}

func (c *cli) writeDeadLetter(w io.Writer, out *json.Encoder, l deadLetter) error {
	if c.JSON {
		return out.Encode(l)
	}
	url := strconv.Quote(l.URL)
	if l.Method != "" {
		url = l.Method + " " + url
	}
	_, err := fmt.Fprintf(w, "%s\t%s\t%s\tdepth %d\t%q\n", l.Cause, url, boot.Number(int64(l.Attempts), "attempt"), l.Depth, l.Error)
	return err
}

type deadCountCmd struct {
	Cause string `placeholder:"CAUSE" help:"Only dead letters of this cause; feed: refused elements of the feed."`
}

// Run counts dead letters by cause, over all shards.
func (c *deadCountCmd) Run(env *boot.Env, g *cli) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		counts, err := frontier.DeadTotals(ctx, f)
		if err != nil && !errors.Is(err, frontier.ErrPartial) {
			return err
		}
		if c.Cause != "" {
			if err == nil && counts[c.Cause] == 0 && c.Cause != frontier.CauseFeed && !slices.Contains(allCauses(), c.Cause) {
				return unknownCause(c.Cause)
			}
			counts = map[string]int64{c.Cause: counts[c.Cause]}
		}
		return errors.Join(err, g.answer(env, counts, func(w io.Writer) {
			for _, cause := range slices.Sorted(maps.Keys(counts)) {
				row(w, cause, counts[cause])
			}
		}))
	})
}

type deadRetryCmd struct{ choice }

// Run queues dead letters once more.
func (c *deadRetryCmd) Run(env *boot.Env, g *cli) error {
	return c.applyToChosen(env, g, "retried", frontier.Operated.RetryDead)
}

type deadDropCmd struct {
	choice
	Yes bool `help:"Confirm. Needed without --cause and --site."`
}

// Run forgets dead letters.
func (c *deadDropCmd) Run(env *boot.Env, g *cli) error {
	if c.Cause == "" && c.Site == "" && !c.Yes {
		return boot.Usage("this drops all dead letters; give --yes, or choose with --cause or --site")
	}
	if feed, err := c.ofFeed(); err != nil {
		return err
	} else if feed {
		return c.dropFeed(env, g)
	}
	return c.applyToChosen(env, g, "dropped", frontier.Operated.DropDead)
}

// applyToChosen calls use with the chosen dead letters and returns how many it took.
func (c choice) applyToChosen(env *boot.Env, g *cli, word string, use func(frontier.Operated, context.Context, int, []frontier.DeadLetter) (int, error)) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		filter, err := c.filter(ctx, f)
		if err != nil {
			return err
		}
		taken := 0
		visited, err := frontier.WalkDead(ctx, f, filter, func(k int, batch []frontier.DeadLetter) (int, error) {
			n, err := use(f, ctx, k, batch)
			taken += n
			return n, err
		})
		if err != nil && !errors.Is(err, frontier.ErrPartial) {
			return err
		}
		return errors.Join(err, g.answer(env, map[string]int64{word: int64(taken), "left": visited - int64(taken)}, func(w io.Writer) {
			fmt.Fprintf(w, "%s %d\n", word, taken)
			if left := visited - int64(taken); left > 0 {
				fmt.Fprintf(w, "left %d, of blocked sites or taken by others\n", left)
			}
		}))
	})
}

// ofFeed reports whether the choice is refused elements of the feed, which have no
// site.
func (c choice) ofFeed() (bool, error) {
	if c.Cause == frontier.CauseFeed && c.Site != "" {
		return true, boot.Usage("--site: refused elements of the feed have no site; leave it out")
	}
	return c.Cause == frontier.CauseFeed, nil
}

// most is --limit, where none is given no bound.
func (c choice) most() int64 {
	if c.Limit == 0 {
		return math.MaxInt64
	}
	return c.Limit
}

// listFeed lists refused elements of the feed, JSON a line each.
func (c choice) listFeed(env *boot.Env, g *cli) error {
	return g.openRedis(env, func(ctx context.Context, f *redis.Frontier) error {
		const page = 500
		for at := int64(0); at < c.most(); at += page {
			list, err := f.DeadElements(ctx, at, min(page, c.most()-at))
			for _, element := range list {
				fmt.Fprintln(env.Out, element)
			}
			if err != nil || len(list) < page {
				return err
			}
		}
		return nil
	})
}

// dropFeed forgets refused elements of the feed.
func (c choice) dropFeed(env *boot.Env, g *cli) error {
	return g.openRedis(env, func(ctx context.Context, f *redis.Frontier) error {
		n, err := f.DropFeed(ctx, c.most())
		if err != nil {
			return err
		}
		return g.answer(env, map[string]int64{"dropped": n, "left": 0}, func(w io.Writer) { fmt.Fprintf(w, "dropped %d\n", n) })
	})
}
