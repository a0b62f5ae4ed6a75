package main

import (
	"bufio"
	"bytes"
	"fmt"

	"seine/cmd/internal/boot"
	"seine/frontier/canon"
)

type inspectCanonCmd struct {
	StripParams bool `help:"As of a crawl with this key rule."`
	SortQuery   bool `help:"As of a crawl with this key rule."`
}

// Run answers each line of stdin with one line, at once when input pauses.
func (c *inspectCanonCmd) Run(env *boot.Env) error {
	parser := canon.NewParser(canon.Config{StripParams: c.StripParams, SortQuery: c.SortQuery})
	in, out := bufio.NewReaderSize(env.In, 64<<10), bufio.NewWriter(env.Out)
	var url, base canon.URL
	for {
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			text, ref, hasBase := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte("\t"))
			if fault := resolve(parser, &url, &base, text, ref, hasBase && len(ref) > 0); fault != nil {
				fmt.Fprintf(out, "ERR\t%v\n", fault)
			} else {
				fmt.Fprintf(out, "%s\t%s\n", url.Fetch(), url.Key())
			}
		}
		if err != nil {
			return out.Flush() // the end of input
		}
	}
}

func resolve(p *canon.Parser, url, base *canon.URL, text, ref []byte, hasBase bool) error {
	if !hasBase {
		return p.Parse(url, text)
	}
	if err := p.Parse(base, ref); err != nil {
		return fmt.Errorf("base: %w", err)
	}
	return p.Resolve(url, base, text, nil)
}
