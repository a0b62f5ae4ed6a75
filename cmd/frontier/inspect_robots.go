package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	"seine/cmd/internal/boot"
	"seine/fetch/robots"
)

type inspectRobotsCmd struct {
	File    string `required:"" placeholder:"FILE" help:"The robots.txt."`
	Agent   string `default:"seine" placeholder:"TOKEN" help:"User agent or its product token (${default})."`
	Explain bool   `help:"Add TAB group TAB rule TAB line number."`
}

// Run answers each URL, or path, of stdin with a line, as it is written:
// nothing is made canonical. Without any it shows delay and sitemaps.
func (c *inspectRobotsCmd) Run(env *boot.Env) error {
	body, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	rules := robots.Parse(body, c.Agent)
	in, out := bufio.NewReaderSize(env.In, 64<<10), bufio.NewWriter(env.Out)
	asked := false
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			asked = true
			c.show(out, rules, pathOf(line))
		}
		if err == nil && in.Buffered() == 0 {
			err = out.Flush()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if !asked {
		fmt.Fprintf(out, "delay\t%v\n", rules.Delay())
		for _, sitemap := range rules.Sitemaps() {
			fmt.Fprintf(out, "sitemap\t%s\n", sitemap)
		}
	}
	return out.Flush()
}

// show writes one answer.
func (c *inspectRobotsCmd) show(out io.Writer, rules *robots.Rules, path []byte) {
	v := rules.Explain(path)
	digit := map[bool]int{true: 1, false: 0}[v.Allowed]
	if c.Explain {
		fmt.Fprintf(out, "%d\t%s\t%s\t%d\n", digit, v.Group, v.Rule, v.Line)
		return
	}
	fmt.Fprintln(out, digit)
}

// pathOf is path and query of a URL as it is written, or of one without its
// host.
func pathOf(url []byte) []byte {
	url, _, _ = bytes.Cut(url, []byte("#"))
	if _, rest, ok := bytes.Cut(url, []byte("://")); ok {
		if at := bytes.IndexAny(rest, "/?"); at >= 0 {
			url = rest[at:]
		} else {
			url = nil
		}
	}
	if len(url) == 0 || url[0] != '/' {
		return append([]byte("/"), url...)
	}
	return url
}
