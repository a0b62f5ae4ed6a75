package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"seine/cmd/internal/boot"
	"seine/fetch"
	"seine/fetch/wall"
)

type inspectWallCmd struct {
	Head  string `required:"" placeholder:"FILE" help:"Status line and headers of the answer, as curl -D saves them."`
	Rules string `placeholder:"FILE" help:"YAML file with rules of your own under wall_rules:, as for the fetcher (none)."`
	document
}

// savedHead is the status and the headers of a saved answer.
type savedHead struct {
	status int
	fields [][2]string
}

func (h *savedHead) Field(i int) (name, value []byte) {
	if i >= len(h.fields) {
		return nil, nil
	}
	return []byte(h.fields[i][0]), []byte(h.fields[i][1])
}

// Run prints the verdict.
func (c *inspectWallCmd) Run(env *boot.Env, g *cli) error {
	rules, err := boot.WallRules(c.Rules)
	if err != nil {
		return err
	}
	head, err := c.readHead(env)
	if err != nil {
		return err
	}
	body, err := c.readBody(env, head)
	if err != nil {
		return err
	}
	v := rules.Judge(new(wall.Scratch), head.status, head, body)
	answer := struct {
		Status int    `json:"status"`
		Vendor string `json:"vendor,omitempty"`
		Sure   string `json:"sure"`
	}{head.status, v.Vendor, v.Sure.String()}
	return g.line(env.Out, answer, v.Vendor+"\t"+answer.Sure)
}

// readHead reads the last of the saved heads: curl saves those of redirects too.
func (c *inspectWallCmd) readHead(env *boot.Env) (*savedHead, error) {
	f, err := env.Open(c.Head)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := &savedHead{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "HTTP/") {
			_, rest, _ := strings.Cut(line, " ")
			code, _, _ := strings.Cut(rest, " ")
			*h = savedHead{}
			if h.status, err = strconv.Atoi(code); err != nil {
				return nil, boot.Usage("%s: %q is no status line", c.Head, line)
			}
		} else if name, value, ok := strings.Cut(line, ":"); ok {
			h.fields = append(h.fields, [2]string{name, strings.TrimSpace(value)})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("inspect: %s: %w", c.Head, err)
	}
	if h.status == 0 {
		return nil, boot.Usage("%s holds no status line", c.Head)
	}
	return h, nil
}

// readBody reads the body. A coding that the head names is undone, unless it was before.
func (c *inspectWallCmd) readBody(env *boot.Env, h *savedHead) ([]byte, error) {
	in, done, err := c.open(env)
	if err != nil {
		return nil, err
	}
	defer done()
	body, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	for _, f := range h.fields {
		if strings.EqualFold(f[0], "Content-Encoding") {
			if text, _, err := fetch.Decode(f[1], body, wall.Bytes); err == nil {
				return text, nil
			}
		}
	}
	return body, nil
}
