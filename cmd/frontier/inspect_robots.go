package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"seine/cmd/internal/boot"
	"seine/extract/preference"
	"seine/fetch/robots"
	"seine/frontier"
)

type inspectRobotsCmd struct {
	File          string        `required:"" placeholder:"FILE" help:"The robots.txt."`
	Agent         string        `default:"seine" placeholder:"TOKEN" help:"User-Agent or its product token (${default})."`
	MaxCrawlDelay time.Duration `least:"0s" placeholder:"D" help:"Longest Crawl-delay that the crawl honours (10m)."`
	Explain       bool          `help:"Add TAB group TAB rule TAB line number, and TAB what the file says of what may be done with the page, if it does."`
}

// Run answers each URL, or path, of stdin with a line, as it is written:
// nothing is made canonical. Without any it shows delay and sitemaps.
func (c *inspectRobotsCmd) Run(env *boot.Env, g *cli) error {
	body, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	if robots.Token(c.Agent) == "" {
		return boot.Usage("agent %q begins with no product that a robots.txt could name", c.Agent)
	}
	rules := robots.Parse(body, c.Agent)
	in, out := bufio.NewReaderSize(env.In, 64<<10), bufio.NewWriter(env.Out)
	asked := false
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			asked = true
			if err := c.print(g, out, rules, line); err != nil {
				return err
			}
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
		most := cmp.Or(c.MaxCrawlDelay, frontier.DefaultMaxCrawlDelay)
		facts := map[string]any{"delay": rules.Delay().String(), "sitemaps": rules.Sitemaps()}
		text := fmt.Sprintf("delay\t%v", rules.Delay())
		if rules.Delay() > most {
			facts["honoured"] = most.String()
			text += fmt.Sprintf("\thonoured\t%v", most)
		}
		for _, sitemap := range rules.Sitemaps() {
			text += "\nsitemap\t" + sitemap
		}
		for _, u := range rules.Usages() {
			text += fmt.Sprintf("\n%s\t%s\t%s\t%d", u.Label, u.Pattern, u.Value, u.Line)
		}
		if list := rules.Usages(); list != nil {
			facts["preferences"] = list
		}
		if err := g.line(out, facts, text); err != nil {
			return err
		}
	}
	return out.Flush()
}

// print writes one answer.
func (c *inspectRobotsCmd) print(g *cli, out io.Writer, rules *robots.Rules, url []byte) error {
	v := rules.Explain(pathOf(url))
	answer := map[string]any{"url": string(url), "allowed": v.Allowed}
	text := map[bool]string{true: "1", false: "0"}[v.Allowed]
	if c.Explain {
		answer["group"], answer["rule"], answer["line"] = v.Group, v.Rule, v.Line
		text = fmt.Sprintf("%s\t%s\t%s\t%d", text, v.Group, v.Rule, v.Line)
	}
	var said preference.Set
	rules.EachUsage(pathOf(url), said.AddRule)
	if !said.IsEmpty() {
		answer["preferences"] = json.RawMessage(said.AppendJSON(nil))
		if c.Explain {
			text += fmt.Sprintf("\t%s", answer["preferences"])
		}
	}
	return g.line(out, answer, text)
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
