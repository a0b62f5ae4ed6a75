package main

import (
	"bufio"
	"bytes"
	"fmt"

	"seine/cmd/internal/boot"
	"seine/frontier/canon"
)

type inspectCanonCmd struct {
	StripParams bool `help:"Use this rule of a crawl."`
	SortQuery   bool `help:"Use this rule of a crawl."`
}

// canonical is the answer to one line.
type canonical struct {
	URL   string `json:"url,omitempty"` // the fetch form, credentials and all
	Key   string `json:"key,omitempty"`
	Error string `json:"error,omitempty"`
}

// Run answers each line of stdin with one line, at once when input pauses.
func (c *inspectCanonCmd) Run(env *boot.Env, g *cli) error {
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
			answer := canonical{}
			if fault := resolve(parser, &url, &base, text, ref, hasBase && len(ref) > 0); fault != nil {
				answer.Error = fault.Error()
			} else {
				answer.URL, answer.Key = string(url.Fetch()), string(url.Key())
			}
			if err := g.line(out, answer, answer.text()); err != nil {
				return err
			}
		}
		if err != nil {
			return out.Flush() // the end of input
		}
	}
}

func (c canonical) text() string {
	if c.Error != "" {
		return "ERR\t" + c.Error
	}
	return c.URL + "\t" + c.Key
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
