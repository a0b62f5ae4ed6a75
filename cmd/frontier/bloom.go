package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/redis"
)

type bloomCmd struct {
	Info bloomInfoCmd `cmd:"" help:"Show every filter and its measured rate of false positives."`
	Dump bloomDumpCmd `cmd:"" help:"Write the filters to a directory, one file per shard."`
	Load bloomLoadCmd `cmd:"" help:"Load filters that bloom dump wrote."`
}

type bloomInfoCmd struct {
	someShards
	Probe int `least:"0" placeholder:"N" help:"Probe each filter with N random fingerprints now."`
}

// Run shows the filters. It fails when some are missing, after it showed the
// others.
func (c *bloomInfoCmd) Run(env *boot.Env, g *cli) error {
	return g.openRedis(env, func(ctx context.Context, f *redis.Frontier) error {
		var shards []int
		if c.Shard != nil {
			if err := checkShard(f, *c.Shard); err != nil {
				return err
			}
			shards = append(shards, *c.Shard)
		}
		list, err := f.Filters(ctx, c.Probe, shards...)
		if err != nil && !errors.Is(err, frontier.ErrPartial) {
			return err
		}
		err = errors.Join(err, g.answer(env, list, func(w io.Writer) { printFilters(w, list) }))
		for _, s := range list {
			if s.Missing {
				return errors.Join(err, fmt.Errorf("%w: shard %d; %s", frontier.ErrLostFilter, s.Shard, restore(s.Shard)))
			}
		}
		return err
	})
}

// restore is what to do when filters of a shard are missing.
func restore(k int) string { return fmt.Sprintf("restore it: frontier bloom load DIR --shard %d", k) }

// minFill is from where on bits a URL say something of a filter.
const minFill = 0.01

func printFilters(w io.Writer, list []redis.FilterState) {
	row(w, "SHARD", "FILTER", "URLS", "CAPACITY", "FILL", "LAYERS", "SIZE", "BITS/URL", "PROBES", "FALSE POSITIVES", "URLS LOST")
	for _, s := range list {
		if s.Missing {
			row(w, s.Shard, s.Filter, "-", "-", "-", "-", "-", "-", "-", "MISSING", restore(s.Shard))
			continue
		}
		probes, measured, lost, bits := s.Live.N, s.Live.Probe.String(), s.Live.Lost.String(), "-"
		if s.Live.All.N == 0 {
			lost = "-"
		}
		if s.Probe != nil {
			probes, measured = s.Probe.N, s.Probe.String()
		}
		if s.Unread != "" && s.Probe == nil {
			measured = "UNREADABLE"
		}
		if s.Over {
			measured += " OVER"
		}
		if s.Fill >= minFill {
			bits = fmt.Sprintf("%.1f", s.BitsPerURL)
		}
		name := any(s.Filter)
		if s.Filter == redis.ContentsFilter {
			name = "contents"
		}
		row(w, s.Shard, name, s.Items, s.Capacity, fmt.Sprintf("%.1f%%", 100*s.Fill), s.Layers, boot.Bytes(uint64(s.Bytes)), bits, probes, measured, lost)
	}
	for _, s := range list {
		if s.Stuck {
			fmt.Fprintf(w, "shard %d, filter %d: a key of %s cannot move to another master; frontier check has more\n", s.Shard, s.Filter, boot.Bytes(uint64(s.Largest)))
		}
		if s.Unread != "" {
			fmt.Fprintf(w, "shard %d, filter %d: %s\n", s.Shard, s.Filter, s.Unread)
		}
	}
	if len(list) > 0 {
		fmt.Fprintf(w, "allowed: %g false positives a probe; log2(1/rate) = %.1f bits a URL\n", list[0].Promised, list[0].IdealBits)
	}
}

// dumpName is the file of one shard.
func dumpName(dir string, k int) string {
	return filepath.Join(dir, fmt.Sprintf("shard-%04d.bloom", k))
}

// contentsName is the file of one shard's contents, beside that of its URLs.
func contentsName(name string) string { return strings.TrimSuffix(name, ".bloom") + ".contents.bloom" }

// checkShard refuses a --shard that the crawl does not have.
func checkShard(f frontier.Operated, k int) error {
	if k < 0 || k >= f.Shards() {
		return boot.Usage("--shard: the crawl has shards 0 to %d", f.Shards()-1)
	}
	return nil
}

// someShards are all shards of a crawl, or one.
type someShards struct {
	Shard *int `placeholder:"K" help:"Only this shard."`
}

// each calls do with every shard, or the one, and its file, in order. The error
// returns with which it was done before, in the words of the verb.
func (s someShards) each(f *redis.Frontier, dir, done string, do func(k int, name string) error) (n int, err error) {
	from, to := 0, f.Shards()
	if s.Shard != nil {
		if err := checkShard(f, *s.Shard); err != nil {
			return 0, err
		}
		from, to = *s.Shard, *s.Shard+1
	}
	for k := from; k < to; k++ {
		name := dumpName(dir, k)
		switch err := do(k, name); {
		case err == nil:
		case n == 0:
			return 0, fmt.Errorf("%s no shard; shard %d: %w", done, k, err)
		case n == 1:
			return 1, fmt.Errorf("%s shard %d; shard %d: %w", done, from, k, err)
		default:
			return n, fmt.Errorf("%s shards %d to %d; shard %d: %w", done, from, k-1, k, err)
		}
		n++
	}
	return n, nil
}

type bloomDumpCmd struct {
	someShards
	Dir string `arg:"" help:"Directory; created if it does not exist."`
}

// Run dumps shards. A file that is there is complete.
func (c *bloomDumpCmd) Run(env *boot.Env, g *cli) error {
	return g.openRedis(env, func(ctx context.Context, f *redis.Frontier) error {
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return err
		}
		n, err := c.each(f, c.Dir, "dumped", func(k int, name string) error {
			if err := dumpContents(ctx, f, k, contentsName(name)); err != nil {
				return err
			}
			return dumpFile(name, func(w io.Writer) error { return f.DumpFilters(ctx, k, w) })
		})
		if err != nil {
			return err
		}
		return g.answer(env, map[string]any{"dumped": n, "dir": c.Dir}, func(w io.Writer) {
			fmt.Fprintf(w, "dumped %s to %s\n", boot.Number(int64(n), "shard"), c.Dir)
		})
	})
}

// dumpContents writes the filter of contents of a shard that has one. Without one
// there is no file.
func dumpContents(ctx context.Context, f *redis.Frontier, k int, name string) error {
	there := false
	err := dumpFile(name, func(w io.Writer) (err error) {
		there, err = f.DumpContents(ctx, k, w)
		return err
	})
	if err == nil && !there {
		err = os.Remove(name)
	}
	return err
}

// dumpFile writes beside the name, to a file that no other dump has, and renames
// it in the end.
func dumpFile(name string, dump func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return err
	}
	err = dump(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return os.Rename(file.Name(), name)
}

type bloomLoadCmd struct {
	someShards
	Dir   string `arg:"" help:"Directory that bloom dump wrote."`
	Force bool   `help:"Replace filters that hold URLs. The crawl forgets URLs seen since the dump and fetches them again if it finds them again."`
}

// Run loads shards in order, up to the first that fails. One whose file is damaged keeps the filters it has.
func (c *bloomLoadCmd) Run(env *boot.Env, g *cli) error {
	return g.openRedis(env, func(ctx context.Context, f *redis.Frontier) error {
		n, err := c.each(f, c.Dir, "loaded", func(k int, name string) error {
			if err := loadFile(name, func(r io.Reader) error { return f.LoadFilters(ctx, k, r, c.Force) }); err != nil {
				return err
			}
			err := loadFile(contentsName(name), func(r io.Reader) error { return f.LoadContents(ctx, k, r, c.Force) })
			if errors.Is(err, fs.ErrNotExist) { // nobody looked for duplicates
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		return g.answer(env, map[string]any{"loaded": n, "dir": c.Dir}, func(w io.Writer) {
			fmt.Fprintf(w, "loaded %s from %s\n", boot.Number(int64(n), "shard"), c.Dir)
		})
	})
}

func loadFile(name string, load func(io.Reader) error) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; `frontier bloom dump` writes it", err)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if err := load(file); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
