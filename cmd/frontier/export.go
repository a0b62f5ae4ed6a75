package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/ask"
)

type exportCmd struct {
	File        string `arg:"" name:"file.zst" help:"File for the URLs. The settings go to FILE.yaml beside it."`
	Force       bool   `help:"Replace existing files."`
	Credentials bool   `help:"Include the credentials of URLs, origins and settings, and the headers of requests."`
}

// Run writes the files; those that are there are complete.
func (c *exportCmd) Run(env *boot.Env, g *cli) error {
	name, ok := strings.CutSuffix(c.File, ".zst")
	if !ok || filepath.Base(name) == "" {
		return boot.Usage("%q must end with .zst", c.File)
	}
	for _, file := range []string{c.File, name + ".yaml"} {
		if _, err := os.Lstat(file); err == nil && !c.Force {
			return boot.Usage("%s is there; take another name, or replace it with --force", file)
		}
	}
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		total, err := f.Stats(ctx)
		var partial error
		if errors.Is(err, frontier.ErrLostShard) {
			partial = fmt.Errorf("%w: %w", frontier.ErrPartial, err)
		} else if err != nil && !errors.Is(err, context.DeadlineExceeded) { // some are silent, and named in the end
			return err
		}
		settings, err := f.Refresh(ctx)
		if err != nil {
			return err
		}
		text, err := boot.CrawlYAML(f.Layout(), *settings, c.Credentials)
		if err != nil {
			return err
		}
		if err := replace(name+".yaml", func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return err
		}
		var left ask.Left
		err = replace(c.File, func(w io.Writer) (err error) {
			left, err = c.write(ctx, f, w)
			if errors.Is(err, frontier.ErrPartial) {
				partial, err = errors.Join(partial, err), nil
			}
			return err
		})
		if err != nil {
			return err
		}
		t := frontier.Total(total)
		if t.Leases > 0 {
			env.Log.Warn("visits were out: links of pages that were fetched meanwhile may be missing; pause the crawl and wait until none is for an export that has all", "visits", t.Leases)
		}
		if t.Recrawls > 0 {
			env.Log.Warn("URLs that wait for a recrawl are done, and not in the export", "urls", t.Recrawls)
		}
		return errors.Join(partial, g.answer(env, left, func(w io.Writer) {
			row(w, "queued", left.Queued)
			row(w, "waiting", left.Waiting)
			row(w, "dead", left.Dead)
		}))
	})
}

// write writes the URLs, an element of a feed a line.
func (c *exportCmd) write(ctx context.Context, f frontier.Operated, w io.Writer) (ask.Left, error) {
	packed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return ask.Left{}, err
	}
	var line []byte
	left, err := ask.Export(ctx, f, func(e *ask.Exported) error {
		if !c.Credentials {
			e.Credentials = ""
			for _, url := range []*string{&e.URL, &e.Referrer, &e.From} {
				if strings.Contains(*url, "@") {
					*url = frontier.LogURL(*url)
				}
			}
			e.Request = e.Request.WithoutSecrets()
			e.Text = frontier.HideCredentials(e.Text)
		}
		line = frontier.AppendExported(line[:0], &e.Entry, e.Credentials, e.Cause, e.Text)
		_, err := packed.Write(line)
		return err
	})
	if closed := packed.Close(); closed != nil {
		return left, closed
	}
	return left, err
}

// replace writes a file beside the name, which only its owner reads, and renames
// it in the end.
func replace(name string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	w := bufio.NewWriterSize(file, 1<<16)
	if err = write(w); err == nil {
		err = errors.Join(w.Flush(), file.Sync())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return os.Rename(file.Name(), name)
}
